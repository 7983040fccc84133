"""Follows the checks of one monitor, by deliveries and by looks, and decides on each of them once, in order."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.api.models import MonitorCheck
from airflow_provider_webdata.hooks.webhooks import can_receive, why_none_comes
from airflow_provider_webdata.inbox.envelope import first_of
from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.inbox.wire import delivery_url
from airflow_provider_webdata.states.checks import finished
from airflow_provider_webdata.waiting.inbox.subscriptions import Subscription
from airflow_provider_webdata.waiting.mailbox import Expired, Failure, Notice
from airflow_provider_webdata.waiting.polling.check_news import Look, Meaning, Unconfirmed
from airflow_provider_webdata.waiting.polling.monitor_watch import MonitorWait, place_of

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_webdata.states.checks import Decision, Wanted
    from airflow_provider_webdata.waiting.hub import Hub
    from airflow_provider_webdata.waiting.mailbox import Mailbox

WaitFor = Literal["auto", "webhook", "polling"]
"""How the end of a check is learned."""

CHECK_COMPLETED = "monitor.check.completed"

STRAGGLERS = timedelta(minutes=10)
"""For so long a check is still decided on that comes to light after one that ended later."""

_CLOCKS_APART = timedelta(minutes=5)
_PATIENCE = 2


class Found(NamedTuple):
    """A check, what it means, and how it was learned of."""

    check: MonitorCheck
    decision: Decision
    via: Literal["webhook", "polling"]


class CheckFollower:
    """The checks of a monitor that end after a moment.

    A delivery is a hint: the service is asked before anything is decided. Only when it cannot be asked, or does
    not know what it has itself delivered, the delivery's own word counts.

    :param channel: what the waits of the connection share.
    :param mailbox: of this wait.
    :param monitor_id: the monitor's UUID.
    :param wanted: which checks count.
    :param log: of the waiting task.
    """

    __slots__ = (
        "_channel",
        "_checks",
        "_hints",
        "_judged",
        "_log",
        "_mailbox",
        "_meanings",
        "_missing",
        "_monitor_id",
        "_poll",
        "_subscriptions",
        "passed_over",
        "wanted",
    )

    def __init__(self, channel: Hub, mailbox: Mailbox, monitor_id: str, wanted: Wanted, log: Any) -> None:
        self._channel = channel
        self._mailbox = mailbox
        self._monitor_id = monitor_id
        self._log = log
        self._poll: MonitorWait | None = None
        self._subscriptions: tuple[Subscription, ...] = ()
        self._checks: list[MonitorCheck] = []
        self._hints: dict[str, Delivery] | None = None
        self._judged: dict[str, datetime] = {}
        self._meanings: dict[str, bool | None] | None = None
        self._missing = 0
        self.wanted = wanted
        self.passed_over = ""

    async def start(self, wait_for: WaitFor, poll_interval: float, safety_poll: float) -> None:
        """Begin to follow.

        :param wait_for: how the end of a check is learned.
        :param poll_interval: seconds between looks where only looking helps.
        :param safety_poll: seconds between looks where deliveries come.
        :raises ConfigurationError: the connection cannot work, or has no webhook to wait for.
        """
        settings = await self._channel.connection.settings()
        ours = ""
        often = poll_interval
        if wait_for != "polling" and can_receive(settings):
            self._listen()
            if wait_for == "webhook":
                often = safety_poll
            else:
                ours = delivery_url(settings.webhook.url or "", settings.conn_id)
        elif wait_for == "webhook":
            raise ConfigurationError(why_none_comes(settings))
        self._poll = MonitorWait(
            self._mailbox,
            self._monitor_id,
            check_id=self.wanted.check_id,
            after=self.wanted.after,
            often=often,
            seldom=safety_poll,
            ours=ours,
        )
        self._channel.poller.subscribe(self._poll)

    def _listen(self) -> None:
        after, check_id = self.wanted.after, self.wanted.check_id
        # The inbox's clock and the service's differ; what is too early is told apart when the check is read.
        since = after - _CLOCKS_APART if after is not None else None
        by_monitor = Subscription(
            self._mailbox, monitor_id=self._monitor_id, events=(CHECK_COMPLETED,), since=since
        )
        # A payload that does not name the monitor still names the check.
        by_check = (
            (Subscription(self._mailbox, job_id=check_id, events=(CHECK_COMPLETED,)),) if check_id else ()
        )
        self._subscriptions = (by_monitor, *by_check)
        for subscription in self._subscriptions:
            self._channel.feed.subscribe(subscription)

    def close(self) -> None:
        """Stop following."""
        for subscription in self._subscriptions:
            self._channel.feed.unsubscribe(subscription)
        if self._poll is not None:
            self._channel.poller.unsubscribe(self._poll)

    async def next(self, heeding: type | None = None) -> Any:
        """Return what ends the wait: `Found`, or else `Failure` or `Expired`.

        :param heeding: return things of this kind too, when they come.
        """
        while True:
            found = self._decide()
            if found is not None:
                return found
            item = await self._mailbox.get()
            if isinstance(item, (Failure, Expired)) or (heeding is not None and isinstance(item, heeding)):
                return item
            failure = self._take(item)
            if failure is not None:
                return failure

    def state(self) -> str:
        """Say, for the message of a timeout, what was and was not seen."""
        watch = self._channel.poller.watch(place_of(self._monitor_id))
        parts = [watch.state() if watch is not None else "the service was not asked"]
        if self._subscriptions:
            parts.append(self._channel.feed.state())
        if self.passed_over:
            parts.append(f"passed over last: {self.passed_over}")
        return "; ".join(parts)

    def _take(self, item: Any) -> Failure | None:
        if isinstance(item, Notice):
            (self._log.warning if item.trouble else self._log.info)(item.text)
        elif isinstance(item, Delivery):
            self._take_hint(item)
        elif isinstance(item, Look):
            self._missing = 0
            self._merge(item.checks)
        elif isinstance(item, Unconfirmed):
            return self._take_unconfirmed(item)
        elif isinstance(item, Meaning) and self._meanings is not None:
            self._meanings[item.check_id] = item.meaningful
        return None

    def _take_hint(self, delivery: Delivery) -> None:
        check_id = delivery.job_id
        if check_id is None:
            self._channel.poller.look_soon(place_of(self._monitor_id))
            return
        if self._hints is None:
            self._hints = {}
        if check_id in self._hints or check_id in self._judged:
            return
        self._hints[check_id] = delivery
        if self.wanted.check_id in (None, check_id):
            self._log.info(
                "Delivery %s says that check %s ended; asking the service about it.", delivery.id, check_id
            )
            self._channel.poller.lookups.confirm(self._monitor_id, check_id, self._mailbox)

    def _take_unconfirmed(self, item: Unconfirmed) -> Failure | None:
        delivery = (self._hints or {}).get(item.check_id)
        if delivery is not None:
            self._log.warning(
                "Check %s ended by delivery %s, but the service does not confirm it (%s); taking the delivery's word.",
                item.check_id,
                delivery.id,
                item.reason,
            )
            self._merge([check_of(delivery)])
            return None
        if item.missing and item.check_id == self.wanted.check_id:
            self._missing += 1
            if self._missing >= _PATIENCE:
                return Failure(
                    f"check {item.check_id} of monitor {self._monitor_id} is not there ({item.reason})",
                    "never",
                )
        return None

    def _merge(self, checks: list[MonitorCheck]) -> None:
        """Keep the checks that are still to be decided on, the newest word on each."""
        known = {check.id for check in checks}
        waiting = [check for check in self._checks if check.id not in known]
        self._checks = [
            check for check in self.wanted.candidates([*waiting, *checks]) if check.id not in self._judged
        ]

    def _decide(self) -> Found | None:
        while self._checks:
            check = self._checks[0]
            meaningful = None
            if self.wanted.needs_pages(check):
                meaningful = self._meaning_of(check)
                if meaningful is None:
                    return None
            decision = self.wanted.decide(check, meaningful=meaningful)
            found = self._pass_on(check, decision)
            if decision.outcome != "wait":
                return found
            self.passed_over = f"check {check.id}, {decision.reason}"
            self._log.info("Check %s does not count: %s. Going on.", check.id, decision.reason)
        return None

    def _meaning_of(self, check: MonitorCheck) -> bool | None:
        if self._meanings is None:
            self._meanings = {}
        if check.id not in self._meanings:
            self._meanings[check.id] = None
            self._channel.poller.lookups.read_pages(self._monitor_id, check.id, self._mailbox)
        return self._meanings[check.id]

    def _pass_on(self, check: MonitorCheck, decision: Decision) -> Found:
        """Note that a check was decided on, and go on behind it."""
        hints, self._hints = self._hints or {}, None
        found = Found(check, decision, "webhook" if check.id in hints else "polling")
        self._hints = {key: delivery for key, delivery in hints.items() if key != check.id} or None
        self._meanings = None
        end = finished(check)
        # A check may come to light after one that ended later: those decided on are told apart by their ids.
        behind = self.wanted.after
        if end is not None:
            late = end - STRAGGLERS
            behind = late if behind is None else max(behind, late)
            self._judged[check.id] = end
            self._judged = {key: when for key, when in self._judged.items() if when >= late}
        was_named = self.wanted.check_id is not None
        self.wanted = replace(self.wanted, check_id=None, after=behind)
        self._checks = self._checks[1:]
        if self._poll is not None:
            self._poll.check_id, self._poll.after = None, behind
            if was_named and decision.outcome == "wait":
                self._channel.poller.look_soon(place_of(self._monitor_id))
        return found


def check_of(delivery: Delivery) -> MonitorCheck:
    """Return the check that a delivery tells of, as far as it does. Supplement 16.6.

    :param delivery: of the event `monitor.check.completed`.
    """
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
