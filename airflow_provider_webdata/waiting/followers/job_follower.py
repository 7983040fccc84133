"""Follows one job to its end, by deliveries and by polling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.states.jobs import ProgressLog, last_events
from airflow_provider_webdata.waiting.followers.listening import listens
from airflow_provider_webdata.waiting.inbox.subscriptions import Subscription
from airflow_provider_webdata.waiting.mailbox import Expired, Notice, WaitFailure
from airflow_provider_webdata.waiting.policy import by_webhook, polls
from airflow_provider_webdata.waiting.polling.job_watch import JobSnapshot, JobWait, JobWatch

if TYPE_CHECKING:
    from airflow_provider_webdata.states.jobs import JobKind, JobView
    from airflow_provider_webdata.waiting.hub import Hub
    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.policy import PollingPolicy


class EndedJob(NamedTuple):
    """A job that is over, and how it was learned of."""

    view: JobView
    via: Literal["webhook", "polling"]


class JobFollower:
    """Finds the end of a job.

    A delivery is a hint: the service is polled before anything is believed. No delivery says that a crawl or batch
    scrape failed as a whole: polling finds it.

    :param hub: what the waits of the connection share.
    :param mailbox: of this wait.
    :param kind: of the job.
    :param job_id: its id.
    :param log: of the waiting task.
    """

    __slots__ = (
        "_delivered",
        "_hub",
        "_job_id",
        "_kind",
        "_log",
        "_mailbox",
        "_poll",
        "_progress",
        "_subscription",
    )

    def __init__(self, hub: Hub, mailbox: Mailbox, kind: JobKind, job_id: str, log: Any) -> None:
        self._hub = hub
        self._mailbox = mailbox
        self._kind: JobKind = kind
        self._job_id = job_id
        self._log = log
        self._progress = ProgressLog(log)
        self._subscription: Subscription | None = None
        self._poll: JobWait | None = None
        self._delivered = False

    async def start(self, policy: PollingPolicy, *, reports: bool) -> str:
        """Subscribe, and return a message that says how the end is detected.

        :param policy: how the end is learned.
        :param reports: whether the job is known to report to this connection's inbox.
        :raises ConfigurationError: the connection cannot work, or has no webhook to wait for.
        """
        settings = await self._hub.connection.settings()
        interval = policy.poll_interval
        how = polls(interval)
        if listens(policy, settings):
            self._subscription = Subscription(
                self._mailbox, job_id=self._job_id, events=last_events(self._kind)
            )
            self._hub.reader.subscribe(self._subscription)
            if reports or policy.wait_by == "webhook":
                interval = policy.safety_poll
                how = by_webhook(interval)
            else:
                how = f"by webhook if the job reports to this Airflow, and {polls(interval)}"
        self._poll = JobWait(self._mailbox, self._kind, self._job_id, interval)
        self._hub.poller.subscribe(self._poll)
        return how

    def close(self) -> None:
        """Unsubscribe."""
        if self._subscription is not None:
            self._hub.reader.unsubscribe(self._subscription)
        if self._poll is not None:
            self._hub.poller.unsubscribe(self._poll)

    async def end(self) -> EndedJob | WaitFailure | Expired:
        """Return the job once it is over, or what ends the wait without it."""
        while True:
            item = await self._mailbox.get()
            if isinstance(item, (WaitFailure, Expired)):
                return item
            if isinstance(item, Notice):
                item.log_to(self._log)
            elif isinstance(item, Delivery):
                self._take_delivery(item)
            elif isinstance(item, JobSnapshot):
                self._progress.update(item.view)
                if item.view.is_over:
                    return EndedJob(item.view, "webhook" if self._delivered else "polling")

    def state(self) -> str:
        """Return what was and was not seen, for the message of a timeout."""
        watch = self._watch
        parts = [watch.state() if watch is not None else "the service was not asked"]
        if self._subscription is not None:
            parts.append(self._hub.reader.state())
        return "; ".join(parts)

    @property
    def _watch(self) -> JobWatch | None:
        watch = self._hub.poller.watch((self._kind, self._job_id))
        return watch if isinstance(watch, JobWatch) else None

    def _take_delivery(self, delivery: Delivery) -> None:
        if self._delivered:
            return
        self._delivered = True
        self._log.info("Delivery %s says %s; asking the service about it.", delivery.id, delivery.event)
        watch = self._watch
        if watch is not None:
            watch.delivered()
            self._hub.poller.poll_soon(watch.key)
