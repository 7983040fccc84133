# SPDX-License-Identifier: Apache-2.0
"""Operators that wait for a check, against the sandbox over HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from airflow_provider_webdata.operators.monitor import (
    WebDataCreateMonitorOperator,
    WebDataRunMonitorOperator,
    WebDataUpdateMonitorOperator,
)
from airflow_provider_webdata.runs import wait_run
from tests.support import direct
from tests.support.airflow_versions import NEEDS_MEMORY
from tests.support.dag_runner import Airflow, Outcome, connection, dag_runner
from tests.support.direct import StateStore
from tests.support.service import NEVER, hourly
from tests.support.waiting import wait_until
from webdata_sandbox.server import SandboxServer

TARGETS = [{"type": "scrape", "urls": ["https://example.com/"]}]


def show_page(sandbox: SandboxServer) -> None:
    sandbox.control.set_page("https://example.com/", "<p>one euro</p>")


def runs(sandbox: SandboxServer) -> list[int]:
    """Return the statuses of the requests that start a check."""
    return [r["status"] for r in sandbox.control.requests(method="POST") if r["path"].endswith("/run")]


# In a real Airflow: one DAG, in which each task that meets trouble has a sandbox.

STORED = """
from airflow.models.connection import Connection as StoredConnection
from airflow.utils.session import create_session
from sqlalchemy import delete

with create_session() as session:
    session.execute(delete(StoredConnection).where(StoredConnection.conn_id == "webdata_stored"))
    session.add(StoredConnection.from_json({connection!r}, conn_id="webdata_stored"))

class Dying(WebDataRunMonitorOperator):
    '''The worker dies when the check is started and before the wait begins.'''
    left = [1]

    def _new_run(self, context):
        run = super()._new_run(context)
        real = run.wait_for_check

        def once(*args):
            if self.left:
                self.left.clear()
                raise RuntimeError("the worker dies here")
            return real(*args)

        run.wait_for_check = once
        return run
"""
TASKS = f"""
def run(name, operator=WebDataRunMonitorOperator, conn_id=None, **more):
    conn_id = conn_id or name
    WebDataCreateMonitorOperator(
        task_id=f"keep_{{name}}", webdata_conn_id=conn_id, name=name, schedule={NEVER!r}, targets=TARGETS,
    ) >> operator(
        task_id=name, webdata_conn_id=conn_id, monitor_name=name, wait_for_completion=True,
        retry_delay=datetime.timedelta(0), **{{"poll_interval": 1, **more}},
    )

for name, mode in (("defer", True), ("poll", False)):
    run(name, conn_id="webdata_stored", include_pages=True, deferrable=mode)
run("dies", Dying, retries=1, deferrable=True)
run("limited_defer", deferrable=True)
run("limited_poll", deferrable=False)
run("failed", retries=2, deferrable=True)
run("late", poll_interval=1, wait_timeout=0.5, retries=2, deferrable=True)
"""
SANDBOXES = ("dies", "limited_defer", "limited_poll", "failed", "late")


class Done(NamedTuple):
    outcome: Outcome
    sandbox: SandboxServer
    sandboxes: dict[str, SandboxServer]


@pytest.fixture(scope="module")
def done(airflow: Airflow) -> Iterator[Done]:
    sandboxes = {name: SandboxServer() for name in SANDBOXES}
    with SandboxServer(check_seconds=1) as sandbox:
        for server in sandboxes.values():
            server.start()
        for server in (sandbox, *sandboxes.values()):
            show_page(server)
        for name in ("limited_defer", "limited_poll"):
            sandboxes[name].control.add_fault(
                "status",
                path="/v2/monitor/[^/]+/checks/.+",
                status=429 if name == "limited_poll" else 503,
                headers={"Retry-After": "1"},
            )
        sandboxes["failed"].control.add_fault("fail_check")
        sandboxes["late"].control.configure(check_seconds=3600)
        environ = {
            f"AIRFLOW_CONN_{name.upper()}": connection(server, retry_budget=0)
            for name, server in sandboxes.items()
        }
        before = STORED.format(connection=connection(sandbox))
        yield Done(dag_runner(airflow, sandbox)(TASKS, before, environ=environ), sandbox, sandboxes)
        for server in sandboxes.values():
            server.stop()


@pytest.mark.parametrize("name", ["defer", "poll"])
@pytest.mark.says("XCom `monitor_id` has the id")
def test_run_and_wait(done: Done, name: str) -> None:
    """The check is returned as it is in the end, with the pages; the ids are there before.

    The connection is in the database, as `airflow dags test` finds one that was added in the UI.
    """
    outcome, sandbox, _ = done
    assert outcome.state(name) == "success", outcome.log_of(name)
    check = outcome.xcom[f"{name}.return_value"]
    assert check["status"] == "completed"
    assert [page["status"] for page in check["pages"]] == ["new"]
    assert outcome.xcom[f"{name}.check_id"] == check["id"]
    assert outcome.xcom[f"{name}.monitor_id"] == outcome.xcom[f"keep_{name}.return_value"]["id"]
    assert runs(sandbox) == [200] * 2


@NEEDS_MEMORY
@pytest.mark.rule("monitor-run-twice")
def test_crash_between_run_and_wait(done: Done) -> None:
    """The retry waits for the check that the first try started; no second one is billed."""
    outcome, _, sandboxes = done
    assert "the worker dies here" in outcome.log_of("dies")
    assert outcome.ended("dies") == ("success", 2), outcome.log_of("dies")
    assert runs(sandboxes["dies"]) == [200]


@pytest.mark.parametrize("name", ["limited_defer", pytest.param("limited_poll", marks=NEEDS_MEMORY)])
def test_a_refusal_while_the_check_is_read(done: Done, name: str) -> None:
    """The task comes back; the check is not started again."""
    outcome, _, sandboxes = done
    assert outcome.ended(name) == ("success", 1), outcome.log_of(name)
    assert runs(sandboxes[name]) == [200]
    assert outcome.xcom[f"{name}.check_id"] == outcome.xcom[f"{name}.return_value"]["id"]


@pytest.mark.rule("check-failed")
def test_a_failed_check_is_final(done: Done) -> None:
    """The check is what it is, and another one costs."""
    assert done.outcome.ended("failed") == ("failed", 1), done.outcome.log_of("failed")
    assert runs(done.sandboxes["failed"]) == [200]


def test_a_timeout_is_final(done: Done) -> None:
    """It says what was not seen, and no retry begins anew."""
    outcome = done.outcome
    assert outcome.ended("late") == ("failed", 1), outcome.log_of("late")
    told = outcome.log_of("late").rpartition("WaitTimeoutError")[2]
    assert outcome.xcom["late.check_id"] in told
    assert "(WD-030)" in told


# In this process.

MODES = [pytest.param(False, id="poll"), pytest.param(True, id="defer")]


def run_and_wait(**arguments: Any) -> Any:
    given = {"wait_for_completion": True, "poll_interval": 1, "retries": 2, **arguments}
    return WebDataRunMonitorOperator(task_id="run", monitor_name="prices", **given)


def create(**arguments: Any) -> Any:
    given = {"name": "prices", "schedule": NEVER, "targets": TARGETS, "retries": 2, **arguments}
    return WebDataCreateMonitorOperator(task_id="keep", poll_interval=1, **given)


@pytest.fixture
def prices(here: SandboxServer) -> str:
    """A monitor that has no check yet."""
    show_page(here)
    return str(direct.run(create()).value["id"])


@pytest.mark.rule("monitor-run-conflict")
@pytest.mark.parametrize("deferrable", MODES)
def test_a_running_check_is_waited_for(here: SandboxServer, prices: str, deferrable: bool) -> None:
    """409 names it; nothing is started."""
    here.control.configure(check_seconds=600)
    first = direct.run(run_and_wait(wait_for_completion=False)).value
    here.control.settle()

    def finish() -> None:
        wait_until(lambda: 409 in runs(here), pause=0.05)
        here.control.advance(700)

    thread = threading.Thread(target=finish)
    thread.start()
    check = direct.run(run_and_wait(deferrable=deferrable)).value
    thread.join()
    assert (check["id"], check["status"]) == (first["id"], "completed")
    assert runs(here) == [200, 409]


@pytest.mark.rule("monitor-run-conflict")
def test_a_paused_monitor_fails_clearly(here: SandboxServer, prices: str) -> None:
    direct.run(WebDataUpdateMonitorOperator(task_id="pause", status="paused", monitor_name="prices"))
    outcome = direct.run(run_and_wait(), StateStore())
    assert outcome.ended == ("failed", 1)
    assert "may be paused: resume it before running it" in str(outcome.error)


@pytest.mark.rule("check-failed")
@pytest.mark.parametrize(
    ("deferrable", "choice", "state"), [(False, "fail", "failed"), (True, "accept", "success")]
)
def test_a_failed_check(here: SandboxServer, prices: str, deferrable: bool, choice: Any, state: str) -> None:
    here.control.add_fault("fail_check")
    outcome = direct.run(run_and_wait(deferrable=deferrable, on_failed=choice), StateStore())
    assert outcome.ended == (state, 1)
    assert runs(here) == [200]


class Dying(WebDataRunMonitorOperator):
    """An operator whose worker dies, late, when it begins to wait."""

    def _new_run(self, context: Any) -> Any:
        run = super()._new_run(context)

        def die(*arguments: Any, **more: Any) -> Any:
            if self.params["left"]:
                self.params["left"].clear()
                time.sleep(0.6)
                raise RuntimeError("the worker dies here")
            return real(*arguments, **more)

        real, run.wait_here = run.wait_here, die
        return run


def test_the_waiting_time_includes_earlier_attempts(
    here: SandboxServer, prices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try dies when the time is over: the second one polls again, and gives up."""
    monkeypatch.setattr(wait_run, "LEAST_WAIT_SECONDS", 1.0)
    here.control.configure(check_seconds=3600)
    task = Dying(
        task_id="run",
        monitor_name="prices",
        wait_for_completion=True,
        poll_interval=1,
        wait_timeout=0.5,
        retries=3,
        params={"left": [1]},
    )
    outcome = direct.run(task, StateStore())
    assert outcome.ended == ("failed", 2)
    assert "(0.5 s)" in str(outcome.error)
    assert runs(here) == [200]


@pytest.fixture
def meanwhile(here: SandboxServer) -> Iterator[Callable[[Callable[[], None]], None]]:
    """Do something once the checks of a monitor are looked for."""
    threads = []

    def start(act: Callable[[], None]) -> None:
        here.control.clear_requests()

        def watch() -> None:
            wait_until(lambda: here.control.requests("/v2/monitor/.*/checks", method="GET"), pause=0.05)
            act()

        threads.append(threading.Thread(target=watch))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("deferrable", MODES)
def test_create_and_wait_for_the_next_check(here: SandboxServer, meanwhile: Any, deferrable: bool) -> None:
    """The return value is the check; the monitor has its own key."""
    show_page(here)
    meanwhile(lambda: here.control.advance(3700))
    outcome = direct.run(
        create(schedule=hourly(), wait_for_completion=True, include_pages="changed", deferrable=deferrable)
    )
    assert outcome.state == "success", outcome.error
    check = outcome.value
    assert (check["status"], check["trigger"]) == ("completed", "scheduled")
    assert [page["status"] for page in check["pages"]] == ["new"]
    assert outcome.xcom["monitor"]["id"] == outcome.xcom["monitor_id"] == check["monitorId"]


@pytest.mark.rule("check-skipped-no-credits")
@pytest.mark.parametrize(
    ("deferrable", "choice", "state"), [(False, "wait", "success"), (True, "fail", "failed")]
)
def test_skipped_checks(
    here: SandboxServer, meanwhile: Any, deferrable: bool, choice: Any, state: str
) -> None:
    """Nothing was checked: wait for the next one, or fail, as the author says."""

    def skip_one() -> None:
        here.control.configure(credits=0)
        here.control.advance(3700)
        here.control.configure(credits=1000)
        here.control.advance(3700)

    show_page(here)
    meanwhile(skip_one)
    outcome = direct.run(
        create(schedule=hourly(), wait_for_completion=True, deferrable=deferrable, on_skipped=choice)
    )
    assert outcome.ended == (state, 1)
    if state == "success":
        assert outcome.value["status"] == "completed"
    else:
        assert "skipped_no_credits" in str(outcome.error)


@pytest.mark.rule("monitor-status")
def test_a_paused_monitor_is_not_waited_for(here: SandboxServer, prices: str) -> None:
    direct.run(WebDataUpdateMonitorOperator(task_id="pause", status="paused", monitor_name="prices"))
    outcome = direct.run(create(wait_for_completion=True), StateStore())
    assert outcome.ended == ("failed", 1)
    assert "is paused: resume it before waiting" in str(outcome.error)
