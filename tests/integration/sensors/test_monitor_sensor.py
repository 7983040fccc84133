# SPDX-License-Identifier: Apache-2.0
"""The monitor check sensor against the sandbox over HTTP: polling in a worker, and deferred.

DAG runs in a real Airflow show how each mode waits and how waits end; the rest needs no DAG run.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.states import answers
from airflow_provider_webdata.waiting import subjects
from tests.integration.sensors.conftest import AGO, MODES, PAGE, SHOP, Service, task
from tests.support import direct
from tests.support.service import CONNECTION_ID, connection_text
from tests.support.standing_check import standing_check

GOAL = "Tell me when the price changes."
POLLING = {"poke_interval": 0.2}


# In a real Airflow


def sensor(task_id: str, monitor: str, mode: str, **more: Any) -> str:
    return task("WebDataMonitorCheckSensor", task_id, monitor_id=monitor, **POLLING, **MODES[mode], **more)


@pytest.mark.parametrize(
    ("during", "later"), [("poke", "reschedule"), ("reschedule", "defer"), ("defer", "poke")]
)
def test_check_of_the_dag_run(run_dag, service, during, later):
    """By default a check counts that ended since the DAG run began, during the wait or before; older ones do not."""
    monitor = service.monitor()
    before = service.check(monitor)
    with standing_check(service.control):
        done = run_dag(
            f"{task('WebDataRunMonitorOperator', 'run', monitor_id=monitor)} "
            f">> {sensor('during', monitor, during)} >> {sensor('later', monitor, later)}"
        )
    for name in ("during", "later"):
        assert done.state(name) == "success", done.log_of(name)[-4000:]
        found = done.xcom[f"{name}.return_value"]
        assert found["id"] == done.xcom["run.return_value"]["id"] != before
        assert found["status"] == "completed"
        counts = {"totalPages": 2, "same": 2, "changed": 0, "new": 0, "removed": 0, "error": 0}
        assert found["summary"] == counts
        assert "pages" not in found


def test_waits_that_end_without_a_check(run_dag, service):
    """A timeout and a failed check are errors without a retry, and a timeout can be a skip."""
    idle, failing = service.monitor(), service.monitor()
    service.control.add_fault("fail_check")
    check = service.check(failing)
    quick = {"timeout": 1, "retries": 2}
    tasks = {
        "poke": sensor("poke", idle, "poke", **quick),
        "reschedule": sensor("reschedule", idle, "reschedule", **quick),
        "soft_reschedule": sensor("soft_reschedule", idle, "reschedule", soft_fail=True, **quick),
        "defer": sensor("defer", idle, "defer", **quick),
        "soft_defer": sensor("soft_defer", idle, "defer", soft_fail=True, **quick),
        "failing": sensor("failing", failing, "defer", after=AGO, retries=2),
    }
    done = run_dag("\n".join(tasks.values()))
    for name in tasks:
        state = "skipped" if name.startswith("soft") else "failed"
        assert done.ended(name) == (state, 1), done.log_of(name)[-3000:]
    assert f"check {check} of monitor {failing}" in done.log_of("failing")


@pytest.mark.rule("retry-after")
def test_rate_limited_while_the_pages_are_fetched(run_dag, service):
    """The task returns at the time that the service names, and keeps its check."""
    tasks = {}
    for mode, more in (("reschedule", {"soft_fail": True}), ("defer", {"never_fail": True})):
        monitor = service.monitor()
        service.check(monitor)
        limit(service, monitor)
        tasks[mode] = sensor(mode, monitor, mode, after=AGO, include_pages=True, **more)
    done = run_dag("\n".join(tasks.values()), retry_budget=0)
    for name in tasks:
        assert done.ended(name) == ("success", 1), done.log_of(name)[-3000:]
        assert len(done.xcom[f"{name}.return_value"]["pages"]) == 2
        words = "Still waiting" if name == "reschedule" else "Rescheduling the task to"
        assert words in done.log_of(name)


def limit(service: Service, monitor: str, times: int | None = 1) -> None:
    service.control.add_fault(
        "status",
        path=f"/v2/monitor/{monitor}/checks/.+",
        status=429,
        headers={"Retry-After": "1"},
        times=times,
    )


# In this process

Wait = Callable[..., direct.Outcome]


@pytest.fixture
def wait(service: Service, monkeypatch: pytest.MonkeyPatch, no_worker_lingers: None) -> Wait:
    """Run a sensor to its end."""
    monkeypatch.setenv(
        f"AIRFLOW_CONN_{CONNECTION_ID.upper()}", connection_text(service.sandbox.url, retry_budget=0)
    )

    def run(monitor: str, mode: str, **more: Any) -> direct.Outcome:
        arguments: dict[str, Any] = {"after": AGO, "retries": 2, **POLLING, **MODES[mode], **more}
        return direct.run(WebDataMonitorCheckSensor(task_id="wait", monitor_id=monitor, **arguments))

    return run


def test_named_check(wait, service):
    monitor = service.monitor()
    first, second = service.check(monitor), service.check(monitor)
    assert first != second
    for mode in MODES:
        assert wait(monitor, mode, check_id=f"{{{{ {second!r} }}}}").value["id"] == second


# How the first of two checks ends, the mode, the choice, the state of the task, and the check that it returns.
OUTCOMES: list[tuple[str, str, dict[str, str], str, str | None]] = [
    ("failed", "poke", {}, "failed", None),
    ("failed", "poke", {"on_failed": "wait"}, "success", "second"),
    ("partial", "poke", {"on_partial": "fail"}, "failed", None),
    ("failed", "defer", {}, "failed", None),
    ("failed", "defer", {"on_failed": "wait"}, "success", "second"),
    ("partial", "defer", {}, "success", "first"),
]


@pytest.mark.rule("check-partial", "check-failed")
def test_check_that_failed_or_has_page_errors(wait, service):
    monitors = {"failed": service.monitor(), "partial": service.monitor()}
    service.control.add_fault("fail_check")
    checks = {("failed", "first"): service.check(monitors["failed"])}
    service.control.set_page(SHOP[1], status=404, html="<p>gone</p>", error="SCRAPE_TIMEOUT")
    checks["partial", "first"] = service.check(monitors["partial"])
    service.control.set_page(SHOP[1], "<p>back</p>")
    for how, monitor in monitors.items():
        checks[how, "second"] = service.check(monitor)

    for how, mode, choice, state, which in OUTCOMES:
        done = wait(monitors[how], mode, **choice)
        assert done.ended == (state, 1), (how, mode, choice)
        if which:
            assert done.value["id"] == checks[how, which], (how, mode, choice)
            lacks = [{"kind": "pages_failed", "number": 1, "of": 2}] if which == "first" else None
            assert done.xcom.get("incomplete") == lacks, (how, mode, choice)
        else:
            assert f"check {checks[how, 'first']} of monitor {monitors[how]}" in str(done.error)


@pytest.mark.rule("check-credits")
def test_the_credits_of_a_check(wait, service):
    """Each sensor that returns a check, or fails because of it, reports its credits under the check's id."""
    monitor = service.monitor()
    check = service.check(monitor)
    for mode in ("poke", "defer"):
        credits = wait(monitor, mode, check_id=check).xcom["credits"]
        assert (credits["by_operation"], credits["jobs"]) == ({"monitor": 2}, {f"monitor/{check}": 2})
    skipped = wait(monitor, "defer", only_if_meaningful=True, otherwise="skip")
    assert (skipped.state, skipped.xcom["credits"]["used"]) == ("skipped", 2)
    service.control.add_fault("fail_check")
    failed = wait(monitor, "poke", check_id=service.check(monitor))
    assert (failed.state, failed.xcom["credits"]["used"]) == ("failed", 0)


CHANGED, MEANINGFUL = {"only_if_changed": True}, {"only_if_meaningful": True}
SKIP = {"otherwise": "skip"}

# Checks finish in this order: first, same, weather (changed), price (changed, meaningful).
# The check that `after` names, the arguments, and the check that the task returns; None: it is skipped.
INTERESTING: list[tuple[str, dict[str, Any], str | None]] = [
    ("first", {**CHANGED, **SKIP}, None),
    ("same", {**MEANINGFUL, **SKIP}, None),
    # A check that does not count is passed over; the next one that counts ends the wait.
    ("first", CHANGED, "weather"),
    ("first", MEANINGFUL, "price"),
]


@pytest.mark.rule("check-page-status", "check-judgment")
@pytest.mark.parametrize("mode", ["poke", "defer"])
def test_only_if_changed_or_meaningful(wait, service, mode):
    monitor = service.monitor([PAGE], goal=GOAL)
    pages = {
        "first": "<p>one euro</p>",
        "same": "<p>one euro</p>",
        "weather": "<p>one euro, fine weather</p>",
        "price": "<p>the price is two euro</p>",
    }
    checks = {}
    for name, html in pages.items():
        service.control.set_page(PAGE, html)
        checks[name] = service.check(monitor)
        service.control.advance(1)
    ends = {check["id"]: check["finishedAt"] for check in service.control.state()["checks"]}
    for after, more, which in INTERESTING:
        done = wait(monitor, mode, after=ends[checks[after]], **more)
        assert done.state == ("success" if which else "skipped"), (after, more)
        assert (done.value or {}).get("id") == (checks[which] if which else None), (after, more)


PAGES: list[tuple[Any, set[str]]] = [
    (True, {"same", "changed", "new"}),
    ("changed", {"changed", "new"}),
    (["changed"], {"changed"}),
    (["same", "new"], {"same", "new"}),
]


@pytest.mark.rule("check-get", "check-judgment", "check-diff")
def test_pages_with_diffs_and_judgments(wait, service):
    """The pages come from all result pages of the answer, which takes more than one request."""
    urls = [f"https://many.example/{number}" for number in range(120)]
    monitor = service.monitor(urls[:100], goal=GOAL)
    service.check(monitor)
    service.control.set_page(urls[0], "<p>the price is two euro</p>")
    stored = service.call("GET", f"/v2/monitor/{monitor}")["data"]["targets"][0]
    service.call(
        "PATCH", f"/v2/monitor/{monitor}", {"targets": [stored, {"type": "scrape", "urls": urls[100:]}]}
    )
    for url in urls[100:]:
        service.control.set_page(url, "<p>new</p>")
    second = service.check(monitor)
    counts = {"same": 99, "changed": 1, "new": 20}
    for include, statuses in PAGES:
        found = wait(monitor, "poke", check_id=second, include_pages=include).value
        assert {page["status"] for page in found["pages"]} == statuses, include
        assert len(found["pages"]) == sum(counts[status] for status in statuses), include
        assert len({page["id"] for page in found["pages"]}) == len(found["pages"]), include
        if "changed" in statuses:
            (changed,) = [page for page in found["pages"] if page["status"] == "changed"]
            assert "two euro" in changed["diff"]["text"]
            assert changed["judgment"]["meaningful"] is True
        assert "next" not in found


@pytest.mark.parametrize(
    ("mode", "kind"), [("poke", "drop"), ("reschedule", "truncate"), ("defer", "garbage")]
)
def test_trouble_that_passes(wait, service, mode, kind):
    """A short outage of the service does not end a long wait."""
    monitor = service.monitor()
    check = service.check(monitor)
    path = f"/v2/monitor/{monitor}/checks$"
    service.control.add_fault(kind, path=path, method="GET", times=2)
    done = wait(monitor, mode)
    assert (done.ended, done.value["id"]) == (("success", 1), check)
    assert len(service.control.requests(path, method="GET")) == 3


def test_pages_that_cannot_be_read_in_a_poke(wait, service):
    """The next poke finds the check again."""
    monitor = service.monitor()
    check = service.check(monitor)
    service.control.add_fault("status", path=f"/v2/monitor/{monitor}/checks/.+", status=500)
    done = wait(monitor, "poke", include_pages=True, timeout=20)
    assert (done.ended, done.value["id"], len(done.value["pages"])) == (("success", 1), check, 2)


@pytest.mark.rule("late-reads")
@pytest.mark.parametrize("mode", ["poke", "defer"])
def test_late_replica(wait, service, mode):
    """The replica that is read does not have the check yet that was just started."""
    monitor = service.monitor()
    service.control.set_quirks(["late-replica=2"])
    check = service.call("POST", f"/v2/monitor/{monitor}/run")["id"]
    found = wait(monitor, mode, check_id=check, include_pages=True).value
    assert (found["id"], len(found["pages"])) == (check, 2)


@pytest.mark.rule("monitor-get")
@pytest.mark.parametrize("mode", ["poke", "defer"])
def test_unknown_monitor(wait, monkeypatch, mode):
    """A missing monitor ends the wait."""
    monkeypatch.setattr(subjects, "MISSING_LIMIT", 0.5)
    done = wait("0b9c1f4e-0000-4000-8000-000000000001", mode, retries=0)
    assert done.state == "failed"
    assert "monitor not found" in str(done.error).lower()


@pytest.mark.rule("check-get")
@pytest.mark.parametrize("mode", MODES)
def test_unknown_check(wait, service, monkeypatch, mode):
    """A missing check ends the wait."""
    monkeypatch.setattr(subjects, "MISSING_LIMIT", 0.5)
    done = wait(service.monitor(), mode, check_id="0b9c1f4e-0000-4000-8000-000000000001", timeout=30)
    assert done.ended == ("failed", 1)
    assert "check not found" in str(done.error).lower()


@pytest.mark.rule("status-401")
@pytest.mark.parametrize("mode", ["poke", "defer"])
def test_a_key_that_stays_wrong(wait, service, monkeypatch, mode):
    monkeypatch.setattr(answers, "OUTAGE_SECONDS", 0.2)
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", connection_text(service.sandbox.url, "no"))
    done = wait(service.monitor(), mode, webdata_conn_id="other", retries=1)
    assert done.ended == ("failed", 2)
    assert "Unauthorized" in str(done.error)


@pytest.mark.rule("retry-after")
@pytest.mark.parametrize(
    ("mode", "more"),
    [("poke", {}), ("defer", {}), ("defer", {"soft_fail": True})],
    ids=["poke", "defer", "defer-soft"],
)
def test_rate_limit_without_a_dag_run(wait, service, mode, more):
    monitor = service.monitor()
    service.check(monitor)
    limit(service, monitor)
    done = wait(monitor, mode, include_pages=True, **more)
    assert (done.ended, len(done.value["pages"])) == (("success", 1), 2)
    assert done.reschedules == 0


def test_rate_limit_long_after_another(wait, service):
    """A reschedule before the wait, which may take days, does not count."""
    monitor = service.monitor()
    service.check(monitor)
    limit(service, monitor)
    sensor = WebDataMonitorCheckSensor(
        task_id="wait", monitor_id=monitor, after=AGO, include_pages=True, **MODES["defer"]
    )
    ti = direct.TaskInstance(first_reschedule=datetime.now(timezone.utc) - timedelta(hours=7))
    assert len(direct.execute(sensor, direct.context_of(ti))["pages"]) == 2


def test_rate_limit_without_end(wait, service, caplog):
    """Returns are bounded, also where each of them is another deferral."""
    monitor = service.monitor()
    service.check(monitor)
    limit(service, monitor, times=None)
    done = wait(monitor, "defer", include_pages=True, rate_limit_timeout=3, retries=0)
    assert done.state == "failed"
    assert any(line.endswith("would exceed rate_limit_timeout=3 s") for line in caplog.messages)
