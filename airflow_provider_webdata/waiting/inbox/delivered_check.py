"""The check that a delivery reports, as far as its payload tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api.models import MonitorCheck
from airflow_provider_webdata.inbox.envelope import first_of

if TYPE_CHECKING:
    from airflow_provider_webdata.inbox.reader import Delivery


def delivered_check(delivery: Delivery) -> MonitorCheck:
    """Return the check that a delivery reports.

    :param delivery: of the event `monitor.check.completed`.
    """
    payload = delivery.payload()
    data = first_of(payload) if isinstance(payload, dict) else {}
    status = data.get("status")
    if not isinstance(status, str):
        status = "completed" if delivery.success else "failed"
    summary = data.get("summary")
    error = payload.get("error") if isinstance(payload, dict) else None
    return MonitorCheck.model_validate(
        {
            "id": delivery.job_id or "",
            "monitorId": delivery.monitor_id,
            "status": status,
            "summary": summary if isinstance(summary, dict) else None,
            "finishedAt": delivery.received_at,
            "error": error if isinstance(error, str) else None,
        }
    )
