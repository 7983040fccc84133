# SPDX-License-Identifier: Apache-2.0
"""The finished checks of a monitor, as a stream for an asset watcher."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from uuid import UUID

from airflow.sdk import conf

from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.states.check_queue import LATE_CHECKS, CheckQueue
from airflow_provider_webdata.states.checks import CheckCriteria, finished_at
from airflow_provider_webdata.waiting.check_target import CheckTarget
from airflow_provider_webdata.waiting.mailbox import WaitFailedError
from airflow_provider_webdata.waiting.streams.stream import Stream, StreamItem
from airflow_provider_webdata.waiting.wait import follow, leave, next_found

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
    from airflow_provider_webdata.waiting.hub import Hub
    from airflow_provider_webdata.waiting.mailbox import Mailbox

log = logger(__name__)

_MARGIN = timedelta(seconds=30)


def start_lag() -> timedelta:
    """Return the maximum time from unpausing a DAG to the start of its watchers.

    Airflow stores the watchers when it next parses the DAG file. A trigger cannot learn when its DAG was unpaused.
    """
    interval = conf.getint("dag_processor", "min_file_process_interval", fallback=30)
    return timedelta(seconds=interval) + _MARGIN


_EVERY_CHECK = CheckCriteria(on_failed="accept", on_partial="accept", on_skipped="accept")


class CheckStream(Stream):
    """Every finished check of a monitor once, with the monitor's id.

    A cursor is `{"after": ..., "ids": [[id, end], ...]}`: a time, and the checks after it that the watcher has seen.
    """

    def __init__(self, conn_id: str, monitor: str, poll_interval: float, start: str | None) -> None:
        super().__init__(conn_id, start)
        self._monitor = monitor
        self._poll_interval = poll_interval

    async def _read(self, hub: Hub, mailbox: Mailbox, cursor: Any) -> AsyncGenerator[StreamItem, None]:
        monitor_id = await _monitor_id(hub, self._monitor)
        if cursor is None:
            start = self._start or (datetime.now(timezone.utc) - start_lag()).isoformat()
            cursor = {"after": start, "ids": []}
        queue = CheckQueue(_EVERY_CHECK, moment(cursor["after"]))
        target = CheckTarget(monitor_id, queue, self._poll_interval, log)
        target.mailbox = mailbox
        try:
            await follow(hub, target)
            yield StreamItem(None, cursor, at_once=True)
            while True:
                found = await next_found(hub, target)
                end = finished_at(found.check)
                if end is not None and is_new(cursor, found.check.id, end):
                    cursor = cursor_behind(cursor, found.check.id, end)
                    yield StreamItem((monitor_id, found), cursor)
        finally:
            leave(hub, target)


async def _monitor_id(hub: Hub, monitor: str) -> str:
    """Return the id of a monitor.

    :param monitor: its id or name. A name is looked up when the stream starts, and again after a failure.
    :raises WaitFailedError: none or several monitors have the name.
    """
    with suppress(ValueError):
        return str(UUID(monitor))

    async def lookup(hook: WebDataAsyncHook) -> list[str]:
        return [
            found.id
            async for found in hook.iter_monitors()
            if monitor.strip() in (found.id, (found.name or "").strip())
        ]

    found: list[str] = await hub.connection.call(lookup)
    if len(found) != 1:
        raise WaitFailedError(
            f"{len(found) or 'no'} monitors are named {monitor!r}: the watcher needs the id or the name of one monitor "
            "(WD-037)"
        )
    return found[0]


def cursor_behind(cursor: dict[str, Any], check_id: str, end: datetime) -> dict[str, Any]:
    """Return the cursor after a check."""
    start = moment(cursor["after"])
    late = end - LATE_CHECKS
    after = late if start is None else max(start, late)
    ids = {key: when for key, when in cursor["ids"] if (moment(when) or end) > after}
    ids[check_id] = end.isoformat()
    # Lists, because the asset state store accepts only JSON.
    return {"after": after.isoformat(), "ids": [list(pair) for pair in sorted(ids.items())]}


def is_new(cursor: dict[str, Any], check_id: str, end: datetime) -> bool:
    """Return whether a watcher has not seen a check yet."""
    start = moment(cursor["after"])
    return (start is None or end > start) and all(key != check_id for key, _ in cursor["ids"])
