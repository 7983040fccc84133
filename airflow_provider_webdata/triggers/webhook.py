# SPDX-License-Identifier: Apache-2.0
"""Trigger that waits for any delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.triggers.base.wait_trigger import WaitTrigger, start_of_run
from airflow_provider_webdata.waiting.delivery_target import DeliveryTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_webdata.waiting.target import Target

log = logger(__name__)


class WebDataWebhookTrigger(WaitTrigger):
    """Waits until a delivery that matches all filters given arrives in the inbox.

    Emits one event, a stored `DeliveryOutcome`. Its `status` is `done`, `timeout`, or `error`. Deliveries that arrived
    before the trigger started count too.

    :param webdata_conn_id: id of a connection of type `webdata`.
    :param key: correlation key, the last part of the URL that received the delivery.
    :param events: names of events, with or without the operation's prefix; None: all.
    :param job_id: id of the job; for monitors, of the check.
    :param monitor_id: the monitor's UUID.
    :param after: ISO 8601 time; accept only deliveries that arrived later. None: with a `key`, accept all deliveries in
        the inbox; otherwise, those since the start of the DAG run if the triggerer knows it, or since now.
    :param deadline: end of the wait, in seconds since the epoch. None: a minute before Airflow's own timeout of the
        deferral.
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
        self.events = None if events is None else as_list("events", events)
        self.job_id = job_id
        self.monitor_id = monitor_id

    def _target(self) -> Target[Any]:
        since = self._after()
        if since is None and self.key is None:
            since = start_of_run(self.task_instance)
        return DeliveryTarget(
            self.webdata_conn_id,
            log,
            key=self.key,
            job_id=self.job_id,
            monitor_id=self.monitor_id,
            events=self.events,
            since=since,
        )
