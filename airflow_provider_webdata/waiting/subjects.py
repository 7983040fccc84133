# SPDX-License-Identifier: Apache-2.0
"""A polled job or monitor, shared by all targets of its waits."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import pendulum

from airflow_provider_webdata.api.errors import NotFoundError
from airflow_provider_webdata.states.check_listing import CheckListing
from airflow_provider_webdata.states.checks import finished_at, is_over
from airflow_provider_webdata.states.jobs import LOST, RESULT_LIFE, JobView, name_of
from airflow_provider_webdata.waiting.mailbox import WaitFailedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from airflow_provider_webdata.api.models import Monitor, MonitorCheck
    from airflow_provider_webdata.waiting.backoff import Backoff

    Call = Callable[[Callable[[Any], Awaitable[Any]]], Awaitable[Any]]
    """`Connection.call`."""

SubjectKey = tuple[str, str]
"""`monitor` or the kind of a job, and its id."""

HINT_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between polls of a job or check that has ended according to a delivery, until the service confirms it."""

MISSING_PAUSE = 2.0
"""Seconds between polls for a missing check and, in workers, for a missing job or monitor."""

MISSING_LIMIT = 30.0
"""Seconds for which a monitor, job, or check may be missing before its waits fail: the service reads from a replica."""


class Unconfirmed(NamedTuple):
    """The service does not confirm the end of a check.

    :param reason: the service's response, or why it could not be polled.
    :param is_missing: whether the check has been missing for `MISSING_LIMIT`.
    """

    check_id: str
    reason: str
    is_missing: bool = False


class Subject(ABC):
    """A polled job or monitor, its last known state, and its targets."""

    __slots__ = ("backoff", "due", "has_failed", "hints", "key", "missing_since", "polled_at", "targets")

    if_missing: str
    """The likely reason if it is permanently missing."""

    def __init__(self, key: SubjectKey) -> None:
        self.key = key
        self.targets: set[Any] = set()
        self.due = 0.0
        self.has_failed = False
        self.polled_at: float | None = None
        self.missing_since: float | None = None
        self.backoff: Backoff | None = None
        self.hints: dict[str, int] | None = None

    @property
    def label(self) -> str:
        """The subject's name in messages."""
        kind, name = self.key
        return f"{kind if kind == 'monitor' else name_of(kind)} {name}"  # type: ignore[arg-type]

    def interval(self, *, inbox_answers: bool) -> float:
        """Return the seconds between polls: the minimum of its targets."""
        return float(min(target.interval(self, inbox_answers=inbox_answers) for target in self.targets))

    def pause(self, *, inbox_answers: bool) -> float:
        """Return the seconds until the next poll; fewer while a delivery is unconfirmed."""
        interval = self.interval(inbox_answers=inbox_answers)
        if not self.hints:
            return interval
        return min(HINT_PAUSES[min(min(self.hints.values()), len(HINT_PAUSES)) - 1], interval)

    @property
    def lacks_check(self) -> bool:
        """Whether the last poll did not find a check that a target waits for."""
        return False

    @abstractmethod
    async def poll(self, call: Call) -> list[tuple[Any, Any]]:
        """Poll the service, and return pairs of a target and an item for it."""

    def state(self) -> str:
        """Return the last state, for the message of a timeout."""
        if self.polled_at is None:
            return f"the service could not be polled for {self.label}"
        polled = pendulum.from_timestamp(int(self.polled_at)).to_iso8601_string()
        return f"at {polled} {self._last()}"

    @abstractmethod
    def _last(self) -> str: ...

    def hint(self, name: str) -> None:
        """Record the id of a check or job that has ended according to a delivery."""
        self.hints = self.hints or {}
        self.hints.setdefault(name, 0)

    def unanswered(self, reason: str, *, last: bool = False) -> None:
        """Count a poll that did not confirm the hints, and give up hints after too many polls.

        :param last: whether to give up all hints, because the next poll is far away.
        """
        for name, count in list((self.hints or {}).items()):
            self.hints[name] = count + 1  # type: ignore[index]
            if last or count >= len(HINT_PAUSES):
                del self.hints[name]  # type: ignore[union-attr]
                self.post(Unconfirmed(name, reason))

    def missing(self, error: NotFoundError) -> WaitFailedError:
        """Return the end of the waits for a permanently missing subject."""
        text = f"{self.label} does not exist ({error.text()}): {self.if_missing} ({error.help_code})"
        return WaitFailedError(text, "never", is_missing=True)

    def answered(self, error: BaseException | None) -> None:
        """Let every target judge an answer; see `Target.answered`."""
        for target in self.targets:
            target.answered(error)

    def post(self, item: Any) -> None:
        """Post an item to every target."""
        for target in self.targets:
            target.mailbox.post(item)


class JobSubject(Subject):
    """One job."""

    __slots__ = ("_bills", "_view")

    def __init__(self, key: SubjectKey) -> None:
        super().__init__(key)
        self._bills = True

    @property
    def if_missing(self) -> str:  # type: ignore[override]
        """The likely reason if it is permanently missing."""
        reasons = "its result has expired (24 hours after its end), or the id or the kind is wrong"
        if self._bills:
            return reasons
        # It ran at the last poll, so that its result cannot have expired.
        is_lost = self.polled_at is not None and time.time() - self.polled_at < RESULT_LIFE.total_seconds()
        return f"the server {LOST}" if is_lost else f"the server {LOST}; or {reasons}"

    async def poll(self, call: Call) -> list[tuple[Any, Any]]:
        """Read the job's state for all targets."""
        kind: Any
        kind, job_id = self.key
        # The response contains a part of the result: request the minimum of one page.
        try:
            status = await call(lambda hook: hook.job_status(kind, job_id, limit=1))
        except NotFoundError:
            self._bills = (await call(lambda hook: hook.get_settings())).client.server.bills
            raise
        view = JobView.of(kind, job_id, status)
        self._view = view
        self.polled_at = time.time()
        self.unanswered("the service does not show it as ended")
        return [(target, view) for target in self.targets]

    def _last(self) -> str:
        return f"its state was: {self._view.progress()}"


class MonitorSubject(Subject):
    """One monitor and its checks."""

    __slots__ = ("_changed_at", "_last_over", "_missing", "_read_at", "_webhook", "fingerprint")

    if_missing = "it was deleted, or the id is wrong"

    def __init__(self, key: SubjectKey) -> None:
        super().__init__(key)
        self.fingerprint: object = None
        self._changed_at = 0.0
        self._read_at = float("-inf")
        self._missing: dict[str, float] | None = None
        self._webhook: tuple[str, tuple[str, ...]] | None = None
        # A text, because ten thousand checks would take about 2 kB each.
        self._last_over = ""

    @property
    def lacks_check(self) -> bool:
        """Whether the last poll did not find a check that a target waits for."""
        return bool(self._missing)

    def pause(self, *, inbox_answers: bool) -> float:
        """Return the seconds until the next poll; fewer while a check is missing or a delivery is unconfirmed."""
        pause = super().pause(inbox_answers=inbox_answers)
        return min(pause, MISSING_PAUSE) if self._missing else pause

    async def poll(self, call: Call) -> list[tuple[Any, Any]]:
        """Read the checks for the targets whose wait they may end."""
        if self._webhook is None and any(target.managed_url for target in self.targets):
            self.has_changed(await call(lambda hook: hook.get_monitor(self.key[1])))
        began = time.monotonic()
        checks = await self._read_checks(call)
        self._read_at = began
        self.polled_at = time.time()
        newest: datetime | None = None
        over: set[str] = set()
        for check in checks:
            if is_over(check):
                over.add(check.id)
                end = finished_at(check)
                if end is not None and (newest is None or end > newest):
                    newest = end
                    self._last_over = f"{check.id} ({check.status}, {check.finished_at})"
        for check_id in over.intersection(self.hints or ()):
            del self.hints[check_id]  # type: ignore[union-attr]
        self.unanswered("the service does not show it as ended")
        return [(target, checks) for target in self.targets if target.may_end(over, newest)]

    async def _read_checks(self, call: Call) -> list[MonitorCheck]:
        """Return the monitor's checks since the start of the earliest wait, and those requested by id."""
        monitor_id = self.key[1]
        starts = [target.queue.after for target in self.targets if target.queue.check_id is None]
        has_start = bool(starts) and None not in starts
        listing = CheckListing(min(start for start in starts if start is not None) if has_start else None)
        while listing.query is not None:
            limit, offset = listing.query
            query = {"limit": limit, "offset": offset}
            page = await call(lambda hook, query=query: hook.list_monitor_checks(monitor_id, **query))  # type: ignore[misc]
            listing.add_page(page)
        checks = listing.checks
        named = {target.queue.check_id for target in self.targets if target.queue.check_id is not None}
        missing = {}
        for name in named.union(self.hints or ()).difference(check.id for check in checks):
            try:
                # The response contains pages of the check: request the minimum of one.
                check = await call(lambda hook, name=name: hook.get_monitor_check(monitor_id, name, limit=1))  # type: ignore[misc]
            except NotFoundError as error:  # noqa: PERF203 - most lists have all
                missing[name] = since = (self._missing or {}).get(name, time.monotonic())
                if time.monotonic() - since > MISSING_LIMIT:
                    self.post(Unconfirmed(name, error.text(), is_missing=True))
            else:
                checks.append(check)
        self._missing = missing or None
        return checks

    def reports_to(self, managed_url: str) -> bool:
        """Return whether the monitor reports the end of its checks to the inbox of a connection.

        :param managed_url: URL of the inbox, up to the correlation key.
        """
        url, events = self._webhook or ("", ())
        return (url == managed_url or url.startswith(f"{managed_url}/")) and (
            not events or any(event.endswith("check.completed") for event in events)
        )

    def has_changed(self, monitor: Monitor) -> bool:
        """Record a monitor's current state, and return whether its checks must be read."""
        webhook = monitor.webhook
        if webhook is None or isinstance(webhook, str):
            self._webhook = (webhook or "", ())
        else:
            events = webhook.events or []
            self._webhook = (webhook.url or "", (events,) if isinstance(events, str) else tuple(events))
        summary = monitor.last_check_summary
        shown = (
            monitor.last_run_at,
            monitor.current_check_id,
            monitor.updated_at,
            summary.model_dump_json() if summary is not None else None,
        )
        if shown != self.fingerprint:
            self.fingerprint = shown
            self._changed_at = time.monotonic()
        # Checks that were read soon after the change may be from a replica that lacks it.
        return bool(self.hints or self._missing) or self._read_at < self._changed_at + MISSING_LIMIT

    def _last(self) -> str:
        if not self._last_over:
            return f"the service showed no finished check of {self.label}"
        return f"the last finished check was {self._last_over}"
