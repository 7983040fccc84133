# SPDX-License-Identifier: Apache-2.0
"""The doctor compares the webhooks of declared monitors with the inbox, against the sandbox and a served inbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from airflow_provider_webdata.commands.doctor import checks
from airflow_provider_webdata.commands.doctor.finding import Finding
from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator
from tests.integration.doctor.conftest import SIGNING_SECRET, World
from tests.support import direct
from tests.support.direct import StateStore
from tests.support.service import CONNECTION_ID, NEVER, WEBHOOK_SECRET, connection_text
from tests.support.waiting import PATIENCE

NEW_SECRET = "another-secret-of-the-tests"


def declare(**arguments: Any) -> Any:
    given = {"name": "prices", "schedule": NEVER, "targets": ["https://example.com/"], **arguments}
    outcome = direct.run(WebDataCreateMonitorOperator(task_id="keep", **given), StateStore())
    assert outcome.state == "success", outcome.error
    return outcome.value


def found(world: World) -> Finding:
    (finding,) = [
        one for one in checks.findings([CONNECTION_ID], seconds=PATIENCE) if one.check == "monitors"
    ]
    assert not any(secret in f"{finding.seen}{finding.advice}" for secret in (WEBHOOK_SECRET, NEW_SECRET))
    return finding


def status_of_a_delivery(world: World) -> int:
    """Deliver as the service does."""
    (monitor,) = world.sandbox.control.state()["monitors"]
    webhook = monitor["webhook"]
    address = f"{world.inbox.url}{webhook['url'][webhook['url'].index('/webdata/inbox/') :]}"
    body = {"type": "monitor.check.completed", "id": "c", "data": {"monitorId": monitor["id"]}}
    return httpx.post(address, json=body, headers=webhook.get("headers") or {}).status_code


def replaced(world: World) -> None:
    world.connect(webhook_secret=NEW_SECRET)


def rotated(world: World) -> None:
    world.connect(webhook_secret=NEW_SECRET, previous_webhook_secret=WEBHOOK_SECRET)


def moved(world: World) -> None:
    world.connect(webhook_url="https://moved.example")


def renamed(world: World) -> None:
    """The monitor was declared by a connection with another id."""
    conn = connection_text(world.sandbox.url, **world.deliveries_here)
    world.patch.setenv("AIRFLOW_CONN_FORMER", conn)
    declare(webdata_conn_id="former")
    assert found(world).state == "passed"
    world.patch.delenv("AIRFLOW_CONN_FORMER")


CHANGES: dict[str, tuple[Callable[[World], None], str, str, int]] = {
    "secret replaced": (replaced, "failed", "'prices' (it has another webhook secret)", 401),
    "secret rotated": (rotated, "warning", "'prices' (the previous webhook secret)", 200),
    "address changed": (moved, "failed", "'prices' (it reports to http://127.0.0.1", 200),
    "connection renamed": (renamed, "failed", "'prices' (connection 'former' does not exist)", 401),
}


@pytest.mark.parametrize(("change", "state", "seen", "status"), CHANGES.values(), ids=CHANGES.keys())
def test_the_task_that_the_doctor_names_mends_the_webhook(
    world: World, change: Callable[[World], None], state: str, seen: str, status: int
) -> None:
    declare()
    assert (found(world).state, found(world).seen) == ("passed", "1 declared monitor reports here")
    assert status_of_a_delivery(world) == 200
    change(world)
    finding = found(world)
    assert (finding.state, seen in finding.seen) == (state, True), finding
    assert "Run the tasks that declare them, which update the webhooks: 'keep' of DAG 'd'." in str(
        finding.advice
    )
    assert status_of_a_delivery(world) == status
    declare()
    assert found(world).state == "passed"
    assert status_of_a_delivery(world) == 200


def test_after_airflow_has_moved(world: World) -> None:
    declare()
    world.patch.setenv("AIRFLOW__WEBDATA__ENVIRONMENT", "new")
    finding = found(world)
    assert finding.state == "warning"
    assert "another environment than 'new': 'prices' (environment 'localhost')" in finding.seen
    assert "set [webdata] environment = localhost" in str(finding.advice)
    declare(adopt=True)
    assert found(world).state == "passed"


def test_monitors_of_others_are_not_compared(world: World) -> None:
    declare(attach_webhook=False)
    declare(
        name="of another Airflow", webhook={"url": "https://laptop.example/webdata/inbox/webdata_default/k"}
    )
    assert found(world).seen == "0 declared monitors report here"


def test_signed_deliveries_need_no_header(world: World) -> None:
    world.connect(webhook_secret=None, signing_secret=SIGNING_SECRET)
    declare()
    assert found(world).state == "passed"
