"""Waits for checks of a monitor, and what is known of a monitor that is polled."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from airflow_provider_webdata.states.check_listing import CheckListing
from airflow_provider_webdata.states.checks import finished_at, is_over
from airflow_provider_webdata.waiting.polling.check_answers import CheckSnapshot
from airflow_provider_webdata.waiting.polling.watch import Wait, Watch

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_webdata.api.models import Monitor, MonitorCheck
    from airflow_provider_webdata.states.check_listing import PageQuery
    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.polling.lookups import Lookups
    from airflow_provider_webdata.waiting.polling.watch import WatchKey


def monitor_key(monitor_id: str) -> WatchKey:
    """Return the key of a monitor's watch.

    :param monitor_id: the monitor's UUID.
    """
    return "monitor", monitor_id


class MonitorWait(Wait):
    """One wait for a check of a monitor.

    :param mailbox: gets the snapshots.
    :param monitor_id: the monitor's UUID.
    :param check_id: the check that is waited for, if it is a certain one.
    :param after: checks that finished later count.
    :param poll_interval: seconds between polls where no delivery is expected.
    :param safety_poll: seconds between polls where the monitor reports to `managed_url`.
    :param managed_url: address of the connection's inbox, which the monitor may report to; empty: where it reports
        does not matter, and `poll_interval` holds.
    """

    __slots__ = ("after", "check_id", "managed_url", "monitor_id", "poll_interval", "safety_poll")

    def __init__(
        self,
        mailbox: Mailbox,
        monitor_id: str,
        *,
        check_id: str | None = None,
        after: datetime | None = None,
        poll_interval: float,
        safety_poll: float,
        managed_url: str = "",
    ) -> None:
        super().__init__(mailbox, monitor_key(monitor_id))
        self.monitor_id = monitor_id
        self.check_id = check_id
        self.after = after
        self.poll_interval = poll_interval
        self.safety_poll = safety_poll
        self.managed_url = managed_url

    def new_watch(self) -> MonitorWatch:
        """Return a watch for the monitor."""
        return MonitorWatch(self.monitor_id)

    def interval(self, watch: MonitorWatch) -> float:
        """Return the seconds between polls.

        :param watch: what is known of the monitor.
        """
        expects_delivery = self.managed_url and watch.reports_to(self.managed_url)
        return self.safety_poll if expects_delivery else self.poll_interval


class MonitorWatch(Watch):
    """One monitor, however many wait for its checks.

    :param monitor_id: the monitor's UUID.
    """

    __slots__ = ("_fingerprint", "_last_over", "_webhook", "_webhook_known", "monitor_id")

    def __init__(self, monitor_id: str) -> None:
        super().__init__(monitor_key(monitor_id))
        self.monitor_id = monitor_id
        self._fingerprint: object = None
        self._webhook_known = False
        self._webhook: tuple[str, tuple[str, ...]] | None = None
        self._last_over: MonitorCheck | None = None

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"monitor {self.monitor_id}"

    @property
    def interval(self) -> float:
        """Seconds between polls: the shortest that a wait asks for."""
        return float(min(wait.interval(self) for wait in self.waits))

    def invalidate(self) -> None:
        """Force a read of the checks even if the monitor has not changed."""
        self._fingerprint = None

    def not_found(self, reason: str) -> str:
        """Return the message for a monitor that the service does not know for good."""
        return f"monitor {self.monitor_id} does not exist ({reason}): it was deleted, or the id is wrong"

    async def poll(self, lookups: Lookups) -> list[tuple[Wait, CheckSnapshot]]:
        """Read the checks, for the waits that they may end."""
        if not self._webhook_known and any(wait.managed_url for wait in self.waits):
            self.update(await lookups.call(lambda hook: hook.get_monitor(self.monitor_id)))
        checks = await self._read_checks(lookups)
        snapshots: list[tuple[Wait, CheckSnapshot]] = [
            (wait, CheckSnapshot(checks)) for wait in self._note_checks(checks)
        ]
        seen = {check.id for check in checks}
        for wait in self.waits:
            if wait.check_id is not None and wait.check_id not in seen:
                lookups.confirm(self.monitor_id, wait.check_id, wait.mailbox)
        return snapshots

    async def _read_checks(self, lookups: Lookups) -> list[MonitorCheck]:
        """Return the monitor's checks, back to where the earliest of the waits began."""
        starts = [wait.after for wait in self.waits if wait.check_id is None]
        has_start = bool(starts) and None not in starts
        listing = CheckListing(min(start for start in starts if start is not None) if has_start else None)
        while (query := listing.query) is not None:
            listing.take(await self._read_page(lookups, query))
        return listing.checks

    async def _read_page(self, lookups: Lookups, query: PageQuery) -> list[MonitorCheck]:
        page: list[MonitorCheck] = await lookups.call(
            lambda hook: hook.list_monitor_checks(self.monitor_id, limit=query.limit, offset=query.offset)
        )
        return page

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
        """Note how a monitor stands, and return whether its checks must be read.

        :param monitor: as the service shows it now.
        """
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

    def _note_checks(self, checks: list[MonitorCheck]) -> list[MonitorWait]:
        """Note a monitor's checks, and return the waits that they may end."""
        self.polled_at = time.time()
        self.missing_since = None
        newest: datetime | None = None
        over: set[str] = set()
        for check in checks:
            if is_over(check):
                over.add(check.id)
                end = finished_at(check)
                if end is not None and (newest is None or end > newest):
                    newest, self._last_over = end, check
        return [
            wait
            for wait in self.waits
            if (wait.check_id in over if wait.check_id is not None else _is_after(newest, wait.after))
        ]

    def state(self) -> str:
        """Return what the service said last, for the message of a timeout."""
        if self.polled_at is None:
            return f"the service could not be asked for the checks of monitor {self.monitor_id}"
        polled = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.polled_at))
        if self._last_over is None:
            return f"at {polled} the service showed no check that was over"
        return (
            f"at {polled} the last check that was over was {self._last_over.id} ({self._last_over.status}, "
            f"{self._last_over.finished_at or 'without an end'})"
        )


def _is_after(newest: datetime | None, after: datetime | None) -> bool:
    return newest is not None and (after is None or newest > after)
