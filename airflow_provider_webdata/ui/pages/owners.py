"""The DAGs that jobs, monitors, and deliveries belong to. Reading these requires permission to read the DAG.

All functions block.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.airflow_db.errors import TablesMissingError
from airflow_provider_webdata.airflow_db.tasks import TaskName, dags_that_pushed, starters_of
from airflow_provider_webdata.api.models import StoredWebhook
from airflow_provider_webdata.inbox.envelope import NotJSONError, parse_body
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.ui.tasks import map_index_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from airflow_provider_webdata.api.models import Monitor
    from airflow_provider_webdata.inbox_server.storage.records import StoredDelivery
    from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore

    from .page import PageView

_DECLARES = "WebDataCreateMonitorOperator"
MAX_READ = 2**18
"""Maximum bytes of a delivery that is read only for its task."""


def spellings(given: str) -> set[str]:
    """Return the spellings of an id from a URL by which its DAG may be known.

    Services that store UUIDs ignore letter case and hyphens. Other spellings must not hide the DAG.
    """
    with contextlib.suppress(ValueError):
        return {given, str(uuid.UUID(given))}
    return {given}


def deliveries_of(
    page: PageView, conn_id: str | Collection[str], wanted: DeliveryFilter, limit: int
) -> list[StoredDelivery]:
    """Return the newest deliveries that the visitor may read.

    :param conn_id: connections that the visitor may read.
    :param limit: maximum number of deliveries, before those of unreadable DAGs are omitted.
    """
    return readable_deliveries(page, page.store().newest(conn_id, wanted, limit))


def readable_deliveries(
    page: PageView, deliveries: Sequence[StoredDelivery], dag: str = ""
) -> list[StoredDelivery]:
    """Omit the deliveries of DAGs that the visitor may not read.

    :param deliveries: of connections that the visitor may read.
    :param dag: return only deliveries of DAGs whose id contains this text.
    """
    owners = delivery_owners(deliveries)
    return [
        one
        for one in deliveries
        if page.visitor.may_read_dags(owners[one.id])
        and (not dag or any(dag in dag_id for dag_id in owners[one.id]))
    ]


def delivery_owners(deliveries: Collection[StoredDelivery]) -> dict[int, set[str]]:
    """Return the DAGs that deliveries belong to, by delivery id."""
    ids = {one_id for one in deliveries for one_id in (one.job_id, one.monitor_id) if one_id}
    pushed = dags_that_pushed(("job_id", "monitor_id"), ids)
    return {
        one.id: pushed.get(one.job_id or "", set())
        | pushed.get(one.monitor_id or "", set())
        | ({one.dag_id} if one.dag_id else set())
        for one in deliveries
    }


def job_owners(
    store: DeliveryStore, conn_id: str, job_ids: Collection[str]
) -> tuple[dict[str, set[str]], dict[str, TaskName]]:
    """Return the DAGs that jobs belong to, and the tasks that their deliveries name, both by job id."""
    owners = dags_that_pushed(["job_id"], job_ids)
    named = {}
    # Without the inbox's tables, there are no deliveries.
    with contextlib.suppress(TablesMissingError):
        for job_id in set(job_ids) - set(owners):
            for one in store.newest(conn_id, DeliveryFilter(job_ids=(job_id,)), 1):
                if one.dag_id is not None:
                    owners[job_id] = {one.dag_id}
                for body in store.bodies([one.id], MAX_READ).values():
                    with contextlib.suppress(NotJSONError):
                        if (task := task_named(parse_body(body))) is not None:
                            named[job_id] = task
    return owners, named


def monitor_owners(monitors: Iterable[Monitor]) -> dict[str, set[str]]:
    """Return the DAGs that declare monitors, by monitor id."""
    monitors = list(monitors)
    owners = dags_that_pushed(["monitor_id"], {one.id for one in monitors})
    for one in monitors:
        if (task := task_of_monitor(one)) is not None:
            owners.setdefault(one.id, set()).add(task.dag_id)
    return owners


def declarers_of(monitors: Iterable[Monitor]) -> dict[str, TaskName]:
    """Return the tasks that declare monitors, by monitor id: as their webhooks name them, or the newest."""
    monitors = list(monitors)
    ids = [one.id for one in monitors if one.id]
    found = starters_of(ids, ("monitor_id",), _DECLARES) if ids else {}
    return found | {one.id: task for one in monitors if one.id and (task := task_of_monitor(one)) is not None}


def task_of_monitor(monitor: Monitor) -> TaskName | None:
    """Return the task that a monitor's webhook names."""
    webhook = monitor.webhook
    return task_named({"metadata": webhook.metadata}) if isinstance(webhook, StoredWebhook) else None


def task_named(payload: Any) -> TaskName | None:
    """Return the task that a delivery names in its metadata. A monitor's delivery names no DAG run."""
    metadata = payload.get("metadata") if isinstance(payload, dict) else None
    if not isinstance(metadata, dict):
        return None
    dag_id, task_id = metadata.get("dag_id"), metadata.get("task_id")
    if not (isinstance(dag_id, str) and isinstance(task_id, str) and dag_id and task_id):
        return None
    run_id = metadata.get("run_id")
    return TaskName(
        dag_id,
        run_id if isinstance(run_id, str) else "",
        task_id,
        map_index_of(str(metadata.get("map_index"))),
    )
