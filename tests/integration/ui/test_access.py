"""Access of each role to every page."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.ui.application import ROUTES
from tests.integration.ui.auth_manager import HIDDEN_DAG
from tests.integration.ui.conftest import CONN_ID, Pages

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
        "delivery without a DAG": pages.deliver({**crawl, "id": "other", "metadata": {}}),
    }


def params_of(path: str, ids: dict[str, Any]) -> dict[str, Any]:
    """Return a valid query of a route."""
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
def test_every_route(pages: Pages, ids: dict[str, Any], path: str) -> None:
    """It authorizes the user, changes nothing, and shows no secret."""
    params = params_of(path, ids)
    assert pages.get(path, None, **params).status_code == 401
    assert pages.get(path, "guest", **params).status_code == 403
    for role in ("viewer", "op", "admin"):
        answer = pages.get(path, role, **params)
        assert answer.status_code == 200, (role, answer.text)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert pages.sandbox.api_key not in answer.text, role
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert pages.request(method, path, **params).status_code == 405, method


def test_anonymous_requests_get_no_data(pages: Pages, ids: dict[str, Any]) -> None:
    answer = pages.get("/deliveries", None)
    assert "Log in" in answer.text
    assert CONN_ID not in answer.text


READERS = {
    "delivery": {"viewer", "op", "admin"},
    "hidden delivery": {"admin"},
    # Its DAG is unknown: the right to read the connection decides, which a viewer does not have.
    "delivery without a DAG": {"op", "admin"},
}


def test_payloads(pages: Pages, ids: dict[str, Any]) -> None:
    for delivery, readers in READERS.items():
        for role in ROLES:
            answer = pages.get("/deliveries/delivery", role, id=ids[delivery])
            assert answer.status_code == (200 if role in readers else 403), (delivery, role)
            assert ("Payload" in answer.text) is (role in readers), (delivery, role)
            if role not in readers:
                assert HIDDEN_TEXT not in answer.text, (delivery, role)


def test_a_hidden_dag(pages: Pages, ids: dict[str, Any]) -> None:
    """Only an admin sees it."""
    job = {"conn_id": CONN_ID, "operation": "crawl", "job_id": "hidden-job"}
    shown = {"/waits": {}, "/jobs/list": {"conn_id": CONN_ID}, "/jobs/job": job, "/": {}}
    for path, params in shown.items():
        for role in ("viewer", "op"):
            text = pages.get(path, role, **params).text
            assert HIDDEN_DAG not in text, (path, role)
            assert "secret_crawl" not in text, (path, role)
    assert "secret_crawl" in pages.get("/waits").text
    assert "secret_crawl" in pages.get("/jobs/job", **job).text


def test_tabs_of_a_hidden_dag(pages: Pages) -> None:
    params = {"dag_id": HIDDEN_DAG, "run_id": "run", "task_id": "secret_crawl"}
    for path in ("/task", "/run"):
        assert pages.get(path, "viewer", **params).status_code == 403
        assert pages.get(path, "admin", **params).status_code == 200
