# SPDX-License-Identifier: Apache-2.0
"""Links of a task in Airflow's UI. Each is an XCom that Airflow writes when the task ends or defers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_webdata.common.page_urls import frame_url

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class PageLink(BaseOperatorLink):
    """Link to the page of the task's monitor, check, or delivery. Of a job, the task's tab shows it."""

    name = "Web Data"
    xcom_key = "webdata_page"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the page's URL, or an empty string, for which the UI shows no link."""
        # A mapped task that failed before it was unmapped is not an instance of our operator.
        page = getattr(operator, "_webdata_page", "")
        if page:
            return frame_url(page) or ""
        # The event of a failed trigger does not name its target, but the worker that deferred the task wrote the link.
        if not getattr(operator, "_was_deferred", False):
            # docs/contributing/upstream/missing_xcom_is_an_error.md
            return ""
        running: Any = ti_key
        known = running.xcom_pull(task_ids=running.task_id, key=self.xcom_key, map_indexes=running.map_index)
        return known if isinstance(known, str) else ""


class DashboardLink(BaseOperatorLink):
    """Link to the service's own dashboard, if the connection has a dashboard URL."""

    name = "Dashboard"
    xcom_key = "webdata_dashboard"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """Return the dashboard's URL, or an empty string, for which the UI shows no link."""
        # As above: the task may not be unmapped.
        hook = getattr(operator, "hook", None)
        if hook is None:
            return ""
        from airflow_provider_webdata.api.errors import ConfigurationError

        try:
            return hook.get_settings().dashboard_url or ""
        except (AirflowNotFoundException, ConfigurationError):
            # The task has already reported the error.
            return ""


LINKS = (PageLink(), DashboardLink())
"""Links of tasks with a monitor or a delivery."""
