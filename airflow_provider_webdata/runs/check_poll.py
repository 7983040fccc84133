"""Asking the service for the checks of a monitor."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.states.check_listing import CheckListing
from airflow_provider_webdata.states.checks import MEANINGFUL_STATUSES, event_of, has_meaningful

if TYPE_CHECKING:
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.states.check_queue import CheckQueue


def poll_check(hook: WebDataHook, monitor_id: str, queue: CheckQueue, *, via: str) -> dict[str, Any] | None:
    """Return the event of a trigger for the check that ends the wait, or None if there is none yet.

    :param hook: of the monitor's connection.
    :param monitor_id: the monitor's UUID.
    :param queue: which checks count; it may have served earlier polls of the same wait.
    :param via: what gave rise to the poll: `webhook` or `polling`.
    """
    from airflow_provider_webdata.runs.metrics import count

    count("webdata.polls", 1, {}, conn_id=hook.webdata_conn_id, kind="monitor")
    if queue.check_id is not None:
        _queue_named(hook, monitor_id, queue.check_id, queue)
        if event := _decide(hook, monitor_id, queue, via):
            return event
        if queue.check_id is not None:
            return None
    listing = CheckListing(queue.after)
    while (query := listing.query) is not None:
        listing.take(hook.list_monitor_checks(monitor_id, limit=query.limit, offset=query.offset))
    queue.add(listing.checks)
    return _decide(hook, monitor_id, queue, via)


def _queue_named(hook: WebDataHook, monitor_id: str, check_id: str, queue: CheckQueue) -> None:
    from airflow_provider_webdata.api.errors import NotFoundError

    # One that is not found may be too new for the replica.
    with suppress(NotFoundError):
        queue.add([hook.get_monitor_check(monitor_id, check_id, limit=1)])


def _decide(hook: WebDataHook, monitor_id: str, queue: CheckQueue, via: str) -> dict[str, Any] | None:
    while (check := queue.head) is not None:
        meaningful = _is_meaningful(hook, monitor_id, check.id) if queue.needs_pages else None
        decision = queue.decide(meaningful=meaningful)
        if decision.outcome != "wait":
            return event_of(check, decision, monitor_id=monitor_id, via=via)
    return None


def _is_meaningful(hook: WebDataHook, monitor_id: str, check_id: str) -> bool:
    return any(
        has_meaningful(part)
        for status in MEANINGFUL_STATUSES
        for part in hook.iter_monitor_check_pages(monitor_id, check_id, status=status)
    )
