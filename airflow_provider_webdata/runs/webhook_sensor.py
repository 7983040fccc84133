"""The wait for a delivery to the inbox."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.arguments import checked_text
from airflow_provider_webdata.runs.sensor import SensorRun
from airflow_provider_webdata.waiting.delivery_target import DeliveryTarget, facts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.waiting.target import Target


class WebhookSensorRun(SensorRun):
    """One attempt of a sensor that waits for a delivery."""

    @cached_property
    def target(self) -> Target:
        """The delivery."""
        task = self.task
        return DeliveryTarget(
            task.webdata_conn_id,
            self.log,
            key=checked_text(task.key),
            job_id=checked_text(task.job_id),
            monitor_id=checked_text(task.monitor_id),
            events=task.event_names(),
            since=task.after_moment(self.context),
        )

    def result_of(self, event: Mapping[str, Any]) -> Any:
        """Return the delivery with its payload."""
        with self.hook.inbox() as inbox:
            delivery = inbox.fetch(int(event["delivery_id"]))
        self.log.info("Delivery %s: %s, received at %s", delivery.id, delivery.event, delivery.received_at)
        facts = facts_of(delivery)
        del facts["size"]
        return {**facts, "payload": delivery.payload()}
