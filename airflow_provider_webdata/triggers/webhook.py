"""The trigger that waits for any delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.hooks.inbox import inbox_address
from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.waiting.inbox.subscriptions import Subscription
from airflow_provider_webdata.waiting.mailbox import Expired, Notice, WaitFailure
from airflow_provider_webdata.waiting.wait_trigger import (
    WaitTrigger,
    error_event,
    start_of_run,
    timeout_event,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_webdata.waiting.hub import Hub
    from airflow_provider_webdata.waiting.mailbox import Mailbox


class WebDataWebhookTrigger(WaitTrigger):
    """Waits until a delivery arrives in the inbox that fits all that is given.

    The one event has a `status`: `done`, with `delivery_id`, `event`, `key`, `job_id`, `monitor_id`, `success`,
    `received_at` and `size` of the delivery, whose payload is read by its id; `timeout`, with a `message` that
    says what was seen; `error`, with `error` and its `verdict`. A delivery that arrived before the trigger
    started counts too.

    :param webdata_conn_id: id of a connection of type `webdata`.
    :param key: correlation key, the last part of the address that the delivery was sent to.
    :param events: names of events, with or without the operation's prefix; None: all.
    :param job_id: id of the job; for monitors, of the check.
    :param monitor_id: the monitor's UUID.
    :param after: only deliveries that arrived later, ISO 8601; None: with a key all that the inbox holds, else
        since the DAG run started where the triggerer knows that, else from now on.
    :param deadline: seconds since the epoch; None: a minute before Airflow's own timeout of the deferral.
    """

    def __init__(
        self,
        webdata_conn_id: str,
        key: str | None = None,
        events: Sequence[str] | str | None = None,
        job_id: str | None = None,
        monitor_id: str | None = None,
        after: str | None = None,
        deadline: float | None = None,
    ) -> None:
        super().__init__(webdata_conn_id, after, deadline)
        self.key = key
        events = [events] if isinstance(events, str) else events
        self.events = None if events is None else list(events)
        self.job_id = job_id
        self.monitor_id = monitor_id

    @property
    def _kind(self) -> str:
        return "delivery"

    async def _wait(self, hub: Hub, mailbox: Mailbox) -> dict[str, Any]:
        since = self._after()
        if since is None and self.key is None:
            since = start_of_run(self.task_instance)
        subscription = Subscription(
            mailbox,
            key=self.key,
            job_id=self.job_id,
            monitor_id=self.monitor_id,
            events=tuple(self.events or ()),
            since=since,
        )
        # Without a secret nothing can be read, which no later attempt changes.
        inbox_address(await hub.connection.settings())
        hub.reader.subscribe(subscription)
        self._announce(self._what(since), "by webhook")
        try:
            while True:
                item = await mailbox.get()
                if isinstance(item, Notice):
                    item.log_to(self.log)
                elif isinstance(item, WaitFailure):
                    return error_event(item)
                elif isinstance(item, Expired):
                    return timeout_event(self._what(since), hub.reader.state())
                elif isinstance(item, Delivery):
                    return {"status": "done", **facts_of(item)}
        finally:
            hub.reader.unsubscribe(subscription)

    def _what(self, since: Any) -> str:
        given = {
            "key": self.key,
            "job_id": self.job_id,
            "monitor_id": self.monitor_id,
            "events": ", ".join(self.events or ()),
        }
        what = ", ".join(f"{name} {value}" for name, value in given.items() if value) or "any"
        from_when = f" after {since.isoformat()}" if since is not None else ""
        return f"a delivery ({what}) for connection {self.webdata_conn_id!r}{from_when}"


def facts_of(delivery: Delivery) -> dict[str, Any]:
    """Return what the event of a trigger says of a delivery: all but its payload.

    :param delivery: the delivery.
    """
    return {
        "delivery_id": delivery.id,
        "event": delivery.event,
        "key": delivery.key,
        "job_id": delivery.job_id,
        "monitor_id": delivery.monitor_id,
        "success": delivery.success,
        "received_at": delivery.received_at,
        "size": delivery.size,
    }
