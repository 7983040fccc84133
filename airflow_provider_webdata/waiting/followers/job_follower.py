"""Follows one job to its end, by deliveries and by looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.hooks.webhooks import can_receive, why_none_comes
from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.states.jobs import ProgressLog, last_events
from airflow_provider_webdata.waiting.inbox.subscriptions import Subscription
from airflow_provider_webdata.waiting.mailbox import Expired, Failure, Notice
from airflow_provider_webdata.waiting.polling.job_watch import JobLook, JobWait, JobWatch

if TYPE_CHECKING:
    from airflow_provider_webdata.states.jobs import JobKind, JobView
    from airflow_provider_webdata.waiting.followers.check_follower import WaitFor
    from airflow_provider_webdata.waiting.hub import Hub
    from airflow_provider_webdata.waiting.mailbox import Mailbox


class Ended(NamedTuple):
    """A job that is over, and how it was learned of."""

    view: JobView
    via: Literal["webhook", "polling"]


class JobFollower:
    """The end of a job.

    A delivery is a hint: the service is asked before anything is believed. No delivery tells of a crawl or batch
    scrape that failed as a whole: the looks find it. Supplement 16.4.

    :param channel: what the waits of the connection share.
    :param mailbox: of this wait.
    :param kind: of the job.
    :param job_id: its id.
    :param log: of the waiting task.
    """

    __slots__ = (
        "_channel",
        "_hint",
        "_job_id",
        "_kind",
        "_log",
        "_mailbox",
        "_poll",
        "_progress",
        "_subscription",
    )

    def __init__(self, channel: Hub, mailbox: Mailbox, kind: JobKind, job_id: str, log: Any) -> None:
        self._channel = channel
        self._mailbox = mailbox
        self._kind: JobKind = kind
        self._job_id = job_id
        self._log = log
        self._progress = ProgressLog(log)
        self._subscription: Subscription | None = None
        self._poll: JobWait | None = None
        self._hint = False

    async def start(
        self, wait_for: WaitFor, poll_interval: float, safety_poll: float, *, reports: bool
    ) -> None:
        """Begin to follow.

        :param wait_for: how the end is learned.
        :param poll_interval: seconds between looks where only looking helps.
        :param safety_poll: seconds between looks where deliveries come.
        :param reports: whether the job is known to report to our inbox.
        :raises ConfigurationError: the connection cannot work, or has no webhook to wait for.
        """
        settings = await self._channel.connection.settings()
        listens = wait_for != "polling" and can_receive(settings)
        if wait_for == "webhook" and not listens:
            raise ConfigurationError(why_none_comes(settings))
        if listens:
            self._subscription = Subscription(
                self._mailbox, job_id=self._job_id, events=last_events(self._kind)
            )
            self._channel.feed.subscribe(self._subscription)
        seldom = listens and (reports or wait_for == "webhook")
        interval = safety_poll if seldom else poll_interval
        self._poll = JobWait(self._mailbox, self._kind, self._job_id, interval)
        self._channel.poller.subscribe(self._poll)

    def close(self) -> None:
        """Stop following."""
        if self._subscription is not None:
            self._channel.feed.unsubscribe(self._subscription)
        if self._poll is not None:
            self._channel.poller.unsubscribe(self._poll)

    async def end(self) -> Ended | Failure | Expired:
        """Return what ends the wait."""
        while True:
            item = await self._mailbox.get()
            if isinstance(item, (Failure, Expired)):
                return item
            if isinstance(item, Notice):
                (self._log.warning if item.trouble else self._log.info)(item.text)
            elif isinstance(item, Delivery):
                self._take_hint(item)
            elif isinstance(item, JobLook):
                self._progress.see(item.view)
                if item.view.is_over:
                    return Ended(item.view, "webhook" if self._hint else "polling")

    def state(self) -> str:
        """Say, for the message of a timeout, what was and was not seen."""
        watch = self._watch
        parts = [watch.state() if watch is not None else "the service was not asked"]
        if self._subscription is not None:
            parts.append(self._channel.feed.state())
        return "; ".join(parts)

    @property
    def _watch(self) -> JobWatch | None:
        watch = self._channel.poller.watch((self._kind, self._job_id))
        return watch if isinstance(watch, JobWatch) else None

    def _take_hint(self, delivery: Delivery) -> None:
        if self._hint:
            return
        self._hint = True
        self._log.info("Delivery %s says %s; asking the service about it.", delivery.id, delivery.event)
        watch = self._watch
        if watch is not None:
            watch.hurry()
            self._channel.poller.look_soon(watch.place)
