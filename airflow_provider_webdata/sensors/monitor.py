# SPDX-License-Identifier: Apache-2.0
"""Sensor for checks of a monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.base.sensor import SinceSensor
from airflow_provider_webdata.common.arguments import checked_text, monitor_of
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.common.page_urls import monitor_page
from airflow_provider_webdata.states.check_arguments import checked_pages
from airflow_provider_webdata.states.checks import CheckCriteria

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from airflow_provider_webdata.states.checks import Choice, Otherwise


class WebDataMonitorCheckSensor(SinceSensor):
    """Wait for a check of a monitor and return it.

    Without `check_id`, this is the oldest matching check that finished after `after`. By default, it includes checks
    that finished after the start of the DAG run but before this task started.

    XCom: the check, with wire names (`id`, `status`, `summary`, ...), and with `include_pages` also all its `pages`,
    each with `diff` and `judgment`.

    :param monitor_id: UUID of the monitor, or the result of a task about it (templated).
    :param check_id: UUID of the check to wait for (templated). Default: the next one. If the sensor does not accept
        this check but continues to wait (`wait` below), it waits for the checks that finish after it.
    :param after: accept only checks that finished after this time: ISO 8601 text or a datetime (templated). Default:
        the start of the DAG run.
    :param only_if_changed: accept only a check with changed, new, or removed pages.
    :param only_if_meaningful: accept only a check with a page whose change was judged meaningful; requires a monitor
        with a goal.
    :param otherwise: what to do with a check that these two conditions reject: `wait` for the next one (default), or
        `skip` this task and, as a result, its downstream tasks.
    :param on_failed: what to do with a failed check: `fail` (default), `accept`, or `wait` for the next one.
    :param on_partial: the same for a check with some page errors. Default: `accept`.
    :param on_skipped: the same for a skipped check. Default: `wait`.
    :param include_pages: return pages of the check: True for all, `changed` for the changed, new, and removed ones, or
        a list of statuses.
    :param kwargs: arguments of `SinceSensor` and `BaseSensorOperator`, such as `deferrable`, `timeout`, `mode`, and
        `soft_fail`. `poke_interval` is also the time between polls of the triggerer, at least 1 s there. While a
        delivery to the inbox is expected, it polls every 1500 s, which is longer than the hosted service retries
        deliveries (60 s with a self-hosted server).
    """

    _run_path = "airflow_provider_webdata.runs.sensors:CheckSensorRun"
    _trigger_class = "airflow_provider_webdata.triggers.monitor.WebDataMonitorCheckTrigger"
    template_fields: Sequence[str] = (*SinceSensor.template_fields, "monitor_id", "check_id", "after")

    def __init__(
        self,
        *,
        monitor_id: str,
        check_id: str | None = None,
        after: str | datetime | None = None,
        only_if_changed: bool = False,
        only_if_meaningful: bool = False,
        otherwise: Otherwise = "wait",
        on_failed: Choice = "fail",
        on_partial: Choice = "accept",
        on_skipped: Choice = "wait",
        include_pages: bool | str | Sequence[str] = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(after=after, **kwargs)
        self.monitor_id = monitor_id
        self.check_id = check_id
        self.only_if_changed = only_if_changed
        self.only_if_meaningful = only_if_meaningful
        self.otherwise = otherwise
        self.on_failed = on_failed
        self.on_partial = on_partial
        self.on_skipped = on_skipped
        self.include_pages = include_pages
        self._check_arguments()
        self._start_in_triggerer(knows_when=check_id is not None or after is not None)

    def _check_values(self) -> None:
        """Check the arguments; see `ServiceTask._check_values`."""
        super()._check_values()
        if is_literal(self.monitor_id) and checked_text(self.monitor_id) is None:
            raise ArgumentError(f"monitor_id must name a monitor (given: {self.monitor_id!r})")
        self._criteria()
        checked_pages(self.include_pages)

    def _criteria(self) -> CheckCriteria:
        return CheckCriteria(
            on_failed=self.on_failed,
            on_partial=self.on_partial,
            on_skipped=self.on_skipped,
            only_if_changed=self.only_if_changed,
            only_if_meaningful=self.only_if_meaningful,
            otherwise=self.otherwise,
        )

    def _rendered(self, written: Mapping[str, Any]) -> None:
        """Replace the result of another task by the monitor's id."""
        super()._rendered(written)
        self.monitor_id = monitor_of(self.monitor_id)

    def _trigger_kwargs(self) -> dict[str, Any]:
        """Return the trigger's arguments except `deadline` and those from `since`."""
        return {
            "webdata_conn_id": self.webdata_conn_id,
            "monitor_id": self._named_monitor(),
            "check_id": checked_text(self.check_id),
            "poll_interval": max(float(self.poke_interval), 1.0),
            "criteria": self._criteria().serialize(),
        }

    def _show_page(self) -> None:
        """Link the task to the page of the monitor, with `check_id` open if given."""
        check_id = checked_text(self.check_id) or ""
        self._webdata_page = monitor_page(self.webdata_conn_id, self._named_monitor(), check_id)

    def _named_monitor(self) -> str:
        """Return the rendered `monitor_id`.

        :raises ArgumentError: `monitor_id` is empty.
        """
        monitor_id = checked_text(self.monitor_id)
        if monitor_id is None:
            raise ArgumentError("monitor_id is empty after rendering; it must name a monitor")
        return monitor_id
