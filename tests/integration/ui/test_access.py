# SPDX-License-Identifier: Apache-2.0
"""Access of each role to every page, by two rules: of the connection for the service's data, of the DAG for tasks'."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.routing import Route

from airflow_provider_webdata import __version__
from airflow_provider_webdata.ui.application import VIEWS, create_application
from tests.integration.ui.auth_manager import HIDDEN_CONN_ID, HIDDEN_DAG, NO_XCOMS, TEAM_CONN_ID
from tests.integration.ui.conftest import CHEAP_DAGS, CONN_ID, DASHBOARD, SECRET, Pages
from tests.support.snippets import ROOT

ROLES = ("guest", "viewer", "op", "admin")


@pytest.fixture(scope="module")
def ids(pages: Pages, jobs: dict[str, str]) -> dict[str, Any]:
    hidden = {"dag_id": HIDDEN_DAG, "run_id": "run", "task_id": "secret_crawl", "map_index": "-1"}
    shop = {"dag_id": "shop", "run_id": "run", "task_id": "crawl", "map_index": "-1"}
    crawl = {"type": "crawl.completed", "success": True}
    return {
        **jobs,
        "hidden delivery": pages.deliver({**crawl, "id": "hidden-job", "metadata": hidden, "data": SECRET}),
        "delivery": pages.deliver({**crawl, "id": jobs["crawl"], "metadata": shop}),
        "ledger's delivery": pages.deliver({**crawl, "id": "other", "data": SECRET}, conn_id=HIDDEN_CONN_ID),
    }


def params_of(path: str, ids: dict[str, Any]) -> dict[str, Any]:
    """Return a valid query of a route."""
    conn = {"conn_id": CONN_ID}
    return {
        "/inbox/delivery": {"id": ids["delivery"]},
        "/inbox/body": {"id": ids["delivery"], "at": "0"},
        "/monitors/list": conn,
        "/monitors/monitor": {**conn, "monitor_id": ids["monitor"]},
        "/monitors/monitor/part": {**conn, "monitor_id": ids["monitor"]},
        "/monitors/values": {**conn, "monitor_id": ids["monitor"]},
        "/monitors/check": {**conn, "monitor_id": ids["monitor"], "check_id": ids["check"]},
        "/task": {"dag_id": "shop", "run_id": "run", "task_id": "crawl"},
        "/task/job": {**conn, "operation": "crawl", "job_id": ids["crawl"]},
    }.get(path, {})


def test_the_docs_name_the_right_of_every_route() -> None:
    page = (ROOT / "docs" / "contributing" / "pages.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(/[^`]*)` \| ([^|]+?) \|", page, re.MULTILINE)
    assert rows == [(path, view.right) for path, view in VIEWS.items()]


def test_no_route_lacks_a_right() -> None:
    """The application has no route beside the views but that of the style sheet and the script, which hold no data."""
    paths = [route.path for route in create_application().routes if isinstance(route, Route)]
    assert paths == [*VIEWS, f"/static/{__version__}/{{name}}"]


ALL = {"viewer", "op", "admin"}
SCOPES = {
    # By the right of a route: parameters, and the roles that get an answer. A viewer reads no connection.
    "connection": [
        ({"conn_id": CONN_ID}, {"op", "admin"}),
        ({"conn_id": HIDDEN_CONN_ID}, {"admin"}),
        ({"conn_id": TEAM_CONN_ID}, {"admin"}),
        ({"conn_id": "nowhere"}, {"op", "admin"}),
    ],
    "DAG": [({"dag_id": "shop"}, ALL), ({"dag_id": HIDDEN_DAG}, {"admin"})],
    "rows": [
        ({}, ALL),
        ({"conn_id": HIDDEN_CONN_ID}, {"admin"}),
        ({"conn_id": TEAM_CONN_ID}, {"admin"}),
        ({"dag_id": HIDDEN_DAG}, {"admin"}),
    ],
}
CONN_IDS = (CONN_ID, HIDDEN_CONN_ID, TEAM_CONN_ID, "webdata_default", "dead")
"""All connections; `op` reads the first, and the last two."""


READABLE = {
    "guest": set(),
    "viewer": set(),
    "op": {CONN_ID, "webdata_default", "dead"},
    "admin": set(CONN_IDS),
}
OF_TASKS = (HIDDEN_DAG, "secret_crawl", "secret_declare")
"""Names of the hidden DAG and its tasks."""


@pytest.mark.parametrize("path", VIEWS)
def test_every_route(pages: Pages, ids: dict[str, Any], path: str) -> None:
    """It authorizes the user, changes nothing, and shows no secret and no row of what the user may not read."""
    for scope, readers in SCOPES[VIEWS[path].right]:
        params = {**params_of(path, ids), **scope}
        assert pages.get(path, None, **params).status_code == 401
        for role in ROLES:
            answer = pages.get(path, role, **params)
            is_reader = role in readers and (not path.startswith("/inbox/") or role != "viewer")
            assert answer.status_code == (200 if is_reader else 403), (role, scope, answer.text)
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["cache-control"] == "no-store"
            assert pages.sandbox.api_key not in answer.text, role
            if role != "admin":
                for text in OF_TASKS:
                    assert text not in answer.text.replace(scope.get("dag_id", "-"), ""), (role, scope, text)
            if role in {"guest", "viewer"}:
                assert SECRET not in answer.text, (role, scope)
            # What belongs to a task names its connection.
            if VIEWS[path].right == "rows" and not scope:
                shown = {one for one in CONN_IDS if re.search(rf"\b{one}\b", answer.text)}
                assert shown <= READABLE[role], role
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert pages.request(method, path, **params_of(path, ids)).status_code == 405, method


OF_SERVICE = (
    # Path, parameters, and a text that the service sent.
    ("/inbox", {}, ">Crawl</a>"),
    ("/inbox.csv", {}, "hidden-job"),
    ("/inbox/delivery", {"id": "hidden delivery"}, SECRET),
    ("/inbox/body", {"id": "hidden delivery"}, SECRET),
    ("/changes", {}, SECRET),
    ("/monitors/list", {"conn_id": CONN_ID}, SECRET),
    ("/monitors/monitor/part", {"conn_id": CONN_ID, "monitor_id": "hidden monitor"}, SECRET),
    ("/monitors/monitor/part", {"conn_id": CONN_ID, "monitor_id": "pushed monitor"}, SECRET),
    (
        "/monitors/check",
        {"conn_id": CONN_ID, "monitor_id": "hidden monitor", "check_id": "hidden check"},
        SECRET,
    ),
    ("/task/job", {"conn_id": CONN_ID, "operation": "crawl", "job_id": "hidden crawl"}, "1 of 1 pages"),
)


@pytest.mark.parametrize(("path", "params", "text"), OF_SERVICE)
def test_data_of_the_service_follows_its_connection(
    pages: Pages, ids: dict[str, Any], path: str, params: dict[str, str], text: str
) -> None:
    """Regardless of the DAG that requested it: an op may read the connection, and not the DAG."""
    params = {name: ids.get(value, value) if name.endswith("id") else value for name, value in params.items()}
    for role in ("op", "admin"):
        assert text in pages.get(path, role, **params).text, role
    assert text not in pages.get(path, "viewer", **params).text


OF_DAG = (
    # Path, parameters, and a text that names the hidden DAG's task.
    ("/credits", {}, f">{HIDDEN_DAG}</a>"),
    ("/credits.csv", {}, HIDDEN_DAG),
    ("/credits.csv", {"by": "task"}, f"{HIDDEN_DAG},secret_declare"),
    ("/inbox", {}, f">{HIDDEN_DAG}.secret_crawl</a>"),
    ("/inbox.csv", {}, f"{HIDDEN_DAG},secret_crawl"),
    ("/inbox/delivery", {"id": "hidden delivery"}, f">{HIDDEN_DAG}.secret_crawl</a>"),
    ("/monitors/list", {"conn_id": CONN_ID}, f">{HIDDEN_DAG}.secret_crawl</a>"),
    ("/monitors/list", {"conn_id": CONN_ID}, f">{HIDDEN_DAG}.secret_declare</a>"),
    (
        "/monitors/monitor/part",
        {"conn_id": CONN_ID, "monitor_id": "pushed monitor"},
        f">{HIDDEN_DAG}.secret_declare</a>",
    ),
    ("/attention", {}, f">{HIDDEN_DAG}.secret_crawl</a>"),
    ("/attention", {}, f">{HIDDEN_DAG}.secret_failure</a>"),
    ("/task", {"dag_id": HIDDEN_DAG, "run_id": "run", "task_id": "secret_crawl"}, "secret_crawl"),
)


@pytest.mark.parametrize(("path", "params", "text"), OF_DAG)
def test_data_of_a_task_follows_its_dag(
    pages: Pages, ids: dict[str, Any], path: str, params: dict[str, Any], text: str
) -> None:
    """Also within the service's data, which an op may read."""
    params = {name: ids.get(value, value) if name.endswith("id") else value for name, value in params.items()}
    assert text in pages.get(path, **params).text
    for role in ("op", "viewer", NO_XCOMS):
        assert text not in pages.get(path, role, **params).text, role


def test_the_auth_manager_is_asked_once(pages: Pages, ids: dict[str, Any]) -> None:
    """Once about each DAG and each connection of a page, however many rows it has."""
    for path in ("/", "/attention", "/credits", "/credits.csv", "/inbox", "/changes", "/monitors/list"):
        before = questions(pages)
        pages.get(path, "op", **params_of(path, ids))
        asked = {what: number - before.get(what, 0) for what, number in questions(pages).items()}
        # A DAG, its task instances, and its XComs.
        assert all(number <= 1 for number in asked.values()), (path, asked)


def questions(pages: Pages) -> dict[str, int]:
    """Return how often the auth manager was asked about each object."""
    found: dict[str, int] = pages.client.get("/asked").json()
    return found


NO_CONN_IDS = ("../../variables/db_password", "..", "a/../b", "a/", "a b", "a\nb", "a?b", "x" * 251)


def test_what_is_no_connection_id_reaches_no_secrets_backend(pages: Pages, ids: dict[str, Any]) -> None:
    for path, view in VIEWS.items():
        for conn_id in NO_CONN_IDS if view.right == "connection" else NO_CONN_IDS[:1]:
            answer = pages.get(path, **{**params_of(path, ids), "conn_id": conn_id})
            assert answer.status_code == 400, (path, conn_id)
            assert "conn_id must be" in answer.text


def test_letter_case_does_not_circumvent_a_right(pages: Pages, ids: dict[str, Any]) -> None:
    """Environment variables ignore it."""
    body = {"type": "crawl.completed", "id": "of-another-spelling"}
    delivery = pages.deliver(body, conn_id=HIDDEN_CONN_ID.upper())
    for role, status in (("op", 403), ("admin", 200)):
        for path in ("/inbox", "/inbox/delivery"):
            answer = pages.get(path, role, id=delivery)
            assert answer.status_code == status, (path, role)
            assert HIDDEN_CONN_ID.upper() not in answer.text or role == "admin", path
        for conn_id in (HIDDEN_CONN_ID.upper(), HIDDEN_CONN_ID.title()):
            for path in ("/credits", "/monitors/list", "/inbox"):
                answer = pages.get(path, role, conn_id=conn_id)
                assert answer.status_code == status, (conn_id, path, role)
    assert pages.get("/monitors/list", "op", conn_id=CONN_ID.upper()).status_code == 200


def test_anonymous_requests_get_no_data(pages: Pages, ids: dict[str, Any]) -> None:
    answer = pages.get("/inbox", None)
    assert "Log in" in answer.text
    assert CONN_ID not in answer.text
    script = pages.get("/credits.csv", None)
    assert (script.status_code, script.text) == (401, "Log in to Airflow to see this page.")


def test_without_the_right_to_xcoms(pages: Pages, ids: dict[str, Any]) -> None:
    """The pages of a DAG show its XComs: credits and results."""
    assert pages.get("/task", NO_XCOMS, **params_of("/task", ids)).status_code == 403
    text = pages.get("/credits", NO_XCOMS, conn_id=CONN_ID).text
    assert f"{2 + len(CHEAP_DAGS)} DAGs that you may not read" in text
    assert ">shop</a>" not in text
    assert "No credits yet" not in text
    assert pages.get("/credits.csv", NO_XCOMS).text.splitlines() == ["dag_id,used,tasks,unknown"]


def test_the_tab_of_a_task_without_the_right_to_its_connection(pages: Pages, ids: dict[str, Any]) -> None:
    text = pages.get("/task", "viewer", dag_id="shop", run_id="run", task_id="crawl").text
    assert "You do not have permission to read the connection" in text
    assert "data-src" not in text
    assert DASHBOARD not in text
    assert ">crawl.completed</a>" not in text, "a delivery belongs to the connection"
    allowed = pages.get("/task", "op", dag_id="shop", run_id="run", task_id="crawl").text
    assert DASHBOARD in allowed
    assert ">crawl.completed</a>" in allowed
