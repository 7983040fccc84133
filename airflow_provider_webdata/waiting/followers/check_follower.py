"""Follows the checks of one monitor by deliveries and by polling."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.inbox.wire import delivery_url
from airflow_provider_webdata.states.checks import CHECK_COMPLETED
from airflow_provider_webdata.waiting.followers.listening import listens
from airflow_provider_webdata.waiting.inbox.delivered_check import delivered_check
from airflow_provider_webdata.waiting.inbox.subscriptions import Subscription
from airflow_provider_webdata.waiting.mailbox import Expired, Notice, WaitFailure
from airflow_provider_webdata.waiting.policy import by_webhook, polls
from airflow_provider_webdata.waiting.polling.check_answers import CheckJudgment, CheckSnapshot, Unconfirmed
from airflow_provider_webdata.waiting.polling.monitor_watch import MonitorWait, monitor_key

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_webdata.api.models import MonitorCheck
    from airflow_provider_webdata.states.check_queue import CheckQueue
    from airflow_provider_webdata.states.checks import Decision
    from airflow_provider_webdata.waiting.hub import Hub
    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.policy import PollingPolicy

CLOCK_TOLERANCE = timedelta(minutes=5)
"""By so much the inbox's clock may be behind the service's."""

_MISSING_LIMIT = 2


class FoundCheck(NamedTuple):
    """A check that counts, what it means, and how it was learned of."""

    check: MonitorCheck
    decision: Decision
    via: Literal["webhook", "polling"]


class CheckFollower:
    """Finds the checks of a monitor that count, one after the other.

    Two sources fill the mailbox: subscriptions at the inbox reader, and a wait at the poller, which posts snapshots of
    the monitor's checks. A delivery is a hint: the check is looked up, and the snapshot that the lookup posts goes
    the same way. Only when the service cannot be asked, or does not know what it has itself delivered, the check is
    taken from the delivery. Snapshots go into a `CheckQueue`, which decides on each check once, in order.

    :param hub: what the waits of the connection share.
    :param mailbox: of this wait.
    :param monitor_id: the monitor's UUID.
    :param queue: which checks count, and what they mean.
    :param log: of the waiting task.
    """

    __slots__ = (
        "_hints",
        "_hub",
        "_judgments",
        "_log",
        "_mailbox",
        "_missing",
        "_monitor_id",
        "_passed_over",
        "_poll",
        "_queue",
        "_subscriptions",
    )

    def __init__(self, hub: Hub, mailbox: Mailbox, monitor_id: str, queue: CheckQueue, log: Any) -> None:
        self._hub = hub
        self._mailbox = mailbox
        self._monitor_id = monitor_id
        self._queue = queue
        self._log = log
        self._poll: MonitorWait | None = None
        self._subscriptions: tuple[Subscription, ...] = ()
        self._hints: dict[str, Delivery] = {}
        self._judgments: dict[str, bool | None] = {}
        self._missing = 0
        self._passed_over = ""

    async def start(self, policy: PollingPolicy) -> str:
        """Subscribe, and return a message that says how the end of a check is detected.

        :param policy: how the end of a check is learned.
        :raises ConfigurationError: the connection cannot work, or has no webhook to wait for.
        """
        settings = await self._hub.connection.settings()
        managed_url = ""
        poll_interval = policy.poll_interval
        how = polls(poll_interval)
        if listens(policy, settings):
            self._listen()
            if policy.wait_by == "webhook":
                poll_interval = policy.safety_poll
                how = by_webhook(poll_interval)
            else:
                how = f"{by_webhook(policy.safety_poll)} if the monitor reports to this Airflow, else {how}"
                managed_url = delivery_url(settings.webhook.url or "", settings.conn_id)
        self._poll = MonitorWait(
            self._mailbox,
            self._monitor_id,
            check_id=self._queue.check_id,
            after=self._queue.after,
            poll_interval=poll_interval,
            safety_poll=policy.safety_poll,
            managed_url=managed_url,
        )
        self._hub.poller.subscribe(self._poll)
        return how

    def _listen(self) -> None:
        after, check_id = self._queue.after, self._queue.check_id
        # A delivery that comes too early costs a lookup, which tells when the check really finished.
        since = after - CLOCK_TOLERANCE if after is not None else None
        by_monitor = Subscription(
            self._mailbox, monitor_id=self._monitor_id, events=(CHECK_COMPLETED,), since=since
        )
        # A payload that does not name the monitor still names the check.
        by_check = (
            (Subscription(self._mailbox, job_id=check_id, events=(CHECK_COMPLETED,)),) if check_id else ()
        )
        self._subscriptions = (by_monitor, *by_check)
        for subscription in self._subscriptions:
            self._hub.reader.subscribe(subscription)

    def close(self) -> None:
        """Unsubscribe."""
        for subscription in self._subscriptions:
            self._hub.reader.unsubscribe(subscription)
        if self._poll is not None:
            self._hub.poller.unsubscribe(self._poll)

    @property
    def after(self) -> datetime | None:
        """The moment after which checks still count."""
        return self._queue.after

    async def next(self, *, or_item: type | None = None) -> Any:
        """Return the next `FoundCheck`, or the `WaitFailure` or `Expired` that ends the wait.

        :param or_item: return an item of this class too, when the mailbox gets one.
        """
        while True:
            if (found := self._decide()) is not None:
                return found
            item = await self._mailbox.get()
            if isinstance(item, (WaitFailure, Expired)) or (
                or_item is not None and isinstance(item, or_item)
            ):
                return item
            if (failure := self._take(item)) is not None:
                return failure

    def state(self) -> str:
        """Return what was and was not seen, for the message of a timeout."""
        watch = self._hub.poller.watch(monitor_key(self._monitor_id))
        parts = [watch.state() if watch is not None else "the service was not asked"]
        if self._subscriptions:
            parts.append(self._hub.reader.state())
        if self._passed_over:
            parts.append(f"passed over last: {self._passed_over}")
        return "; ".join(parts)

    # What the mailbox brings.

    def _take(self, item: Any) -> WaitFailure | None:
        if isinstance(item, Notice):
            item.log_to(self._log)
        elif isinstance(item, Delivery):
            self._take_delivery(item)
        elif isinstance(item, CheckSnapshot):
            self._missing = 0
            self._queue.add(item.checks)
        elif isinstance(item, Unconfirmed):
            return self._take_unconfirmed(item)
        elif isinstance(item, CheckJudgment) and item.check_id in self._judgments:
            self._judgments[item.check_id] = item.meaningful
        return None

    def _take_delivery(self, delivery: Delivery) -> None:
        check_id = delivery.job_id
        if check_id is None:
            self._poll_soon()
        elif check_id not in self._hints and not self._queue.was_decided(check_id):
            self._hints[check_id] = delivery
            if self._queue.check_id in (None, check_id):
                self._log.info(
                    "Delivery %s says that check %s ended; asking the service about it.",
                    delivery.id,
                    check_id,
                )
                self._hub.poller.lookups.confirm(self._monitor_id, check_id, self._mailbox)

    def _take_unconfirmed(self, item: Unconfirmed) -> WaitFailure | None:
        if (delivery := self._hints.get(item.check_id)) is not None:
            self._log.warning(
                "Check %s ended according to delivery %s, but the service does not confirm it (%s); using the "
                "status in the delivery.",
                item.check_id,
                delivery.id,
                item.reason,
            )
            self._queue.add([delivered_check(delivery)])
        elif item.missing and item.check_id == self._queue.check_id:
            self._missing += 1
            if self._missing >= _MISSING_LIMIT:
                text = f"check {item.check_id} of monitor {self._monitor_id} does not exist ({item.reason})"
                return WaitFailure(text, "never")
        return None

    # What the queue decides.

    def _decide(self) -> FoundCheck | None:
        while (check := self._queue.head) is not None:
            meaningful = None
            if self._queue.needs_pages:
                meaningful = self._judgment_of(check)
                if meaningful is None:
                    return None
            found = self._decide_on(check, meaningful)
            if found.decision.outcome != "wait":
                return found
            self._passed_over = f"check {check.id}, {found.decision.reason}"
            self._log.info("Check %s does not count: %s. Going on.", check.id, found.decision.reason)
        return None

    def _decide_on(self, check: MonitorCheck, meaningful: bool | None) -> FoundCheck:
        was_named = self._queue.check_id is not None
        decision = self._queue.decide(meaningful=meaningful)
        hint = self._hints.pop(check.id, None)
        self._judgments.clear()
        if self._poll is not None:
            self._poll.check_id, self._poll.after = None, self._queue.after
        if was_named and decision.outcome == "wait":
            self._poll_soon()
        return FoundCheck(check, decision, "polling" if hint is None else "webhook")

    def _judgment_of(self, check: MonitorCheck) -> bool | None:
        """Return whether a change of a check was judged meaningful; None: it is being looked up."""
        if check.id not in self._judgments:
            self._judgments[check.id] = None
            self._hub.poller.lookups.judge(self._monitor_id, check.id, self._mailbox)
        return self._judgments[check.id]

    def _poll_soon(self) -> None:
        self._hub.poller.poll_soon(monitor_key(self._monitor_id))
