"""The wait for a delivery to the inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.arguments import checked_text
from airflow_provider_webdata.runs.sensor import SensorRun

if TYPE_CHECKING:
    from collections.abc import Mapping


class WebhookSensorRun(SensorRun):
    """One attempt of a sensor that waits for a delivery."""

    def poll(self) -> dict[str, Any] | None:
        """Search the inbox once for such a delivery."""
        task = self.task
        key, job_id, monitor_id = map(checked_text, (task.key, task.job_id, task.monitor_id))
        # The inbox finds what has any of several; here all must fit.
        searched: dict[str, Any] = {"monitor_ids": [monitor_id]} if monitor_id else {}
        if job_id:
            searched = {"job_ids": [job_id]}
        if key:
            searched = {"keys": [key]}
        fits = {"key": key, "job_id": job_id, "monitor_id": monitor_id}
        cursor: str | None = None
        with self.hook.inbox() as inbox:
            while True:
                page = inbox.search(
                    **searched,
                    events=task.event_names() or (),
                    received_after=task.after_moment(self.context).isoformat(),
                    after=cursor,
                )
                for delivery in page.deliveries:
                    if all(value in (None, getattr(delivery, name)) for name, value in fits.items()):
                        return {"status": "done", "delivery_id": delivery.id}
                if not page.more:
                    return None
                cursor = page.cursor

    def result_of(self, event: Mapping[str, Any]) -> Any:
        """Return the delivery with its payload."""
        with self.hook.inbox() as inbox:
            delivery = inbox.fetch(int(event["delivery_id"]))
        self.log.info("Delivery %s: %s, received at %s", delivery.id, delivery.event, delivery.received_at)
        names = ("event", "key", "job_id", "monitor_id", "success", "received_at")
        facts = {name: getattr(delivery, name) for name in names}
        return {"delivery_id": delivery.id, **facts, "payload": delivery.payload()}
