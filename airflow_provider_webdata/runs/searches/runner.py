"""The runner of a batch's concurrent searches."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
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
    trimmed,
)
from airflow_provider_webdata.api.prices import SEARCH
from airflow_provider_webdata.api.retry import SILENT_PAUSE_SECONDS, backoff, is_unreachable, pause_between
from airflow_provider_webdata.api.servers import NO_SEARCH, lacks_search
from airflow_provider_webdata.common.item_urls import unfetched
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
from airflow_provider_webdata.runs.searches.record_writer import RecordWriter
from airflow_provider_webdata.runs.searches.records import ambiguous_record, answer_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from airflow_provider_webdata.api.models import SearchResponse
    from airflow_provider_webdata.api.servers import Server
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.hooks.ledger import Ledger
    from airflow_provider_webdata.runs.money.paid_records import Record
    from airflow_provider_webdata.runs.searches.batch_queries import BatchQuery

log = logging.getLogger(__name__)

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

_OPERATION = "batch_search"
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

    Searches start in the given order while the concurrency and the credits allow it. Each response is saved
    immediately. If storage is slower than the service, searches wait for it, so that memory holds at most about two
    results per search in flight.

    :param max_concurrency: maximum number of searches in flight.
    :param save: saves records; called in a thread, one call at a time.
    :param extra_body: merged into each request unchecked.
    :param ledger: the credits of the task. A search is settled once its record is saved.
    :param patience: maximum seconds of pauses without a successful search between them, after which the attempt ends
        with the rate limit; infinity: no maximum.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        max_concurrency: int,
        save: Callable[[list[Record]], None],
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
        self._keep = save
        self._extra_body = extra_body
        self._ledger = ledger
        self._free = 0.0
        self._reserved: dict[str, float] = {}
        self._peak = 0.0
        self._lock = threading.Lock()
        self._dearest = 0.0
        self._patience = patience
        self._fatal: BaseException | None = None
        self._pending: deque[BatchQuery] = deque()
        self._unreached: dict[str, int] = {}
        self._total = 0
        self._is_warned = False

    def stop(self) -> None:
        """Start no more searches; safe to call from a signal handler."""
        self.stopped = True

    def count_earlier(
        self, records: Iterable[Record], queries: Mapping[str, BatchQuery], *, repeat_ambiguous: bool
    ) -> set[str]:
        """Count the searches of earlier attempts; return the keys of the searches to skip.

        :param records: the saved records of earlier attempts.
        :param queries: the searches of the batch, by key; for other searches, only the cost counts.
        """
        answered: set[str] = set()
        ambiguous: dict[str, str] = {}
        for record in records:
            key, cost = record["key"], self._ledger.cost(record.get("creditsUsed")) or 0
            if "ambiguous" in record:
                ambiguous[key] = record["ambiguous"]
            elif key not in answered:
                self.tally.credits_used += cost
                answered.add(key)
        answered &= queries.keys()
        self.tally.done = len(answered)
        if repeat_ambiguous:
            return answered
        unclear = [key for key in ambiguous if key in queries and key not in answered]
        self.tally.failed += [FailedQuery(queries[key], ambiguous[key], ambiguous=True) for key in unclear]
        return answered | set(unclear)

    async def run(self, queries: Iterable[BatchQuery]) -> None:
        """Run searches until all are done or the attempt ends.

        :raises WebDataError: an error that would fail all further searches, such as an invalid API key or no credits.
        :raises Exception: results could not be saved.
        """
        self._pending.extend(queries)
        self._free = self._ledger.left
        self._total = len(self._pending) + self.tally.settled
        writer = RecordWriter(self._save, self._max_concurrency)
        writing = asyncio.create_task(writer.run())
        hook = WebDataAsyncHook.of(self._settings, retry_budget=0.0, max_concurrency=self._max_concurrency)
        results: asyncio.Queue[_CallResult] = asyncio.Queue()
        try:
            async with hook:
                try:
                    await self._run_searches(hook, writer, results)
                finally:
                    # Responses may have arrived just when the attempt ended.
                    while not results.empty():
                        await self._record(results.get_nowait(), writer)
        finally:
            self.tally.left = list(self._pending)
            writer.finish()
            try:
                await writing
            finally:
                self._close()
        writer.check()
        if self._fatal is not None:
            raise self._fatal

    async def _run_searches(
        self, hook: WebDataAsyncHook, writer: RecordWriter, results: asyncio.Queue[_CallResult]
    ) -> None:
        in_flight: set[asyncio.Task[None]] = set()
        reported = time.monotonic()
        while True:
            while self._may_begin(len(in_flight), writer):
                query = self._pending[0]
                # The task state store is synchronous.
                await asyncio.to_thread(self._reserve, query)
                self._pending.popleft()
                call = asyncio.create_task(self._search(hook, query, results))
                in_flight.add(call)
                call.add_done_callback(in_flight.discard)
            if not in_flight and results.empty():
                if self._is_over(writer):
                    return
                await asyncio.sleep(min(self._pause.left, _WAKE_SECONDS))
                continue
            if results.empty():
                # Wake periodically to check whether a pause is over or the task was terminated.
                await asyncio.wait(in_flight, timeout=_WAKE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            while not results.empty():
                await self._record(results.get_nowait(), writer)
            if time.monotonic() - reported > _REPORT_SECONDS:
                reported = time.monotonic()
                self._report(len(in_flight))

    def _may_begin(self, in_flight: int, writer: RecordWriter) -> bool:
        if in_flight >= self._max_concurrency or self._pause.left > 0:
            return False
        return not self._is_over(writer)

    def _is_over(self, writer: RecordWriter) -> bool:
        """Return whether no search may start, unless a search in flight changes that."""
        return self._has_ended(writer) or not self._pending or not self._affords_next()

    def _has_ended(self, writer: RecordWriter) -> bool:
        return self.stopped or self._fatal is not None or self.rate_limit is not None or writer.failed

    def _affords_next(self) -> bool:
        return self._price(self._pending[0]) <= self._free

    def _price(self, query: BatchQuery) -> float:
        """Return the maximum cost of a search: the documented price, or the highest so far if that is more."""
        return max(SEARCH.most(query.request.to_wire()).credits, self._dearest)

    def _reserve(self, query: BatchQuery) -> None:
        """Reserve the price of a search; the ledger stores only the highest sum."""
        price = self._price(query)
        with self._lock:
            self._reserved[query.key] = price
            self._free -= price
            needed = sum(self._reserved.values())
        if needed > self._peak:
            self._peak = needed
            try:
                self._ledger.reserve(_OPERATION, needed)
            except BaseException:
                # The search is not sent.
                self._release(query.key, 0)
                raise

    def _release(self, key: str, cost: float | None) -> float:
        """Replace the price of a search by its cost (None: unknown), and return the price."""
        with self._lock:
            price = self._reserved.pop(key, 0.0)
            self._free += price - (price if cost is None else cost)
        return price

    def _save(self, records: list[Record]) -> None:
        self._keep(records)
        costs: list[float] = []
        prices: list[float] = []
        for record in records:
            cost = None if "ambiguous" in record else self._ledger.cost(record["creditsUsed"])
            price = self._release(record["key"], cost)
            if cost is None:
                prices.append(price)
            else:
                costs.append(cost)
        self._ledger.settle("", sum(costs), _OPERATION)
        if prices:
            self._ledger.settle("", None, _OPERATION, unknown=len(prices), reserved=sum(prices))

    def _amend(self, key: str, cost: float) -> None:
        """Correct the price of a search whose cost is now known."""
        with self._lock:
            self._free += self._reserved[key] - cost
            self._reserved[key] = cost

    def _close(self) -> None:
        """Settle the searches that ended without a record: they may have been billed."""
        if not self._peak:
            # The reservation, if any, is that of a killed attempt.
            return
        prices = self._reserved.values()
        cost = None if prices else 0
        self._ledger.settle(_OPERATION, cost, _OPERATION, unknown=len(prices), reserved=sum(prices))

    async def _search(
        self, hook: WebDataAsyncHook, query: BatchQuery, results: asyncio.Queue[_CallResult]
    ) -> None:
        try:
            answer = await hook.search(query.request, extra_body=self._extra_body)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - the loop handles every error, including a task timeout
            results.put_nowait(_CallResult(query, error=error))
        else:
            results.put_nowait(_CallResult(query, answer=answer))

    async def _record(self, result: _CallResult, writer: RecordWriter) -> None:
        query, error = result.query, result.error
        is_unbilled = result.answer is None and not (
            isinstance(error, WebDataError) and may_have_been_billed(error, self._settings.client.server)
        )
        if is_unbilled:
            self._release(query.key, 0)
        if result.answer is not None:
            self._pause.succeeded()
            await writer.put(self._count(query, result.answer))
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
            await self._fail(query, error, writer)
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

    async def _fail(self, query: BatchQuery, error: WebDataError, writer: RecordWriter) -> None:
        ambiguous = may_have_been_billed(error, self._settings.client.server)
        reason = f"{trimmed(error.text(), 300)} ({error.help_code})"
        log.warning("Search %r failed: %s", query.text, reason)
        self.tally.failed.append(FailedQuery(query, reason, ambiguous, hopeless=error.verdict == "never"))
        if ambiguous:
            await writer.put(ambiguous_record(query, reason, self._reserved.get(query.key, 0.0)))

    def _count(self, query: BatchQuery, answer: SearchResponse) -> Record:
        wire = answer.to_wire()
        record = answer_record(query, wire)
        if not self._is_warned and lacks_search(self._settings.client.server, wire):
            self._is_warned = True
            log.warning("Search %r: %s", query.text, NO_SEARCH)
        if (cost := self._ledger.cost(record["creditsUsed"])) is not None:
            self.tally.credits_used += cost
            self._dearest = max(self._dearest, cost)
            self._amend(query.key, cost)
        self.tally.done += 1
        if record["warning"]:
            log.warning("Search %r: the service warns: %s", query.text, error_text(record["warning"]))
        items = [item for found in record["results"].values() for item in found]
        failed = unfetched(items)
        if failed:
            problems = trimmed("; ".join(failed), 500)
            log.warning(
                "Search %r: the pages of %d results could not be fetched: %s",
                query.text,
                len(failed),
                problems,
            )
        return record

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
class _CallResult:
    query: BatchQuery
    answer: SearchResponse | None = None
    error: BaseException | None = None
