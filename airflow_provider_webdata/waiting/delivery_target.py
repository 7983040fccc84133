# SPDX-License-Identifier: Apache-2.0
"""Target for the next matching delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.hooks.webhooks import inbox_address
from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.states.outcomes import DeliveryOutcome
from airflow_provider_webdata.waiting.subscriptions import Subscription
from airflow_provider_webdata.waiting.target import Look, Target

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from airflow_provider_webdata.hooks.connection import ConnectionSettings


class DeliveryTarget(Target[DeliveryOutcome]):
    """The oldest delivery that matches all filters given."""

    __slots__ = ("_conn_id", "_found", "_wanted")

    outcome_class = DeliveryOutcome
    bills = False

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
        self._wanted = Subscription(
            key=key, job_id=job_id, monitor_id=monitor_id, events=tuple(events or ()), since=since
        )
        self._found: Delivery | None = None

    def __str__(self) -> str:
        wanted = self._wanted
        given = {
            "key": wanted.key,
            "job_id": wanted.job_id,
            "monitor_id": wanted.monitor_id,
            "events": ", ".join(wanted.events),
        }
        what = ", ".join(f"{name} {value}" for name, value in given.items() if value) or "any"
        from_when = f" after {wanted.since.isoformat()}" if wanted.since is not None else ""
        return f"a delivery ({what}) for connection {self._conn_id!r}{from_when}"

    def begin(self, settings: ConnectionSettings, *, listens: bool) -> tuple[str, tuple[Subscription, ...]]:  # noqa: ARG002
        """Return how the delivery is detected, and the subscription."""
        # Raises an error if the connection has no secret, without which deliveries can never be read.
        inbox_address(settings)
        return "by webhook", (self._wanted,)

    def receive(self, item: Any) -> Look | None:
        """Process a matching delivery."""
        if self._found is None and isinstance(item, Delivery):
            self._found = item
        return None

    def decide(self) -> Delivery | None:
        """Return the delivery."""
        return self._found

    def outcome(self, found: Delivery) -> DeliveryOutcome:
        """Return the outcome for a delivery."""
        return DeliveryOutcome(status="done", **fields_of(found))


def fields_of(delivery: Delivery) -> dict[str, Any]:
    """Return the fields of a delivery in outcomes and asset events, without its payload."""
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
