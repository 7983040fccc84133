"""The trigger that waits for any delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.triggers.base.wait_trigger import WaitTrigger, start_of_run
from airflow_provider_webdata.waiting.delivery_target import DeliveryTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_webdata.waiting.target import Target


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

    kind = "delivery"

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

    def _target(self) -> Target:
        since = self._after()
        if since is None and self.key is None:
            since = start_of_run(self.task_instance)
        return DeliveryTarget(
            self.webdata_conn_id,
            self.logger(),
            key=self.key,
            job_id=self.job_id,
            monitor_id=self.monitor_id,
            events=self.events,
            since=since,
        )
