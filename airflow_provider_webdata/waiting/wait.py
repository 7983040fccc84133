# SPDX-License-Identifier: Apache-2.0
"""Waiting for a target, in triggers or, for workers, in a thread with its own event loop."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import NotFoundError
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.waiting import subjects
from airflow_provider_webdata.waiting.mailbox import ExpiredError, Mailbox, Notice, WaitFailedError
from airflow_provider_webdata.waiting.poll_source import is_meaningful
from airflow_provider_webdata.waiting.target import Judge, Judgment, Look, waiting_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.states.outcomes import OutcomeT
    from airflow_provider_webdata.waiting.hub import Hub
    from airflow_provider_webdata.waiting.target import Target

    Announce = Callable[[Target[Any], str, float | None], None]
    """Logs the first line of a wait, see `waiting_for`."""


async def wait(
    hub: Hub,
    target: Target[OutcomeT],
    deadline: float | None = None,
    announce: Announce | None = None,
) -> OutcomeT:
    """Wait for a target, and return the outcome.

    It is `timeout` with the last observed state if the deadline passes, and `error` if the target is missing, the
    service refuses the connection for `states.answers.OUTAGE_SECONDS`, or a source fails.

    :param deadline: seconds since the epoch; None: no deadline.
    :param announce: default: log the first line immediately to the target's log.
    :raises ConfigurationError: the connection has no webhook to wait for.
    :raises ArgumentError: a value of the target is invalid.
    """
    # Ten thousand waits keep their frames in memory: `_begin` has a separate frame for values needed only at the start.
    with hub.mailbox(deadline) as target.mailbox:
        try:
            await _begin(hub, target, deadline, announce)
            return target.outcome(await next_found(hub, target))
        except ExpiredError:
            return target.unfinished("timeout", timed_out(target, seen(hub, target)))
        except WaitFailedError as error:
            return target.unfinished("error", brief(error), error)
        finally:
            leave(hub, target)


async def _begin(hub: Hub, target: Target[Any], deadline: float | None, announce: Announce | None) -> None:
    how = await follow(hub, target)
    if announce is None:
        target.log.info("%s", waiting_for(target, how, deadline))
    else:
        announce(target, how, deadline)


async def follow(hub: Hub, target: Target[Any]) -> str:
    """Subscribe a target to its sources until `leave`, and return how its end is detected, as text."""
    settings = await _settings(hub, target)
    how, target.subscriptions = target.begin(settings, listens=hub.listens)
    for subscription in target.subscriptions:
        hub.inbox.subscribe(subscription, target.mailbox)
    if target.is_polled:
        hub.polls.follow(target)
    return how


async def _settings(hub: Hub, target: Target[Any]) -> ConnectionSettings:
    """Return the connection's settings, unless the deadline passes while they cannot be read.

    :raises ExpiredError: the deadline has passed.
    :raises WaitFailedError: the connection is missing or invalid, and nothing that is billed runs, or for too long.
    """
    connection = hub.connection
    if connection.is_read:
        return await connection.settings()
    if connection.backoff.notice is not None:
        connection.backoff.notice.log_to(target.log)
    while True:
        reading = connection.reading()
        while not reading.done():
            await asyncio.wait((reading, target.mailbox.arrival()), return_when=asyncio.FIRST_COMPLETED)
            _log_notices(target)
        if (error := reading.exception()) is None:
            return reading.result()
        target.answered(error)
        _log_notices(target)


def _log_notices(target: Target[Any]) -> None:
    while isinstance(notice := target.mailbox.pop(), Notice):
        notice.log_to(target.log)


def leave(hub: Hub, target: Target[Any]) -> None:
    """Unsubscribe a target from its sources."""
    for subscription in target.subscriptions:
        hub.inbox.unsubscribe(subscription)
    hub.polls.leave(target)


async def next_found(hub: Hub, target: Target[Any]) -> Any:
    """Return the next finding that ends a wait, as decided by the target.

    :raises ExpiredError: the deadline has passed.
    :raises WaitFailedError: the wait cannot continue.
    """
    asked: Judge | None = None
    while True:
        decision = target.decide()
        if isinstance(decision, Look):
            hub.polls.look_now(target.key, decision.hint)
            continue
        if isinstance(decision, Judge):
            if decision != asked:
                asked = decision
                _judge(hub, target.key[1], decision, target.mailbox)
        elif decision is not None:
            return decision
        while (item := target.mailbox.pop()) is None:
            await target.mailbox.arrival()
        if isinstance(item, Notice):
            item.log_to(target.log)
        elif (look := target.receive(item)) is not None:
            hub.polls.look_now(target.key, look.hint)


def _judge(hub: Hub, monitor_id: str, judge: Judge, mailbox: Mailbox) -> None:
    def answer(task: asyncio.Task[bool]) -> None:
        if not task.cancelled():
            mailbox.post(task.exception() or Judgment(judge.check_id, task.result()))

    hub.polls.judge(monitor_id, judge.check_id).add_done_callback(answer)


async def look(hub: Hub, target: Target[OutcomeT]) -> OutcomeT | None:
    """Poll a target once, and return the outcome, or None if the wait has not ended.

    The poll source keeps the target until `leave`, or until the hub closes.

    The outcome is an `error` if the job, monitor, or check stays missing for longer than the service's replica may lag.

    :raises WebDataError: the service or the inbox is unavailable, or refuses the connection.
    """
    target.mailbox = Mailbox()
    _, subscriptions = target.begin(await hub.connection.settings(), listens=False)
    while True:
        try:
            found = await (_poll(hub, target) if target.is_polled else hub.inbox.past(subscriptions))
        except WaitFailedError as error:
            return target.unfinished("error", brief(error), error)
        for _, item in found:
            target.receive(item)
        while isinstance(decision := target.decide(), Judge):
            hook = await hub.connection.hook()
            meaningful = await is_meaningful(hook, target.key[1], decision.check_id)
            target.receive(Judgment(decision.check_id, meaningful))
        if not isinstance(decision, Look):
            return None if decision is None else target.outcome(decision)


async def _poll(hub: Hub, target: Target[Any]) -> list[tuple[Any, Any]]:
    hub.connection.count_poll(target.key[0])
    subject = hub.polls.add(target)
    began = time.monotonic()
    while True:
        # A new object may still be missing in the replica.
        try:
            found = await subject.poll(hub.connection.call)
        except NotFoundError as error:
            if time.monotonic() - began + subjects.MISSING_PAUSE > subjects.MISSING_LIMIT:
                raise subject.missing(error) from None
        else:
            while (item := target.mailbox.pop()) is not None:
                if isinstance(item, Notice):
                    item.log_to(target.log)
                else:
                    target.receive(item)
            if not subject.lacks_check:
                return found
        await asyncio.sleep(subjects.MISSING_PAUSE)


def timed_out(target: object, seen: Iterable[str]) -> str:
    """Return the message of a timeout.

    :param seen: what the wait observed last, see `seen`.
    """
    return ": ".join(filter(None, (f"Timed out waiting for {target}", "; ".join(seen))))


def seen(hub: Hub, target: Target[Any]) -> Iterator[str]:
    """Yield what a wait observed last, for the message of a timeout."""
    if not hub.connection.is_read:
        notice = hub.connection.backoff.notice
        yield f"Airflow has not read {'the connection' if notice is None else notice.text}"
    if target.is_polled:
        subject = hub.polls.subjects.get(target.key)
        yield subject.state() if subject is not None else "the service was not polled"
    if target.subscriptions:
        yield hub.inbox.state()
    yield from target.remarks()
