"""Who sees what: every route for nobody, for a user without the right to plugins, a viewer, an operator, an admin."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from airflow_provider_webdata.page_urls import UI_PATH
from airflow_provider_webdata.ui.application import ROUTES
from tests.integration.ui.auth_manager import HIDDEN_DAG
from tests.integration.ui.conftest import CONN_ID, PREFIX, Pages

HIDDEN_TEXT = "the payroll of the company"
ROLES = ("guest", "viewer", "op", "admin")


@pytest.fixture(scope="module")
def ids(pages: Pages, jobs: dict[str, str]) -> dict[str, Any]:
    hidden = {"dag_id": HIDDEN_DAG, "run_id": "run", "task_id": "secret_crawl", "map_index": "-1"}
    shop = {"dag_id": "shop", "run_id": "run", "task_id": "crawl", "map_index": "-1"}
    crawl = {"type": "crawl.completed", "success": True}
    return {
        **jobs,
        "hidden delivery": pages.deliver(
            {**crawl, "id": "hidden-job", "metadata": hidden, "data": HIDDEN_TEXT}
        ),
        "delivery": pages.deliver({**crawl, "id": jobs["crawl"], "metadata": shop}),
        "nobody's delivery": pages.deliver({**crawl, "id": "other", "metadata": {}}),
    }


def params_of(path: str, ids: dict[str, Any]) -> dict[str, Any]:
    """A query with which a route works."""
    conn = {"conn_id": CONN_ID}
    return {
        "/service": conn,
        "/health": conn,
        "/deliveries/delivery": {"id": ids["delivery"]},
        "/monitors/list": conn,
        "/monitors/monitor": {**conn, "monitor_id": ids["monitor"]},
        "/monitors/monitor/part": {**conn, "monitor_id": ids["monitor"]},
        "/monitors/check": {**conn, "monitor_id": ids["monitor"], "check_id": ids["check"]},
        "/monitors/check/part": {**conn, "monitor_id": ids["monitor"], "check_id": ids["check"]},
        "/jobs/list": conn,
        "/jobs/job": {**conn, "operation": "crawl", "job_id": ids["crawl"]},
        "/jobs/job/part": {**conn, "operation": "crawl", "job_id": ids["crawl"]},
        "/task": {"dag_id": "shop", "run_id": "run", "task_id": "crawl"},
        "/run": {"dag_id": "shop", "run_id": "run"},
    }.get(path, {})


@pytest.mark.parametrize("path", ROUTES)
def test_every_route_asks_who_it_is(pages: Pages, ids: dict[str, Any], path: str) -> None:
    params = params_of(path, ids)
    assert pages.get(path, None, **params).status_code == 401
    assert pages.get(path, "guest", **params).status_code == 403
    for role in ("viewer", "op", "admin"):
        answer = pages.get(path, role, **params)
        assert answer.status_code == 200, (role, answer.text)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ROUTES)
def test_no_route_changes_anything(pages: Pages, ids: dict[str, Any], path: str) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = httpx.request(
            method,
            f"{pages.url}{PREFIX}{UI_PATH}{path}",
            params=params_of(path, ids),
            headers={"Authorization": f"Bearer {pages.tokens['admin']}"},
            timeout=600,
        )
        assert answer.status_code == 405, method


def test_anonymous_requests_get_no_data(pages: Pages, ids: dict[str, Any]) -> None:
    answer = pages.get("/deliveries", None)
    assert "Log in" in answer.text
    assert CONN_ID not in answer.text


@pytest.mark.parametrize(
    ("delivery", "readers"),
    [
        ("delivery", {"viewer", "op", "admin"}),
        ("hidden delivery", {"admin"}),
        # No DAG is known: the right to read the connection decides, which a viewer has not.
        ("nobody's delivery", {"op", "admin"}),
    ],
)
def test_payloads(pages: Pages, ids: dict[str, Any], delivery: str, readers: set[str]) -> None:
    for role in ROLES:
        answer = pages.get("/deliveries/delivery", role, id=ids[delivery])
        assert answer.status_code == (200 if role in readers else 403), role
        assert ("Payload" in answer.text) is (role in readers)
        if role not in readers:
            assert HIDDEN_TEXT not in answer.text


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/waits", {}),
        ("/jobs/list", {"conn_id": CONN_ID}),
        ("/jobs/job", {"conn_id": CONN_ID, "operation": "crawl", "job_id": "hidden-job"}),
        ("/", {}),
    ],
)
def test_a_hidden_dag_shows_nowhere(
    pages: Pages, ids: dict[str, Any], path: str, params: dict[str, str]
) -> None:
    for role in ("viewer", "op"):
        text = pages.get(path, role, **params).text
        assert HIDDEN_DAG not in text
        assert "secret_crawl" not in text


def test_an_admin_sees_the_hidden_dag(pages: Pages, ids: dict[str, Any]) -> None:
    assert "secret_crawl" in pages.get("/waits").text
    job = {"conn_id": CONN_ID, "operation": "crawl", "job_id": "hidden-job"}
    assert "secret_crawl" in pages.get("/jobs/job", **job).text


@pytest.mark.parametrize("path", ["/task", "/run"])
def test_tabs_of_a_hidden_dag(pages: Pages, path: str) -> None:
    params = {"dag_id": HIDDEN_DAG, "run_id": "run", "task_id": "secret_crawl"}
    assert pages.get(path, "viewer", **params).status_code == 403
    assert pages.get(path, "admin", **params).status_code == 200


def test_no_page_shows_a_secret(pages: Pages, ids: dict[str, Any]) -> None:
    for path in ROUTES:
        text = pages.get(path, **params_of(path, ids)).text
        assert pages.sandbox.api_key not in text, path
