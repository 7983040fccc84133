"""What is polled: one job or monitor, for all targets that share it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.api.errors import NotFoundError
from airflow_provider_webdata.states.check_listing import CheckListing
from airflow_provider_webdata.states.checks import finished_at, is_over
from airflow_provider_webdata.states.jobs import JobView, name_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from airflow_provider_webdata.api.models import Monitor, MonitorCheck
    from airflow_provider_webdata.states.check_listing import PageQuery
    from airflow_provider_webdata.states.jobs import JobKind

    Call = Callable[[Callable[[Any], Awaitable[Any]]], Awaitable[Any]]
    """`Connection.call`."""

SubjectKey = tuple[str, str]
"""`monitor` or the kind of a job, and its id."""

HINT_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between polls of what is over by a delivery, while the service does not show it yet."""

MISSING_LIMIT = 30.0
"""Seconds for which a monitor, job, or check may be missing before its waits fail: reads come from a replica."""


class Unconfirmed(NamedTuple):
    """The service does not show a check as over.

    :param check_id: the check's UUID.
    :param reason: what it says instead, or why it could not be asked.
    :param is_missing: whether it does not know the check, for longer than `MISSING_LIMIT`.
    """

    check_id: str
    reason: str
    is_missing: bool = False


class Subject(ABC):
    """One job or monitor, what is known of it, and the targets that it is polled for.

    :param key: of the subject.
    """

    __slots__ = ("due", "failures", "hints", "key", "missing_since", "polled_at", "targets")

    def __init__(self, key: SubjectKey) -> None:
        self.key = key
        self.targets: set[Any] = set()
        self.due = 0.0
        self.polled_at: float | None = None
        self.missing_since: float | None = None
        self.failures = 0
        self.hints: dict[str, int] | None = None

    @property
    @abstractmethod
    def label(self) -> str:
        """The subject's name in messages."""

    @property
    def interval(self) -> float:
        """Seconds between polls: the shortest of its targets."""
        return float(min(target.interval(self) for target in self.targets))

    @property
    def pause(self) -> float:
        """Seconds until the next poll: less while a delivery is not confirmed."""
        if not self.hints:
            return self.interval
        return min(HINT_PAUSES[min(min(self.hints.values()), len(HINT_PAUSES)) - 1], self.interval)

    def hint(self, name: str) -> None:
        """Note that a delivery says that something is over.

        :param name: the id of a check, or of the job.
        """
        self.hints = self.hints or {}
        self.hints.setdefault(name, 0)

    def invalidate(self) -> None:  # noqa: B027 - a job is read completely anyway
        """Force a complete read at the next poll."""

    @abstractmethod
    async def poll(self, call: Call) -> list[tuple[Any, Any]]:
        """Poll the service, and return what each target receives.

        :param call: calls the service.
        """

    def unanswered(self, reason: str, *, last: bool = False) -> None:
        """Count a poll that did not confirm the hints, and post those that will not be confirmed.

        :param reason: what the service says, or why it could not be asked.
        :param last: whether no further poll is made soon.
        """
        for name, count in list((self.hints or {}).items()):
            self.hints[name] = count + 1  # type: ignore[index]
            if last or count >= len(HINT_PAUSES):
                del self.hints[name]  # type: ignore[union-attr]
                self.post(Unconfirmed(name, reason))

    def seen(self) -> None:
        """Note that the service was asked just now."""
        self.polled_at = time.time()

    def post(self, item: Any) -> None:
        """Post an item to every target."""
        for target in self.targets:
            target.mailbox.post(item)

    @abstractmethod
    def not_found(self, reason: str) -> str:
        """Return the message for a subject that the service does not know for good."""

    @abstractmethod
    def state(self) -> str:
        """Return the service's last answer, for the message of a timeout."""


class JobSubject(Subject):
    """One job."""

    __slots__ = ("job_id", "kind", "view")

    def __init__(self, kind: JobKind, job_id: str) -> None:
        super().__init__((kind, job_id))
        self.kind: JobKind = kind
        self.job_id = job_id
        self.view: JobView | None = None

    @property
    def label(self) -> str:
        """The subject's name in messages."""
        return f"{name_of(self.kind)} {self.job_id}"

    async def poll(self, call: Call) -> list[tuple[Any, Any]]:
        """Read the job's state, for all targets."""
        # The answer contains a part of the result: one page is the least.
        status = await call(lambda hook: hook.job_status(self.kind, self.job_id, limit=1))
        self.view = JobView.of(self.kind, self.job_id, status)
        self.seen()
        self.unanswered(f"the service still shows it as {self.view.state}")
        return [(target, self.view) for target in self.targets]

    def not_found(self, reason: str) -> str:
        """Return the message for a job that the service does not know for good."""
        return (
            f"{self.label} does not exist ({reason}): its result has expired (24 hours after its end), or the id or "
            "the kind is wrong"
        )

    def state(self) -> str:
        """Return the service's last answer, for the message of a timeout."""
        if self.polled_at is None or self.view is None:
            return "the service could not be asked about it"
        return f"at {_time(self.polled_at)} it was: {self.view.progress()}"


class MonitorSubject(Subject):
    """One monitor, whose checks are waited for."""

    __slots__ = ("_fingerprint", "_last_over", "_missing", "_webhook", "_webhook_known", "monitor_id")

    def __init__(self, monitor_id: str) -> None:
        super().__init__(("monitor", monitor_id))
        self.monitor_id = monitor_id
        self._fingerprint: object = None
        self._missing: dict[str, float] | None = None
        self._webhook_known = False
        self._webhook: tuple[str, tuple[str, ...]] | None = None
        self._last_over: MonitorCheck | None = None

    @property
    def label(self) -> str:
        """The subject's name in messages."""
        return f"monitor {self.monitor_id}"

    @property
    def pause(self) -> float:
        """Seconds until the next poll: less while a check is missing, or a delivery is not confirmed."""
        return min(super().pause, HINT_PAUSES[2]) if self._missing else super().pause

    def invalidate(self) -> None:
        """Force a read of the checks even if the monitor has not changed."""
        self._fingerprint = None

    async def poll(self, call: Call) -> list[tuple[Any, Any]]:
        """Read the checks, for the targets whose wait they may end."""
        if not self._webhook_known and any(target.managed_url for target in self.targets):
            self.update(await call(lambda hook: hook.get_monitor(self.monitor_id)))
        checks = await self._read_checks(call)
        self.seen()
        newest: datetime | None = None
        over: set[str] = set()
        for check in checks:
            if is_over(check):
                over.add(check.id)
                end = finished_at(check)
                if end is not None and (newest is None or end > newest):
                    newest, self._last_over = end, check
        for check_id in over.intersection(self.hints or ()):
            del self.hints[check_id]  # type: ignore[union-attr]
        self.unanswered("the service does not show it as over")
        return [(target, checks) for target in self.targets if target.may_end(over, newest)]

    async def _read_checks(self, call: Call) -> list[MonitorCheck]:
        """Return the monitor's checks, back to where the earliest of the waits began, and those that are named."""
        starts = [target.after for target in self.targets if target.check_id is None]
        has_start = bool(starts) and None not in starts
        listing = CheckListing(min(start for start in starts if start is not None) if has_start else None)

        async def read_page(query: PageQuery) -> list[MonitorCheck]:
            page: list[MonitorCheck] = await call(
                lambda hook: hook.list_monitor_checks(self.monitor_id, limit=query.limit, offset=query.offset)
            )
            return page

        while (query := listing.query) is not None:
            listing.take(await read_page(query))
        checks = listing.checks
        named = {target.check_id for target in self.targets if target.check_id is not None}
        unlisted = named.union(self.hints or ()).difference(check.id for check in checks)
        missing = {}
        for check_id in unlisted:
            try:
                # Pages come along with a check: one is the least.
                checks.append(await self._read_check(call, check_id))
            except NotFoundError as error:  # noqa: PERF203 - most lists have all
                missing[check_id] = self._note_missing(check_id, str(error))
        self._missing = missing or None
        return checks

    async def _read_check(self, call: Call, check_id: str) -> MonitorCheck:
        check: MonitorCheck = await call(
            lambda hook: hook.get_monitor_check(self.monitor_id, check_id, limit=1)
        )
        return check

    def _note_missing(self, check_id: str, reason: str) -> float:
        """Return since when a check is missing."""
        now = time.monotonic()
        since = (self._missing or {}).get(check_id, now)
        if now - since > MISSING_LIMIT:
            self.post(Unconfirmed(check_id, reason, is_missing=True))
        return since

    def reports_to(self, managed_url: str) -> bool:
        """Return whether the monitor reports the end of its checks to the inbox of a connection.

        :param managed_url: the inbox's address, up to the correlation key.
        """
        if self._webhook is None:
            return False
        url, events = self._webhook
        return (url == managed_url or url.startswith(f"{managed_url}/")) and (
            not events or any(event.endswith("check.completed") for event in events)
        )

    def update(self, monitor: Monitor) -> bool:
        """Note a monitor's current state, and return whether its checks must be read."""
        self._webhook_known = True
        webhook = monitor.webhook
        if webhook is None or isinstance(webhook, str):
            self._webhook = (webhook, ()) if webhook else None
        else:
            events = webhook.events or []
            events = [events] if isinstance(events, str) else events
            self._webhook = (webhook.url or "", tuple(events))
        summary = monitor.last_check_summary
        fingerprint = (
            monitor.last_run_at,
            monitor.current_check_id,
            monitor.updated_at,
            summary.model_dump_json() if summary is not None else None,
        )
        has_changed = fingerprint != self._fingerprint
        self._fingerprint = fingerprint
        return has_changed or self.polled_at is None

    def not_found(self, reason: str) -> str:
        """Return the message for a monitor that the service does not know for good."""
        return f"{self.label} does not exist ({reason}): it was deleted, or the id is wrong"

    def state(self) -> str:
        """Return the service's last answer, for the message of a timeout."""
        if self.polled_at is None:
            return f"the service could not be asked for the checks of monitor {self.monitor_id}"
        polled = _time(self.polled_at)
        if self._last_over is None:
            return f"at {polled} the service showed no check that was over"
        return (
            f"at {polled} the last check that was over was {self._last_over.id} ({self._last_over.status}, "
            f"{self._last_over.finished_at or 'without an end'})"
        )


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
