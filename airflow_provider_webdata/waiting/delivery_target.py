"""The next delivery that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.hooks.inbox import inbox_address
from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.waiting.subscriptions import Subscription
from airflow_provider_webdata.waiting.target import Look, Target

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from airflow_provider_webdata.hooks.connection import ConnectionSettings


class DeliveryTarget(Target):
    """The oldest delivery that fits all that is given.

    :param conn_id: id of the connection.
    :param wanted: `key`, `job_id`, `monitor_id` and `events`, as `Subscription` accepts them.
    :param since: deliveries that arrived later count; None: all that the inbox holds.
    :param log: of the waiting task.
    """

    __slots__ = ("_conn_id", "_found", "_since", "_wanted")

    def __init__(self, conn_id: str, wanted: Mapping[str, Any], since: datetime | None, log: Any) -> None:
        super().__init__(log)
        self._conn_id = conn_id
        self._wanted = wanted
        self._since = since
        self._found: Delivery | None = None

    @property
    def name(self) -> str:
        """The target's name in messages."""
        texts = {**self._wanted, "events": ", ".join(self._wanted.get("events", ()))}
        what = ", ".join(f"{name} {value}" for name, value in texts.items() if value) or "any"
        from_when = f" after {self._since.isoformat()}" if self._since is not None else ""
        return f"a delivery ({what}) for connection {self._conn_id!r}{from_when}"

    def begin(self, settings: ConnectionSettings) -> tuple[str, tuple[Subscription, ...]]:
        """Return how the delivery is detected, and what it must fit."""
        # Without a secret nothing can be read, which no later attempt changes.
        inbox_address(settings)
        return "by webhook", (Subscription(self.mailbox, **self._wanted, since=self._since),)

    def take(self, item: Any) -> Look | None:
        """Note a delivery that fits."""
        if self._found is None and isinstance(item, Delivery):
            self._found = item
        return None

    def decide(self) -> Delivery | None:
        """Return the delivery."""
        return self._found

    def event(self, found: Delivery) -> dict[str, Any]:
        """Return the event for a delivery."""
        return {"status": "done", **facts_of(found)}


def facts_of(delivery: Delivery) -> dict[str, Any]:
    """Return what an event says of a delivery: all but its payload."""
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
