"""Operators that wait for a check, in a real Airflow, against the sandbox over HTTP."""

from __future__ import annotations

import threading
import time

import pytest

from airflow_provider_webdata.tasks.retry_policy import HAS_RETRY_POLICIES
from tests.support.dag_runner import HEAD, connection
from tests.support.service import NEVER, hourly

POKE = pytest.param("deferrable=False", id="worker")
DEFER = pytest.param("deferrable=True", id="defer")
MODES = [POKE, DEFER]
CREATE = """
WebDataCreateMonitorOperator(task_id="keep", name="prices", schedule={schedule!r}, targets=TARGETS, {more})
"""
RUN = """
WebDataRunMonitorOperator(task_id="run", monitor_name="prices", wait_for_completion=True, poll_interval=1, {more})
"""


def create(more: str = "", schedule: dict | None = None) -> str:
    return CREATE.format(more=more, schedule=schedule or NEVER)


def run(more: str = "") -> str:
    return RUN.format(more=more)


def runs(sandbox) -> list[int]:
    """Return the statuses of the requests that start a check."""
    return [r["status"] for r in sandbox.control.requests(method="POST") if r["path"].endswith("/run")]


@pytest.fixture(autouse=True)
def page(sandbox) -> None:
    sandbox.control.set_page("https://example.com/", "<p>one euro</p>")


@pytest.fixture
def prices(run_dag, sandbox) -> str:
    """A monitor that has no check yet and whose checks take two seconds."""
    monitor = run_dag(create()).xcom["keep.return_value"]["id"]
    sandbox.control.configure(check_seconds=2)
    sandbox.control.clear_requests()
    return monitor


@pytest.mark.parametrize("mode", MODES)
def test_a_connection_in_the_database(airflow, sandbox, prices, mode):
    """As with `airflow dags test`, for whoever has added it in the UI."""
    body = run(f"webdata_conn_id='webdata_stored', {mode}").strip()
    stored = f"""
from airflow.models.connection import Connection as StoredConnection
from airflow.utils.session import create_session
from sqlalchemy import delete

with create_session() as session:
    session.execute(delete(StoredConnection).where(StoredConnection.conn_id == "webdata_stored"))
    session.add(StoredConnection.from_json({connection(sandbox)!r}, conn_id="webdata_stored"))

with DAG("DAG_ID", schedule=None) as dag:
    {body}
"""
    done = airflow.run(HEAD + stored)
    assert done.state("run") == "success", done.log[-3000:]


@pytest.mark.parametrize("mode", MODES)
def test_run_and_wait(run_dag, sandbox, prices, mode):
    """Returned as it is in the end, with the pages; the ids are there before."""
    done = run_dag(run(f"include_pages=True, {mode}"))
    assert done.state("run") == "success", done.log[-3000:]
    check = done.xcom["run.return_value"]
    assert check["status"] == "completed"
    assert [page["status"] for page in check["pages"]] == ["new"]
    assert done.xcom["run.check_id"] == check["id"]
    assert done.xcom["run.monitor_id"] == prices
    assert runs(sandbox) == [200]


@pytest.mark.rule("monitor-run-conflict")
@pytest.mark.parametrize("mode", MODES)
def test_a_check_that_runs_already_is_waited_for(run_dag, sandbox, prices, mode):
    """409 names it; nothing is started."""
    sandbox.control.configure(check_seconds=600)

    def finish():
        while 409 not in runs(sandbox):
            time.sleep(0.05)
        sandbox.control.advance(700)

    threading.Thread(target=finish, daemon=True).start()
    done = run_dag(
        "WebDataRunMonitorOperator(task_id='first', monitor_name='prices') >> task(settle)() >> "
        + run(mode).strip(),
        f"""
        from airflow_provider_webdata.sandbox.control import SandboxControl
        settle = SandboxControl({sandbox.url!r}).settle
        """,
    )
    assert done.state("run") == "success", done.log[-3000:]
    assert done.xcom["run.return_value"]["id"] == done.xcom["first.return_value"]["id"]
    assert done.xcom["run.return_value"]["status"] == "completed"
    assert runs(sandbox) == [200, 409]


@pytest.mark.rule("monitor-run-conflict")
def test_a_paused_monitor_fails_clearly(run_dag, sandbox, prices):
    done = run_dag(
        "WebDataUpdateMonitorOperator(task_id='pause', status='paused', monitor_name='prices') >> "
        + run("retries=2").strip()
    )
    assert done.run["tasks"]["run"] == {"state": "failed", "try_number": 1}
    assert "may be paused: resume it before running it" in done.log


@pytest.mark.rule("check-failed")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("choice", "state"), [("", "failed"), ("on_failed='accept'", "success")])
def test_failed_check(run_dag, sandbox, prices, mode, choice, state):
    """Fails without a retry: the check is what it is, and another one costs."""
    sandbox.control.add_fault("fail_check")
    done = run_dag(run(f"retries=2, {mode}" + (f", {choice}" if choice else "")))
    assert done.run["tasks"]["run"] == {"state": state, "try_number": 1}, done.log[-3000:]
    assert runs(sandbox) == [200]


# The worker dies when the check is started and before the wait begins.
DIES = """
from airflow_provider_webdata.tasks.monitors import check_operator

real, left = check_operator.WaitsForCheck.wait_for_check, [1]

class Dying:
    def wait_for_check(self, *args, **kwargs):
        if left[0]:
            left[0] -= 1
            raise RuntimeError("the worker dies here")
        return real(self, *args, **kwargs)

class Run(Dying, WebDataRunMonitorOperator):
    pass

class Create(Dying, WebDataCreateMonitorOperator):
    pass
"""


@pytest.mark.rule("monitor-run-twice")
@pytest.mark.parametrize("mode", MODES)
def test_crash_between_run_and_wait(run_dag, sandbox, prices, mode):
    """The retry waits for the check that the first try started; no second one is paid for."""
    done = run_dag(
        run(f"retries=1, retry_delay=datetime.timedelta(0), {mode}").replace(
            "WebDataRunMonitorOperator", "Run"
        ),
        DIES,
    )
    assert "the worker dies here" in done.log
    assert done.run["tasks"]["run"] == {"state": "success", "try_number": 2}, done.log[-3000:]
    assert runs(sandbox) == [200]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("mode", MODES)
def test_asked_to_wait_while_the_check_is_fetched(run_dag, sandbox, prices, mode, status):
    """The task comes back; the check is not started again."""
    path = f"/v2/monitor/{prices}/checks/.+"
    sandbox.control.add_fault("status", path=path, status=status, headers={"Retry-After": "1"})
    done = run_dag(run(mode), retry_budget=0)
    assert done.run["tasks"]["run"] == {"state": "success", "try_number": 1}, done.log[-3000:]
    assert runs(sandbox) == [200]
    assert done.xcom["run.check_id"] == done.xcom["run.return_value"]["id"]


@pytest.mark.parametrize("mode", MODES)
def test_timeout(run_dag, sandbox, prices, mode):
    """Says what was not seen, and no retry begins anew."""
    sandbox.control.configure(check_seconds=3600)
    done = run_dag(run(f"wait_timeout=1, retries=2, {mode}"))
    assert done.run["tasks"]["run"] == {"state": "failed", "try_number": 1}, done.log[-3000:]
    told = done.log.rpartition("WaitTimeoutError")[2]
    assert done.xcom["run.check_id"] in told
    assert "(WD-030)" in told


SLOW_DEATH = """
import time

left = [1]

class Run(WebDataRunMonitorOperator):
    def _poll_until(self, *args, **kwargs):
        if left[0]:
            left[0] -= 1
            time.sleep(3)
            raise RuntimeError("the worker dies here")
        return super()._poll_until(*args, **kwargs)
"""


@pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="Airflow 3.2 keeps no state of a task")
def test_time_runs_on_over_retries(run_dag, sandbox, prices):
    """The first try dies when the time is over: the second one looks once more, and gives up."""
    sandbox.control.configure(check_seconds=3600)
    more = "wait_timeout=2, retries=3, retry_delay=datetime.timedelta(0), deferrable=False"
    done = run_dag(run(more).replace("WebDataRunMonitorOperator", "Run"), SLOW_DEATH)
    assert "the worker dies here" in done.log
    assert done.run["tasks"]["run"] == {"state": "failed", "try_number": 2}, done.log[-3000:]
    assert "(wait_timeout=2 s)" in done.log
    assert runs(sandbox) == [200]


HELPER = """
import threading
from airflow_provider_webdata.sandbox.control import SandboxControl

control = SandboxControl({url!r})

def advance_when_waiting(seconds, times=1):
    '''Move the sandbox's time on, once somebody looks at the checks.'''
    def watch():
        import time
        for _ in range(times):
            control.clear_requests()
            while not control.requests("/v2/monitor/.*/checks", method="GET"):
                time.sleep(0.05)
            control.advance(seconds)
    threading.Thread(target=watch, daemon=True).start()

advance_when_waiting({seconds}, {times})
"""


@pytest.mark.parametrize("mode", MODES)
def test_create_and_wait_for_the_next_check(run_dag, sandbox, mode):
    """The return value is the check; the monitor is under its own key."""
    more = f"wait_for_completion=True, poll_interval=1, include_pages='changed', {mode}"
    done = run_dag(create(more, hourly()), HELPER.format(url=sandbox.url, seconds=3700, times=1))
    assert done.state("keep") == "success", done.log[-3000:]
    check = done.xcom["keep.return_value"]
    assert (check["status"], check["trigger"]) == ("completed", "scheduled")
    assert [page["status"] for page in check["pages"]] == ["new"]
    assert done.xcom["keep.monitor"]["id"] == done.xcom["keep.monitor_id"] == check["monitorId"]


@pytest.mark.rule("check-skipped-no-credits")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("choice", "state"), [("", "success"), ("on_skipped='fail'", "failed")])
def test_skipped_checks(run_dag, sandbox, mode, choice, state):
    """Nothing was looked at: wait for the next one, or fail, as the author says."""
    more = f"wait_for_completion=True, poll_interval=1, retries=1, {mode}" + (f", {choice}" if choice else "")
    steps = [
        "control.configure(credits=0)",
        "control.advance(3700)",
        "control.configure(credits=1000)",
        "control.advance(3700)",
    ]
    helper = HELPER.format(url=sandbox.url, seconds=3700, times=1).replace(
        "control.advance(seconds)", "; ".join(steps)
    )
    done = run_dag(create(more, hourly()), helper)
    assert done.run["tasks"]["keep"] == {"state": state, "try_number": 1}, done.log[-3000:]
    if state == "success":
        assert done.xcom["keep.return_value"]["status"] == "completed"
    else:
        assert "skipped_no_credits" in done.log


@pytest.mark.rule("monitor-status")
def test_paused_monitor_is_not_waited_for(run_dag, sandbox, prices):
    run_dag("WebDataUpdateMonitorOperator(task_id='pause', status='paused', monitor_name='prices')")
    done = run_dag(create("wait_for_completion=True, retries=2"))
    assert done.run["tasks"]["keep"] == {"state": "failed", "try_number": 1}
    assert "is paused: resume it before waiting" in done.log
