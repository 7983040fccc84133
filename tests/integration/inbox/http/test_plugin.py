# SPDX-License-Identifier: Apache-2.0
"""The inbox mounted by the plugin on Airflow's API server application."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.inbox.http.airflow_home import AirflowHome
from tests.support.tables import each_row

DRIVER = Path(__file__).with_name("api_server_driver.py")


@pytest.fixture(scope="module")
def seen(airflow_home: AirflowHome) -> dict[str, Any]:
    """The responses of the real API server application, see `api_server_driver`."""
    output = airflow_home.python(str(DRIVER))
    found: dict[str, Any] = json.loads(output.rpartition("\nANSWER ")[2])
    return found


def test_the_plugin_imports_nothing_heavy(seen: dict[str, Any]) -> None:
    """Every Airflow process imports it, including each task's."""
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


def test_deliveries_are_read(seen: dict[str, Any]) -> None:
    assert [status for status, _ in seen["pages"]] == [200, 200, 200]
    ids = [[record["job_id"] for record in page["deliveries"]] for _, page in seen["pages"]]
    # The stored deliveries, then none, then one that arrived while the reader waited.
    assert ids[1:] == [[], ["woken"]]


REFUSALS = [
    ("forged", 401),
    ("unknown", 401),
    ("no token", 401),
    ("too large", 413),
    ("not JSON", 400),
    ("wrong method", 405),
    ("no such path", 404),
    ("no such key", 404),
]


@each_row("name, status", REFUSALS)
def test_refusals(seen: dict[str, Any], name: str, status: int) -> None:
    """Airflow's pages and error handlers leave the inbox's responses unchanged."""
    assert seen[name][0] == status
    assert set(seen[name][1]) == {"error"}


def test_a_web_socket_is_refused(seen: dict[str, Any]) -> None:
    assert seen["web socket"][0] == 403


def test_aborted_requests_log_no_errors(seen: dict[str, Any]) -> None:
    """Anyone could fill the log with tracebacks of Airflow's middleware, and readers disconnect often."""
    assert seen["errors in the log"] == []
    assert seen["afterwards"] == 200


def test_airflow_still_works(seen: dict[str, Any]) -> None:
    assert seen["airflow's version"][0] == 200
    assert seen["airflow's dags, not logged in"][0] == 401
