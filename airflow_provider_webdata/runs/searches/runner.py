# SPDX-License-Identifier: Apache-2.0
"""The runner of a batch's concurrent searches."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_webdata.api.errors import (
    AuthenticationError,
    CertificateRefusedError,
    CertificateRequiredError,
    ConfigurationError,
    EntitlementError,
    InvalidResponseError,
    PaymentRequiredError,
    RateLimitError,
    ServerError,
    TransportError,
    UnknownHostError,
    WebDataError,
    error_text,
)
from airflow_provider_webdata.api.prices import SEARCH
from airflow_provider_webdata.api.retry import SILENT_PAUSE_SECONDS, backoff, is_unreachable, pause_between
from airflow_provider_webdata.api.servers import NO_SEARCH, lacks_search
from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.item_urls import unfetched
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
from airflow_provider_webdata.runs.searches.answer_files import OPERATION, answer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from airflow_provider_webdata.api.servers import Server
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.hooks.ledger import Ledger
    from airflow_provider_webdata.runs.searches.answer_files import Answer
    from airflow_provider_webdata.runs.searches.batch_queries import BatchQuery

    Save = Callable[[BatchQuery, Answer, float], None]

log = logger(__name__)

# Errors that would fail every search.
_FOR_ALL = (
    AuthenticationError,
    CertificateRefusedError,
    CertificateRequiredError,
    ConfigurationError,
    EntitlementError,
    PaymentRequiredError,
    UnknownHostError,
)

_GATEWAY_STATUSES = frozenset({502, 503, 504})
_MAX_UNREACHED = 6
_WAKE_SECONDS = 1.0
_REPORT_SECONDS = 30.0


@dataclass(frozen=True)
class FailedQuery:
    """A search that failed.

    :param error: the error message.
    :param ambiguous: True if the search may have been billed anyway.
    :param hopeless: True if a repetition cannot succeed.
    """

    query: BatchQuery
    error: str
    ambiguous: bool = False
    hopeless: bool = False


@dataclass
class Tally:
    """The counts of a batch, over all attempts.

    :param credits_used: credits that the service reports.
    :param done: number of completed searches.
    :param failed: the failed searches.
    :param left: the searches that were not started.
    """

    credits_used: float = 0
    done: int = 0
    failed: list[FailedQuery] = field(default_factory=list)
    left: list[BatchQuery] = field(default_factory=list)

    @property
    def settled(self) -> int:
        """Number of completed and failed searches."""
        return self.done + len(self.failed)


def may_have_been_billed(error: WebDataError, server: Server) -> bool:
    """Return whether a search without a response may have been executed and billed.

    Errors that the service itself reports (400, 408, 500) are not ambiguous: it bills only successful responses.
    """
    if not server.bills:
        return False
    if isinstance(error, TransportError):
        return error.sent
    if isinstance(error, ServerError):
        # A proxy in front of the service does not know the outcome of the request.
        return error.status in _GATEWAY_STATUSES
    return isinstance(error, InvalidResponseError)


class Pause:
    """The pause of new searches after a 429 or an unreachable service.

    Searches that are in flight continue. A 429 that arrives during the pause can extend it.

    :param clock: returns monotonic seconds.
    :ivar total: seconds of pauses since the last successful search.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed = 0
        self._until = 0.0
        self.total = 0.0

    @property
    def left(self) -> float:
        """Seconds until the next search may start; 0: now."""
        return max(self._until - self._clock(), 0.0)

    def succeeded(self) -> None:
        """Record that a search succeeded."""
        self._failed = 0
        self.total = 0.0

    def extend(self, error: WebDataError) -> None:
        """Pause for the wait that the service specifies, at least for a time that grows until a search succeeds."""
        before = self.left
        if not before:
            self._failed += 1
        # Of the searches in flight at the start of a pause, all may fail.
        pause = max(before, pause_between(error, self._failed), backoff(self._failed))
        self._until = self._clock() + pause
        self.total += pause - before


class SearchBatch:
    """The searches of one attempt.

    Searches start in the given order while the concurrency and the credits allow it. A search is in flight until its
    response is stored, so memory holds at most one result per search in flight.

    :param max_concurrency: maximum number of searches in flight.
    :param save: stores an answer, or a call of unknown outcome; see `AnswerFiles.save`. Called in several threads.
    :param extra_body: merged into each request unchecked.
    :param ledger: the credits of the task, in which the price of the searches in flight is reserved.
    :param patience: maximum seconds of pauses without a successful search between them, after which the attempt ends
        with the rate limit; infinity: no maximum.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        max_concurrency: int,
        save: Save,
        *,
        extra_body: Mapping[str, Any] | None,
        ledger: Ledger,
        patience: float,
    ) -> None:
        self.tally = Tally()
        self.rate_limit: RateLimitError | None = None
        """The 429 that ended the attempt early, for the task to be rescheduled."""
        self.stopped = False
        """True if the task was terminated."""
        self._settings = settings
        self._max_concurrency = max_concurrency
        self._pause = Pause()
        self._save = save
        self._extra_body = extra_body
        self._ledger = ledger
        self._free = 0.0
        self._reserved: dict[str, float] = {}
        self._peak = 0.0
        self._dearest = 0.0
        self._patience = patience
        self._fatal: BaseException | None = None
        self._pending: deque[BatchQuery] = deque()
        self._awaited: set[asyncio.Task[Any]] = set()
        self._unreached: dict[str, int] = {}
        self._unsaved = 0
        self._total = 0
        self._is_warned = False

    def stop(self) -> None:
        """Start no more searches; safe to call from a signal handler."""
        self.stopped = True

    def count_earlier(
        self,
        answers: Iterable[tuple[str, Answer]],
        queries: Mapping[str, BatchQuery],
        *,
        repeat_ambiguous: bool,
    ) -> set[str]:
        """Count the searches of earlier attempts; return the keys of the searches to skip.

        :param answers: what earlier attempts stored, by key.
        :param queries: the searches of the batch, by key.
        """
        answered: set[str] = set()
        ambiguous: dict[str, str] = {}
        for key, answer in answers:
            if "ambiguous" in answer:
                ambiguous[key] = answer["ambiguous"]
            else:
                self.tally.credits_used += self._ledger.cost(answer["creditsUsed"]) or 0
                answered.add(key)
        self.tally.done = len(answered)
        if repeat_ambiguous:
            return answered
        unclear = ambiguous.keys() - answered
        self.tally.failed += [
            FailedQuery(query, ambiguous[key], ambiguous=True)
            for key, query in queries.items()
            if key in unclear
        ]
        return answered | unclear

    async def run(self, queries: Iterable[BatchQuery]) -> None:
        """Run searches until all are done or the attempt ends.

        :raises WebDataError: an error that would fail all further searches, such as an invalid API key or no credits.
        :raises Exception: an answer could not be stored.
        """
        self._pending.extend(queries)
        self._free = self._ledger.left
        self._total = len(self._pending) + self.tally.settled
        # Python's default is a few threads per CPU, and a write to an object store takes as long as a search.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(self._max_concurrency))
        hook = WebDataAsyncHook.of(self._settings, retry_budget=0.0, max_concurrency=self._max_concurrency)
        try:
            async with hook:
                await self._run_searches(hook)
        finally:
            self.tally.left = list(self._pending)
            self._close()
        if self._unsaved and isinstance(self._fatal, CodedError):
            lost = "response is" if self._unsaved == 1 else "responses are"
            self._fatal.billed = f"{self._unsaved} billed {lost} lost"
        if self._fatal is not None:
            raise self._fatal

    async def _run_searches(self, hook: WebDataAsyncHook) -> None:
        in_flight: set[asyncio.Task[_Outcome]] = set()
        reported = time.monotonic()
        try:
            while True:
                while len(in_flight) < self._max_concurrency and not self._pause.left and not self._is_over():
                    query = self._pending[0]
                    try:
                        await self._reserve(query)
                    except Exception as error:  # noqa: BLE001 - Airflow's errors have no common base
                        self._fatal = error
                        break
                    self._pending.popleft()
                    call = asyncio.create_task(self._search(hook, query))
                    in_flight.add(call)
                    self._awaited.add(call)
                if in_flight:
                    # Wake periodically to check whether a pause is over or the task was terminated.
                    done, in_flight = await asyncio.wait(
                        in_flight, timeout=_WAKE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                    )
                    self._record(done)
                elif self._is_over():
                    return
                else:
                    await asyncio.sleep(min(self._pause.left, _WAKE_SECONDS))
                if time.monotonic() - reported > _REPORT_SECONDS:
                    reported = time.monotonic()
                    self._report(len(in_flight))
        finally:
            # A response may have arrived just when the attempt ended.
            for call in self._awaited:
                call.cancel()
            if in_flight:
                self._record((await asyncio.wait(in_flight))[0])

    def _is_over(self) -> bool:
        """Return whether no search may start, unless a search in flight changes that."""
        has_ended = self.stopped or self._fatal is not None or self.rate_limit is not None
        return has_ended or not self._pending or self._price(self._pending[0]) > self._free

    def _price(self, query: BatchQuery) -> float:
        """Return the maximum cost of a search: the documented price, or the highest so far if that is more."""
        return max(SEARCH.most(query.request.to_wire()).credits, self._dearest)

    async def _reserve(self, query: BatchQuery) -> None:
        """Reserve the price of a search; the ledger stores only the highest sum."""
        price = self._price(query)
        self._reserved[query.key] = price
        self._free -= price
        needed = sum(self._reserved.values())
        if needed > self._peak:
            self._peak = needed
            try:
                # The task state store is synchronous.
                await asyncio.to_thread(self._ledger.reserve, OPERATION, needed)
            except BaseException:
                # The search is not sent.
                self._release(query.key, 0)
                raise

    def _release(self, key: str, cost: float | None) -> None:
        """Replace the price of a search by its cost; None: unknown."""
        price = self._reserved.pop(key)
        self._free += 0 if cost is None else price - cost

    def _close(self) -> None:
        """Settle the searches that ended without a stored answer: they may have been billed."""
        if not self._peak:
            # The reservation, if any, is that of a killed attempt.
            return
        prices = self._reserved.values()
        cost = None if prices else 0
        self._ledger.settle(OPERATION, cost, OPERATION, unknown=len(prices), reserved=sum(prices))

    async def _search(self, hook: WebDataAsyncHook, query: BatchQuery) -> _Outcome:
        call = asyncio.current_task()
        answer: Answer | None = None
        failure: BaseException | None = None
        try:
            response = await hook.search(query.request, extra_body=self._extra_body)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - the loop handles every error
            failure = error
            if isinstance(error, WebDataError) and self._is_ambiguous(error):
                answer = {"ambiguous": _reason(error)}
        else:
            wire = response.to_wire()
            answer = answer_of(wire)
            self._warn(query, wire, answer)
        # From here on, the search is not canceled.
        self._awaited.discard(call)
        if answer is not None:
            try:
                await asyncio.to_thread(self._save, query, answer, self._reserved[query.key])
            except BaseException as error:  # noqa: BLE001 - storages raise any error
                return _Outcome(query, answer, failure, unsaved=error)
        return _Outcome(query, answer, failure)

    def _is_ambiguous(self, error: WebDataError) -> bool:
        is_for_all = isinstance(error, _FOR_ALL)
        return not is_for_all and may_have_been_billed(error, self._settings.client.server)

    def _record(self, calls: Iterable[asyncio.Task[_Outcome]]) -> None:
        for call in calls:
            if not call.cancelled():
                self._count(call.result())

    def _count(self, outcome: _Outcome) -> None:
        query, answer, error = outcome.query, outcome.answer, outcome.error
        if outcome.unsaved is not None:
            # The search counts as billed with its price.
            self._unsaved += 1
            self._fatal = self._fatal or outcome.unsaved
            return
        cost = 0 if answer is None else self._ledger.cost(answer.get("creditsUsed"))
        self._release(query.key, cost)
        if error is None:
            self._pause.succeeded()
            self.tally.done += 1
            self.tally.credits_used += cost or 0
            self._dearest = max(self._dearest, cost or 0)
        elif isinstance(error, RateLimitError):
            self._slow_down(error)
            self._pending.appendleft(query)
            if self._pause.total > self._patience:
                self.rate_limit = error
        elif isinstance(error, TransportError) and is_unreachable(error) and self._may_reach_later(query):
            self._slow_down(error)
            self._pending.appendleft(query)
            if self._pause.total > self._patience:
                self._fatal = self._fatal or error
        elif isinstance(error, WebDataError) and not isinstance(error, _FOR_ALL):
            reason = _reason(error)
            log.warning("Search %r failed: %s", query.text, reason)
            self.tally.failed.append(
                FailedQuery(query, reason, answer is not None, hopeless=error.verdict == "never")
            )
        else:
            self._pending.appendleft(query)
            self._fatal = self._fatal or error

    def _slow_down(self, error: WebDataError) -> None:
        before = self._pause.left
        self._pause.extend(error)
        # Many searches in flight receive the same 429.
        if (pause := self._pause.left) > SILENT_PAUSE_SECONDS >= before:
            log.warning("%s. Pausing new searches for %.1f s", error.brief(), pause)

    def _may_reach_later(self, query: BatchQuery) -> bool:
        self._unreached[query.key] = self._unreached.get(query.key, 0) + 1
        return self._unreached[query.key] < _MAX_UNREACHED

    def _warn(self, query: BatchQuery, wire: Mapping[str, Any], answer: Answer) -> None:
        """Log what the service and the results say about themselves."""
        if not self._is_warned and lacks_search(self._settings.client.server, wire):
            self._is_warned = True
            log.warning("Search %r: %s", query.text, NO_SEARCH)
        if wire.get("warning"):
            log.warning("Search %r: the service warns: %s", query.text, error_text(wire["warning"]))
        if failed := unfetched([item for found in answer["results"].values() for item in found]):
            log.warning(
                "Search %r: the pages of %d results could not be fetched: %s",
                query.text,
                len(failed),
                trimmed("; ".join(failed), 500),
            )

    def _report(self, in_flight: int) -> None:
        log.info(
            "%d of %d searches done, %d failed; %s credits; %d in flight of at most %d",
            self.tally.done,
            self._total,
            len(self.tally.failed),
            credits_text(self.tally.credits_used),
            in_flight,
            self._max_concurrency,
        )


@dataclass(frozen=True)
class _Outcome:
    """The end of a search.

    :param answer: the answer, or the call of unknown outcome; None: the search was not billed.
    :param error: the error of the call.
    :param unsaved: the error if the answer could not be stored.
    """

    query: BatchQuery
    answer: Answer | None = None
    error: BaseException | None = None
    unsaved: BaseException | None = None


def _reason(error: WebDataError) -> str:
    return f"{trimmed(error.text(), 300)} ({error.help_code})"
