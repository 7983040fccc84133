# SPDX-License-Identifier: Apache-2.0
"""The pages' requests to the service, with a deadline and a short-lived cache that all viewers share."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, time, timezone
from functools import partial
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_webdata.airflow_db.components import START_TRIGGERER, triggerers
from airflow_provider_webdata.airflow_db.connections import (
    find_webdata_connection,
    stored_conn_ids,
    webdata_conn_ids_in_environment,
)
from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.airflow_db.spent import spent_by_day
from airflow_provider_webdata.api.errors import (
    ConfigurationError,
    NotFoundError,
    RateLimitError,
    UnsupportedError,
    WebDataError,
)
from airflow_provider_webdata.common.remedies import with_ending
from airflow_provider_webdata.hooks.connection import settings_of
from airflow_provider_webdata.hooks.diagnosis import diagnose
from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
from airflow_provider_webdata.inbox_server.options import inbox_enabled
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.ui.attention import troubled_summaries
from airflow_provider_webdata.ui.changes import changed_summaries
from airflow_provider_webdata.ui.threads import in_thread, with_secrets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Hashable
    from datetime import date

    from airflow_provider_webdata.airflow_db.connections import Connection
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.ui.attention import TroubledSummary
    from airflow_provider_webdata.ui.changes import ChangedTask

T = TypeVar("T")

_NO_JOB = "The service does not have this job. Results are kept for 24 hours after the end of a job"
_NO_MONITOR = "The service does not have this monitor, or this check. It may have been deleted"
_MISSING = {
    **dict.fromkeys(("job", "errors"), _NO_JOB),
    **dict.fromkeys(("monitor", "checks", "check", "strip", "changes"), _NO_MONITOR),
}
"""Texts about a 404, by the first part of the key of a request. Other paths exist on each server."""

DEADLINE = 3.0
"""Seconds that a page waits for the service."""
KEPT = 15.0
"""Seconds for which a result or an error is cached."""
SPENT_KEPT = 300.0
"""Seconds for which the credits of DAGs are cached. They are summed from the XComs of many tasks."""
MAX_KEPT = 256
MAX_BYTES = 32 * 2**20
"""Maximum memory of all cached results, in bytes."""
MAX_ANSWER = 8 * 2**20
"""Maximum size of a service response, in bytes."""


@dataclass(frozen=True)
class Lookup(Generic[T]):
    """A result from the service, or an error.

    :param value: the result, or None.
    :param problem: error message for the user, or None.
    """

    value: T | None = None
    problem: str | None = None


@dataclass(eq=False)
class _CacheEntry:
    """A cache entry.

    :param task: returns the result.
    :param size: bytes of memory; None while the request is in flight.
    """

    task: asyncio.Task[Any]
    size: int | None = None


class _MissingConnectionError(Exception):
    """A connection that has no fields to correct, which is what a `ConfigurationError` advises."""


class Lookups:
    """Cached requests of one API server's pages."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _CacheEntry] = {}
        self._hooks: dict[str, tuple[ConnectionSettings, WebDataAsyncHook]] = {}

    async def find(
        self,
        conn_id: str,
        what: Hashable,
        ask: Callable[[WebDataAsyncHook], Awaitable[T]],
        seconds: float | None = None,
    ) -> Lookup[T]:
        """Return a result from the service.

        :param what: identifies the request in the connection's cache.
        :param seconds: time for which the result is cached. Default: as an error, `KEPT`.
        """
        return await self._remembered((conn_id, what), lambda: self._ask(conn_id, what, ask), seconds)

    async def answer(self, conn_id: str) -> Lookup[None]:
        """Return the problem if the service does not answer a request that every server answers free of charge.

        A connection that was deleted has none; its deliveries may remain.
        """
        return await self.find(conn_id, "answer", _free_call)

    async def conn_ids(self) -> list[str]:
        """Return the ids of connections that Airflow can list or that have deliveries, the default first."""
        return (await self._listed())[0]

    async def is_list_incomplete(self) -> bool:
        """Return whether `conn_ids` may be incomplete, because the database or a secrets backend failed."""
        return (await self._listed())[1]

    async def _listed(self) -> tuple[list[str], bool]:
        return await self._remembered("conn_ids", _conn_ids)

    async def spent_by_day(self, since: date) -> tuple[dict[str, dict[date, Counter[str]]], Counter[str]]:
        """Return the credits that tasks reported, by connection, UTC day, and DAG, and what could not be read.

        :param since: the first day.
        """
        return await self._remembered(("spent", since), lambda: in_thread(_spent_by_day, since), SPENT_KEPT)

    async def troubled_tasks(
        self, since: datetime, seconds: float | None = None
    ) -> tuple[list[TroubledSummary], bool]:
        """Return the newest failed and incomplete tasks of all DAGs, and whether there are more.

        :param since: a time that all viewers share, such as the start of a minute.
        :param seconds: as for `find`.
        """
        return await self._remembered(
            ("troubled", since), lambda: in_thread(troubled_summaries, since), seconds
        )

    async def changed_tasks(self, since: datetime) -> list[ChangedTask]:
        """Return the newest run with changes of each task of all DAGs.

        :param since: the start of a minute, which all viewers share.
        """
        return await self._remembered(("changed", since), lambda: in_thread(changed_summaries, since))

    async def stopped_triggerer(self) -> str | None:
        """Return the problem and the next step if no triggerer runs, but one is needed."""
        return await self._remembered("triggerer", lambda: in_thread(_stopped_triggerer))

    async def dashboard_url(self, conn_id: str) -> str | None:
        """Return the URL of the service's dashboard, or None if the connection does not set it."""
        return await self._remembered((conn_id, "dashboard_url"), lambda: _dashboard_url(conn_id))

    async def _remembered(
        self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, T]], seconds: float | None = None
    ) -> T:
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = _CacheEntry(asyncio.create_task(self._measured(key, ask, seconds)))
        # A viewer who leaves must not cancel the request for the others.
        answer: T = await asyncio.shield(kept.task)
        return answer

    async def _measured(
        self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, T]], seconds: float | None
    ) -> T:
        size, kept_for = 0, KEPT
        try:
            answer = await ask()
            size = await in_thread(_memory_of, answer)
            if seconds is not None and not (isinstance(answer, Lookup) and answer.problem):
                kept_for = seconds
        finally:
            self._keep(key, size, kept_for)
        return answer

    def _keep(self, key: Hashable, size: int, seconds: float) -> None:
        """Schedule the expiry of a result, and evict the oldest results that exceed the cache's limits."""
        kept = self._kept[key]
        kept.size = size
        asyncio.get_running_loop().call_later(seconds, self._drop, key, kept)
        for one, other in list(self._kept.items()):
            total = sum(each.size or 0 for each in self._kept.values())
            if len(self._kept) <= MAX_KEPT and total <= MAX_BYTES:
                break
            # Keep requests in flight, so that no page repeats them.
            if other.size is not None:
                self._drop(one, other)

    def _drop(self, key: Hashable, kept: _CacheEntry) -> None:
        if self._kept.get(key) is kept:
            del self._kept[key]

    def settings(self, conn_id: str) -> ConnectionSettings | None:
        """Return the connection's settings as of its last request, or None if it made no request."""
        return self._hooks[conn_id][0] if conn_id in self._hooks else None

    async def _ask(
        self, conn_id: str, what: Hashable, ask: Callable[[WebDataAsyncHook], Awaitable[T]]
    ) -> Lookup[T]:
        began = anyio.current_time()
        try:
            hook = await self._hook(conn_id)
            with anyio.fail_after(began + DEADLINE - anyio.current_time()):
                return Lookup(await ask(hook))
        except TimeoutError:
            return Lookup(problem=f"The service did not respond within {DEADLINE:.0f} seconds.")
        except ConfigurationError as error:
            return Lookup(problem=str(error))
        except _MissingConnectionError as error:
            return Lookup(problem=None if what == "answer" else str(error))
        except WebDataError as error:
            missing = _MISSING.get(what[0]) if isinstance(what, tuple) else None
            if missing is not None and isinstance(error, NotFoundError):
                return Lookup(problem=with_ending(f"{missing}: {error.text()}", error.help_code, ""))
            return Lookup(problem=diagnose(error)[1])
        except StoreUnavailableError as error:
            return Lookup(problem=str(error))

    async def _hook(self, conn_id: str) -> WebDataAsyncHook:
        connection = await _find_connection(conn_id)
        if connection is None:
            raise _MissingConnectionError(
                f"There is no connection {conn_id!r} of type webdata. It may have been deleted."
            )
        settings = settings_of(connection)
        before, hook = self._hooks.get(conn_id, (None, None))
        if hook is None or settings != before:
            if hook is not None:
                await hook.close()
            largest = min(settings.client.max_response_bytes, MAX_ANSWER)
            held = replace(settings, client=replace(settings.client, max_response_bytes=largest))
            hook = WebDataAsyncHook.of(held, retry_budget=0, in_thread=in_thread)
            self._hooks[conn_id] = (settings, hook)
        return hook


async def _free_call(hook: WebDataAsyncHook) -> None:
    """Send a request that needs the key and costs nothing."""
    with contextlib.suppress(RateLimitError):
        try:
            await hook.queue_status()
        except (NotFoundError, UnsupportedError):
            # Every known server has one of the two.
            await hook.concurrency()


def _memory_of(value: Any) -> int:
    """Return a value's memory in bytes. Counting stops beyond `MAX_BYTES`."""
    seen: set[int] = set()
    total, left = 0, [value]
    while left and total <= MAX_BYTES:
        item = left.pop()
        if id(item) not in seen and not isinstance(item, (type, ModuleType, FunctionType)):
            seen.add(id(item))
            total += sys.getsizeof(item)
            left += gc.get_referents(item)
    return total


async def _find_connection(conn_id: str) -> Connection | None:
    """Return a connection of type `webdata`, or None.

    :raises StoreUnavailableError: a secrets backend failed, or did not respond within `DEADLINE`.
    """
    asked: list[str] = []
    try:
        return await with_secrets(DEADLINE, partial(find_webdata_connection, conn_id, asked))
    except TimeoutError:
        backend = asked[-1] if asked else "the secrets backend"
        raise StoreUnavailableError(
            f"connection {conn_id!r} cannot be read: {backend} did not respond within {DEADLINE:g} seconds"
        ) from None


async def _dashboard_url(conn_id: str) -> str | None:
    # Requests to the service report errors of the connection.
    with contextlib.suppress(StoreUnavailableError, ConfigurationError):
        if (connection := await _find_connection(conn_id)) is not None:
            return settings_of(connection).dashboard_url
    return None


def _spent_by_day(since: date) -> tuple[dict[str, dict[date, Counter[str]]], Counter[str]]:
    unread: Counter[str] = Counter()
    return spent_by_day(datetime.combine(since, time(tzinfo=timezone.utc)), unread), unread


def _stopped_triggerer() -> str | None:
    # Other parts of the page report an unavailable database.
    with contextlib.suppress(StoreUnavailableError, SQLAlchemyError):
        if problem := triggerers().problem():
            return f"{problem}. {START_TRIGGERER}"
    return None


async def _conn_ids() -> tuple[list[str], bool]:
    """Return the ids of connections, the default first, and whether some may be missing."""
    default = WebDataAsyncHook.default_conn_name
    listed = await asyncio.gather(
        in_thread(stored_conn_ids, WebDataAsyncHook.conn_type),
        # A secrets backend may hang.
        with_secrets(DEADLINE, webdata_conn_ids_in_environment),
        with_secrets(DEADLINE, lambda: [default] if find_webdata_connection(default) else []),
        return_exceptions=True,
    )
    found = {conn_id for ids in listed if not isinstance(ids, BaseException) for conn_id in ids}
    if inbox_enabled():
        # Its own page reports an unavailable inbox.
        with contextlib.suppress(StoreUnavailableError):
            found.update(await in_thread(lambda: DeliveryStore(airflow_engine()).conn_ids()))
    # Pages of one connection show the first by default.
    ordered = sorted(found, key=lambda conn_id: (conn_id != default, conn_id))
    return ordered, any(isinstance(ids, BaseException) for ids in listed)
