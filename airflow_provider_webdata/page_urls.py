"""Paths of the pages in Airflow's UI, below the API server's address. The pages are in `ui`; links lead there."""

from __future__ import annotations

from urllib.parse import urlencode

UI_PATH = "/webdata-ui"
"""Beside the inbox's mount: one below it would never be asked."""


def job_page(conn_id: str, operation: str, job_id: str) -> str:
    """Return the path of a job's page.

    :param conn_id: the connection that started it.
    :param operation: `crawl`, `batch_scrape`, `extract` or `agent`.
    :param job_id: the service's id of the job.
    """
    return _page("jobs/job", conn_id=conn_id, operation=operation, job_id=job_id)


def monitor_page(conn_id: str, monitor_id: str) -> str:
    """Return the path of a monitor's page.

    :param conn_id: the connection whose team has it.
    :param monitor_id: the service's id of the monitor.
    """
    return _page("monitors/monitor", conn_id=conn_id, monitor_id=monitor_id)


def check_page(conn_id: str, monitor_id: str, check_id: str) -> str:
    """Return the path of a check's page.

    :param conn_id: the connection whose team has the monitor.
    :param monitor_id: the service's id of the monitor.
    :param check_id: the service's id of the check.
    """
    return _page("monitors/check", conn_id=conn_id, monitor_id=monitor_id, check_id=check_id)


def delivery_page(delivery_id: int) -> str:
    """Return the path of a delivery's page.

    :param delivery_id: its id in the inbox.
    """
    return _page("deliveries/delivery", id=str(delivery_id))


# Ids go into the query: a connection's id may hold a slash.
def _page(path: str, **query: str) -> str:
    return f"{UI_PATH}/{path}?{urlencode(query)}"
