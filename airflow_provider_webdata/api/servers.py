# SPDX-License-Identifier: Apache-2.0
"""Kinds of servers: the one table of what differs between them. See docs/servers.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec

from airflow_provider_webdata.common.hosts import is_private_name, url_host
from airflow_provider_webdata.get_provider_info import HOSTED_URL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Kind = Literal["hosted", "gateway", "self-hosted"]
"""What a user declares. `hosted`: the server bills calls. `gateway`: it passes calls on to one that bills, perhaps
without headers or queries. `self-hosted`: it bills nothing."""

KINDS: tuple[Kind, ...] = ("hosted", "gateway", "self-hosted")
WITHOUT_KEY = "'self-hosted' or 'gateway'"
"""The kinds whose servers may require no API key, for messages."""
DECLARE = 'Set "Server" to self-hosted if it bills no calls, else to gateway'

HOSTED_HOST = urlsplit(HOSTED_URL).hostname
ONLY_SELF_HOSTED = (
    "Only a self-hosted server accepts it. If yours is one, set server of the connection to 'self-hosted'"
)
PLACEHOLDER_KEY = "no-key-required"
"""Sent as the API key to a server that requires none, because every request must have one."""

NO_SEARCH = (
    "The response has no lists of results, as from a self-hosted server without a search backend. Configure one on the "
    "server"
)
NO_LINKS = (
    "The map has no links: the site is down, or has no sitemap. A self-hosted server lists only the pages of the "
    "site's sitemap; crawl the site to find others"
)
NO_BALANCE = "it does not report credits"
DROPS_QUERY = (
    "a gateway on the way drops the query of the request, so that only the first page of the list can be read. Let it "
    "pass queries, or use a connection to the server behind it"
)
_NO_MONITORS = "it has no monitors. Schedule a DAG that scrapes the pages with changes= instead"
_NO_SESSIONS = (
    "it has no browser sessions, which need its browser service and a database. Use a connection to the hosted "
    "service"
)
_NO_AGENT = "it has no agent. Use a connection to the hosted service"
_NO_SCRAPES = "it keeps no scrapes. Scrape the page again"
_NO_KEPT_PAGES = (
    "it keeps no scrapes, whose pages a browser could open. Use a connection to the hosted service"
)
_NO_INDEX = "it has no such search. Use a connection to the hosted service"
_NO_PROVIDERS = "it has no data providers. Use a connection to the hosted service"
_NO_MODEL = "it needs a language model. Configure one on the server, or omit the option"
_NO_ENGINE = "none of its engines supports the option. Omit it, or use a connection to the hosted service"

_LACKS: Mapping[str, str] = {
    **dict.fromkeys(("credit_usage", "credit_history", "token_usage", "token_history"), NO_BALANCE),
    "activity": "it does not list calls. Use its log",
    **dict.fromkeys(
        (
            *("create_monitor", "list_monitors", "get_monitor", "update_monitor", "delete_monitor"),
            *("run_monitor", "list_monitor_checks", "get_monitor_check"),
        ),
        _NO_MONITORS,
    ),
    **dict.fromkeys(
        ("open_session", "list_sessions", "execute", "close_session", "replay", "replay_page"), _NO_SESSIONS
    ),
    "get_scrape": _NO_SCRAPES,
    **dict.fromkeys(("interact_with_scrape", "stop_interaction_with_scrape"), _NO_KEPT_PAGES),
    "start_agent": _NO_AGENT,
    **dict.fromkeys(("developer_search", "paper_search", "paper", "similar_papers"), _NO_INDEX),
    **dict.fromkeys(("run_provider", "find_tools"), _NO_PROVIDERS),
}
"""What the recorded self-hosted server lacks, by endpoint, as the rest of a sentence about the server."""

_NO_ROUTE_PAGE = re.compile(r"Cannot (?:GET|POST|PATCH|PUT|DELETE) /[^\s<]*")
"""In the page that the service's software returns for an unknown path."""
_NAMES_NOTHING = re.compile(r"not found\.?", re.IGNORECASE)
"""The text of a 404 for an unknown path. That for a missing object names the object."""
_NO_FIGURES = "Could not find"
"""Begins the service's 404 for a team without credits or tokens: the only one for a path without an id."""
CODE_NAMES = ("code", "errorCode", "error_code", "feedbackErrorCode")
"""Fields of a failure that have its code, the most common first."""
_WRONG_KEY = re.compile(
    r"\b(?:invalid|missing|unknown|wrong|revoked)(?: or \w+)? (?:api[ _-]?key|token|credentials)\b"
    r"|\bapi[ _-]?key (?:is )?(?:invalid|missing|unknown|wrong|revoked|required)\.?$|\bnot authenticated\b",
    re.IGNORECASE,
)
"""In a 403 of servers that have no 401 for a wrong key."""
_LACKING_CODES = {
    "DB_DISABLED": "it has no database. Start it with one, or use another server",
    "search_disabled": "it has no search backend. Configure one on the server",
}
_LACKING = frozenset({500, 501, 503})
_MODEL_FORMATS = frozenset({"json", "summary", "question", "highlights", "changeTracking"})
_ENGINE_FORMATS = frozenset({"audio", "video", "branding", "rawBase64"})
_ENGINE_PROXIES = frozenset({"stealth", "enhanced"})
_MODEL_REMARKS = ("API key is missing", "generation failed after all models")
"""Texts of warnings of a server without a language model, as recorded."""
_ENGINE_REMARK = "does not support the following features"
_NOT_CONTENT = frozenset({"metadata", "warning"})


class Server(msgspec.Struct, frozen=True):
    """What the client, tasks, and checks must know about a kind of server.

    :param kind: the declared kind; None: unknown.
    :param bills: calls cost credits. If false, a start whose outcome is unknown may be repeated.
    :param requires_key: it requires an API key.
    :param reports_credits: it always reports the credits of its team.
    :param accepts_keys: `x-idempotency-key` and `x-request-id` may be sent. A self-hosted server without a database
        ends when it receives the former, also behind a gateway.
    :param trusts_keys: it certainly recognizes a repeated request by its key, so that the request can be repeated.
    :param retries_deliveries: it repeats a webhook delivery that failed.
    :param longest_scrape_ms: maximum `timeout` of a scrape, in milliseconds.
    :param allows_plain_webhooks: it delivers webhooks to plain-http URLs.
    :param local_switch: setting of the server without which it refuses private addresses; None: it always does.
    :param caches: it returns pages that it fetched earlier.
    :param has_search: it searches without a backend that its operator must configure.
    :param categories: its names of search categories that differ from the reference's, by the reference's name.
    :param lacks: missing operations by endpoint name, as the rest of a sentence about the server.
    :param record: where its users see the jobs that it has run.
    """

    kind: Kind | None
    bills: bool = True
    requires_key: bool = True
    reports_credits: bool = False
    accepts_keys: bool = False
    trusts_keys: bool = False
    retries_deliveries: bool = True
    longest_scrape_ms: int = 300_000
    allows_plain_webhooks: bool = False
    local_switch: str | None = None
    caches: bool = True
    has_search: bool = True
    categories: Mapping[str, str] = {}
    lacks: Mapping[str, str] = {}
    record: str = "the service's dashboard"

    @property
    def is_self_hosted(self) -> bool:
        """Whether the connection declares a self-hosted server."""
        return self.kind == "self-hosted"


HOSTED = Server("hosted", reports_credits=True, accepts_keys=True, trusts_keys=True)
"""The hosted service, at its own host: only there does a key certainly reach what stores it."""
DECLARED_HOSTED = Server("hosted", accepts_keys=True)
"""Any other host that its connection declares hosted, such as an own server with database authentication."""
GATEWAY = Server("gateway", requires_key=False)
SELF_HOSTED = Server(
    "self-hosted",
    bills=False,
    requires_key=False,
    retries_deliveries=False,
    longest_scrape_ms=2**31 - 1,  # a longer timer would end immediately
    allows_plain_webhooks=True,
    local_switch="ALLOW_LOCAL_WEBHOOKS=true",
    caches=False,
    has_search=False,
    categories={"codehost": "github"},
    lacks=_LACKS,
    record="the server's log",
)
UNKNOWN = Server(None)
"""A host that no connection declares: its calls count as billed."""

_BY_KIND: Mapping[Kind | None, Server] = {
    "hosted": DECLARED_HOSTED,
    "gateway": GATEWAY,
    "self-hosted": SELF_HOSTED,
    None: UNKNOWN,
}


def server_of(base_url: str, declared: Kind | None) -> Server:
    """Return the server of a connection.

    :param declared: the connection's field `server`.
    """
    return HOSTED if is_hosted_service(base_url) else _BY_KIND[declared]


def is_hosted_service(base_url: str) -> bool:
    """Return whether a base URL, with or without its scheme, is the hosted service's."""
    try:
        return urlsplit(base_url if "://" in base_url else f"//{base_url}").hostname == HOSTED_HOST
    except ValueError:
        return False


def missing_part(
    server: Server, endpoint: str, status: int, code: str | None, message: str, wire: Mapping[str, Any]
) -> str | None:
    """Return what a server lacks for a request that it refused, as the rest of a sentence about it, or None.

    See sandbox/docs/service.md#server-lacks.

    :param endpoint: name of the endpoint.
    :param message: the server's message.
    :param wire: the request.
    """
    if status in _LACKING and (lack := server.lacks.get(endpoint)):
        return lack
    # It answers this for every scrape, as for an unknown one.
    if status == 404 and endpoint == "get_scrape":
        return server.lacks.get(endpoint)
    # A server that bills has billed such a page.
    if not server.bills and status in (200, 500) and (lack := part_in_remark(message, wire)):
        return lack
    # It does not know the field for calls of data providers, and may require the field that they lack.
    is_service = server.reports_credits
    if (
        not is_service
        and status in (400, 422)
        and "alexandria" in wire
        and re.search("alexandria|url", message)
    ):
        return _NO_PROVIDERS
    if code in _LACKING_CODES:
        return _LACKS.get(endpoint, _LACKING_CODES[code])
    # Its refusal of a prompt has neither a code nor details, unlike that of an invalid field.
    if (
        server.is_self_hosted
        and status == 400
        and code is None
        and wire.get("prompt")
        and "prompt" in message
    ):
        return f"{_NO_MODEL} (prompt)"
    if status == 501:
        return _LACKS.get(
            endpoint, "it does not implement this operation. Use another one, or another server"
        )
    if status == 503 and "not configured" in message:
        return _LACKS.get(endpoint, "a service that it needs is not configured. Configure it on the server")
    if (code or "").endswith("_NOT_SUPPORTED"):
        return _NO_ENGINE
    options = [*_engine_options(wire)]
    # With an enhanced proxy, a self-hosted server tries only engines for files.
    tried_none = "tried: []" in message or (server.is_self_hosted and "proxy" in options)
    if code == "SCRAPE_ALL_ENGINES_FAILED" and tried_none:
        return _named(_NO_ENGINE, options)
    # Other codes name another cause, such as an unknown host.
    fails_unexpectedly = server.is_self_hosted and status == 500 and code in (None, "UNKNOWN_ERROR")
    if fails_unexpectedly and (models := [*_model_options(wire)]):
        return f"{_NO_MODEL} ({', '.join(models)})"
    return None


def part_in_remark(text: str, wire: Mapping[str, Any]) -> str | None:
    """Return what a server lacks according to the warning or the error of a page, as in `missing_part`.

    :param wire: the request.
    """
    if any(remark in text for remark in _MODEL_REMARKS):
        return _named(_NO_MODEL, _model_options(wire))
    if _ENGINE_REMARK in text:
        return _named(_NO_ENGINE, (f"format {kind}" for kind in _format_types(wire)))
    return None


def warning_instead(server: Server, document: Mapping[str, Any]) -> str | None:
    """Return the warning that an unbilled document has instead of every requested format, or None.

    See sandbox/docs/service.md#document-without-formats.
    """
    if server.bills or any(document[name] is not None for name in document.keys() - _NOT_CONTENT):
        return None
    return document.get("warning") or None


def lacks_search(server: Server, wire: Mapping[str, Any]) -> bool:
    """Return whether a server answered a search as without a search backend: with no list, not even an empty one.

    :param wire: the response.
    """
    found = wire.get("data") or {}
    return not server.has_search and not any(isinstance(given, list) for given in found.values())


def no_route(status: int, text: str, *, is_json: bool, names_object: bool) -> str | None:
    """Return a server's report that it lacks the path or method, or None. See sandbox/docs/service.md#unknown-paths.

    :param text: the message of a JSON object, else the beginning of the body.
    :param is_json: whether the body is a JSON object. Other text may be a proxy's.
    :param names_object: the request names an object, which may be missing, or the code says what is missing.
    """
    if status == 404 and text and not is_json:
        found = _NO_ROUTE_PAGE.search(text)
        return found[0] if found else None
    is_missing = status == 404 and not names_object and not text.startswith(_NO_FIGURES)
    is_refused = status == 405 and (is_json or not text)
    return (text or "the body is empty") if is_missing or is_refused else None


def has_no_objects(server: Server, endpoint: str, text: str) -> bool:
    """Return whether a 404 means that a server lacks an operation, although the request names an object.

    The hosted service has all of them.

    :param text: the server's message; empty for an empty body, which may be a proxy's unless the kind lacks it.
    """
    if server.kind == "hosted":
        return False
    return endpoint in (_LACKS if _NAMES_NOTHING.fullmatch(text) else server.lacks if not text else ())


def may_refuse_private(code: object) -> bool:
    """Return whether a failed page with this code may be a refused private address: other codes name their cause."""
    return code == "SCRAPE_ALL_ENGINES_FAILED" or not str(code or "").startswith("SCRAPE_")


def private_target_remedy(server: Server, urls: Iterable[object]) -> str:
    """Return the next step after a page failed, as the rest of a sentence; empty if no URL is private."""
    host = _first_private(server, urls)
    if host is None:
        return ""
    return (
        f"set {server.local_switch} for the server, which otherwise refuses private addresses such as {host}"
    )


def private_webhook_note(server: Server, url: str) -> str:
    """Return what deliveries to a private webhook URL require, as a sentence; empty if the URL is not private."""
    host = _first_private(server, [url])
    if host is None:
        return ""
    return f"{host} is a private address, to which the server delivers only with {server.local_switch}"


def _first_private(server: Server, urls: Iterable[object]) -> str | None:
    if server.local_switch is None:
        return None
    hosts = (url_host(url) for url in urls if isinstance(url, str))
    return next((host for host in hosts if host is not None and is_private_name(host)), None)


def refuses_key(message: str) -> bool:
    """Return whether the message of a 403 is about the API key itself, not about what the key may do."""
    return _WRONG_KEY.search(message) is not None


def missing_route(endpoint: str) -> str:
    """Return what a server lacks that does not know the path of an endpoint, as in `missing_part`."""
    return _LACKS.get(endpoint, 'it has no such operation. Check "Base URL", or use another server')


def may_be_missing(server: Server, endpoint: str, status: int) -> bool:
    """Return whether an undeclared self-hosted server would report this way that it lacks an operation."""
    return server.kind is None and status == 500 and endpoint in _LACKS


def _named(lack: str, options: Iterable[str]) -> str:
    names = ", ".join(options)
    return f"{lack} ({names})" if names else lack


def _format_types(wire: Mapping[str, Any]) -> Iterator[str]:
    options = wire.get("scrapeOptions")
    for part in (wire, options if isinstance(options, Mapping) else {}):
        formats = part.get("formats")
        for item in formats if isinstance(formats, list) else ():
            kind = item.get("type") if isinstance(item, Mapping) else item
            if isinstance(kind, str):
                yield kind


def _engine_options(wire: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of a request that only some fetching engines support."""
    options = wire.get("scrapeOptions")
    for part in (wire, options if isinstance(options, Mapping) else {}):
        yield from (name for name in ("mobile", "location") if part.get(name))
        if part.get("proxy") in _ENGINE_PROXIES:
            yield "proxy"
    yield from (f"format {kind}" for kind in _format_types(wire) if kind in _ENGINE_FORMATS)


def _model_options(wire: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of a request that a language model processes."""
    options = wire.get("scrapeOptions")
    for part in (wire, options if isinstance(options, Mapping) else {}):
        yield from (name for name in ("onlyCleanContent", "prompt") if part.get(name))
    yield from (f"format {kind}" for kind in _format_types(wire) if kind in _MODEL_FORMATS)
