# SPDX-License-Identifier: Apache-2.0
"""Target for the next matching check of a monitor."""

from __future__ import annotations

from datetime import MINYEAR, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.api.errors import NotFoundError
from airflow_provider_webdata.api.models import MonitorCheck
from airflow_provider_webdata.hooks.webhooks import can_receive
from airflow_provider_webdata.inbox.envelope import first_of
from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.inbox.wire import delivery_url
from airflow_provider_webdata.states.checks import CHECK_COMPLETED, outcome_of
from airflow_provider_webdata.states.outcomes import CheckOutcome
from airflow_provider_webdata.waiting.mailbox import WaitFailedError
from airflow_provider_webdata.waiting.policy import CHECK_SAFETY_POLL, safety_poll
from airflow_provider_webdata.waiting.subjects import MonitorSubject, Unconfirmed
from airflow_provider_webdata.waiting.subscriptions import Subscription
from airflow_provider_webdata.waiting.target import Judge, Judgment, Look, Target, by_webhook, polls

if TYPE_CHECKING:
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.states.check_queue import CheckQueue
    from airflow_provider_webdata.states.checks import Decision
    from airflow_provider_webdata.states.outcomes import Via

CLOCK_TOLERANCE = timedelta(minutes=5)
"""Maximum lag of the inbox's clock behind the service's."""

_MAX_HINTS = 100


class FoundCheck(NamedTuple):
    """A matching check, the decision about it, and how it was found."""

    check: MonitorCheck
    decision: Decision
    via: Via


class CheckTarget(Target[CheckOutcome]):
    """The matching checks of a monitor, one after the other.

    A delivery is a hint to poll the monitor. The checks from the service go into a `CheckQueue`, which decides on each
    check once, in order. The check is read from the delivery only if the service is unavailable or does not confirm
    its own delivery.

    :param poll_interval: seconds between polls if no delivery is expected.
    :ivar managed_url: URL of the connection's inbox if deliveries of the monitor may go there, otherwise empty.
    :ivar queue: the checks from the service, with the first check or the time to wait for.
    """

    __slots__ = (
        "_hints",
        "_judgment",
        "_monitor_id",
        "_passed_over",
        "_poll_interval",
        "_safety_poll",
        "managed_url",
        "queue",
    )

    subject_class = MonitorSubject
    outcome_class = CheckOutcome

    def __init__(self, monitor_id: str, queue: CheckQueue, poll_interval: float, log: Any) -> None:
        super().__init__(log)
        self._monitor_id = monitor_id
        self.queue = queue
        self._poll_interval = self._safety_poll = poll_interval
        self._hints: dict[str, Delivery] | None = None
        self._judgment: Judgment | None = None
        self._passed_over: str | None = None
        self.managed_url = ""

    def __str__(self) -> str:
        check_id, after = self.queue.check_id, self.queue.after
        if check_id is not None:
            return f"check {check_id} of monitor {self._monitor_id}"
        since = f" that finished after {after.isoformat()}" if after is not None else ""
        return f"a check of monitor {self._monitor_id}{since}"

    @property
    def key(self) -> tuple[str, str]:
        """The key of the polled subject."""
        return "monitor", self._monitor_id

    def interval(self, monitor: MonitorSubject, *, inbox_answers: bool) -> float:
        """Return the seconds between polls: more if the monitor reports to `managed_url`."""
        expects_delivery = inbox_answers and self.managed_url and monitor.reports_to(self.managed_url)
        return self._safety_poll if expects_delivery else self._poll_interval

    def may_end(self, over: set[str], newest: datetime | None) -> bool:
        """Return whether a list of checks may end the wait."""
        if self.queue.check_id is not None:
            return self.queue.check_id in over
        return newest is not None and (self.queue.after is None or newest > self.queue.after)

    def begin(self, settings: ConnectionSettings, *, listens: bool) -> tuple[str, tuple[Subscription, ...]]:
        """Return how the end of a check is detected, and the deliveries to subscribe to."""
        how = polls(self._poll_interval)
        if not listens or not can_receive(settings):
            return how, ()
        self._safety_poll = safety_poll(self._poll_interval, CHECK_SAFETY_POLL, settings.client.server)
        self.managed_url = delivery_url(settings.webhook.url or "", settings.conn_id)
        how = f"{by_webhook(self._safety_poll)} if the monitor reports to this Airflow, else {how}"
        # A delivery that is too early only causes a poll, which returns the actual end of the check.
        after = self.queue.after
        # A time in the future is that of a service whose clock is ahead; deliveries carry the inbox's time.
        now = datetime.now(timezone.utc)
        since = None if after is None or after.year == MINYEAR else min(after, now) - CLOCK_TOLERANCE
        events = (CHECK_COMPLETED,)
        by_monitor = Subscription(monitor_id=self._monitor_id, events=events, since=since)
        if self.queue.check_id is None:
            return how, (by_monitor,)
        # A payload without the monitor's id still contains the check's id.
        return how, (by_monitor, Subscription(job_id=self.queue.check_id, events=events))

    def receive(self, item: Any) -> Look | None:
        """Process a delivery, the monitor's checks, or the judgment or absence of a check."""
        if isinstance(item, Delivery):
            return self._hint(item)
        if isinstance(item, Judgment):
            self._judgment = item
        elif isinstance(item, Unconfirmed):
            self._receive_unconfirmed(item)
        else:
            self.queue.add(item)
        return None

    def _hint(self, delivery: Delivery) -> Look | None:
        check_id = delivery.job_id
        if check_id is None:
            return Look()
        self._hints = self._hints or {}
        if check_id in self._hints or self.queue.was_decided(check_id):
            return None
        self._hints[check_id] = delivery
        if len(self._hints) > _MAX_HINTS:
            # The hint of a check that was decided long before its delivery stays.
            del self._hints[next(iter(self._hints))]
        if self.queue.check_id not in (None, check_id):
            return None
        self.log.info("Delivery %s reports the end of check %s; polling the service.", delivery.id, check_id)
        return Look(check_id)

    def _receive_unconfirmed(self, item: Unconfirmed) -> None:
        if (delivery := (self._hints or {}).get(item.check_id)) is not None:
            self.log.warning(
                "Check %s ended according to delivery %s, but the service does not confirm it (%s); using the "
                "status from the delivery.",
                item.check_id,
                delivery.id,
                item.reason,
            )
            self.queue.add([delivered_check(delivery)])
        elif item.is_missing and item.check_id == self.queue.check_id:
            reason = f"{self} does not exist ({item.reason}) ({NotFoundError.help_code})"
            raise WaitFailedError(reason, "never", is_missing=True)

    def decide(self) -> FoundCheck | Look | Judge | None:
        """Return the next matching check, a request for missing information, or None."""
        while (check := self.queue.head) is not None:
            meaningful = None
            if self.queue.needs_pages:
                if self._judgment is None or self._judgment.check_id != check.id:
                    return Judge(check.id)
                meaningful = self._judgment.is_meaningful
            was_named = self.queue.check_id is not None
            decision = self.queue.decide(meaningful=meaningful)
            hint = self._hints.pop(check.id, None) if self._hints else None
            if decision.outcome != "wait":
                return FoundCheck(check, decision, "polling" if hint is None else "webhook")
            self._passed_over = f"check {check.id}, {decision.reason}"
            self.log.info("Skipping check %s: %s. Waiting for the next one.", check.id, decision.reason)
            if was_named:
                return Look()
        return None

    def outcome(self, found: FoundCheck) -> CheckOutcome:
        """Return the outcome for a matching check."""
        return outcome_of(found.check, found.decision, monitor_id=self._monitor_id, via=found.via)

    def remarks(self) -> list[str]:
        """Return the last skipped check."""
        return [f"last skipped: {self._passed_over}"] if self._passed_over else []


def delivered_check(delivery: Delivery) -> MonitorCheck:
    """Return the check that a delivery reports, with the values from its payload."""
    payload = delivery.payload()
    data = first_of(payload) if isinstance(payload, dict) else {}
    status = data.get("status")
    if not isinstance(status, str):
        status = "completed" if delivery.success else "failed"
    summary = data.get("summary")
    error = payload.get("error") if isinstance(payload, dict) else None
    return MonitorCheck.model_validate(
        {
            "id": delivery.job_id or "",
            "monitorId": delivery.monitor_id,
            "status": status,
            "summary": summary if isinstance(summary, dict) else None,
            "finishedAt": delivery.received_at,
            "error": error if isinstance(error, str) else None,
        }
    )
