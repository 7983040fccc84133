"""Limits of a guarded hook: credits, calls, and the hosts that the service may visit."""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_webdata.api.endpoints import (
    PARSE,
    PARSE_BY_REFERENCE,
    SCRAPE,
    SEARCH,
    Endpoint,
    ResponseT,
)
from airflow_provider_webdata.api.errors import (
    CacheMissError,
    CallRefusedError,
    ClientError,
    ConfigurationError,
    InvalidRequestError,
    NotFoundError,
    PageError,
    PageRefusedError,
    RateLimitError,
    TransportError,
    UnsupportedError,
    UploadError,
)
from airflow_provider_webdata.api.models.base import ResponseModel
from airflow_provider_webdata.api.models.fields import hostname
from airflow_provider_webdata.api.prices import (
    INCLUDED,
    Price,
    PriceBound,
    by_format,
    failed_scrape,
    page_extras,
    reported_credits,
)
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.item_urls import was_fetched
from airflow_provider_webdata.common.numbers import credits_text, known_credits
from airflow_provider_webdata.hooks.calls import checked_body
from airflow_provider_webdata.hooks.host_rules import HostRules
from airflow_provider_webdata.hooks.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_webdata.hooks.calls import Call

_NO_EXTRA_BODY = "a guarded hook accepts no extra_body, because it is sent unchecked; omit it"

_PAGES = (SCRAPE, PARSE, PARSE_BY_REFERENCE)

_OK = 200

_SCHEMES = ("http://", "https://")

_BILLS_NOTHING = (
    ClientError,
    ConfigurationError,
    InvalidRequestError,
    NotFoundError,
    RateLimitError,
    UnsupportedError,
    UploadError,
)


class CallGuard:
    """Limits that calls are checked against before they are sent, for any number of hooks and threads.

    Calls that read, cancel, or delete are free and always admitted. Changes to a monitor or the team's policy have no
    known price and may lead to visits of any host. Code runs only in browser sessions opened through the guard.

    :param max_credits: maximum total cost of all calls, in credits. The guard refuses a call that may cost more than
        the remaining credits at the highest documented price, or whose price has no documented bound. A job counts at
        its maximum cost. None: no limit.
    :param max_calls: maximum number of billed calls. None: no limit.
    :param allowed_domains: host names, including their subdomains, that may be visited. None: all public hosts.
    :param blocked_domains: host names, including their subdomains, that may not be visited.
    :param ledger: a ledger with a limit of `max_credits`, which may be partly spent. None: a new one.
    :raises ArgumentError: a limit is not a number of at least 0, or a domain is not a host name.
    """

    def __init__(
        self,
        *,
        max_credits: float | None = None,
        max_calls: int | None = None,
        allowed_domains: Iterable[str] | None = None,
        blocked_domains: Iterable[str] | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        for name, cap in (("max_credits", max_credits), ("max_calls", max_calls)):
            if cap is not None and (
                isinstance(cap, bool) or not isinstance(cap, (int, float)) or not cap >= 0
            ):
                raise ArgumentError(f"{name}: must be a number of at least 0 (given: {cap!r})")
        self.hosts = HostRules(allowed_domains, blocked_domains)
        self._ledger = Ledger(limit=max_credits) if ledger is None else ledger
        self._max_calls = max_calls
        self._calls = 0
        self._names = itertools.count(1)
        self._sessions: set[str] = set()
        self._lock = threading.Lock()

    def admit(self, call: Call[ResponseT]) -> tuple[Call[ResponseT], str | None]:
        """Return the call to send, restricted to the allowed domains. Looks up host names, which may block.

        :return: the call, and the name of its credit reservation; None: the call is free.
        :raises CallRefusedError: the call may cost too much or visit a forbidden host.
        """
        endpoint = call.endpoint
        changes = endpoint.method in {"PATCH", "PUT"}
        if endpoint.session == "uses":
            self._check_session(call)
        if not endpoint.is_declared:
            self._check_undeclared(call)
            return call, None if endpoint.price is None else self._reserve(endpoint, {}, call)
        if (endpoint.price is None and not changes) or endpoint.price == INCLUDED:
            return call, None
        body = {} if call.body is None else call.body.to_wire()
        if call.extra_body:
            raise _refused(endpoint, _NO_EXTRA_BODY)
        call = self._within_domains(call, body)
        return call, self._reserve(endpoint, body, call)

    def check(self, call: Call[Any]) -> None:
        """Check a call that is sent later.

        :raises CallRefusedError: as in `admit`.
        """
        _, reservation = self.admit(call)
        if reservation is not None:
            self._ledger.settle(reservation, 0)
            with self._lock:
                self._calls -= 1

    def failed(self, call: Call[Any], reservation: str | None, error: BaseException) -> None:
        """Record the cost of a call that failed."""
        if reservation is not None:
            body = {} if call.body is None else call.body.to_wire()
            cost = 0 if call.endpoint.price is None else cost_of_failure(error, body)
            is_repeatable = reservation == _execution(call)
            self._ledger.settle_failed(
                reservation, error, cost, _operation(call), is_repeatable=is_repeatable
            )

    def answered(self, call: Call[ResponseT], reservation: str | None, answer: ResponseT) -> None:
        """Record the cost of a call, and check its response.

        :raises CallRefusedError: the page redirected to a forbidden host, or possibly did.
        """
        if reservation is not None:
            self._settle(call, reservation, answer)
        if call.endpoint.session == "opens" and (opened := getattr(answer, "id", None)):
            self._sessions.add(opened)
        self._check_arrival(call, answer)

    def _check_session(self, call: Call[Any]) -> None:
        if call.extra_body:
            raise _refused(call.endpoint, _NO_EXTRA_BODY)
        if self.hosts.limits_domains:
            raise _refused(
                call.endpoint,
                "code in a browser session may visit any domain; use a hook without domain limits",
            )
        if (call.path or {}).get("session_id") not in self._sessions:
            raise _refused(
                call.endpoint,
                "this guarded hook did not open the session and cannot limit it; open one with open_session()",
            )

    def _check_undeclared(self, call: Call[Any]) -> None:
        if self.hosts.limits_domains:
            raise _refused(call.endpoint, "the call may visit any domain; use a hook without domain limits")
        for url in _urls_within([call.query or {}, call.extra_body or {}]):
            if problem := self.hosts.problem(url, resolve=True):
                raise _refused(call.endpoint, problem)

    def _within_domains(self, call: Call[ResponseT], body: Mapping[str, Any]) -> Call[ResponseT]:
        endpoint = call.endpoint
        if self.hosts.limits_domains:
            # A prompt may choose the options that the body omits.
            leaves = body.get("allowExternalLinks") or body.get("prompt")
            acts = body.get("actions") or (body.get("scrapeOptions") or {}).get("actions")
            if endpoint.visits == "any" or leaves or acts:
                omit = "" if endpoint.visits == "any" else "omit actions, allowExternalLinks, and prompt, or "
                raise _refused(
                    endpoint, f"the call may visit any domain; {omit}use a hook without domain limits"
                )
        for url in _urls(body):
            if problem := self.hosts.problem(url, resolve=True):
                raise _refused(endpoint, problem)
        if body.get("allowSubdomains") and (problem := self.hosts.subdomain_problem(body["url"])):
            raise _refused(endpoint, f"allow_subdomains: {problem}")
        if endpoint is SEARCH and self.hosts.limits_domains:
            return replace(call, body=checked_body(endpoint, {**body, **self._search_domains(call, body)}))
        return call

    def _search_domains(self, call: Call[Any], body: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the field that limits a search to the domains; the service accepts only one of the two."""
        hosts, given, excluded = self.hosts, body.get("includeDomains"), body.get("excludeDomains") or ()
        for host in given or ():
            if problem := hosts.problem(host, resolve=False) or hosts.blocked_within(host):
                raise _refused(call.endpoint, f"include_domains: {problem}")
        if given:
            return {}
        if hosts.allowed is None:
            names = [host for host in hosts.blocked if _filters(host)]
            missed = [f"{host} is a blocked domain" for host in hosts.blocked if host not in names]
            found = {"excludeDomains": list(dict.fromkeys([*excluded, *names]))}
        elif excluded:
            raise _refused(call.endpoint, "exclude_domains cannot be combined with allowed_domains; omit it")
        else:
            names = [
                host for host in hosts.allowed if _filters(host) and not hosts.problem(host, resolve=False)
            ]
            if not names:
                # The service reads an empty list as no filter.
                raise _refused(
                    call.endpoint, f"allowed_domains: a search can be limited to none of {[*hosts.allowed]}"
                )
            missed = [problem for host in names if (problem := hosts.blocked_within(host))]
            found = {"includeDomains": names}
        # Without scraping, no page is visited.
        if missed and (body.get("scrapeOptions") or {}).get("formats"):
            why = "which a search cannot exclude; omit scrape_options, or set include_domains"
            raise _refused(call.endpoint, f"{missed[0]}, {why}")
        return {name: names for name, names in found.items() if names}

    def _reserve(self, endpoint: Endpoint[Any], body: Mapping[str, Any], call: Call[Any]) -> str:
        bound, name = price_bound(call, body), _execution(call)
        with self._lock:
            if self._max_calls is not None and self._calls >= self._max_calls:
                raise _refused(endpoint, f"max_calls={self._max_calls} is reached")
            if name is not None and self._ledger.is_reserved(name):
                self._calls += 1
                return name
            most = self._ledger.limit
            if most is not None and not bound.is_known:
                raise _refused(
                    endpoint,
                    f"max_credits={credits_text(most)} cannot be enforced: {'; '.join(bound.unknown)}",
                )
            name = name or str(next(self._names))
            if not self._ledger.reserve(name, bound.credits):
                raise _refused(
                    endpoint,
                    f"the call may cost up to {credits_text(bound.credits)} credits, but only "
                    f"{credits_text(max(self._ledger.left, 0))} of max_credits={credits_text(most)} are left",
                )
            self._calls += 1
        return name

    def _settle(self, call: Call[Any], reservation: str, answer: Any) -> None:
        cost, body = _cost(call, answer), {} if call.body is None else call.body.to_wire()
        # A repeated call to a data provider has the id of the first one, and is not billed again.
        name = getattr(answer, "scrape_id", None)
        formats = by_format(cost or 0, 1, page_extras(body)) if call.endpoint in _PAGES else None
        self._ledger.settle(reservation, cost, _operation(call), call=name, formats=formats)
        if call.endpoint.price is not None:
            self._ledger.report()

    def _check_arrival(self, call: Call[Any], answer: Any) -> None:
        if call.endpoint is not SCRAPE or (problem := self.arrival_problem(answer.data.metadata)) is None:
            return
        cost = self._ledger.cost(_cost(call, answer))
        raise CallRefusedError(
            f"scrape: {problem}{'' if cost == 0 else '. The scrape is billed'}",
            credits_used=cost,
            was_sent=True,
        )

    def arrival_problem(self, metadata: Any) -> str | None:
        """Return why a page may be from a forbidden host, or None."""
        found = getattr(metadata, "url", None)
        # A page's own tags of that name make the value a list, or anything else.
        for url in found if isinstance(found, list) and found else [found]:
            if isinstance(url, str) and url:
                if problem := self.hosts.problem(url, resolve=False):
                    return f"the page redirected to a forbidden URL: {problem}"
            elif self.hosts.limits_domains and _was_fetched(metadata):
                return "the response does not state the final URL of the page, which may be forbidden"
        return None


def price_bound(call: Call[Any], body: Mapping[str, Any]) -> PriceBound:
    """Return the maximum cost of a call that bills.

    :param body: the request in wire form.
    """
    endpoint = call.endpoint
    if not isinstance(endpoint.price, Price):
        return PriceBound(0, "", (f"the price of a call to {endpoint.label} is unknown",))
    body = {**body, **(call.priced or {})}
    if call.upload is not None:
        body = {**body, "filename": call.upload.name}
    if endpoint.session == "opens":
        # A later call in the session may send a prompt.
        body = {**body, "prompt": True}
    return endpoint.price.most(body)


def _filters(host: str) -> bool:
    """Return whether the domain filter of a search accepts a host."""
    try:
        return bool(hostname(host))
    except ValueError:
        return False


def _urls(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the URLs that the service may read for a request, or send its result to."""
    for part in (body, *(body.get("targets") or ()), body.get("webhook") or {}):
        if (url := part.get("url")) is not None:
            yield url
        yield from part.get("urls") or ()


def _urls_within(value: Any, name: str = "") -> Iterator[str]:
    """Yield the URLs in a request of any shape."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _urls_within(part, key)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _urls_within(part, name)
    elif isinstance(value, str) and (name in {"url", "urls"} or value.lower().startswith(_SCHEMES)):
        yield value


def _was_fetched(metadata: Any) -> bool:
    # The hook raises the error of any other page.
    return not isinstance(metadata, ResponseModel) or was_fetched(metadata.to_wire())


def _execution(call: Call[Any]) -> str | None:
    """Return the name of a call that is billed once however often it is sent, or None for any other call."""
    if call.endpoint.key_header != "x-request-id" or call.idempotency_key is None or call.body is None:
        return None
    content = json.dumps(call.body.to_wire(), sort_keys=True)
    return f"{call.idempotency_key}/{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def _operation(call: Call[Any]) -> str:
    price = call.endpoint.price
    return price.operation if isinstance(price, Price) else call.endpoint.name


def _cost(call: Call[Any], answer: Any) -> float | None:
    price = call.endpoint.price
    if price is None:
        # A change of a monitor or the policy.
        return 0
    if isinstance(price, Price):
        return price.cost(answer, {} if call.body is None else call.body.to_wire())
    return reported_credits(answer)


def cost_of_failure(error: BaseException, body: Mapping[str, Any] | None = None) -> float | None:
    """Return the credits that a failed call cost, or None if unknown. See docs/service.md#credits-failed.

    :param body: the request in wire form.
    """
    if isinstance(error, CallRefusedError):
        return error.credits_used
    if isinstance(error, TransportError):
        return None if error.sent else 0
    if isinstance(error, PageError) and error.status == _OK and error.code is None:
        # The page is a result of the service.
        return known_credits(error.body.get("creditsUsed"))
    if isinstance(error, (PageError, PageRefusedError, CacheMissError)):
        return failed_scrape(error.code, body or {})
    return 0 if isinstance(error, _BILLS_NOTHING) else None


def _refused(endpoint: Endpoint[Any], why: str) -> CallRefusedError:
    return CallRefusedError(f"{endpoint.label}: the call was not sent: {why}")
