"""The tab on a task instance and on a DAG run: what the provider's tasks do there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.inbox_server.storage.errors import StoreUnavailableError
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.ui.tasks import TaskName, facts_of, facts_of_run

from .owners import deliveries_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery
    from airflow_provider_webdata.ui.tasks import TaskFacts

    from .page import Page

TASKS = 100
_SHOWN = ("path", "count", "creditsUsed")


async def page(page: Page) -> Response:
    """Show what one task waits for, started and wrote."""
    index = page.text("map_index")
    name = TaskName(
        page.required("dag_id"),
        page.required("run_id"),
        page.required("task_id"),
        # Airflow does not replace the placeholder for a task that is not mapped.
        int(index) if index.isdecimal() and len(index) < 10 else -1,
    )
    facts = await page.thread(facts_of, name)
    deliveries = await page.thread(_deliveries, page, facts) if facts else []
    conn_id = facts.conn_id if facts else None
    own = conn_id is not None and await page.thread(page.visitor.may_read_connection, conn_id)
    return await page.render(
        "task.html",
        title="Task",
        facts=facts,
        deliveries=deliveries,
        result=_result(facts),
        link=_link(facts),
        # The job's part, the deliveries' rows and the dashboard are the connection's.
        may_read_connection=own,
        dashboard=await page.lookups.dashboard_url(conn_id) if conn_id and own else None,
    )


async def run(page: Page) -> Response:
    """Show the provider's tasks of a DAG run."""
    dag_id, run_id = page.required("dag_id"), page.required("run_id")
    found = await page.thread(facts_of_run, dag_id, run_id, TASKS)
    return await page.render(
        "run.html", title="Run", tasks=[(facts, _link(facts), _result(facts)) for facts in found], most=TASKS
    )


def _deliveries(page: Page, facts: TaskFacts) -> list[StoredDelivery]:
    if facts.conn_id is None:
        return []
    job_id = facts.ids.get("check_id") or facts.ids.get("job_id")
    key = facts.wait.given.get("key") if facts.wait else None
    if not job_id and not key:
        return []
    wanted = DeliveryFilter(job_ids=(job_id,) if job_id else (), keys=(key,) if key else ())
    try:
        return deliveries_of(page, facts.conn_id, wanted, 10)
    except StoreUnavailableError:
        return []


def _result(facts: TaskFacts | None) -> dict[str, Any]:
    result = facts.result if facts else None
    if not isinstance(result, dict):
        return {}
    return {name: result[name] for name in _SHOWN if isinstance(result.get(name), (str, int, float))}


def _link(facts: TaskFacts | None) -> tuple[str, dict[str, str]] | None:
    """Return page and query of the task's job, check or monitor."""
    if facts is None or facts.conn_id is None:
        return None
    ids = {"conn_id": facts.conn_id, **facts.ids}
    if facts.operation and "job_id" in ids:
        return "jobs/job", {"conn_id": ids["conn_id"], "operation": facts.operation, "job_id": ids["job_id"]}
    if "monitor_id" in ids and "check_id" in ids:
        return "monitors/check", {name: ids[name] for name in ("conn_id", "monitor_id", "check_id")}
    if "monitor_id" in ids:
        return "monitors/monitor", {name: ids[name] for name in ("conn_id", "monitor_id")}
    return None
