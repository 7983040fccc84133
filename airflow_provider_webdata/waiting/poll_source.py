# SPDX-License-Identifier: Apache-2.0
"""Poller of the service for all waits of a connection. Targets of the same job or monitor share its polls."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import (
    AuthenticationError,
    ConfigurationError,
    NotFoundError,
    RateLimitError,
    TransportError,
    UnsupportedError,
    WebDataError,
)
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.hooks.calls import MonitorPages
from airflow_provider_webdata.states.answers import is_refusal, judged
from airflow_provider_webdata.states.checks import MEANINGFUL_STATUSES, is_meaningful_change
from airflow_provider_webdata.waiting import subjects
from airflow_provider_webdata.waiting.backoff import Backoff
from airflow_provider_webdata.waiting.connection import GATHER, SLICE
from airflow_provider_webdata.waiting.mailbox import Notice, WaitFailedError
from airflow_provider_webdata.waiting.subjects import MonitorSubject

if TYPE_CHECKING:
    from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
    from airflow_provider_webdata.waiting.connection import Connection
    from airflow_provider_webdata.waiting.subjects import Subject, SubjectKey
    from airflow_provider_webdata.waiting.target import Target

EARLY = 0.1
"""Fraction of its interval by which a poll may be early, to share a round with others."""

FEW = 10
"""Up to this many monitors are polled individually. If more are due, all are listed, and only changed ones polled."""

_BATCH = 4
_FAR = float("inf")
_CONNECTION_WIDE = (AuthenticationError, ConfigurationError, TransportError)
"""Errors that all other polls would raise too, unless some of the same time succeed."""


class PollSource:
    """Polls subjects when they are due, and posts the results to the targets whose wait they may end.

    A new target is polled promptly. All errors are retried with increasing pauses, and reported in the waiting tasks'
    logs. Each target judges the answers to its own polls, and so whether they end its wait.
    """

    def __init__(self, connection: Connection) -> None:
        self.subjects: dict[SubjectKey, Subject] = {}
        self._connection = connection
        self._changed = asyncio.Event()
        self._is_running = False
        self._paused_until = 0.0
        self._backoff = Backoff(f"service of connection {connection.conn_id!r}", self._broadcast)
        self._list_pages = 0
        self._judging: dict[tuple[str, str], asyncio.Task[bool]] = {}
        self._inbox_answers = True

    def add(self, target: Target[Any]) -> Subject:
        """Add a target to its subject, and return the subject."""
        if (subject := self.subjects.get(key := target.key)) is None:
            subject = self.subjects[key] = target.subject_class(key)
        subject.targets.add(target)
        return subject

    def follow(self, target: Target[Any]) -> None:
        """Start polling for a target."""
        self.add(target)
        if self._backoff.notice is not None:
            target.mailbox.post(self._backoff.notice)
        self.look_now(target.key)
        if not self._is_running:
            self._is_running = True
            self._connection.run(self._run(), f"the poller of connection {self._connection.conn_id!r}")

    def leave(self, target: Target[Any]) -> None:
        """Stop polling for a target."""
        subject = self.subjects.get(target.key)
        if subject is not None:
            subject.targets.discard(target)
            if not subject.targets:
                del self.subjects[target.key]

    def look_now(self, key: SubjectKey, hint: str | None = None) -> None:
        """Poll a subject now, before it is due.

        :param hint: id of the job or check that has ended according to a delivery. The poll is repeated at short
            intervals until the service confirms it.
        """
        if (subject := self.subjects.get(key)) is not None:
            if hint is not None:
                subject.hint(hint)
            subject.due = 0.0
            if isinstance(subject, MonitorSubject):
                # Poll even if the list shows no change.
                subject.fingerprint = None
            self._changed.set()

    def adapt(self, *, inbox_answers: bool) -> None:
        """Poll every `poll_interval` while the inbox is silent, and less often while it answers."""
        if inbox_answers == self._inbox_answers:
            return
        self._inbox_answers = inbox_answers
        now = asyncio.get_running_loop().time()
        for subject in self.subjects.values() if not inbox_answers else ():
            subject.due = min(subject.due, now + self._interval(subject))
        self._changed.set()

    def _interval(self, subject: Subject) -> float:
        return subject.interval(inbox_answers=self._inbox_answers)

    def judge(self, monitor_id: str, check_id: str) -> asyncio.Task[bool]:
        """Return a task that reads whether a check has a meaningful change. Concurrent callers share it."""
        key = (monitor_id, check_id)
        if key not in self._judging:
            self._judging[key] = self._connection.spawn(self._judge(*key), f"the pages of check {check_id}")
            self._judging[key].add_done_callback(lambda _: self._judging.pop(key))
        return self._judging[key]

    async def _judge(self, monitor_id: str, check_id: str) -> bool:
        def notify(notice: Notice) -> None:
            if (subject := self.subjects.get(("monitor", monitor_id))) is not None:
                subject.post(notice)

        backoff = Backoff(f"pages of check {check_id}", notify)
        since: float | None = None
        while True:
            try:
                return bool(
                    await self._connection.call(lambda hook: is_meaningful(hook, monitor_id, check_id))
                )
            except Exception as error:  # noqa: PERF203 - a lookup of the connection raises any error
                ruling, since = judged(error, since, time.monotonic(), bills=True)
                if ruling == "end" or ("monitor", monitor_id) not in self.subjects:
                    cause = f"check {check_id} of monitor {monitor_id}: {brief(error)}"
                    raise WaitFailedError(cause, "unknown" if since is None else "later") from error
                await asyncio.sleep(backoff.failed(error, at_once=ruling == "warn"))

    async def _run(self) -> None:
        while True:
            await self._until_due()
            await self._round()

    async def _until_due(self) -> None:
        while True:
            self._changed.clear()
            soonest = min((subject.due for subject in self.subjects.values()), default=_FAR)
            # A pause requested by the service also applies to waits that start in the meantime.
            nap = max(soonest, self._paused_until) - asyncio.get_running_loop().time()
            if nap <= 0:
                await asyncio.sleep(GATHER)
                return
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(nap, 3600.0))

    async def _round(self) -> None:
        now = asyncio.get_running_loop().time()
        due = [
            subject
            for subject in self.subjects.values()
            if subject.due <= now or subject.due <= now + EARLY * self._interval(subject)
        ]
        # A poll that fails, perhaps after a long timeout, must not keep the others from their turn.
        due.sort(key=lambda subject: subject.has_failed)
        errors: dict[Subject, BaseException] = {}
        try:
            await self._poll_all(await self._without_unchanged(due), errors)
        except Exception as error:  # noqa: BLE001 - shown to all waits, and retried
            pause = self._backoff.failed(error, is_silent=is_refusal(error))
            self._paused_until = asyncio.get_running_loop().time() + pause
            for subject in due:
                if subject.due <= now:
                    subject.answered(errors.get(subject, error))
                    subject.unanswered(brief(error), last=pause > sum(subjects.HINT_PAUSES))
        else:
            self._backoff.recovered()

    async def _without_unchanged(self, due: list[Subject]) -> list[Subject]:
        """Return the subjects to poll. If many monitors are due, only those that the list shows as changed."""
        monitors = {subject.key[1]: subject for subject in due if isinstance(subject, MonitorSubject)}
        if len(monitors) <= max(FEW, self._list_pages):
            return due
        unchanged: set[Subject] = set()
        pages = MonitorPages()
        count = 0
        while (query := pages.query) is not None and monitors:
            page = await self._connection.call(lambda hook, query=query: hook.list_monitors(**query))  # type: ignore[misc]
            count += 1
            try:
                listed = pages.add_page(page)
            except UnsupportedError:
                # The rest cannot be listed, so it is polled.
                break
            for monitor in listed:
                subject = monitors.pop(monitor.id, None)
                if subject is not None and not subject.has_changed(monitor):
                    subject.polled_at = time.time()
                    self._schedule(subject)
                    unchanged.add(subject)
        self._list_pages = max(count, 1)
        # Unlisted monitors may be deleted, or too new for the replica.
        return [subject for subject in due if subject not in unchanged]

    async def _poll_all(self, due: list[Subject], errors: dict[Subject, BaseException]) -> None:
        """Poll all subjects. An error of only some subjects does not delay the others.

        :param errors: receives the error of each failed poll.
        :raises Exception: the service is unavailable, or refuses the connection.
        """
        for start in range(0, len(due), _BATCH):
            batch = due[start : start + _BATCH]
            polls = await asyncio.gather(*(self._poll(subject) for subject in batch), return_exceptions=True)
            failed = {
                subject: error for subject, error in zip(batch, polls, strict=True) if error is not None
            }
            errors |= failed
            for error in failed.values():
                # A server that answers other polls is not down, and accepts the connection.
                is_general = isinstance(error, _CONNECTION_WIDE) and len(failed) == len(batch)
                if is_general or isinstance(error, RateLimitError) or not isinstance(error, WebDataError):
                    raise error
        if errors and len(errors) == len(due):
            raise errors[due[-1]]
        for subject, error in errors.items():
            subject.answered(error)
            self._retry(subject, error)  # type: ignore[arg-type]

    async def _poll(self, subject: Subject) -> None:
        if not subject.targets:
            return
        self._connection.count_poll(subject.key[0])
        subject.due = _FAR
        try:
            found = await subject.poll(self._connection.call)
        except NotFoundError as error:
            self._retry(subject, error)
            return
        except BaseException:
            subject.due = 0.0
            subject.has_failed = True
            raise
        subject.missing_since = None
        if subject.has_failed:
            subject.has_failed = False
            subject.answered(None)
        # Post the notices first, because the results may end the waits.
        if subject.backoff is not None:
            subject.backoff.recovered()
            subject.backoff = None
        self._backoff.recovered()
        for number, (target, item) in enumerate(found, 1):
            target.mailbox.post(item)
            if number % SLICE == 0:
                await asyncio.sleep(0)
        if subject.due == _FAR:
            self._schedule(subject)

    def _schedule(self, subject: Subject, pause: float | None = None) -> None:
        if subject.targets:
            pause = subject.pause(inbox_answers=self._inbox_answers) if pause is None else pause
            subject.due = asyncio.get_running_loop().time() + pause

    def _retry(self, subject: Subject, error: WebDataError) -> None:
        now = asyncio.get_running_loop().time()
        if isinstance(error, NotFoundError):
            # Not a failure yet: the service reads from a replica.
            subject.missing_since = subject.missing_since or now
            if now - subject.missing_since > subjects.MISSING_LIMIT:
                subject.post(subject.missing(error))
            pause, last = min(1.0 + now - subject.missing_since, 8.0), False
        else:
            subject.backoff = subject.backoff or Backoff(subject.label, subject.post)
            pause = subject.backoff.failed(error, is_silent=is_refusal(error))
            last = pause > sum(subjects.HINT_PAUSES)
        self._schedule(subject, pause)
        subject.unanswered(error.brief(), last=last)

    def _broadcast(self, item: Any) -> None:
        for subject in self.subjects.values():
            subject.post(item)


async def is_meaningful(hook: WebDataAsyncHook, monitor_id: str, check_id: str) -> bool:
    """Return whether a check has a page whose change was judged meaningful."""
    for status in MEANINGFUL_STATUSES:
        async for page in hook.iter_monitor_check_pages(monitor_id, check_id, status=status):
            if is_meaningful_change(page):
                return True
    return False
