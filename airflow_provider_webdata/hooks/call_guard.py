"""Limits of a guarded hook: credits, calls, and the hosts that the service may visit."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from msgspec.structs import replace

from airflow_provider_webdata.api.endpoints import SEARCH, Endpoint, ResponseT
from airflow_provider_webdata.api.errors import (
    CacheMissError,
    CallRefusedError,
    ClientError,
    ConfigurationError,
    InvalidRequestError,
    NotFoundError,
    PageError,
    RateLimitError,
    TransportError,
    UploadError,
)
from airflow_provider_webdata.api.prices import INCLUDED, Price, PriceBound, reported_credits
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.hooks.budget import Budget
from airflow_provider_webdata.hooks.calls import checked_body
from airflow_provider_webdata.hooks.host_rules import HostRules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_webdata.hooks.calls import Call

_BILLS_NOTHING = (
    ClientError,
    ConfigurationError,
    InvalidRequestError,
    NotFoundError,
    RateLimitError,
    UploadError,
)


@dataclass
class AdmittedCall(Generic[ResponseT]):
    """A call that the guard lets pass.

    :param reservation: name of the reservation for it; None: it bills nothing.
    :param answer: passes the answer back to the guard.
    """

    call: Call[ResponseT]
    reservation: str | None = None
    answer: ResponseT | None = None


class CallGuard:
    """Caps that calls are held against before they are sent, for any number of hooks and threads.

    Calls that read, cancel or delete are free, and pass. What changes a monitor or the team's policy has no price that
    is known, and may have any host visited. Code runs only in browser sessions that were opened through the guard.

    :param max_credits: most credits that all calls together may cost. A call is refused where it may cost more than is
        left, by the documented prices at their highest, or where nothing documented bounds its price. A job counts with
        the most that it may cost. None: no limit.
    :param max_calls: most calls that bill. None: no limit.
    :param allowed_domains: host names, each with its subdomains, that may be visited. None: all that are public.
    :param blocked_domains: host names, each with its subdomains, that may not.
    :param budget: has `max_credits`, and what was spent of them before. None: a new one.
    :raises ArgumentError: a cap is no such number, or a domain no host name.
    """

    def __init__(
        self,
        *,
        max_credits: float | None = None,
        max_calls: int | None = None,
        allowed_domains: Iterable[str] | None = None,
        blocked_domains: Iterable[str] | None = None,
        budget: Budget | None = None,
    ) -> None:
        for name, cap in (("max_credits", max_credits), ("max_calls", max_calls)):
            if cap is not None and (
                isinstance(cap, bool) or not isinstance(cap, (int, float)) or not cap >= 0
            ):
                raise ArgumentError(f"{name}: must be a number of at least 0 (given: {cap!r})")
        self.hosts = HostRules(allowed_domains, blocked_domains)
        self._budget = Budget(max_credits) if budget is None else budget
        self._max_calls = max_calls
        self._calls = 0
        self._names = itertools.count(1)
        self._sessions: set[str] = set()
        self._lock = threading.Lock()

    def admit(self, call: Call[ResponseT]) -> AdmittedCall[ResponseT]:
        """Return a call as it may be sent; host names are looked up, which may take a while.

        :raises CallRefusedError: it may cost too much, or visit what it may not.
        """
        endpoint = call.endpoint
        changes = endpoint.method in {"PATCH", "PUT"}
        if endpoint.session == "uses":
            self._check_session(call)
        if (endpoint.price is None and not changes) or endpoint.price == INCLUDED:
            return AdmittedCall(call)
        body = {} if call.body is None else call.body.to_wire()
        if call.extra_body:
            raise _refused(endpoint, "extra_body is sent unchecked, and a guarded hook takes none")
        call = self._within_domains(call, body)
        return AdmittedCall(call, self._reserve(endpoint, body, call))

    def settle(self, admitted: AdmittedCall[Any], error: BaseException | None = None) -> None:
        """Count what a call cost that was sent.

        :param error: what it failed with.
        :raises CallRefusedError: a redirect led the page to where it may not be read.
        """
        if admitted.reservation is not None:
            cost = _cost(admitted) if error is None else cost_of_failure(error)
            self._budget.settle(admitted.reservation, cost)
        if error is not None:
            return
        if admitted.call.endpoint.session == "opens" and (opened := getattr(admitted.answer, "id", None)):
            self._sessions.add(opened)
        self._check_arrival(admitted)

    def _check_session(self, call: Call[Any]) -> None:
        if call.extra_body:
            raise _refused(call.endpoint, "extra_body is sent unchecked, and a guarded hook takes none")
        if self.hosts.limits_domains:
            raise _refused(
                call.endpoint, "code may visit any domain, so that a browser cannot be held to some"
            )
        if (call.path or {}).get("session_id") not in self._sessions:
            raise _refused(
                call.endpoint,
                "the session was not opened by this guarded hook, so that its cost and its use are not held",
            )

    def _within_domains(self, call: Call[ResponseT], body: Mapping[str, Any]) -> Call[ResponseT]:
        endpoint = call.endpoint
        if self.hosts.limits_domains:
            # A prompt may decide on what is not given.
            leaves = body.get("allowExternalLinks") or body.get("prompt")
            acts = body.get("actions") or (body.get("scrapeOptions") or {}).get("actions")
            if endpoint.visits == "any" or leaves or acts:
                raise _refused(endpoint, "it may visit any domain, so that it cannot be held to some")
        for url in (body.get("url"), *(body.get("urls") or ())):
            if url is not None and (problem := self.hosts.problem(url, resolve=True)):
                raise _refused(endpoint, problem)
        if endpoint is SEARCH and self.hosts.limits_domains:
            return replace(call, body=checked_body(endpoint, {**body, **self._search_domains(call, body)}))
        return call

    def _search_domains(self, call: Call[Any], body: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the fields that hold a search to the domains; the service takes only one of the two."""
        given, excluded = body.get("includeDomains"), body.get("excludeDomains") or ()
        for host in given or ():
            if problem := self.hosts.problem(host, resolve=False):
                raise _refused(call.endpoint, f"include_domains: {problem}")
        if given:
            return {}
        if self.hosts.allowed is None:
            return {"excludeDomains": list(dict.fromkeys([*excluded, *self.hosts.blocked]))}
        if excluded:
            raise _refused(call.endpoint, "exclude_domains cannot stand beside allowed_domains: leave it out")
        return {"includeDomains": list(self.hosts.allowed)}

    def _reserve(self, endpoint: Endpoint[Any], body: Mapping[str, Any], call: Call[Any]) -> str:
        bound = _bound(endpoint, body, call)
        with self._lock:
            if self._max_calls is not None and self._calls >= self._max_calls:
                raise _refused(endpoint, f"max_calls={self._max_calls} is reached")
            most = self._budget.limit
            if most is not None and not bound.is_known:
                raise _refused(endpoint, f"max_credits={most:g} cannot be held: {'; '.join(bound.unknown)}")
            name = str(next(self._names))
            if not self._budget.reserve(name, bound.credits):
                raise _refused(
                    endpoint,
                    f"it may cost up to {bound.credits:g} credits, and of max_credits={most:g} there are "
                    f"{max(self._budget.left, 0):g} left",
                )
            self._calls += 1
        return name

    def _check_arrival(self, admitted: AdmittedCall[Any]) -> None:
        metadata = getattr(getattr(admitted.answer, "data", None), "metadata", None)
        url = getattr(metadata, "url", None)
        # A page's own tag of that name may be anything.
        if admitted.call.endpoint.visits != "named" or not isinstance(url, str) or not url:
            return
        if problem := self.hosts.problem(url, resolve=False):
            raise CallRefusedError(
                f"scrape: the page was led to another address: {problem}. It is billed",
                credits_used=_cost(admitted),
                was_sent=True,
            )


def _bound(endpoint: Endpoint[Any], body: Mapping[str, Any], call: Call[Any]) -> PriceBound:
    if not isinstance(endpoint.price, Price):
        return PriceBound(0, "", (f"no price of a call to {endpoint.label} is known beforehand",))
    body = {**body, **(call.priced or {})}
    if call.upload is not None:
        body = {**body, "filename": call.upload.name}
    if endpoint.session == "opens":
        # What runs in the session may have a prompt.
        body = {**body, "prompt": True}
    return endpoint.price.most(body)


def _cost(admitted: AdmittedCall[Any]) -> float | None:
    price = admitted.call.endpoint.price
    if isinstance(price, Price) and price.fixed is not None:
        return price.fixed
    return reported_credits(admitted.answer)


def cost_of_failure(error: BaseException) -> float | None:
    """Return what a failed call cost, or None if that is unknown. See docs/service.md#credits-failed."""
    if isinstance(error, CallRefusedError):
        return error.credits_used
    if isinstance(error, TransportError):
        return None if error.sent else 0
    if isinstance(error, (PageError, CacheMissError)):
        return 1
    return 0 if isinstance(error, _BILLS_NOTHING) else None


def _refused(endpoint: Endpoint[Any], why: str) -> CallRefusedError:
    return CallRefusedError(f"{endpoint.label}: nothing was sent: {why}")
