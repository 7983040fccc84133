# SPDX-License-Identifier: Apache-2.0
"""Observation of every call that the provider's clients send: its price, its response, and what it starts."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from airflow_provider_webdata.api.client import AsyncWebDataClient, WebDataClient
from airflow_provider_webdata.api.endpoints import ENDPOINTS, Endpoint
from airflow_provider_webdata.api.errors import CallRefusedError, NotFoundError, UnsupportedError
from airflow_provider_webdata.api.prices import INCLUDED, Price, PriceBound, reported_credits
from airflow_provider_webdata.hooks.call_guard import cost_of_failure, price_bound
from airflow_provider_webdata.hooks.calls import Call
from airflow_provider_webdata.hooks.ledger import Ledger
from airflow_provider_webdata.states.jobs import TERMINAL_JOB_STATES
from tools.acceptance.shape import Differences

if TYPE_CHECKING:
    from airflow_provider_webdata.api.servers import Server

# A monitor of the run has one page and no goal, so each of its checks costs one page:
# sandbox/docs/service.md#check-cost-pages.
MONITOR_BOUNDS: Mapping[str, float] = {"create_monitor": 1, "run_monitor": 1}
_JOB_CALLS = {
    calls.name: endpoint.name
    for endpoint in ENDPOINTS.values()
    if endpoint.job is not None
    for calls in (endpoint.job.status, endpoint.job.documents)
    if calls is not None
}
"""The endpoint that starts the jobs, by the name of an endpoint that reports their state."""


@dataclass
class Record:
    """The calls of one operation.

    :param credits: credits that responses report, or that have a fixed price.
    :param reserved: upper bound of the credits that no response has reported.
    :param refused: why a call was not sent.
    :param is_unsupported: the server lacks what a call needs.
    :param is_not_found: the server knows neither an object nor its path.
    :param unknown_id: the missing endpoint whose id a call needs; a random one is sent.
    """

    credits: float = 0.0
    reserved: float = 0.0
    refused: str | None = None
    is_unsupported: bool = False
    is_not_found: bool = False
    unknown_id: str | None = None
    differences: Differences = field(default_factory=Differences)


@dataclass
class _Sent:
    record: Record
    name: str
    bound: float


class Watch:
    """Admits calls while their highest price fits the limit.

    :param server: the server; the calls of one that does not bill are all admitted.
    :param limit: maximum credits of all calls.
    :param unbounded: also admit calls whose price has no documented bound.
    :ivar record: of the operation that runs.
    :ivar last: the last response of each endpoint, by name.
    :ivar lacking: names of endpoints that the server reported as missing.
    :ivar made: what the run created and has not ended, as pairs of the creating endpoint's name and the id.
    :ivar tried: names of all endpoints that were called.
    :ivar stopped: no further calls are admitted, because the run was interrupted.
    :ivar cleaning: calls that remove what the run made are admitted anyway.
    """

    def __init__(self, server: Server, limit: float, *, unbounded: bool) -> None:
        self.server = server
        self.unbounded = unbounded
        self.ledger = Ledger(limit=limit, bills=lambda: server.bills)
        self.record = Record()
        self.last: dict[str, Any] = {}
        self.lacking: set[str] = set()
        self.made: dict[tuple[str, str], None] = {}
        self.tried: set[str] = set()
        self.stopped = False
        self.cleaning = False
        self._names = itertools.count(1)
        # Calls whose cost a later call reports, by the id of their job or session.
        self._open: dict[str, _Sent] = {}
        self._lock = threading.RLock()

    def is_stopped(self) -> bool:
        """Return whether the run was interrupted meanwhile, by a signal or in a task."""
        return self.stopped

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Observe all clients of this process."""
        watch, blocking, asynchronous = self, WebDataClient.call, AsyncWebDataClient.call

        def call(client: WebDataClient, endpoint: Endpoint[Any], **arguments: Any) -> Any:
            with watch._observed(endpoint, arguments) as answers:
                answers.append(blocking(client, endpoint, **arguments))
            return answers[0]

        async def acall(client: AsyncWebDataClient, endpoint: Endpoint[Any], **arguments: Any) -> Any:
            with watch._observed(endpoint, arguments) as answers:
                answers.append(await asynchronous(client, endpoint, **arguments))
            return answers[0]

        with patch.object(WebDataClient, "call", call), patch.object(AsyncWebDataClient, "call", acall):
            yield

    @contextmanager
    def _observed(self, endpoint: Endpoint[Any], arguments: Mapping[str, Any]) -> Iterator[list[Any]]:
        sent = self._admit(endpoint, arguments)
        answers: list[Any] = []
        try:
            yield answers
        except BaseException as error:
            if isinstance(error, UnsupportedError):
                self.lacking.add(endpoint.name)
                sent.record.is_unsupported = True
            sent.record.is_not_found |= isinstance(error, NotFoundError)
            self._settle(sent, cost_of_failure(error))
            raise
        self._answered(sent, endpoint, arguments.get("path") or {}, answers[0])

    def _admit(self, endpoint: Endpoint[Any], arguments: Mapping[str, Any]) -> _Sent:
        if self.stopped and not self.cleaning:
            self._refuse(endpoint, "interrupted")
        self.tried.add(endpoint.name)
        bound = self._bound(Call(endpoint, **arguments))
        if bound.unknown and not self.unbounded:
            self._refuse(endpoint, f"no documented bound: {'; '.join(bound.unknown)}")
        name = str(next(self._names))
        if not self.ledger.reserve(name, bound.credits):
            self._refuse(
                endpoint,
                f"may cost {bound.credits:g} credits, of which {max(self.ledger.left, 0):g} are left",
            )
        with self._lock:
            self.record.reserved += bound.credits
        return _Sent(self.record, name, bound.credits)

    def _bound(self, call: Call[Any]) -> PriceBound:
        endpoint = call.endpoint
        if not self.server.bills or endpoint.price is None or endpoint.price == INCLUDED:
            return PriceBound(0, "")
        if endpoint.name in MONITOR_BOUNDS:
            return PriceBound(MONITOR_BOUNDS[endpoint.name], "")
        return price_bound(call, {} if call.body is None else call.body.to_wire())

    def _refuse(self, endpoint: Endpoint[Any], why: str) -> None:
        self.record.refused = f"{endpoint.label}: {why}"
        raise CallRefusedError(f"the call was not sent: {self.record.refused}")

    def _answered(self, sent: _Sent, endpoint: Endpoint[Any], path: Mapping[str, str], answer: Any) -> None:
        self.last[endpoint.name] = answer
        sent.record.differences.add(answer)
        self._note_made(endpoint, path, answer)
        if (endpoint.job is not None or endpoint.session == "opens") and answer.id:
            self._open[answer.id] = sent
            return
        if endpoint.name == "close_session" and (opened := self._open.pop(path["session_id"], None)):
            self._settle(opened, answer.credits_billed)
        if endpoint.name in _JOB_CALLS:
            self._note_state(_JOB_CALLS[endpoint.name], path.get("job_id", ""), answer)
            return
        price = endpoint.price
        if isinstance(price, Price):
            self._settle(sent, price.cost(answer, {}))
        else:
            self._settle(sent, 0 if price is None or price == INCLUDED else reported_credits(answer))

    def _note_state(self, starting: str, job_id: str, answer: Any) -> None:
        if answer.status not in TERMINAL_JOB_STATES:
            return
        self.made.pop((starting, job_id), None)
        if (sent := self._open.pop(job_id, None)) is not None:
            self._settle(sent, reported_credits(answer))

    def _settle(self, sent: _Sent, cost: float | None) -> None:
        if not self.server.bills:
            return
        with self._lock:
            self.ledger.settle(sent.name, cost)
            if cost is not None:
                sent.record.reserved -= sent.bound
                sent.record.credits += cost

    def _note_made(self, endpoint: Endpoint[Any], path: Mapping[str, str], answer: Any) -> None:
        name = endpoint.name
        if name == "create_monitor":
            self.made[name, answer.data.id] = None
        elif endpoint.job is not None or name == "open_session":
            self.made[name, answer.id] = None
        elif name == "interact_with_scrape":
            self.made[name, path["scrape_id"]] = None
        elif name == "delete_monitor":
            self.made.pop(("create_monitor", path["monitor_id"]), None)
        elif name == "close_session":
            self.made.pop(("open_session", path["session_id"]), None)
        elif name == "stop_interaction_with_scrape":
            self.made.pop(("interact_with_scrape", path["scrape_id"]), None)
