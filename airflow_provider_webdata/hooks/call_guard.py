# SPDX-License-Identifier: Apache-2.0
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
    ENDPOINTS,
    MAP,
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

_STAYS_WITHIN_DOMAINS = (SEARCH, SCRAPE, MAP)
"""The calls that a request and the final URL of a page keep within domains."""

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

    Without domains, calls that read, cancel, or delete are free and always admitted. Changes to a monitor or the team's
    policy have no known price. Code runs only in browser sessions opened through the guard.

    :param max_credits: maximum total cost of all calls, in credits. The guard refuses a call that may cost more than
        the remaining credits at the highest documented price, or whose price has no documented bound. A job counts at
        its maximum cost. None: no limit.
    :param max_calls: maximum number of billed calls. None: no limit.
    :param allowed_domains: host names, including their subdomains, that may be visited. Only searches, scrapes, and
        maps are then sent. None: all public hosts.
    :param ledger: a ledger with a limit of `max_credits`, which may be partly spent. None: a new one.
    :raises ArgumentError: a limit is not a number of at least 0, or a domain is not a host name.
    """

    def __init__(
        self,
        *,
        max_credits: float | None = None,
        max_calls: int | None = None,
        allowed_domains: Iterable[str] | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        for name, cap in (("max_credits", max_credits), ("max_calls", max_calls)):
            if cap is not None and (
                isinstance(cap, bool) or not isinstance(cap, (int, float)) or not cap >= 0
            ):
                raise ArgumentError(f"{name}: must be a number of at least 0 (given: {cap!r})")
        self.hosts = HostRules(allowed_domains)
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
        if self.hosts.allowed is not None and endpoint not in _STAYS_WITHIN_DOMAINS:
            raise _refused(
                endpoint,
                "with allowed_domains, a guarded hook sends only searches, scrapes, and maps; use a hook without "
                "allowed_domains",
            )
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
            self._ledger.release(reservation)
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
        if (call.path or {}).get("session_id") not in self._sessions:
            raise _refused(
                call.endpoint,
                "this guarded hook did not open the session and cannot limit it; open one with open_session()",
            )

    def _check_undeclared(self, call: Call[Any]) -> None:
        endpoint = call.endpoint
        if any(
            one.session == "uses" and one.matches(endpoint.method, endpoint.path)
            for one in ENDPOINTS.values()
        ):
            raise _refused(endpoint, "it uses a browser session; call the hook's method for it")
        for url in _urls_within([call.query or {}, call.extra_body or {}], any_field=True):
            if problem := self.hosts.problem(url, resolve=True):
                raise _refused(endpoint, problem)

    def _within_domains(self, call: Call[ResponseT], body: Mapping[str, Any]) -> Call[ResponseT]:
        endpoint = call.endpoint
        # Also those of a monitor's targets and of a webhook.
        for url in _urls_within(body):
            if problem := self.hosts.problem(url, resolve=True):
                raise _refused(endpoint, problem)
        if self.hosts.allowed is None:
            return call
        if body.get("actions") or (body.get("scrapeOptions") or {}).get("actions"):
            raise _refused(
                endpoint, "actions may visit any domain; omit them, or use a hook without allowed_domains"
            )
        if endpoint is SEARCH:
            domains = self._search_domains(body, self.hosts.allowed)
            return replace(call, body=checked_body(endpoint, {**body, "includeDomains": domains}))
        return call

    def _search_domains(self, body: Mapping[str, Any], allowed: Iterable[str]) -> list[str]:
        """Return the domains of a search; the service accepts a list of included or of excluded domains."""
        if given := body.get("includeDomains"):
            for host in given:
                if problem := self.hosts.problem(host, resolve=False):
                    raise _refused(SEARCH, f"include_domains: {problem}")
            return [*given]
        if body.get("excludeDomains"):
            raise _refused(SEARCH, "exclude_domains cannot be combined with allowed_domains; omit it")
        # The service reads an empty list as no filter.
        if not (names := [host for host in allowed if _filters(host)]):
            raise _refused(SEARCH, f"allowed_domains: a search can be limited to none of {[*allowed]}")
        return names

    def _reserve(self, endpoint: Endpoint[Any], body: Mapping[str, Any], call: Call[Any]) -> str:
        bound, name = price_bound(call, body), _execution(call)
        with self._lock:
            if self._max_calls is not None and self._calls >= self._max_calls:
                raise _refused(endpoint, f"max_calls={self._max_calls} is reached")
            if name is not None and self._ledger.repeats(name, _operation(call)):
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
        formats = by_format(cost or 0, 1, page_extras(body)) if call.endpoint in _PAGES else None
        # A repeated call to a data provider is not billed again.
        self._ledger.settle(reservation, cost, _operation(call), call=_execution(call), formats=formats)
        if call.endpoint.price is not None:
            self._ledger.report()

    def _check_arrival(self, call: Call[Any], answer: Any) -> None:
        if call.endpoint is not SCRAPE or (problem := self._arrival_problem(answer.data.metadata)) is None:
            return
        cost = self._ledger.cost(_cost(call, answer))
        raise CallRefusedError(
            f"scrape: {problem}{'' if cost == 0 else '. The scrape is billed'}",
            credits_used=cost,
            was_sent=True,
        )

    def _arrival_problem(self, metadata: Any) -> str | None:
        """Return why a page may be from a forbidden host, or None."""
        found = getattr(metadata, "url", None)
        # A page's own tags of that name make the value a list, or anything else.
        for url in found if isinstance(found, list) and found else [found]:
            if isinstance(url, str) and url:
                if problem := self.hosts.problem(url, resolve=False):
                    return f"the page redirected to a forbidden URL: {problem}"
            elif self.hosts.allowed is not None and _was_fetched(metadata):
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


def _urls_within(value: Any, name: str = "", *, any_field: bool = False) -> Iterator[str]:
    """Yield the texts of fields named `url` or `urls` at any depth.

    :param any_field: also yield each text that begins like a URL, for requests whose fields are unknown.
    """
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _urls_within(part, key, any_field=any_field)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _urls_within(part, name, any_field=any_field)
    elif isinstance(value, str) and (
        name in {"url", "urls"} or (any_field and value.strip().lower().startswith(_SCHEMES))
    ):
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
    """Return the credits that a failed call cost, or None if unknown. See sandbox/docs/service.md#credits-failed.

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
