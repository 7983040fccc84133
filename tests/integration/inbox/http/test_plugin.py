"""The inbox where users have it: mounted by the plugin on Airflow's own API server application."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.inbox.http.airflow_home import AirflowHome

DRIVER = Path(__file__).with_name("api_server_driver.py")


@pytest.fixture(scope="module")
def seen(airflow_home: AirflowHome) -> dict[str, Any]:
    """What a client of the real API server application saw; it took its deliveries into a database of its own."""
    output = airflow_home.python(str(DRIVER))
    found: dict[str, Any] = json.loads(output.rpartition("\nANSWER ")[2])
    return found


def test_the_plugin_imports_nothing_heavy(seen: dict[str, Any]) -> None:
    """Every Airflow process imports it, each task's too."""
    assert seen["imported by the plugin"] == []


def test_a_delivery_is_stored(seen: dict[str, Any], airflow_home: AirflowHome) -> None:
    assert seen["delivery"] == [200, {"status": "stored"}]
    assert seen["again"] == [200, {"status": "duplicate"}]
    assert seen["by hand"] == [200, {"status": "stored"}]
    assert seen["slash in the id"] == [401, seen["forged"][1]]
    bodies = [json.loads(body) for body in airflow_home.stored("secret")]
    assert {"webhookId": "plugin", "type": "check.completed"} in bodies


def test_a_probe_is_answered(seen: dict[str, Any]) -> None:
    status, body = seen["probe"]
    assert (status, body["status"], len(body["proofs"])) == (200, "probe", 1)


def test_it_is_read_where_it_was_received(seen: dict[str, Any]) -> None:
    assert [status for status, _ in seen["pages"]] == [200, 200, 200]
    ids = [[record["job_id"] for record in page["deliveries"]] for _, page in seen["pages"]]
    # What was there, then nothing new, then what came while the reader waited.
    assert ids[1:] == [[], ["woken"]]


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("forged", 401),
        ("unknown", 401),
        ("no token", 401),
        ("too large", 413),
        ("not JSON", 400),
        ("wrong method", 405),
        ("no such path", 404),
        ("no such key", 404),
    ],
)
def test_refusals(seen: dict[str, Any], name: str, status: int) -> None:
    """With the inbox's own answers, which Airflow's pages and error handlers leave alone."""
    assert seen[name][0] == status
    assert set(seen[name][1]) == {"error"}


def test_a_web_socket_is_refused(seen: dict[str, Any]) -> None:
    assert seen["web socket"][0] == 403


def test_who_breaks_off_leaves_no_trace(seen: dict[str, Any]) -> None:
    """A stranger could fill the log with tracebacks of what Airflow has around the inbox, and readers leave often."""
    assert seen["errors in the log"] == []
    assert seen["afterwards"] == 200


def test_airflow_is_still_there(seen: dict[str, Any]) -> None:
    assert seen["airflow's version"][0] == 200
    assert seen["airflow's dags, not logged in"][0] == 401


def test_the_garbage_collector_is_relieved(seen: dict[str, Any]) -> None:
    """What Airflow holds for good is not looked through again and again: its pauses would stop all requests."""
    assert seen["frozen objects"] > 100_000


def test_the_description_is_served(seen: dict[str, Any]) -> None:
    assert seen["description"][0] == 200
    assert "/webdata/inbox/{conn_id}/{key}" in seen["description"][1]["paths"]
