"""The operator that deletes a monitor."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata.tasks.monitor_operator import ExistingMonitorOperator


class WebDataDeleteMonitorOperator(ExistingMonitorOperator):
    """Delete a monitor.

    XCom: `id` of the monitor (None if no such name was found) and `deleted`, whether it was there.

    :param ignore_missing: whether a monitor that is not there is fine (default) or an error.
    :param kwargs: arguments of `ExistingMonitorOperator`: `monitor_id` or `monitor_name` say which monitor.
    """

    run = "airflow_provider_webdata.runs.monitors.manage:DeleteMonitorRun"

    def __init__(self, *, ignore_missing: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ignore_missing = ignore_missing
