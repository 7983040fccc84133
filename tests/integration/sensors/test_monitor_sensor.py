"""The sensor for checks in a real Airflow, against the sandbox over HTTP: polling, by the worker and deferred."""

from __future__ import annotations

import json
from typing import Any

import pytest

PAGE = "https://watched.example/"
SHOP = [PAGE, "https://watched.example/two"]
GOAL = "Tell me when the price changes."

SENSOR = "WebDataMonitorCheckSensor(task_id='wait', poke_interval=0.2, poll_interval=1, {more})"
POKE = pytest.param("deferrable=False", id="poke")
RESCHEDULE = pytest.param("deferrable=False, mode='reschedule'", id="reschedule")
DEFER = pytest.param("deferrable=True", id="defer")
MODES = [POKE, RESCHEDULE, DEFER]
RUN = "WebDataRunMonitorOperator(task_id='run', monitor_id={monitor!r})"
AGO = "after='2020-01-01T00:00:00Z'"


def sensor(monitor: str, more: str) -> str:
    return SENSOR.format(more=f"monitor_id={monitor!r}, {more}")


def waited(outcome: Any) -> dict[str, Any]:
    assert outcome.state("wait") == "success", outcome.log[-4000:]
    return outcome.xcom["wait.return_value"]


@pytest.mark.parametrize("mode", MODES)
def test_check_that_ends_during_the_wait(run_dag, service, mode):
    """The check that the DAG started before is waited for: it ends two seconds later."""
    service.control.configure(check_seconds=2)
    monitor = service.monitor()
    done = run_dag(f"{RUN.format(monitor=monitor)} >> {sensor(monitor, mode)}")
    found = waited(done)
    assert found["id"] == done.xcom["run.return_value"]["id"]
    assert found["status"] == "completed"
    assert found["summary"] == {"totalPages": 2, "same": 0, "changed": 0, "new": 2, "removed": 0, "error": 0}
    assert "pages" not in found


@pytest.mark.parametrize("mode", MODES)
def test_check_that_ended_before_the_task_began(run_dag, service, mode):
    """By default all that ended since the DAG run began counts; what ended before it does not."""
    monitor = service.monitor()
    before = service.check(monitor)
    done = run_dag(
        f"{RUN.format(monitor=monitor)} >> WebDataListMonitorsOperator(task_id='other') >> {sensor(monitor, mode)}"
    )
    assert waited(done)["id"] == done.xcom["run.return_value"]["id"] != before


@pytest.mark.parametrize("mode", MODES)
def test_named_check(run_dag, service, mode):
    monitor = service.monitor()
    first, second = service.check(monitor), service.check(monitor)
    assert first != second
    done = run_dag(sensor(monitor, f'check_id="{{{{ {first!r} }}}}", {mode}'))
    assert waited(done)["id"] == first


# What a check that did not go well leads to: (how it ends, choice, state of the task, id that it returns).
OUTCOMES = [
    ("failed", "on_failed='fail'", "failed", None),
    ("failed", "on_failed='accept'", "success", "first"),
    ("failed", "on_failed='wait'", "success", "second"),
    ("failed", "", "failed", None),
    ("partial", "", "success", "first"),
    ("partial", "on_partial='fail'", "failed", None),
    ("partial", "on_partial='wait'", "success", "second"),
]  # fmt: skip


@pytest.mark.rule("check-partial", "check-failed")
@pytest.mark.parametrize(
    ("mode", "how", "choice", "state", "which"),
    [
        *(("deferrable=False", *outcome) for outcome in OUTCOMES),
        # What an outcome means is decided in one place for all modes; each way to end is tried deferred too.
        *(("deferrable=True", *OUTCOMES[at]) for at in (0, 2, 4)),
    ],
)
def test_check_that_did_not_go_well(run_dag, service, mode, how, choice, state, which):
    monitor = service.monitor()
    if how == "failed":
        service.control.add_fault("fail_check")
    else:
        service.control.set_page(SHOP[1], status=404, html="<p>gone</p>", error="SCRAPE_TIMEOUT")
    checks = {"first": service.check(monitor)}
    service.control.set_page(SHOP[1], "<p>back</p>")
    checks["second"] = service.check(monitor)
    done = run_dag(sensor(monitor, f"{AGO}, retries=2, {mode}" + (f", {choice}" if choice else "")))
    assert done.run["tasks"]["wait"] == {"state": state, "try_number": 1}, done.log[-3000:]
    if which:
        assert waited(done)["id"] == checks[which]
    else:
        assert f"check {checks['first']} of monitor {monitor}" in done.log


@pytest.mark.rule("check-page-status", "check-judgment")
@pytest.mark.parametrize("mode", [POKE, DEFER])
@pytest.mark.parametrize(
    ("choice", "second_html", "state", "which"),
    [
        ("only_if_changed=True", "<p>one euro</p>", "skipped", None),
        ("only_if_changed=True", "<p>two euro</p>", "success", "second"),
        ("only_if_meaningful=True", "<p>one euro, fine weather</p>", "skipped", None),
        ("only_if_meaningful=True", "<p>the price is two euro</p>", "success", "second"),
    ],
)
def test_only_what_is_of_interest(run_dag, service, mode, choice, second_html, state, which):
    """A check without (meaningful) changes skips this task and what is downstream."""
    monitor = service.monitor([PAGE], goal=GOAL)
    service.check(monitor)
    after = service.control.state()["checks"][0]["finishedAt"]
    service.control.set_page(PAGE, second_html)
    second = service.check(monitor)
    more = f"after={after!r}, {choice}, otherwise='skip', {mode}"
    done = run_dag(
        f"{sensor(monitor, more)} >> WebDataListMonitorsOperator(task_id='downstream')",
    )
    assert done.state("wait") == state, done.log[-3000:]
    assert done.state("downstream") == state
    if which:
        assert waited(done)["id"] == second


@pytest.mark.parametrize(
    ("mode", "choice"),
    [("deferrable=False", "only_if_changed=True"), ("deferrable=True", "only_if_meaningful=True")],
)
def test_goes_on_until_something_changes(run_dag, service, mode, choice):
    """A check that is not of interest is passed over; the next one that is ends the wait."""
    monitor = service.monitor([PAGE], goal=GOAL)
    service.check(monitor)
    after = service.control.state()["checks"][0]["finishedAt"]
    service.check(monitor)
    service.control.set_page(PAGE, "<p>the price is two euro</p>")
    third = service.check(monitor)
    service.check(monitor)
    assert waited(run_dag(sensor(monitor, f"after={after!r}, {choice}, {mode}")))["id"] == third


PAGES = [
    ("True", {"same", "changed", "new"}),
    ("'changed'", {"changed", "new"}),
    ("['changed']", {"changed"}),
    ("['same', 'new']", {"same", "new"}),
]


@pytest.mark.rule("check-get", "check-judgment", "check-diff")
@pytest.mark.parametrize(("include", "statuses"), PAGES)
def test_pages_with_diffs_and_judgments(run_dag, service, include, statuses):
    """From all result pages of the answer: more than one request's worth."""
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
    done = run_dag(sensor(monitor, f"check_id={second!r}, include_pages={include}, deferrable=False"))
    found = waited(done)
    assert {page["status"] for page in found["pages"]} == statuses
    counts = {"same": 99, "changed": 1, "new": 20}
    assert len(found["pages"]) == sum(counts[status] for status in statuses)
    assert len({page["id"] for page in found["pages"]}) == len(found["pages"])
    if "changed" in statuses:
        (changed,) = [page for page in found["pages"] if page["status"] == "changed"]
        assert "two euro" in changed["diff"]["text"]
        assert changed["judgment"]["meaningful"] is True
    assert "next" not in found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("soft", "state"), [("", "failed"), (", soft_fail=True", "skipped")])
def test_timeout(run_dag, service, mode, soft, state):
    """Time that is over is an error that no retry helps, or a skip."""
    monitor = service.monitor()
    done = run_dag(sensor(monitor, f"{mode}, timeout=1, retries=2{soft}"))
    assert done.run["tasks"]["wait"] == {"state": state, "try_number": 1}, done.log[-3000:]


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        pytest.param("deferrable=False", "drop", id="poke-drop"),
        pytest.param("deferrable=False, mode='reschedule'", "truncate", id="reschedule-truncate"),
        pytest.param("deferrable=True", "garbage", id="defer-garbage"),
        pytest.param("deferrable=True", "status", id="defer-status"),
    ],
)
def test_trouble_that_passes(run_dag, service, mode, kind):
    """A wait of hours does not end because the service has a bad minute."""
    service.control.configure(check_seconds=3)
    monitor = service.monitor()
    how = {"status": 503} if kind == "status" else {}
    service.control.add_fault(kind, path=f"/v2/monitor/{monitor}/checks", method="GET", times=2, **how)
    check = service.call("POST", f"/v2/monitor/{monitor}/run")["id"]
    done = run_dag(sensor(monitor, f"{AGO}, {mode}"), retry_budget=0)
    assert waited(done)["id"] == check
    assert done.run["tasks"]["wait"]["try_number"] == 1


@pytest.mark.rule("late-reads")
@pytest.mark.parametrize("mode", MODES)
def test_late_replica(run_dag, service, mode):
    """The check that was just started is not there yet where it is read."""
    monitor = service.monitor()
    service.control.set_quirks(["late-replica=2"])
    more = 'check_id=\'{{ ti.xcom_pull("run", key="check_id") }}\', include_pages=True, ' + mode
    done = run_dag(f"{RUN.format(monitor=monitor)} >> {sensor(monitor, more)}")
    assert len(waited(done)["pages"]) == 2


@pytest.mark.rule("monitor-get")
@pytest.mark.parametrize("mode", MODES)
def test_unknown_monitor(run_dag, service, mode):
    """Nobody waits a week for what is not there."""
    done = run_dag(sensor("0b9c1f4e-0000-4000-8000-000000000001", f"{AGO}, {mode}"))
    assert done.state("wait") == "failed"
    assert "Monitor not found" in done.log or "no such monitor" in done.log.lower()


@pytest.mark.rule("status-401")
@pytest.mark.parametrize("mode", MODES)
def test_wrong_key_fails_at_once(run_dag, service, sandbox, mode):
    monitor = service.monitor()
    environ = {
        "AIRFLOW_CONN_OTHER": json.dumps({"conn_type": "webdata", "host": sandbox.url, "password": "no"})
    }
    done = run_dag(sensor(monitor, f"webdata_conn_id='other', {mode}, retries=2"), environ=environ)
    assert done.run["tasks"]["wait"] == {"state": "failed", "try_number": 1}
    assert "Unauthorized" in done.log


@pytest.mark.rule("retry-after")
@pytest.mark.parametrize(
    ("mode", "soft"),
    [
        pytest.param("deferrable=False", "", id="poke"),
        pytest.param("deferrable=False, mode='reschedule'", ", soft_fail=True", id="reschedule-soft"),
        pytest.param("deferrable=True", "", id="defer"),
        pytest.param("deferrable=True", ", soft_fail=True", id="defer-soft"),
        pytest.param("deferrable=True", ", never_fail=True", id="defer-never"),
    ],
)
def test_rate_limited_while_the_pages_are_fetched(run_dag, service, mode, soft):
    """The task comes back when the service said, and what it waited for is not lost."""
    monitor = service.monitor()
    service.check(monitor)
    path = f"/v2/monitor/{monitor}/checks/.+"
    service.control.add_fault("status", path=path, status=429, headers={"Retry-After": "1"})
    done = run_dag(sensor(monitor, f"{AGO}, include_pages=True, {mode}{soft}"), retry_budget=0)
    assert len(waited(done)["pages"]) == 2
    assert done.run["tasks"]["wait"]["try_number"] == 1
    assert "The task is rescheduled to" in done.log


def test_rate_limited_without_end(run_dag, service):
    """Coming back is bounded, also where each return is another deferral."""
    monitor = service.monitor()
    service.check(monitor)
    path = f"/v2/monitor/{monitor}/checks/.+"
    service.control.add_fault("status", path=path, status=429, headers={"Retry-After": "1"}, times=None)
    done = run_dag(
        sensor(monitor, f"{AGO}, include_pages=True, deferrable=True, rate_limit_timeout=3"), retry_budget=0
    )
    assert done.state("wait") == "failed"
    assert "would exceed rate_limit_timeout=3 s" in done.log
