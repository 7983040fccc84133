# SPDX-License-Identifier: Apache-2.0
"""The operator that deletes a monitor."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata.base.monitor_operator import ExistingMonitorOperator


class WebDataDeleteMonitorOperator(ExistingMonitorOperator):
    """Delete a monitor.

    XCom: `id` of the monitor (None if no monitor has the name) and `deleted`, whether it existed.

    :param ignore_missing: whether to succeed if the monitor does not exist (default); otherwise, the task fails.
    :param kwargs: arguments of `ExistingMonitorOperator`; `monitor_id` or `monitor_name` selects the monitor.
    """

    _run_path = "airflow_provider_webdata.runs.monitors.manage:DeleteMonitorRun"

    def __init__(self, *, ignore_missing: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ignore_missing = ignore_missing
        self._check_arguments()
