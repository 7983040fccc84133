"""Sensors that wait for deliveries, in a real Airflow with a real inbox, against the sandbox over HTTP."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tests.support.service import NEVER
from tests.support.standing_check import standing_check
from tests.support.waiting import PATIENCE

POKE = pytest.param("deferrable=False", id="poke")
RESCHEDULE = pytest.param("deferrable=False, mode='reschedule'", id="reschedule")
DEFER = pytest.param("deferrable=True", id="defer")
MODES = [POKE, RESCHEDULE, DEFER]
AGO = "after='2020-01-01T00:00:00Z'"
CHECK = (
    "WebDataMonitorCheckSensor(task_id='wait', poke_interval=0.2, poll_interval=1, wait_by='webhook', {more})"
)
ANY = "WebDataWebhookSensor(task_id='wait', poke_interval=0.2, {more})"
MONITOR = "0b9c1f4e-0000-4000-8000-000000000001"


def waited(outcome: Any) -> Any:
    assert outcome.state("wait") == "success", outcome.log[-4000:]
    assert "hush" not in outcome.log
    assert "hush" not in str(outcome.run)
    return outcome.xcom["wait.return_value"]


@pytest.mark.parametrize("mode", MODES)
def test_check_learned_by_webhook(run_with_inbox, service, mode):
    """From the declared monitor, which reports to us by itself, to the check: no key, no secret is handed around."""
    service.control.set_page("https://example.com/", "<p>one euro</p>")
    with standing_check(service.control):
        done = run_with_inbox(
            f"""
keep = WebDataCreateMonitorOperator(task_id="keep", name="prices", schedule={NEVER}, targets=TARGETS)
run = WebDataRunMonitorOperator(task_id="run", monitor_id=keep.output["monitor_id"])
run >> {CHECK.format(more=f"monitor_id=keep.output['monitor_id'], include_pages='changed', {mode}")}
"""
        )
    found = waited(done)
    assert found["id"] == done.xcom["run.return_value"]["id"]
    assert [page["status"] for page in found["pages"]] == ["new"]
    assert "learned by webhook" in done.log
    (delivery,) = service.control.deliveries()
    assert delivery["status"] == "delivered"


@pytest.mark.rule("delivery-order")
@pytest.mark.parametrize("mode", MODES)
def test_check_whose_delivery_came_early(run_with_inbox, service, inbox, mode):
    """Before the task began, and before its DAG run did, as far as `after` reaches."""
    monitor = service.monitor(webhook=inbox.webhook("early"))
    check = service.check(monitor)
    done = run_with_inbox(CHECK.format(more=f"monitor_id={monitor!r}, {AGO}, {mode}"))
    assert waited(done)["id"] == check


@pytest.mark.rule("delivery-retries")
@pytest.mark.parametrize("mode", MODES)
def test_lost_delivery_is_caught_by_looking(run_with_inbox, service, inbox, mode):
    """The monitor reports here; this delivery never comes. The slow look at the service finds the check."""
    monitor = service.monitor(webhook={**inbox.webhook("lost"), "events": ["monitor.page"]})
    service.control.configure(check_seconds=2)
    done = run_with_inbox(
        f"WebDataRunMonitorOperator(task_id='run', monitor_id={monitor!r}) >> "
        + CHECK.format(more=f"monitor_id={monitor!r}, safety_poll=1, {mode}")
    )
    assert waited(done)["id"] == done.xcom["run.return_value"]["id"]
    assert "learned by polling" in done.log


@pytest.mark.parametrize("mode", [POKE, RESCHEDULE])
def test_the_service_is_asked_seldom(run_with_inbox, service, inbox, mode):
    """At first, in the end, and every `safety_poll`: not with every look into the inbox, of which there are a dozen."""
    monitor = service.monitor(webhook=inbox.webhook("quiet"))
    service.control.clear_requests()
    done = run_with_inbox(
        CHECK.format(more=f"monitor_id={monitor!r}, timeout=6, {mode}").replace(
            "poke_interval=0.2", "poke_interval=0.5"
        )
    )
    assert done.state("wait") == "failed"
    looks = service.control.requests(f"/v2/monitor/{monitor}/checks", method="GET")
    assert 2 <= len(looks) <= 5


@pytest.mark.parametrize("mode", [POKE, DEFER])
def test_mapped(run_with_inbox, service, inbox, mode):
    """One sensor for each of several monitors."""
    monitors = [
        service.monitor(webhook=inbox.webhook(f"map-{number}"), name=f"m{number}") for number in range(2)
    ]
    checks = [service.check(monitor) for monitor in monitors]
    done = run_with_inbox(
        f"WebDataMonitorCheckSensor.partial(task_id='wait', poke_interval=0.2, {AGO}, {mode})"
        f".expand(monitor_id={monitors!r})"
    )
    assert [done.xcom[f"wait[{number}].return_value"]["id"] for number in range(2)] == checks


@pytest.mark.parametrize("mode", MODES)
def test_nobody_can_report(run_dag, service, mode):
    """Without an address or a secret no delivery can come: said at once, without a retry."""
    monitor = service.monitor()
    done = run_dag(CHECK.format(more=f"monitor_id={monitor!r}, retries=2, {mode}"))
    assert done.run["tasks"]["wait"] == {"state": "failed", "try_number": 1}, done.log[-3000:]
    assert "webhook_secret" in done.log


def body(event: str = "crawl.completed", job: str = "job-1", **more: Any) -> dict[str, Any]:
    return {"success": True, "type": event, "id": job, "webhookId": f"{event}-{job}", "data": [], **more}


CHECK_BODY = body("monitor.check.completed", "check-1", data=[{"monitorId": MONITOR, "checkId": "check-1"}])
LARGE = body(job="large", data=[{"markdown": "x" * 40_000}])

# What is in the inbox (body, key), what the sensor waits for, and the job id of the delivery that it returns.
FITS = {
    "any": ([(body(), None)], "", "job-1"),
    "the oldest": ([(body(job="a"), None), (body(job="b"), None)], "", "a"),
    "key": ([(body(job="a"), "one"), (body(job="b"), "two")], "key='two'", "b"),
    "event": ([(body("crawl.page", "a"), "k"), (body("crawl.completed", "b"), "k")], "events='crawl.completed'", "b"),
    "event without its operation": ([(body("completed", "a"), "k")], "events=['crawl.completed']", "a"),
    "job": ([(body(job="a"), "k"), (body(job="b"), "k")], "job_id='b'", "b"),
    "monitor": ([(body(), None), (CHECK_BODY, "k")], f"monitor_id={MONITOR!r}", "check-1"),
    "all of them": (
        [(body(job="a"), "k"), (CHECK_BODY, "other"), ({**CHECK_BODY, "webhookId": "w"}, "k")],
        f"key='k', monitor_id={MONITOR!r}, job_id='check-1', events=['check.completed']",
        "check-1",
    ),
    "large": ([(LARGE, None)], "", "large"),
}  # fmt: skip


@pytest.mark.rule("event-names")
@pytest.mark.parametrize(
    ("mode", "deliveries", "given", "job"),
    [
        *(pytest.param("deferrable=True", *fit, id=f"defer-{name}") for name, fit in FITS.items()),
        # What fits is decided in one place; a worker that pokes reads the inbox by itself.
        *(
            pytest.param("deferrable=False", *FITS[name], id=f"poke-{name}")
            for name in ("all of them", "large")
        ),
    ],
)
def test_delivery_that_fits(run_with_inbox, inbox, mode, deliveries, given, job):
    for payload, key in deliveries:
        inbox.deliver(payload, key)
    done = run_with_inbox(ANY.format(more=", ".join(filter(None, [AGO, mode, given]))))
    found = waited(done)
    payload, key = next((p, k) for p, k in reversed(deliveries) if p["id"] == job)
    assert found == {
        "delivery_id": found["delivery_id"],
        "event": payload["type"],
        "key": key,
        "job_id": job,
        "monitor_id": MONITOR if payload["data"] and "monitorId" in payload["data"][0] else None,
        "success": True,
        "received_at": found["received_at"],
        "payload": payload,
    }


@pytest.mark.parametrize("mode", MODES)
def test_delivery_during_the_wait(run_with_inbox, inbox, mode):
    """One from before the DAG run does not count."""
    inbox.deliver(body(job="before"))

    def deliver():
        assert inbox.read.wait(PATIENCE)
        # Let the wait get as far as it goes.
        time.sleep(3)
        inbox.deliver(body(job="during"))

    during = threading.Thread(target=deliver)
    during.start()
    done = run_with_inbox(ANY.format(more=mode))
    during.join()
    assert waited(done)["job_id"] == "during"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("soft", "state"), [("", "failed"), (", soft_fail=True", "skipped")])
def test_timeout(run_with_inbox, inbox, mode, soft, state):
    done = run_with_inbox(ANY.format(more=f"{mode}, timeout=1, retries=2, key='never'{soft}"))
    assert done.run["tasks"]["wait"] == {"state": state, "try_number": 1}, done.log[-3000:]


@pytest.mark.parametrize("mode", MODES)
def test_no_secret(run_dag, mode):
    """Without a secret the inbox has nothing for this connection."""
    done = run_dag(ANY.format(more=f"{mode}, retries=2"))
    assert done.run["tasks"]["wait"] == {"state": "failed", "try_number": 1}, done.log[-3000:]
    assert "is not set, so that its deliveries cannot be read" in done.log


@pytest.mark.parametrize("mode", MODES)
def test_template_that_renders_to_nothing(run_with_inbox, inbox, mode):
    """Is as if it had not been given."""
    inbox.deliver(body(job="a"), "k")
    done = run_with_inbox(ANY.format(more=f"key='{{{{ none }}}}', job_id='{{{{ \"a\" }}}}', {AGO}, {mode}"))
    assert waited(done)["key"] == "k"
