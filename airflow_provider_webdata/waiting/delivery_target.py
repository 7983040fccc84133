"""The next delivery that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.hooks.inbox import inbox_address
from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.waiting.subscriptions import Subscription
from airflow_provider_webdata.waiting.target import Look, Target

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from airflow_provider_webdata.hooks.connection import ConnectionSettings


class DeliveryTarget(Target):
    """The oldest delivery that fits all that is given.

    :param conn_id: id of the connection.
    :param log: of the waiting task.
    :param key: as the other arguments, what `Subscription` accepts.
    """

    __slots__ = ("_conn_id", "_events", "_found", "_job_id", "_key", "_monitor_id", "_since")

    def __init__(
        self,
        conn_id: str,
        log: Any,
        *,
        key: str | None,
        job_id: str | None,
        monitor_id: str | None,
        events: Sequence[str] | None,
        since: datetime | None,
    ) -> None:
        super().__init__(log)
        self._conn_id = conn_id
        self._key = key
        self._job_id = job_id
        self._monitor_id = monitor_id
        self._events = tuple(events or ())
        self._since = since
        self._found: Delivery | None = None

    @property
    def name(self) -> str:
        """The target's name in messages."""
        given = {
            "key": self._key,
            "job_id": self._job_id,
            "monitor_id": self._monitor_id,
            "events": ", ".join(self._events),
        }
        what = ", ".join(f"{name} {value}" for name, value in given.items() if value) or "any"
        from_when = f" after {self._since.isoformat()}" if self._since is not None else ""
        return f"a delivery ({what}) for connection {self._conn_id!r}{from_when}"

    def begin(self, settings: ConnectionSettings) -> tuple[str, tuple[Subscription, ...]]:
        """Return how the delivery is detected, and what it must fit."""
        # Without a secret nothing can be read, which no later attempt changes.
        inbox_address(settings)
        subscription = Subscription(
            self.mailbox,
            key=self._key,
            job_id=self._job_id,
            monitor_id=self._monitor_id,
            events=self._events,
            since=self._since,
        )
        return "by webhook", (subscription,)

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
