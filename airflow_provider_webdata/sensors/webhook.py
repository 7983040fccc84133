# SPDX-License-Identifier: Apache-2.0
"""Sensor for any delivery to the inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.base.sensor import SinceSensor
from airflow_provider_webdata.common.arguments import as_list, checked_text
from airflow_provider_webdata.common.page_urls import monitor_page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


class WebDataWebhookSensor(SinceSensor):
    """Wait for a delivery to this Airflow's inbox and return it.

    This is the oldest delivery that arrived after `after` and matches all filters given: `key`, `job_id`,
    `monitor_id`, and one of the `events`. The connection must have a webhook secret or a signing secret, because the
    inbox accepts only authenticated deliveries.

    XCom: a mapping with `delivery_id`, `event`, `key`, `job_id`, `monitor_id`, `success`, `received_at`, and `payload`,
    the unchanged body.

    :param key: correlation key, the last part of the webhook's URL (templated).
    :param events: names of events, with or without the operation's prefix, such as `monitor.check.completed`
        (templated).
    :param job_id: id of a job; for monitor events, the id of the check (templated).
    :param monitor_id: UUID of a monitor (templated).
    :param after: accept only deliveries that arrived after this time: ISO 8601 text or a datetime (templated). Default:
        the start of the DAG run.
    :param kwargs: arguments of `SinceSensor` and `BaseSensorOperator`, such as `deferrable`, `timeout`, `mode`,
        `poke_interval` and `soft_fail`.
    """

    _run_path = "airflow_provider_webdata.runs.sensors:WebhookSensorRun"
    _trigger_class = "airflow_provider_webdata.triggers.webhook.WebDataWebhookTrigger"
    template_fields: Sequence[str] = (
        *SinceSensor.template_fields,
        "key",
        "events",
        "job_id",
        "monitor_id",
        "after",
    )

    def __init__(
        self,
        *,
        key: str | None = None,
        events: str | Sequence[str] | None = None,
        job_id: str | None = None,
        monitor_id: str | None = None,
        after: str | datetime | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(after=after, **kwargs)
        self.key = key
        self.events = events
        self.job_id = job_id
        self.monitor_id = monitor_id
        self._check_arguments()
        # Without `after`, the trigger would also accept a key's deliveries from before the DAG run.
        self._start_in_triggerer(knows_when=after is not None, unless=key is not None and after is None)

    def _trigger_kwargs(self) -> dict[str, Any]:
        """Return the trigger's arguments except `deadline` and those from `since`."""
        return {
            "webdata_conn_id": self.webdata_conn_id,
            "key": checked_text(self.key),
            "events": self._event_names(),
            "job_id": checked_text(self.job_id),
            "monitor_id": checked_text(self.monitor_id),
        }

    def _show_page(self) -> None:
        """Link the task to the monitor's page, if there is a `monitor_id`; later to the delivery."""
        if monitor_id := checked_text(self.monitor_id):
            self._webdata_page = monitor_page(self.webdata_conn_id, monitor_id)

    def _event_names(self) -> list[str] | None:
        """Return the rendered `events`, or None for any event."""
        names = [name for event in as_list("events", self.events) if (name := checked_text(event))]
        return names or None
