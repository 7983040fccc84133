# SPDX-License-Identifier: Apache-2.0
"""The operator that changes a monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.base.monitor_operator import ExistingMonitorOperator
from airflow_provider_webdata.base.operator import RequestFields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class WebDataUpdateMonitorOperator(ExistingMonitorOperator, fields=RequestFields("MonitorUpdateRequest")):
    """Update a monitor: pause it, resume it, or set any of its fields.

    Omitted fields are unchanged. `targets` replaces the entire array; targets that match a stored one keep its id, and
    therefore its history. The task sends `judgeEnabled` with a goal, and the schedule when it resumes a monitor.

    XCom: the monitor, with wire names; header values are replaced by `***`.

    :param name: a new name, 1 to 256 characters.
    :param status: new state: `active` or `paused`.
    :param schedule: a cron expression, a phrase such as `daily at 9:00`, or a mapping with `cron` or `text`, and
        `timezone`.
    :param targets: all targets of the monitor, 1 to 50, as mappings or URLs.
    :param goal: description of the changes that matter, at most 2000 characters; an empty text clears it.
    :param judge_enabled: judge changes against the goal.
    :param notification: recipients of notifications: `email` with `enabled`, `includeDiffs`, `recipients`; `slack`.
    :param retention_days: retention in days, 1 to 365.
    :param webhook: endpoint that receives page and check events; it can be changed, but not removed.
    :param kwargs: arguments of `ExistingMonitorOperator`; `monitor_id` or `monitor_name` selects the monitor.
    """

    _run_path = "airflow_provider_webdata.runs.monitors.manage:UpdateMonitorRun"

    def __init__(
        self,
        *,
        # fields of MonitorUpdateRequest, written by tools/operator_fields.py
        name: str | None = None,
        status: str | None = None,
        schedule: Mapping[str, Any] | str | None = None,
        targets: Sequence[Mapping[str, Any] | str] | None = None,
        goal: str | None = None,
        judge_enabled: bool | str | None = None,
        notification: Mapping[str, Any] | None = None,
        retention_days: int | str | None = None,
        webhook: Mapping[str, Any] | str | None = None,
        # end of fields
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of MonitorUpdateRequest, written by tools/operator_fields.py
        self.name = name
        self.status = status
        self.schedule = schedule
        self.targets = targets
        self.goal = goal
        self.judge_enabled = judge_enabled
        self.notification = notification
        self.retention_days = retention_days
        self.webhook = webhook
        # end of fields
        self._check_arguments()
