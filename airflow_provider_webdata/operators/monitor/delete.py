"""The operator that deletes a monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.arguments import checked_text
from airflow_provider_webdata.tasks.monitors.monitor_operator import ExistingMonitorOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class WebDataDeleteMonitorOperator(ExistingMonitorOperator):
    """Delete a monitor.

    XCom: `id` of the monitor (None if no such name was found) and `deleted`, whether it was there.

    :param ignore_missing: whether a monitor that is not there is fine (default) or an error.
    :param kwargs: arguments of `ExistingMonitorOperator`: `monitor_id` or `monitor_name` say which monitor.
    """

    def __init__(self, *, ignore_missing: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ignore_missing = ignore_missing

    def call_service(self, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Delete the monitor and say whether it was there."""
        from airflow_provider_webdata.api.errors import NotFoundError
        from airflow_provider_webdata.runs.failures import MonitorMissingError

        monitor_id = self.monitor_id
        if monitor_id and checked_text(monitor_id) is None:
            self.refuse(
                f"monitor_id is {monitor_id!r} after rendering: the template found nothing; it must name a monitor"
            )
        if not monitor_id:
            monitor = self.find()
            monitor_id = monitor.id if monitor is not None else None
        if monitor_id:
            try:
                self.hook.delete_monitor(monitor_id)
            except NotFoundError:
                self.log.info("There is no monitor %s, perhaps no longer", monitor_id)
            else:
                self.log.info("Deleted monitor %s", monitor_id)
                return {"id": monitor_id, "deleted": True}
        if not self.ignore_missing:
            raise MonitorMissingError(f"There is no monitor {self.described} (ignore_missing=False)")
        return {"id": monitor_id or None, "deleted": False}
