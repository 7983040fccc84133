# SPDX-License-Identifier: Apache-2.0
"""Sensors that wait for deliveries, with a real inbox, against the sandbox over HTTP.

DAG runs in a real Airflow show how each mode waits and how waits end; the rest needs no DAG run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.sensors.webhook import WebDataWebhookSensor
from airflow_provider_webdata.waiting import policy
from tests.integration.sensors.conftest import AGO, MODES, task
from tests.support import direct
from tests.support.inbox_server import InboxServer
from tests.support.service import CONNECTION_ID, NEVER, SANDBOX_KEY, WEBHOOK_SECRET, connection_text
from tests.support.standing_check import standing_check
from tests.support.waiting import wait_until

MONITOR = "0b9c1f4e-0000-4000-8000-000000000001"
CHECK = {"poke_interval": 0.2}


def body(event: str = "crawl.completed", job: str = "job-1", **more: Any) -> dict[str, Any]:
    return {"success": True, "type": event, "id": job, "webhookId": f"{event}-{job}", "data": [], **more}


# In a real Airflow


def any_delivery(task_id: str, mode: str, **more: Any) -> str:
    return task("WebDataWebhookSensor", task_id, poke_interval=0.2, **MODES[mode], **more)


@pytest.mark.parametrize(("during", "later"), [("poke", "reschedule"), ("defer", "poke")])
def test_check_reported_by_webhook(run_with_inbox, service, during, later):
    """A declared monitor reports here by itself, and no secret is shown."""
    service.control.set_page("https://example.com/", "<p>one euro</p>")
    keep = task("WebDataCreateMonitorOperator", "keep", name="prices", schedule=NEVER)
    with standing_check(service.control):
        done = run_with_inbox(
            f"""
keep = {keep.removesuffix(")")}, targets=TARGETS)
monitor_id = keep.output["monitor_id"]
run = WebDataRunMonitorOperator(task_id="run", monitor_id=monitor_id)
during, later = [
    WebDataMonitorCheckSensor(task_id=name, monitor_id=monitor_id, include_pages="changed", **arguments)
    for name, arguments in {[("during", {**CHECK, **MODES[during]}), ("later", {**CHECK, **MODES[later]})]!r}
]
run >> during >> later
"""
        )
    for name in ("during", "later"):
        assert done.state(name) == "success", done.log_of(name)[-4000:]
        found = done.xcom[f"{name}.return_value"]
        assert found["id"] == done.xcom["run.return_value"]["id"]
        assert [page["status"] for page in found["pages"]] == ["new"]
    for name, mode in (("during", during), ("later", later)):
        how = "webhook" if mode == "defer" else "polling"
        assert f"reported by {how}" in done.log_of(name)
    assert not [secret for secret in (WEBHOOK_SECRET, SANDBOX_KEY) if secret in done.log + str(done.run)]
    (delivery,) = service.control.deliveries()
    assert delivery["status"] == "delivered"


def test_mapped(run_with_inbox, service, inbox):
    """One sensor for each of several monitors."""
    monitors = [
        service.monitor(webhook=inbox.webhook(f"map-{number}"), name=f"m{number}") for number in range(2)
    ]
    checks = [service.check(monitor) for monitor in monitors]
    done = run_with_inbox(
        "\n".join(
            f"WebDataMonitorCheckSensor.partial(task_id={mode!r}, poke_interval=0.2, after={AGO!r}, "
            f"**{MODES[mode]!r}).expand(monitor_id={monitors!r})"
            for mode in ("poke", "defer")
        )
    )
    for mode in ("poke", "defer"):
        assert [done.xcom[f"{mode}[{number}].return_value"]["id"] for number in range(2)] == checks


def test_delivery_during_the_wait(run_with_inbox, inbox):
    """A delivery from before the DAG run does not count."""
    for mode in MODES:
        inbox.deliver(body(job=mode, webhookId=f"before-{mode}"))

    def waits() -> bool:
        """Return whether a worker searches again and again, or the triggerer has searched and follows the feed."""
        searches = len(inbox.reads("/search"))
        return searches >= 3 or bool(searches and inbox.reads("wait="))

    def deliver() -> None:
        for mode in MODES:
            inbox.requests.clear()
            wait_until(waits)
            inbox.deliver(body(job=mode, webhookId=f"during-{mode}"))

    during = threading.Thread(target=deliver)
    during.start()
    done = run_with_inbox(" >> ".join(any_delivery(mode, mode, job_id=mode) for mode in MODES))
    during.join()
    for mode in MODES:
        assert done.state(mode) == "success", done.log_of(mode)[-4000:]
        assert done.xcom[f"{mode}.return_value"]["payload"]["webhookId"] == f"during-{mode}"


ENDS = [("poke", False), ("reschedule", True), ("defer", False), ("defer", True)]


def test_timeout(run_with_inbox):
    """A timeout is an error without a retry, or a skip."""
    quick = {"timeout": 1, "retries": 2, "key": "never"}
    tasks = {
        f"{mode}_{soft}": any_delivery(f"{mode}_{soft}", mode, soft_fail=soft, **quick) for mode, soft in ENDS
    }
    done = run_with_inbox("\n".join(tasks.values()))
    for mode, soft in ENDS:
        name = f"{mode}_{soft}"
        assert done.ended(name) == ("skipped" if soft else "failed", 1), done.log_of(name)[-3000:]


# In this process

Connect = Callable[..., None]


@pytest.fixture
def connect(sandbox: Any, monkeypatch: pytest.MonkeyPatch, no_worker_lingers: None) -> Connect:
    """Set the connection's extras."""

    def set_connection(**extra: Any) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION_ID.upper()}", connection_text(sandbox.url, **extra))

    return set_connection


@pytest.fixture
def connected_inbox(inbox: InboxServer, connect: Connect) -> InboxServer:
    connect(**inbox.extra)
    return inbox


def check(monitor: str, mode: str, **more: Any) -> direct.Outcome:
    arguments: dict[str, Any] = {**CHECK, **MODES[mode], **more}
    return direct.run(WebDataMonitorCheckSensor(task_id="wait", monitor_id=monitor, **arguments))


def delivery(mode: str, **more: Any) -> direct.Outcome:
    arguments: dict[str, Any] = {"poke_interval": 0.2, "after": AGO, **MODES[mode], **more}
    return direct.run(WebDataWebhookSensor(task_id="wait", **arguments))


@pytest.mark.rule("delivery-order")
def test_check_with_an_early_delivery(connected_inbox, service):
    """The delivery came before the DAG run began, later than `after`."""
    monitor = service.monitor(webhook=connected_inbox.webhook("early"))
    found = service.check(monitor)
    for mode in MODES:
        assert check(monitor, mode, after=AGO).value["id"] == found, mode


@pytest.mark.rule("delivery-retries")
def test_a_safety_poll_makes_up_for_a_lost_delivery(connected_inbox, service, monkeypatch):
    monkeypatch.setattr(policy, "CHECK_SAFETY_POLL", 1.0)
    monitor = service.monitor(webhook={**connected_inbox.webhook("lost"), "events": ["monitor.page"]})
    with standing_check(service.control):
        started = service.call("POST", f"/v2/monitor/{monitor}/run")["id"]
        done = check(monitor, "defer", after=AGO)
    assert done.value["id"] == started
    assert len(service.control.requests(f"/v2/monitor/{monitor}/checks$")) > 1


@pytest.mark.parametrize("mode", MODES)
def test_safety_polls_make_up_for_an_unavailable_inbox(connected_inbox, service, mode):
    monitor = service.monitor(webhook=connected_inbox.webhook("late"))
    found = service.check(monitor)
    connected_inbox.stop()
    done = check(monitor, mode, after=AGO, timeout=60)
    connected_inbox.start()
    assert done.value["id"] == found


@pytest.mark.parametrize("status", [200, 401, 404])
@pytest.mark.parametrize("mode", MODES)
def test_an_inbox_that_is_replaced_during_the_wait(connected_inbox, mode, status):
    """Meanwhile, its address answers as a proxy, or as a server with another secret."""
    connected_inbox.deliver(body(job="j"))
    connected_inbox.answers = [(status, {})]
    assert delivery(mode, job_id="j", timeout=120).value["job_id"] == "j"


def test_connections_without_deliveries(connect):
    """Without an address or a secret no delivery can come, which no retry changes."""
    connect()
    for mode in MODES:
        done = delivery(mode, retries=2)
        assert done.ended == ("failed", 1), mode
        assert "is not set, so its deliveries cannot be read" in str(done.error), mode


CHECK_BODY = body("monitor.check.completed", "check-1", data=[{"monitorId": MONITOR, "checkId": "check-1"}])
LARGE = body("extract.started", "large", data=[{"markdown": "x" * 40_000}])
DELIVERIES: list[tuple[dict[str, Any], str | None]] = [
    (body(job="first"), None),
    (body(job="second"), "two"),
    (CHECK_BODY, "other"),
    ({**CHECK_BODY, "webhookId": "w"}, "k"),
    (LARGE, None),
]
"""The content of the inbox, and the keys."""

# The arguments of the sensor, and the number of the delivery that it returns.
FITS: dict[str, tuple[dict[str, Any], int]] = {
    "the oldest": ({}, 0),
    "all of them": (
        {"key": "k", "monitor_id": MONITOR, "job_id": "check-1", "events": ["check.completed"]},
        3,
    ),
    "large": ({"events": "extract.started"}, 4),
    "a template that renders to nothing": ({"key": "{{ none }}", "job_id": "{{ 'second' }}"}, 1),
}


@pytest.mark.rule("event-names")
def test_delivery_that_fits(connected_inbox):
    for sent, key in DELIVERIES:
        connected_inbox.deliver(sent, key)
    for mode in ("poke", "defer"):
        for case, (arguments, number) in FITS.items():
            sent, key = DELIVERIES[number]
            found = delivery(mode, **arguments).value
            assert found == {
                "delivery_id": found["delivery_id"],
                "event": sent["type"],
                "key": key,
                "job_id": sent["id"],
                "monitor_id": MONITOR if number in (2, 3) else None,
                "success": True,
                "received_at": found["received_at"],
                "payload": sent,
            }, (mode, case)
