# SPDX-License-Identifier: Apache-2.0
"""Paths of the provider's pages in Airflow's UI, relative to the API server's address. `ui` implements the pages."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode, urlsplit

UI_PATH = "/webdata-ui"
"""Must not be below the inbox's mount path, which would receive the requests."""

FRAME_ROUTE = "webdata"
"""Name of the pages' frame in Airflow's UI."""

TASK_ROUTE = "webdata_task"
"""Name of the tab of a task."""

CARD_ROUTE = "webdata_card"
"""Name of the card on Airflow's Home."""


def monitor_page(conn_id: str, monitor_id: str, check_id: str = "") -> str:
    """Return the path of a monitor's page.

    :param check_id: the check that is open; empty: the newest with findings.
    """
    check = {"check_id": check_id} if check_id else {}
    return _page("monitors/monitor", conn_id=conn_id, monitor_id=monitor_id, **check)


def delivery_page(delivery_id: int) -> str:
    """Return the path of the inbox with one delivery, whose row is open."""
    return _page("inbox", id=str(delivery_id))


def inbox_page(conn_id: str) -> str:
    """Return the path of the inbox with the deliveries of a connection."""
    return _page("inbox", conn_id=conn_id)


def task_page(dag_id: str, run_id: str, task_id: str, map_index: int) -> str:
    """Return the path of a task instance's page.

    :param map_index: index of a mapped task; -1 if it is not mapped.
    """
    return _page("task", dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=str(map_index))


def task_instance(task: tuple[str, str, str, int]) -> str:
    """Return the path of a task instance in Airflow's UI.

    :param task: DAG, run, and task id, and the index of a mapped task or -1.
    """
    *ids, map_index = task
    dag_id, run_id, task_id = (quote(str(one), safe="") for one in ids)
    mapped = f"/mapped/{map_index}" if map_index >= 0 else ""
    return f"/dags/{dag_id}/runs/{run_id}/tasks/{task_id}{mapped}"


def task_tab(task: tuple[str, str, str, int]) -> str:
    """Return the path of a task's tab in Airflow's UI.

    :param task: as for `task_instance`.
    """
    return f"{task_instance(task)}/plugin/{TASK_ROUTE}"


def shown_id(page: str) -> str:
    """Return the id of the object on a page."""
    return parse_qsl(urlsplit(page).query)[-1][1]


def shown_monitor(page: str) -> str | None:
    """Return the monitor id of a monitor's page; None for other pages."""
    return dict(parse_qsl(urlsplit(page).query)).get("monitor_id")


def page_url(page: str) -> str | None:
    """Return the URL of a page alone below `[api] base_url`, or only its path if that is not set.

    :return: None if this Airflow has no pages (`[webdata] pages = False`).
    """
    return _base_url() + page if _has_pages() else None


def frame_url(page: str) -> str | None:
    """Return the URL of a page inside Airflow's frame, as `page_url`."""
    if not _has_pages():
        return None
    base = _base_url()
    root = path_of(base)
    return base.removesuffix(root) + frame_path(page, root)


def frame_path(page: str, root: str) -> str:
    """Return the path of a page inside Airflow's frame.

    Before Airflow 3.3.2, the frame opens only its first page, so the path is that of the page alone.

    :param root: path below which the API server is published; empty for none.
    """
    from airflow_provider_webdata.common.supported_airflow import airflow_release

    # docs/contributing/upstream/frame_opens_first_page.md
    return root + page if airflow_release() < (3, 3, 2) else f"{root}/plugin/{FRAME_ROUTE}{root}{page}"


def _has_pages() -> bool:
    from airflow.sdk import conf

    # With an invalid value, which the API server reports, it has the pages.
    return conf.get("webdata", "pages", fallback="True").strip().lower() not in ("false", "f", "0")


def _base_url() -> str:
    from airflow.sdk import conf

    return (conf.get("api", "base_url", fallback="") or "").rstrip("/")


def path_of(base_url: str) -> str:
    """Return the path below which the API server is published, without a final slash; empty if malformed."""
    try:
        return urlsplit(base_url).path.rstrip("/")
    except ValueError:
        return ""


# Ids are in the query because a connection id may contain a slash.
def _page(path: str, **query: str) -> str:
    return f"{UI_PATH}/{path}?{urlencode(query)}"
