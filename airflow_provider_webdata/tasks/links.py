"""Links of a task in Airflow's UI, each an XCom that is written when a worker leaves the task: it ends or defers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_webdata.common.page_urls import page_url

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class PageLink(BaseOperatorLink):
    """The page of the task's job, monitor, check or delivery."""

    name = "Web Data"
    xcom_key = "webdata_page"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the page's address, or an empty text, for which the UI shows no link."""
        # A task that failed before it was unmapped is no operator of ours yet.
        page = getattr(operator, "webdata_page", "")
        if page:
            return page_url(page)
        # A trigger that failed does not say what it waited for; the worker that deferred the task has written it.
        running: Any = ti_key
        resumed = getattr(getattr(running, "_ti_context_from_server", None), "next_method", None)
        if not resumed:
            # Airflow logs an error for each XCom that is missing.
            return ""
        known = running.xcom_pull(task_ids=running.task_id, key=self.xcom_key, map_indexes=running.map_index)
        return known if isinstance(known, str) else ""


class DashboardLink(BaseOperatorLink):
    """The service's own dashboard, where the connection names it."""

    name = "Dashboard"
    xcom_key = "webdata_dashboard"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """Return the dashboard's address, or an empty text, for which the UI shows no link."""
        # As above.
        hook = getattr(operator, "hook", None)
        if hook is None:
            return ""
        from airflow_provider_webdata.api.errors import ConfigurationError

        try:
            return hook.get_settings().dashboard_url or ""
        except (AirflowNotFoundException, ConfigurationError):
            # Whatever called the service has said so.
            return ""


LINKS = (PageLink(), DashboardLink())
"""Of a task that deals with a job or a monitor."""
