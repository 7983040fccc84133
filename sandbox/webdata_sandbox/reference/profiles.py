# SPDX-License-Identifier: Apache-2.0
"""Profiles: the kinds of servers that the sandbox can play, and everything that differs between them.

Operations ask the profile for one fact and do not compare names, so a new kind of server is a new row here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .countries import COUNTRIES
from .errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .wire import Json

HTTPS_ONLY = "Webhook URL must be https"
HEADERS_REFUSED = "The following headers are not allowed"
TBS_INVALID = "Invalid tbs"
QUERY_NEEDED = "Query cannot be empty"
NO_KEY = "OpenAI API key is missing. Pass it using the 'apiKey' parameter or the OPENAI_API_KEY environment variable."
NO_DETAILS = "An unexpected error occurred. The log of the server has its details."


@dataclass(frozen=True)
class Failure:
    """An error response: its status and, unless it is a page of HTML, its body."""

    status: int
    body: Json = field(default_factory=dict)
    html: bool = False

    def error(self) -> ServiceError:
        """Return the failure as an error of an operation."""
        return ServiceError(self.status, str(self.body["error"]), whole=self.body)


def _failure(status: int, text: str = NO_DETAILS, code: str | None = None) -> Failure:
    return Failure(status, {"success": False, **({"code": code} if code else {}), "error": text})


UNKNOWN_PATH = Failure(404, html=True)
UNEXPECTED = _failure(500, code="UNKNOWN_ERROR")


@dataclass(frozen=True)
class Lack:
    """Calls that a server does not serve.

    :param method: a regular expression of methods.
    :param path: a regular expression of whole paths.
    :param failure: the response.
    :param operation: the body is validated as this operation's first; None: not validated.
    """

    method: str
    path: str
    failure: Failure
    operation: str | None = None

    def matches(self, method: str, path: str) -> bool:
        """Return whether the server lacks this call."""
        return bool(re.fullmatch(self.method, method) and re.fullmatch(self.path, path))


@dataclass(frozen=True)
class OptionLack:
    """A scrape option that a server cannot fulfill: each page with it fails.

    :param code: error code of the page.
    """

    code: str
    text: str = NO_DETAILS


@dataclass(frozen=True)
class Profile:
    """One kind of server.

    :param guarded: whether the server checks API keys and limits the rate of calls.
    :param relays: whether the server is a gateway, which passes calls to the service with its own API key. It drops the
        headers of requests and responses, and the query of each GET. The service's links have the service's host.
    :param bills: whether calls cost credits. Otherwise, costs of jobs are unknown (-1), and no call is refused for its
        cost.
    :param keys: whether a start stores its idempotency key. Otherwise, the key ends the server.
    :param prompts: whether the server has a language model for prompts.
    :param searches: whether the server has a search engine. Otherwise, every search is empty.
    :param providers: whether the server calls data providers.
    :param feedback: whether the server stores feedback.
    :param caches: whether the server stores pages, for ``minAge`` and ``lockdown``.
    :param error_pages: whether a plain-http page that no site serves is a page with a placeholder instead of an error.
    :param exact_slashes: whether a page whose address ends with a slash exists only there, and maps list all addresses
        without their last slash and query.
    :param shared_jobs: whether the paths of crawls serve batch scrapes, and the reverse.
    :param lenient_batches: whether a batch scrape ignores invalid URLs by default.
    :param queue_seconds: default time until a job starts, in sandbox time.
    :param closing_seconds: default time from the last page of a job to its end, in sandbox time.
    :param retries: seconds of sandbox time between the attempts of a delivery.
    :param lacks: calls that the server does not serve; the first match applies.
    :param unknown_path: response to a path that no operation has; None: a 404 with a JSON body.
    :param unknown_jobs: responses to unknown ids, by kind of job; 404 for other kinds.
    :param options: scrape options, formats, and proxies that the server cannot fulfill, by name.
    :param ignored: options without effect, and formats that the server omits with a warning.
    :param warnings: texts of these warnings, by name.
    :param more_metadata: whether metadata of pages has the fields that the open-source server adds to their own, and
        says which pages of a job waited for others.
    :param deprecated: successor of each deprecated path, a regular expression.
    :param page_error_events: whether failed pages of a job send an event.
    :param waived: rules of the service that the server does not enforce, by the beginning of their text.
    :param longest_timeout_ms: a scrape with a longer timeout ends immediately, as a timer of JavaScript does; None: the
        service refuses it.
    :param countries: the accepted countries of pages, in upper case; None: any two letters.
    """

    name: str
    guarded: bool = True
    relays: bool = False
    bills: bool = True
    keys: bool = True
    prompts: bool = True
    searches: bool = True
    providers: bool = True
    feedback: bool = True
    caches: bool = True
    error_pages: bool = False
    exact_slashes: bool = False
    shared_jobs: bool = False
    lenient_batches: bool = True
    queue_seconds: float = 0.0
    closing_seconds: float = 0.0
    retries: tuple[float, ...] = (60.0, 300.0, 900.0)
    lacks: tuple[Lack, ...] = ()
    unknown_path: Failure | None = None
    unknown_jobs: Mapping[str, Failure] = field(default_factory=dict)
    options: Mapping[str, OptionLack] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    warnings: Mapping[str, str] = field(default_factory=dict)
    more_metadata: bool = False
    deprecated: Mapping[str, str] = field(default_factory=dict)
    page_error_events: bool = True
    waived: frozenset[str] = frozenset()
    longest_timeout_ms: int | None = None
    countries: frozenset[str] | None = None

    def lack(self, method: str, path: str) -> Lack | None:
        """Return the reason why the server does not serve a call, or None."""
        return next((lack for lack in self.lacks if lack.matches(method, path)), None)

    def notes(self, path: str) -> dict[str, Any]:
        """Return the fields that the body of every response to a deprecated path has."""
        for pattern, successor in self.deprecated.items():
            if re.fullmatch(pattern, path):
                return {
                    "warnings": [f"This endpoint is deprecated. Use {successor}."],
                    "replacement": successor,
                }
        return {}


_ENGINES = "No engine of the server could fetch the page with these options. Engines tried: [{}]."
_NO_ENGINE = OptionLack("SCRAPE_ALL_ENGINES_FAILED", _ENGINES.format(""))
NO_SITE = OptionLack("SCRAPE_ALL_ENGINES_FAILED", _ENGINES.format("playwright, fetch"))
_FILE_ENGINES = OptionLack("SCRAPE_ALL_ENGINES_FAILED", _ENGINES.format("pdf, document"))
_NO_MODEL = OptionLack("UNKNOWN_ERROR")
_NO_BROWSER = _failure(503, "Browser feature is not configured: the server has no browser service.")
_ID = r"[^/]+"

HOSTED = Profile("hosted")
SELF_HOSTED = Profile(
    "self-hosted",
    guarded=False,
    bills=False,
    keys=False,
    prompts=False,
    searches=False,
    providers=False,
    feedback=False,
    caches=False,
    error_pages=True,
    exact_slashes=True,
    shared_jobs=True,
    lenient_batches=False,
    queue_seconds=1.0,
    closing_seconds=12.0,
    retries=(),
    lacks=(
        Lack("GET", r"/v2/team/(credit|token)-usage(/historical)?", UNEXPECTED),
        Lack("GET", "/v2/team/activity", _failure(500, "Failed to fetch activity.")),
        Lack("GET|POST", r"/v2/search/(developer|research/.+)", UNKNOWN_PATH),
        Lack("GET", "/v2/parse/formats", UNKNOWN_PATH),
        Lack("GET", rf"/v2/interact/{_ID}/replay(/\d+)?", _NO_BROWSER),
        Lack("GET", rf"/v2/interact/{_ID}/replay/{_ID}", _failure(400, "Invalid pageId.")),
        Lack("POST", "/v2/agent", UNEXPECTED, "agent"),
        Lack("POST", "/v2/monitor", UNEXPECTED, "monitor.create"),
        Lack("PATCH", rf"/v2/monitor/{_ID}", UNEXPECTED, "monitor.update"),
        Lack("GET|POST|DELETE", r"/v2/monitor(/.+)?", UNEXPECTED),
        Lack("GET", "/v2/interact", UNEXPECTED),
        Lack("POST|DELETE", r"/v2/(interact|browser)(/.+)?", _NO_BROWSER),
        Lack(
            "POST|DELETE",
            rf"/v2/scrape/{_ID}/interact",
            _failure(501, "The server does not keep scrapes without database authentication."),
        ),
        Lack("GET", rf"/v2/scrape/{_ID}", _failure(404, "Job not found.")),
    ),
    unknown_path=UNKNOWN_PATH,
    unknown_jobs={"extract": UNEXPECTED},
    options={
        "json": _NO_MODEL,
        "summary": _NO_MODEL,
        "menu": _NO_MODEL,
        "query": _NO_MODEL,
        "deterministicJson": _NO_MODEL,
        "onlyCleanContent": _NO_MODEL,
        "branding": OptionLack("SCRAPE_BRANDING_NOT_SUPPORTED", "The server has no browser for branding."),
        "actions": OptionLack("SCRAPE_ACTIONS_NOT_SUPPORTED", "The server has no browser for actions."),
        "audio": _NO_ENGINE,
        "video": _NO_ENGINE,
        "rawBase64": _NO_ENGINE,
        "stealth": _FILE_ENGINES,
        "enhanced": _FILE_ENGINES,
    },
    ignored=frozenset(
        {
            "screenshot",
            "product",
            "question",
            "highlights",
            "changeTracking",
            "redactPII",
            "profile",
            "minAge",
            "mobile",
            "location",
        }
    ),
    warnings={
        "json": f"JSON extraction failed: {NO_KEY}",
        "question": "Query generation failed after all models.",
        "highlights": "Highlights generation failed after all models.",
        "changeTracking": "Comparing failed, please try again later.",
    },
    more_metadata=True,
    deprecated={rf"/v2/extract(/{_ID})?": "/v2/scrape"},
    page_error_events=False,
    waived=frozenset({HTTPS_ONLY, HEADERS_REFUSED, QUERY_NEEDED, TBS_INVALID}),
    longest_timeout_ms=2**31 - 1,
    countries=COUNTRIES,
)


def _of_gateway(status: int, text: str, code: str, kind: str = "invalid_request_error") -> Failure:
    return Failure(status, {"error": {"message": text, "type": kind, "code": code}})


NO_OBJECT = _of_gateway(400, "Firecrawl request body must be a JSON object", "invalid_request_error")
UNREADABLE = _of_gateway(500, "Internal server error", "server_error", "server_error")
_UNKNOWN_JOB = _of_gateway(404, "Firecrawl job not found", "not_found")
GATEWAY = Profile(
    "gateway",
    relays=True,
    lacks=(
        Lack("GET", r"/v2/crawl/(active|ongoing)", _UNKNOWN_JOB),
        Lack("GET", r"(?!/v2/(crawl|batch/scrape)/[^/]+$).*", _of_gateway(404, "Not Found", "not_found")),
        *(
            Lack(
                method,
                rf"(?!/v2/({served})$).*",
                _of_gateway(405, "Method Not Allowed", "invalid_request_error"),
            )
            for method, served in (
                ("POST", "scrape|map|search|crawl|batch/scrape"),
                ("DELETE", r"(crawl|batch/scrape)/[^/]+"),
                ("PUT|PATCH", "never"),
            )
        ),
    ),
    unknown_jobs=dict.fromkeys(("crawl", "batch_scrape"), _UNKNOWN_JOB),
)
PROFILES = {profile.name: profile for profile in (HOSTED, SELF_HOSTED, GATEWAY)}
