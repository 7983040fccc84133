"""Waits for checks of a monitor, and what is known of a monitor that is waited for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from airflow_provider_webdata.hooks.calls import PAGE_SIZE
from airflow_provider_webdata.states.checks import finished, is_over
from airflow_provider_webdata.waiting.polling.check_news import Look
from airflow_provider_webdata.waiting.polling.watch import Wait, Watch

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_webdata.api.models import Monitor, MonitorCheck
    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.polling.lookups import Lookups
    from airflow_provider_webdata.waiting.polling.watch import Place

_FIRST_PAGE = 25
_MOST_PAGES = 40


def place_of(monitor_id: str) -> Place:
    """Return the place of a monitor among all that is looked at.

    :param monitor_id: the monitor's UUID.
    """
    return "monitor", monitor_id


class MonitorWait(Wait):
    """One wait for a check of a monitor.

    :param mailbox: where looks go.
    :param monitor_id: the monitor's UUID.
    :param check_id: the check that is waited for, if it is a certain one.
    :param after: checks that finished later count.
    :param often: seconds between two looks where only looking helps.
    :param seldom: seconds between two looks where the monitor reports to our inbox.
    :param ours: the address that the monitor reports to if it does; empty: it is not looked at, and `often` holds.
    """

    __slots__ = ("after", "check_id", "monitor_id", "often", "ours", "seldom")

    def __init__(
        self,
        mailbox: Mailbox,
        monitor_id: str,
        *,
        check_id: str | None = None,
        after: datetime | None = None,
        often: float,
        seldom: float,
        ours: str = "",
    ) -> None:
        super().__init__(mailbox, place_of(monitor_id))
        self.monitor_id = monitor_id
        self.check_id = check_id
        self.after = after
        self.often = often
        self.seldom = seldom
        self.ours = ours

    def new_watch(self) -> MonitorWatch:
        """Return a watch for the monitor."""
        return MonitorWatch(self.monitor_id)

    def interval(self, watch: MonitorWatch) -> float:
        """Return the seconds between two looks.

        :param watch: what is known of the monitor.
        """
        return self.seldom if self.ours and watch.reports_to(self.ours) else self.often


class MonitorWatch(Watch):
    """One monitor, however many wait for its checks.

    A few monitors are asked for their checks one by one; many are found by listing all monitors.

    :param monitor_id: the monitor's UUID.
    """

    __slots__ = ("known", "last", "monitor_id", "signature", "webhook")

    def __init__(self, monitor_id: str) -> None:
        super().__init__(place_of(monitor_id))
        self.monitor_id = monitor_id
        self.signature: object = None
        self.known = False
        self.webhook: tuple[str, tuple[str, ...]] | None = None
        self.last: MonitorCheck | None = None

    @property
    def what(self) -> str:
        """What messages call it."""
        return f"monitor {self.monitor_id}"

    @property
    def interval(self) -> float:
        """Seconds between two looks: what the most impatient wait asks for."""
        return float(min(wait.interval(self) for wait in self.waits))

    def stir(self) -> None:
        """Note that a monitor that did not move since the last look may still have what a wait is for."""
        self.signature = None

    def gone(self, reason: str) -> str:
        """Return what to say when the service does not know it for good."""
        return f"monitor {self.monitor_id} is not there ({reason}); it was deleted, or the id is wrong"

    async def look(self, lookups: Lookups) -> list[tuple[Wait, Look]]:
        """Read the checks, and show them to the waits that they may end."""
        if self.asks_for_webhook:
            self.take_monitor(await lookups.with_renewal(lambda hook: hook.get_monitor(self.monitor_id)))
        checks = await self._checks(lookups)
        shown: list[tuple[Wait, Look]] = [(wait, Look(checks)) for wait in self.take_checks(checks)]
        seen = {check.id for check in checks}
        for wait in self.waits:
            if wait.check_id is not None and wait.check_id not in seen:
                lookups.confirm(self.monitor_id, wait.check_id, wait.mailbox)
        return shown

    async def _checks(self, lookups: Lookups) -> list[MonitorCheck]:
        """Return the monitor's checks, back to where the waits began."""
        since = [wait.after for wait in self.waits if wait.check_id is None]
        oldest = None if not since or None in since else min(moment for moment in since if moment is not None)
        found: dict[str, MonitorCheck] = {}
        limit, offset = _FIRST_PAGE, 0
        for _ in range(_MOST_PAGES):
            page = await self._checks_page(lookups, limit, offset)
            found.update((check.id, check) for check in page)
            ends = [end for check in page if (end := finished(check)) is not None]
            if len(page) < limit or oldest is None or (ends and min(ends) <= oldest):
                break
            offset += len(page)
            limit = PAGE_SIZE
        return list(found.values())

    async def _checks_page(self, lookups: Lookups, limit: int, offset: int) -> list[MonitorCheck]:
        page: list[MonitorCheck] = await lookups.with_renewal(
            lambda hook: hook.list_monitor_checks(self.monitor_id, limit=limit, offset=offset)
        )
        return page

    @property
    def asks_for_webhook(self) -> bool:
        """Whether a wait depends on where the monitor reports to, and that is not known."""
        return not self.known and any(wait.ours for wait in self.waits)

    def reports_to(self, ours: str) -> bool:
        """Return whether the monitor reports the end of its checks to an address of ours.

        :param ours: the address, up to the correlation key.
        """
        if self.webhook is None:
            return False
        url, events = self.webhook
        return (url == ours or url.startswith(f"{ours}/")) and (
            not events or any(event.endswith("check.completed") for event in events)
        )

    def take_monitor(self, monitor: Monitor) -> bool:
        """Note what a monitor says of itself, and return whether its checks need a look.

        :param monitor: as the service shows it now.
        """
        self.known = True
        webhook = monitor.webhook
        if webhook is None or isinstance(webhook, str):
            self.webhook = (webhook, ()) if webhook else None
        else:
            events = webhook.events or []
            events = [events] if isinstance(events, str) else events
            self.webhook = (webhook.url or "", tuple(events))
        summary = monitor.last_check_summary
        signature = (
            monitor.last_run_at,
            monitor.current_check_id,
            monitor.updated_at,
            summary.model_dump_json() if summary is not None else None,
        )
        moved = signature != self.signature
        self.signature = signature
        return moved or self.looked_at is None

    def take_checks(self, checks: list[MonitorCheck]) -> list[MonitorWait]:
        """Note a monitor's checks, and return the waits that should see them.

        :param checks: as the service shows them now.
        """
        self.looked_at = time.time()
        self.missing_since = None
        newest: datetime | None = None
        ids: set[str] = set()
        for check in checks:
            if is_over(check):
                ids.add(check.id)
                end = finished(check)
                if end is not None and (newest is None or end > newest):
                    newest, self.last = end, check
        return [
            wait
            for wait in self.waits
            if (wait.check_id in ids if wait.check_id is not None else _is_after(newest, wait.after))
        ]

    def state(self) -> str:
        """Say, for the message of a timeout, what the service said last."""
        if self.looked_at is None:
            return f"the service could not be asked for the checks of monitor {self.monitor_id}"
        looked = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.looked_at))
        if self.last is None:
            return f"at {looked} the service knew of no check that had ended"
        return (
            f"at {looked} the last check that had ended was {self.last.id} ({self.last.status}, "
            f"{self.last.finished_at or 'no end given'})"
        )


def _is_after(newest: datetime | None, after: datetime | None) -> bool:
    return newest is not None and (after is None or newest > after)
