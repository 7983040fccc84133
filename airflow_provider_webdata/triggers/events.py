"""Triggers of asset watchers: one delivery or one completed check, one asset event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import to_json

from airflow_provider_webdata.inbox.wire import INLINE_BODY_BYTES
from airflow_provider_webdata.states.checks import Wanted, finished, moment
from airflow_provider_webdata.triggers.webhook import facts_of
from airflow_provider_webdata.waiting.followers.check_follower import STRAGGLERS
from airflow_provider_webdata.waiting.hub import Hub
from airflow_provider_webdata.waiting.inbox.subscriptions import Subscription
from airflow_provider_webdata.waiting.mailbox import Failure, Mailbox, Notice
from airflow_provider_webdata.waiting.polling.check_news import Meaning
from airflow_provider_webdata.waiting.streams.check_stream import CheckStream, behind, is_new
from airflow_provider_webdata.waiting.streams.stream_trigger import StreamTrigger
from airflow_provider_webdata.waiting.streams.webhook_stream import WebhookStream
from airflow_provider_webdata.waiting.wait_trigger import check_looks

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from airflow_provider_webdata.inbox.reader import Delivery
    from airflow_provider_webdata.waiting.followers.check_follower import WaitFor
    from airflow_provider_webdata.waiting.streams.stream import Item, Ready, Stream


class WebDataWebhookEventTrigger(StreamTrigger):
    """Makes one asset event of every delivery that fits all that is given.

    The event's `extra["payload"]` has `conn_id`, `delivery_id`, `event`, `key`, `job_id`, `monitor_id`, `success`,
    `received_at`, `size`, and the delivery itself in `payload`; where that is larger than 16 KiB, `payload` is
    missing and the delivery is read with `WebDataHook(conn_id).inbox().fetch(delivery_id)`.

    On Airflow 3.3 all watchers of a connection in a triggerer share one reader, and each keeps its place in the
    asset state store once Airflow has stored its events. A restart therefore loses nothing. It repeats nothing
    either, but for one window: a triggerer that is killed after an event was stored and before the place was kept
    (one to two seconds) makes that event again; `delivery_id` tells. On Airflow 3.2 nothing is kept: every start
    of a triggerer begins at `start`.

    :param webdata_conn_id: id of a connection of type `webdata`.
    :param events: names of events, with or without the operation's prefix; None: all.
    :param key: correlation key, the last part of the address that deliveries are sent to.
    :param monitor_id: the monitor's UUID.
    :param job_id: id of the job; for monitors, of the check.
    :param start: where to begin the first time: `now`, or a moment in ISO 8601 since when deliveries count.
    :raises ValueError: an argument that cannot work.
    """

    def __init__(
        self,
        webdata_conn_id: str,
        events: Sequence[str] | str | None = None,
        key: str | None = None,
        monitor_id: str | None = None,
        job_id: str | None = None,
        start: str = "now",
    ) -> None:
        super().__init__(webdata_conn_id, start)
        events = [events] if isinstance(events, str) else events
        self.events = None if events is None else list(events)
        self.key = key
        self.monitor_id = monitor_id
        self.job_id = job_id
        self._wanted = Subscription(
            Mailbox(), key=key, job_id=job_id, monitor_id=monitor_id, events=tuple(events or ())
        )

    def _arguments(self) -> dict[str, Any]:
        return {
            "webdata_conn_id": self.webdata_conn_id,
            "events": self.events,
            "key": self.key,
            "monitor_id": self.monitor_id,
            "job_id": self.job_id,
            "start": self.start,
        }

    def shared_stream_key(self) -> Hashable:
        """Return the connection: its watchers share one reader."""
        return ("webdata deliveries", self.webdata_conn_id)

    def _stream(self, key: Hashable) -> Stream:
        return WebhookStream(key, self.webdata_conn_id)

    def _first_place(self, ready: Ready) -> Any:
        return ready.place

    async def _look(self, item: Item, place: Any) -> tuple[Any, dict[str, Any] | None]:
        delivery: Delivery = item.value
        if (delivery.position or 0) <= place["position"]:
            return place, None
        received = moment(delivery.received_at)
        since = moment(place.get("since"))
        fits = self._wanted.fits(delivery, received) and (
            since is None or received is None or received > since
        )
        return item.place, payload_of(self.webdata_conn_id, delivery) if fits else None


class WebDataMonitorCheckEventTrigger(StreamTrigger):
    """Makes one asset event of every check of a monitor that has ended, however that was learned.

    The event's `extra["payload"]` has `conn_id`, `monitor_id`, `check_id`, `check_status`, `finished_at`, `via`,
    `summary`, and the check itself in `check`, which is missing where it is larger than 16 KiB. The service is
    asked about each check, so that a delivery that was lost is made up for by the next look, and a check makes one
    event though it was learned of twice.

    On Airflow 3.3 all watchers of a monitor in a triggerer share their looks, and each keeps its place in the
    asset state store once Airflow has stored its events. A restart therefore loses nothing. It repeats nothing
    either, but for one window: a triggerer that is killed after an event was stored and before the place was kept
    (one to two seconds) makes that event again; `check_id` tells. On Airflow 3.2 nothing is kept: every start of
    a triggerer begins at `start`.

    :param webdata_conn_id: id of a connection of type `webdata`.
    :param monitor_id: the monitor's UUID.
    :param wait_for: `webhook`: deliveries, and a look every `safety_poll`. `polling`: a look every
        `poll_interval`. `auto`: as `webhook` where the connection can receive and the monitor reports to it.
    :param poll_interval: seconds between looks where only looking helps, at least 1.
    :param safety_poll: seconds between looks where deliveries come, at least 1.
    :param on_failed: `accept`: a failed check makes an event; `wait`: it makes none.
    :param on_partial: the same for checks with page errors.
    :param on_skipped: the same for skipped checks.
    :param only_if_changed: only checks with changed, new or removed pages make events.
    :param only_if_meaningful: only checks with a page whose change was judged meaningful make events.
    :param start: where to begin the first time: `now`, or a moment in ISO 8601 after which checks finished.
    :raises ValueError: an argument that cannot work.
    """

    def __init__(
        self,
        webdata_conn_id: str,
        monitor_id: str,
        wait_for: WaitFor = "auto",
        poll_interval: float = 60.0,
        safety_poll: float = 1500.0,
        on_failed: Literal["accept", "wait"] = "accept",
        on_partial: Literal["accept", "wait"] = "accept",
        on_skipped: Literal["accept", "wait"] = "wait",
        only_if_changed: bool = False,
        only_if_meaningful: bool = False,
        start: str = "now",
    ) -> None:
        super().__init__(webdata_conn_id, start)
        check_looks(wait_for, poll_interval, safety_poll)
        choices = {"on_failed": on_failed, "on_partial": on_partial, "on_skipped": on_skipped}
        for name, choice in choices.items():
            if choice not in ("accept", "wait"):
                raise ValueError(f"{name} must be accept or wait: an asset event cannot fail")
        self.monitor_id = monitor_id
        self.wait_for: WaitFor = wait_for
        self.poll_interval = poll_interval
        self.safety_poll = safety_poll
        self._wanted = Wanted(
            on_failed=on_failed,
            on_partial=on_partial,
            on_skipped=on_skipped,
            only_if_changed=only_if_changed,
            only_if_meaningful=only_if_meaningful,
        )

    def _arguments(self) -> dict[str, Any]:
        return {
            "webdata_conn_id": self.webdata_conn_id,
            "monitor_id": self.monitor_id,
            "wait_for": self.wait_for,
            "poll_interval": self.poll_interval,
            "safety_poll": self.safety_poll,
            "on_failed": self._wanted.on_failed,
            "on_partial": self._wanted.on_partial,
            "on_skipped": self._wanted.on_skipped,
            "only_if_changed": self._wanted.only_if_changed,
            "only_if_meaningful": self._wanted.only_if_meaningful,
            "start": self.start,
        }

    def shared_stream_key(self) -> Hashable:
        """Return the monitor and how it is followed: its watchers share their looks."""
        how = (self.wait_for, self.poll_interval, self.safety_poll)
        return ("webdata checks", self.webdata_conn_id, self.monitor_id, *how)

    def _stream(self, key: Hashable) -> Stream:
        return CheckStream(
            key, self.webdata_conn_id, self.monitor_id, self.wait_for, self.poll_interval, self.safety_poll
        )

    def _first_place(self, ready: Ready) -> Any:
        return ready.place if self.start == "now" else {"after": self.start, "ids": []}

    async def _look(self, item: Item, place: Any) -> tuple[Any, dict[str, Any] | None]:
        check, _, via = item.value
        end = finished(check)
        if end is None or not is_new(place, check.id, end):
            return place, None
        meaningful = await self._meaningful(check.id) if self._wanted.needs_pages(check) else None
        decision = self._wanted.decide(check, meaningful=meaningful)
        after = behind(place, check.id, end, STRAGGLERS)
        if decision.outcome != "done":
            self.log.info("Check %s makes no event: %s.", check.id, decision.reason)
            return after, None
        wire = check.to_wire(mask_headers=True)
        payload = {
            "conn_id": self.webdata_conn_id,
            "monitor_id": self.monitor_id,
            "check_id": check.id,
            "check_status": check.status,
            "finished_at": check.finished_at,
            "via": via,
            "summary": wire.get("summary"),
        }
        if len(to_json(wire)) <= INLINE_BODY_BYTES:
            payload["check"] = wire
        return after, payload

    async def _meaningful(self, check_id: str) -> bool:
        mailbox = Mailbox()
        Hub.of(self.webdata_conn_id).poller.lookups.read_pages(self.monitor_id, check_id, mailbox)
        try:
            while True:
                item = await mailbox.get()
                if isinstance(item, Notice):
                    (self.log.warning if item.trouble else self.log.info)(item.text)
                elif isinstance(item, Failure):
                    self.log.warning("Taking check %s for meaningful: %s", check_id, item.text)
                    return True
                elif isinstance(item, Meaning):
                    return item.meaningful
        finally:
            mailbox.closed = True


def payload_of(conn_id: str, delivery: Delivery) -> dict[str, Any]:
    """Return what an asset event says of a delivery: all of it, or a reference where it is large.

    :param conn_id: id of the connection.
    :param delivery: the delivery.
    """
    payload = {"conn_id": conn_id, **facts_of(delivery)}
    if delivery.has_body and delivery.size <= INLINE_BODY_BYTES:
        payload["payload"] = delivery.payload()
    return payload
