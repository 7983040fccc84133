"""Runs many searches at once: as many as the service takes, each paid for once, each failure by itself."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import (
    AuthenticationError,
    ConfigurationError,
    EntitlementError,
    InvalidResponseError,
    PaymentRequiredError,
    RateLimitError,
    ServerError,
    TransportError,
    WebDataError,
    trimmed,
)
from airflow_provider_webdata.hooks.webdata_async import AsyncWebDataHook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from airflow_provider_webdata.api.models import SearchRequest, SearchResponse
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.tasks.searches.adaptive_limit import AdaptiveLimit
    from airflow_provider_webdata.tasks.searches.progress import Record

log = logging.getLogger(__name__)

# What one search meets, all would meet.
_FOR_ALL = (AuthenticationError, ConfigurationError, EntitlementError, PaymentRequiredError)

_GATEWAY_STATUSES = frozenset({502, 503, 504})
_MOST_UNREACHED = 5
_WAKE_SECONDS = 1.0
_REPORT_SECONDS = 30.0


@dataclass(frozen=True)
class BatchQuery:
    """One search of the batch.

    :param key: tells it from all other searches: a digest of its request.
    :param given: the item of `queries` that it was made of.
    :param text: what is searched.
    """

    key: str
    given: Any
    text: str


@dataclass(frozen=True)
class FailedQuery:
    """A search that brought nothing.

    :param query: the search.
    :param error: what went wrong, in words.
    :param ambiguous: whether it may have been billed all the same.
    :param hopeless: whether repeating it cannot help.
    """

    query: BatchQuery
    error: str
    ambiguous: bool = False
    hopeless: bool = False


@dataclass
class Tally:
    """How a batch stands.

    :param credits_used: credits, as the service counted them, of this try and the earlier ones.
    :param done: how many searches were answered.
    :param failed: those that brought nothing.
    :param left: those that were not begun.
    """

    credits_used: float = 0
    done: int = 0
    failed: list[FailedQuery] = field(default_factory=list)
    left: list[BatchQuery] = field(default_factory=list)


def may_have_been_billed(error: WebDataError) -> bool:
    """Return whether a search that failed may have been done and billed, though its answer did not arrive.

    A failure that the service itself tells of (400, 408, 500) is none of these: it bills what it answered.

    :param error: what the call raised.
    """
    if isinstance(error, TransportError):
        return error.sent
    if isinstance(error, ServerError):
        # A proxy in front of the service knows nothing of what became of the request.
        return error.status in _GATEWAY_STATUSES
    return isinstance(error, InvalidResponseError)


def estimated_credits(request: SearchRequest) -> float:
    """Return about what a search costs, by the documented prices. Supplement 17.6.

    :param request: the search.
    """
    results = (request.limit or 10) * len(request.sources or "w")
    enterprise = request.enterprise or ()
    per_ten = 10 if "zdr" in enterprise else 2
    scraped = results if request.scrape_options is not None and request.scrape_options.formats else 0
    return per_ten * math.ceil(results / 10) + scraped


class SearchBatch:
    """The searches of one try.

    Searches are begun in the given order while the adaptive limit and the credits allow it. What is answered is
    handed on to be kept at once; searches wait for that when storage is slower than the service, so that memory
    holds no more than about two results per search in flight.

    :param settings: of the connection.
    :param limit: how many searches may be in flight.
    :param keep: keeps the records of answered searches; called in a thread, one call at a time.
    :param request_of: makes a search's request.
    :param extra_body: merged into each request unchecked.
    :param max_credits: stop before more than this is spent, this try and the earlier ones together.
    :param patience: seconds of pauses, with no search going well between them, after which the try ends with the
        refusal; infinity: never.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        limit: AdaptiveLimit,
        keep: Callable[[list[Record]], None],
        request_of: Callable[[BatchQuery], SearchRequest],
        *,
        extra_body: Mapping[str, Any] | None,
        max_credits: float | None,
        patience: float,
    ) -> None:
        self.tally = Tally()
        self.refusal: RateLimitError | None = None
        """What ended the try early, for the task to come back later."""
        self._settings = settings
        self._limit = limit
        self._keep = keep
        self._request_of = request_of
        self._extra_body = extra_body
        self._max_credits = max_credits
        self._patience = patience
        self._fatal: BaseException | None = None
        self.stopped = False
        """Whether the task was ended from outside."""
        self._pending: deque[BatchQuery] = deque()
        self._reserved: dict[str, float] = {}
        self._spent: float = 0
        self._dearest: float = 0
        self._unreached: dict[str, int] = {}
        self._total = 0

    def stop(self) -> None:
        """Begin no further search; safe to call from a signal handler."""
        self.stopped = True

    def count_earlier(
        self, records: Iterable[Record], queries: Mapping[str, BatchQuery], *, repeat_ambiguous: bool
    ) -> set[str]:
        """Take over what earlier tries brought.

        :param records: what they kept.
        :param queries: the searches of the batch, by key; others are counted for what they cost only.
        :param repeat_ambiguous: whether searches that may have been billed are to be made again.
        :return: keys of the searches that are not to be made again.
        """
        answered: set[str] = set()
        in_doubt: dict[str, str] = {}
        for record in records:
            key, cost = record["key"], record.get("creditsUsed") or 0
            if "ambiguous" in record:
                self._spent += cost
                in_doubt[key] = record["ambiguous"]
            elif key not in answered:
                self._spent += cost
                self.tally.credits_used += cost
                answered.add(key)
        answered &= queries.keys()
        self.tally.done = len(answered)
        if repeat_ambiguous:
            return answered
        unclear = [key for key in in_doubt if key in queries and key not in answered]
        self.tally.failed += [FailedQuery(queries[key], in_doubt[key], ambiguous=True) for key in unclear]
        return answered | set(unclear)

    async def run(self, queries: Iterable[BatchQuery]) -> None:
        """Make searches until all are made or something ends the try.

        :param queries: the searches to make.
        :raises WebDataError: what no further search would escape: a refused key, no credits.
        :raises Exception: results could not be kept.
        """
        self._pending.extend(queries)
        self._total = len(self._pending) + self.tally.done + len(self.tally.failed)
        keeper = _Keeper(self._keep, self._limit.limit)
        keeping = asyncio.create_task(keeper.run())
        hook = AsyncWebDataHook.of(self._settings, retry_budget=0.0, max_concurrency=self._limit.limit)
        try:
            async with hook:
                await self._make_all(hook, keeper)
        finally:
            self.tally.left = list(self._pending)
            keeper.finish()
            await keeping
        keeper.check()
        if self._fatal is not None:
            raise self._fatal

    async def _make_all(self, hook: AsyncWebDataHook, keeper: _Keeper) -> None:
        outcomes: asyncio.Queue[_CallResult] = asyncio.Queue()
        in_flight: set[asyncio.Task[None]] = set()
        reported = time.monotonic()
        while True:
            while self._may_begin(len(in_flight), keeper):
                query = self._pending.popleft()
                self._reserved[query.key] = self._price(query)
                call = asyncio.create_task(self._make(hook, query, outcomes))
                in_flight.add(call)
                call.add_done_callback(in_flight.discard)
            if not in_flight and outcomes.empty():
                if self._is_over(keeper):
                    return
                await asyncio.sleep(min(self._limit.pause, _WAKE_SECONDS))
                continue
            if outcomes.empty():
                # Woken now and then to see whether a pause is over, or the task was ended.
                await asyncio.wait(in_flight, timeout=_WAKE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            while not outcomes.empty():
                await self._take(outcomes.get_nowait(), keeper)
            if time.monotonic() - reported > _REPORT_SECONDS:
                reported = time.monotonic()
                self._report(len(in_flight))

    def _may_begin(self, in_flight: int, keeper: _Keeper) -> bool:
        if self._ends(keeper) or not self._pending:
            return False
        if in_flight >= self._limit.limit or self._limit.pause > 0:
            return False
        return self._is_affordable()

    def _ends(self, keeper: _Keeper) -> bool:
        return self.stopped or self._fatal is not None or self.refusal is not None or keeper.failed

    def _is_over(self, keeper: _Keeper) -> bool:
        """Return whether, with nothing in flight, nothing more is to be begun."""
        return self._ends(keeper) or not self._pending or not self._is_affordable()

    def _is_affordable(self) -> bool:
        if self._max_credits is None:
            return True
        expected = self._spent + sum(self._reserved.values()) + self._price(self._pending[0])
        return expected <= self._max_credits

    def _price(self, query: BatchQuery) -> float:
        # Scraping may cost far more than the estimate; what the others cost is the better guess then.
        return max(estimated_credits(self._request_of(query)), self._dearest)

    async def _make(
        self, hook: AsyncWebDataHook, query: BatchQuery, outcomes: asyncio.Queue[_CallResult]
    ) -> None:
        ticket = self._limit.ticket
        try:
            answer = await hook.search(self._request_of(query), extra_body=self._extra_body)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - a task's timeout, too, is told to the loop that decides
            outcomes.put_nowait(_CallResult(query, ticket, error=error))
        else:
            outcomes.put_nowait(_CallResult(query, ticket, answer=answer))

    async def _take(self, outcome: _CallResult, keeper: _Keeper) -> None:
        query, error = outcome.query, outcome.error
        reserved = self._reserved.pop(query.key, 0.0)
        if outcome.answer is not None:
            self._limit.succeeded(outcome.ticket)
            await keeper.put(self._record(query, outcome.answer, reserved))
        elif isinstance(error, RateLimitError):
            self._limit.refused(outcome.ticket, error.retry_after)
            self._pending.appendleft(query)
            if self._limit.paused > self._patience:
                self.refusal = error
        elif isinstance(error, TransportError) and not error.sent and self._may_reach_later(query):
            self._limit.refused(outcome.ticket, None)
            self._pending.appendleft(query)
            if self._limit.paused > self._patience:
                self._fatal = self._fatal or error
        elif isinstance(error, _FOR_ALL):
            self._pending.appendleft(query)
            self._fatal = self._fatal or error
        elif isinstance(error, WebDataError):
            await self._fail(query, error, reserved, keeper)
        else:
            self._pending.appendleft(query)
            self._fatal = self._fatal or error

    def _may_reach_later(self, query: BatchQuery) -> bool:
        self._unreached[query.key] = self._unreached.get(query.key, 0) + 1
        return self._unreached[query.key] < _MOST_UNREACHED

    async def _fail(self, query: BatchQuery, error: WebDataError, reserved: float, keeper: _Keeper) -> None:
        ambiguous = may_have_been_billed(error)
        reason = trimmed(str(error), 300)
        log.warning("Search %r failed: %s", query.text, reason)
        self.tally.failed.append(FailedQuery(query, reason, ambiguous, hopeless=error.verdict == "never"))
        if ambiguous:
            self._spent += reserved
            await keeper.put(
                {"key": query.key, "query": query.text, "creditsUsed": reserved, "ambiguous": reason}
            )

    def _record(self, query: BatchQuery, answer: SearchResponse, reserved: float) -> Record:
        wire = answer.to_wire()
        cost = wire.get("creditsUsed")
        if isinstance(cost, (int, float)):
            self.tally.credits_used += cost
            self._dearest = max(self._dearest, cost)
        self._spent += reserved if cost is None else cost
        self.tally.done += 1
        if wire.get("warning"):
            log.warning("Search %r: the service warns: %s", query.text, wire["warning"])
        return {
            "key": query.key,
            "query": query.text,
            "id": wire.get("id"),
            "creditsUsed": cost,
            "warning": wire.get("warning"),
            "results": {
                source: [item if isinstance(item, dict) else {"value": item} for item in found]
                for source, found in (wire.get("data") or {}).items()
                if found and isinstance(found, list)
            },
        }

    def _report(self, in_flight: int) -> None:
        log.info(
            "%d of %d searches done, %d failed; %g credits; %d in flight of at most %d now",
            self.tally.done,
            self._total,
            len(self.tally.failed),
            self.tally.credits_used,
            in_flight,
            self._limit.limit,
        )


@dataclass(frozen=True)
class _CallResult:
    query: BatchQuery
    ticket: int
    answer: SearchResponse | None = None
    error: BaseException | None = None


class _Keeper:
    """Keeps records in the background, all that are there at a time, and makes their producers wait for it."""

    def __init__(self, keep: Callable[[list[Record]], None], room: int) -> None:
        self._keep = keep
        self._queue: asyncio.Queue[Record | None] = asyncio.Queue(room)
        self._error: Exception | None = None
        self._over = False

    @property
    def failed(self) -> bool:
        """Whether storage refused something: nothing more is to be paid for."""
        return self._error is not None

    async def put(self, record: Record) -> None:
        await self._queue.put(record)

    def finish(self) -> None:
        self._over = True
        with contextlib.suppress(asyncio.QueueFull):
            # A full queue wakes the loop as well.
            self._queue.put_nowait(None)

    async def run(self) -> None:
        unsaved: list[Record] = []
        try:
            while not (self._over and self._queue.empty()):
                unsaved += self._lot(await self._queue.get())
                if unsaved and not self.failed:
                    try:
                        await asyncio.to_thread(self._keep, unsaved)
                        unsaved = []
                    except Exception as error:  # noqa: BLE001 - whatever storage raises; tried once more at the end
                        log.warning("%d results could not be kept: %s", len(unsaved), error)
                        self._error = error
        finally:
            # Also where the task's time is over, and this is cancelled.
            if unsaved := [*unsaved, *self._lot(None)]:
                self._keep(unsaved)

    def _lot(self, first: Record | None) -> list[Record]:
        lot = [first]
        while not self._queue.empty():
            lot.append(self._queue.get_nowait())
        return [record for record in lot if record is not None]

    def check(self) -> None:
        """Raise what storage refused, though it took it in the end: nothing more was begun.

        :raises Exception: what storage raised.
        """
        if self._error is not None:
            raise self._error
