# SPDX-License-Identifier: Apache-2.0
"""Trigger that waits for a monitor check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.states.check_queue import CheckQueue
from airflow_provider_webdata.states.checks import CheckCriteria
from airflow_provider_webdata.triggers.base.wait_trigger import WaitTrigger, start_of_run
from airflow_provider_webdata.waiting.check_target import CheckTarget
from airflow_provider_webdata.waiting.policy import CHECK_POLL_INTERVAL, poll_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.waiting.target import Target

log = logger(__name__)


class WebDataMonitorCheckTrigger(WaitTrigger):
    """Waits for a monitor check to end, by webhook, by polling, or both.

    Emits one event, a stored `CheckOutcome`. Its `status` is `done`, `failed`, `skip`, `timeout`, or `error`. Errors of
    polls are retried and logged in the task's log; a refusal of the connection for 10 minutes ends the wait.

    The service has no endpoint to cancel a check, so killing the task leaves the check running.

    :param webdata_conn_id: id of a connection of type `webdata`.
    :param monitor_id: the monitor's UUID.
    :param poll_interval: seconds between polls if no delivery is expected. If the monitor reports to this Airflow, the
        trigger polls every 1500 s, or 60 s with a self-hosted server, in case a delivery is lost.
    :param criteria: conditions that a check must meet, as returned by `CheckCriteria.serialize`.
    :param check_id: the check to wait for; None: the next one that finishes.
    :param after: ISO 8601 time by the service's clock; accept only checks that finished later. None: the start of the
        DAG run if the triggerer knows it (tasks that start in the triggerer), otherwise now.
    :param deadline: end of the wait, in seconds since the epoch. None: a minute before Airflow's own timeout of the
        deferral.
    """

    kind = "check"

    def __init__(
        self,
        webdata_conn_id: str,
        monitor_id: str,
        poll_interval: float,
        criteria: Mapping[str, Any],
        check_id: str | None = None,
        after: str | None = None,
        deadline: float | None = None,
    ) -> None:
        super().__init__(webdata_conn_id, after, deadline)
        self.monitor_id = monitor_id
        self.poll_interval = poll_interval
        self.criteria = criteria
        self.check_id = check_id

    def _target(self) -> Target[Any]:
        after = self._after() or start_of_run(self.task_instance)
        queue = CheckQueue(CheckCriteria.deserialize(self.criteria), after, self.check_id)
        interval = poll_seconds(self.poll_interval, CHECK_POLL_INTERVAL)
        return CheckTarget(self.monitor_id, queue, interval, log)
