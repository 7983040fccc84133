"""Access of each role to every page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.routing import Route

from airflow_provider_webdata import __version__
from airflow_provider_webdata.ui.application import VIEWS, create_application
from tests.integration.ui.auth_manager import HIDDEN_CONN_ID, HIDDEN_DAG, NO_XCOMS, TEAM_CONN_ID
from tests.integration.ui.conftest import CHEAP_DAGS, CONN_ID, DASHBOARD, ODD, SECRET, Pages
from tests.support.snippets import ROOT

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
        "/deliveries/delivery": {"id": ids["delivery"]},
        "/deliveries/delivery/part": {"id": ids["delivery"], "at": "0"},
        "/monitors/list": conn,
        "/monitors/monitor": {**conn, "monitor_id": ids["monitor"]},
        "/monitors/monitor/part": {**conn, "monitor_id": ids["monitor"]},
        "/monitors/values": {**conn, "monitor_id": ids["monitor"]},
        "/monitors/check": {**conn, "monitor_id": ids["monitor"], "check_id": ids["check"]},
        "/monitors/check/part": {**conn, "monitor_id": ids["monitor"], "check_id": ids["check"]},
        "/jobs/list": conn,
        "/jobs/csv": conn,
        "/jobs/job": {**conn, "operation": "crawl", "job_id": ids["crawl"]},
        "/jobs/job/part": {**conn, "operation": "crawl", "job_id": ids["crawl"]},
        "/task": {"dag_id": "shop", "run_id": "run", "task_id": "crawl"},
        "/run": {"dag_id": "shop", "run_id": "run"},
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


@pytest.mark.parametrize("path", VIEWS)
def test_every_route(pages: Pages, ids: dict[str, Any], path: str) -> None:
    """It authorizes the user, changes nothing, and shows no secret and no row of what the user may not read."""
    for scope, readers in SCOPES[VIEWS[path].right]:
        params = {**params_of(path, ids), **scope}
        assert pages.get(path, None, **params).status_code == 401
        for role in ROLES:
            answer = pages.get(path, role, **params)
            assert answer.status_code == (200 if role in readers else 403), (role, scope, answer.text)
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["cache-control"] == "no-store"
            assert pages.sandbox.api_key not in answer.text, role
            if role != "admin":
                for text in (SECRET, HIDDEN_DAG, "secret_crawl", *(ids[name] for name in HIDDEN_IDS)):
                    assert text not in answer.text.replace(scope.get("dag_id", "-"), ""), (role, scope, text)
            # What belongs to a DAG names its connection.
            if VIEWS[path].right == "rows" and not path.startswith(("/deliveries/", "/waits")) and not scope:
                shown = {one for one in CONN_IDS if re.search(rf"\b{one}\b", answer.text)}
                assert shown <= {
                    "guest": set(),
                    "viewer": set(),
                    "op": {CONN_ID, "webdata_default", "dead"},
                }.get(role, set(CONN_IDS)), role
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert pages.request(method, path, **params_of(path, ids)).status_code == 405, method


HIDDEN_IDS = ("hidden crawl", "hidden monitor", "pushed monitor", "hidden check", "pushed check")
OF_A_HIDDEN_DAG = (
    ("/jobs/job", {"operation": "crawl", "job_id": "hidden crawl"}),
    ("/jobs/job/part", {"operation": "crawl", "job_id": "hidden crawl"}),
    ("/jobs/job/part", {"operation": "crawl", "job_id": "hidden-job"}),
    ("/monitors/monitor/part", {"monitor_id": "hidden monitor"}),
    ("/monitors/monitor/part", {"monitor_id": "pushed monitor"}),
    ("/monitors/check/part", {"monitor_id": "hidden monitor", "check_id": "hidden check"}),
    ("/monitors/check/part", {"monitor_id": "pushed monitor", "check_id": "pushed check"}),
)


def test_what_belongs_to_a_dag_follows_its_right(pages: Pages, ids: dict[str, Any]) -> None:
    """Jobs and monitors of a hidden DAG are hidden, on a connection that the user may read."""
    for path, params in OF_A_HIDDEN_DAG:
        params = {
            "conn_id": CONN_ID,
            **params,
            **{name: ids[value] for name, value in params.items() if value in HIDDEN_IDS},
        }
        refused = pages.get(path, "op", **params)
        assert refused.status_code == 403, (path, params, refused.text)
        shown = pages.get(path, "admin", **params)
        assert shown.status_code == 200, (path, params, shown.text)
        assert SECRET in shown.text or "/jobs/" in path
    for path in ("/monitors/list", "/jobs/list", "/deliveries"):
        assert (SECRET if path != "/deliveries" else "hidden-job") in pages.get(path, conn_id=CONN_ID).text, (
            path
        )


def test_the_spelling_of_an_id_does_not_circumvent_a_right(pages: Pages, ids: dict[str, Any]) -> None:
    """A service that stores UUIDs in PostgreSQL ignores letter case, braces, and hyphens."""
    pages.odd.answer = lambda path: (200, b'{"id": "a", "status": "completed"}')
    for path, name, hidden in (
        ("/jobs/job", "job_id", ids["hidden crawl"]),
        ("/jobs/job/part", "job_id", ids["hidden crawl"]),
        ("/monitors/monitor/part", "monitor_id", ids["pushed monitor"]),
        ("/monitors/check/part", "monitor_id", ids["pushed monitor"]),
        ("/monitors/values", "monitor_id", ids["pushed monitor"]),
    ):
        for spelling in (hidden.upper(), hidden.replace("-", ""), f"{{{hidden}}}"):
            given = {"conn_id": ODD[0], "operation": "crawl", "check_id": "any", name: spelling}
            assert pages.get(path, "op", **given).status_code == 403, (path, spelling)
            assert pages.get(path, "admin", **given).status_code == 200, (path, spelling)


def test_a_delivery_of_a_hidden_dag_is_hidden_at_any_size(pages: Pages, ids: dict[str, Any]) -> None:
    """Also if its body is too large for a page."""
    metadata = {"dag_id": HIDDEN_DAG, "task_id": "secret_crawl"}
    body = {"type": "crawl.page", "id": "large-hidden-job", "data": "x" * 2**21, "metadata": metadata}
    params = {"id": pages.deliver(body)}
    assert pages.get("/deliveries/delivery", "op", **params).status_code == 403
    assert pages.get("/deliveries/delivery", "admin", **params).status_code == 200
    found = {"conn_id": CONN_ID, "find": "large-hidden-job"}
    assert ">crawl.page</a>" not in pages.get("/deliveries", "op", **found).text
    assert ">crawl.page</a>" in pages.get("/deliveries", "admin", **found).text


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
        answer = pages.get("/deliveries/delivery", role, id=delivery)
        assert answer.status_code == status, role
        assert (HIDDEN_CONN_ID.upper() in answer.text) is (role == "admin")
        for conn_id in (HIDDEN_CONN_ID.upper(), HIDDEN_CONN_ID.title()):
            for path in ("/service", "/jobs/list", "/deliveries"):
                answer = pages.get(path, role, conn_id=conn_id)
                assert answer.status_code == status, (conn_id, path, role)
    assert pages.get("/service", "op", conn_id=CONN_ID.upper()).status_code == 200


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


def test_without_the_right_to_xcoms(pages: Pages, ids: dict[str, Any]) -> None:
    """The pages of a DAG show its XComs: credits and results."""
    for path in ("/task", "/run"):
        assert pages.get(path, NO_XCOMS, **params_of(path, ids)).status_code == 403, path
    text = pages.get("/spend", NO_XCOMS, conn_id=CONN_ID).text
    assert f"{2 + len(CHEAP_DAGS)} DAGs that you may not read" in text
    assert ">shop</a>" not in text
    assert "No credits yet" not in text


def test_a_hidden_dag(pages: Pages, ids: dict[str, Any]) -> None:
    """Only an admin sees its tasks."""
    assert "secret_crawl" in pages.get("/waits").text
    job = {"conn_id": CONN_ID, "operation": "crawl", "job_id": "hidden-job"}
    assert "secret_crawl" in pages.get("/jobs/job", **job).text


def test_the_tab_of_a_task_without_the_right_to_its_connection(pages: Pages, ids: dict[str, Any]) -> None:
    text = pages.get("/task", "viewer", dag_id="shop", run_id="run", task_id="crawl").text
    assert "You do not have permission to read the connection" in text
    assert "data-src" not in text
    assert DASHBOARD not in text
    assert DASHBOARD in pages.get("/task", "op", dag_id="shop", run_id="run", task_id="crawl").text
