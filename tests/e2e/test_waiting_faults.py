"""Components that are killed while tasks wait, and many tasks that wait at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from airflow_provider_webdata.sandbox.control import SandboxControl
from tests.e2e import conftest
from tests.e2e.conftest import CROWD, WEBHOOK_SECRET, Run, known_monitors
from tests.e2e.outside import InboxTable, Monitors, Sender, body_of, new_key
from tests.support.service import CHECK_COMPLETED, MONITOR_PAGE, SECRET_HEADER
from tests.support.stack import Stack
from tests.support.waiting import wait_until

DATABASES = conftest.DATABASES


def states(run: Run) -> dict[str, int]:
    return dict(Counter(task["state"] for task in run.tasks()))


@pytest.fixture(scope="module")
def crowd(stack: Stack) -> Iterator[Run]:
    """Tasks that wait, started before any test here and let go by the last one."""
    run = Run(stack, "e2e_crowd")
    assert wait_until(lambda: states(run) == {"deferred": CROWD}, pause=1.0), states(run)
    return run


def test_literal_arguments_take_no_worker(stack: Stack, crowd: Run) -> None:
    assert {(task["pid"], task["hostname"]) for task in crowd.tasks()} == {(None, "")}
    pool = stack.api.call("GET", "/pools/default_pool")
    assert (pool["running_slots"], pool["queued_slots"], pool["deferred_slots"]) == (0, 0, CROWD)


def test_triggerer_killed_while_tasks_wait(
    stack: Stack, monitors: Monitors, sender: Sender, inbox: InboxTable, crowd: Run
) -> None:
    key, polled = new_key(), monitors.make("polled", events=(MONITOR_PAGE,))
    by_webhook = Run(stack, "e2e_delivery_to_webdata_default", {"key": key})
    by_polling = Run(stack, "e2e_check_by_polling", {"monitor": polled})
    for run in (by_webhook, by_polling):
        run.wait_for("wait", "deferred")
    monitors.wait_until_watched(polled)

    stack.kill("triggerer")
    assert sender.deliver(key, body_of("crawl.completed")) == "stored"
    check = monitors.run(polled)
    assert [run.task("wait")["state"] for run in (by_webhook, by_polling)] == ["deferred", "deferred"]
    stack.launch("triggerer")

    by_webhook.resumed_once("crawl.completed, received at")
    by_polling.resumed_once("is over:")
    assert by_polling.xcom("wait")["id"] == check
    assert len(inbox.rows(correlation_key=key)) == 1
    assert states(crowd) == {"deferred": CROWD}


def test_api_server_killed_while_it_stores_a_delivery(
    stack: Stack, sandbox: SandboxControl, monitors: Monitors, sender: Sender, inbox: InboxTable, crowd: Run
) -> None:
    key = new_key()
    monitor = monitors.make("held up", key=key)
    run = Run(stack, "e2e_check_by_webhook", {"monitor": monitor})
    run.wait_for("wait", "deferred")
    monitors.wait_until_watched(monitor)

    with inbox.locked():
        check = monitors.start(monitor)
        # Nothing is answered while nothing can be stored: neither to the service, nor to us.
        with pytest.raises(httpx.ReadTimeout):
            sender.send(key, body_of("unanswered"), {SECRET_HEADER: WEBHOOK_SECRET}, timeout=0.3)
        inbox.wait_until_waited_for()
        stack.kill("api-server")
    assert inbox.rows(correlation_key=key) == []
    # The second attempt finds nobody, the third the new server.
    sandbox.advance(60)
    stack.launch("api-server")
    stack.wait_until_healthy()
    # At the first request it imports what it reads connections with, for which no delivery waits.
    assert wait_until(lambda: sender.send(new_key(), b"{}", {}).status_code == 401)
    assert run.task("wait")["state"] == "deferred"
    sandbox.advance(300)

    attempts = monitors.deliveries(check)[CHECK_COMPLETED]["attempts"]
    statuses = [attempt["statusCode"] for attempt in attempts]
    # 503: the server gave the lock up before it was killed.
    assert statuses[0] in (None, 503)
    assert statuses[1:] == [None, 200]
    log = run.resumed_once("is over:")
    assert run.xcom("wait")["id"] == check
    assert "does not answer" in log, log
    assert "retrying until it works" in log, log
    assert [row["event"] for row in inbox.rows(correlation_key=key)] == [CHECK_COMPLETED]
    assert states(crowd) == {"deferred": CROWD}


def test_a_crowd_asks_little_and_resumes_once(
    stack: Stack, sandbox: SandboxControl, monitors: Monitors, crowd: Run
) -> None:
    monitor = known_monitors(stack)["crowd"]
    assert len(sandbox.requests(f"/v2/monitor/{monitor}")) < 10
    sandbox.clear_requests()
    check = monitors.run(monitor)

    assert crowd.wait_until_ended() == "success"

    assert {task["try_number"] for task in crowd.tasks()} == {1}
    logs = [log.read_text() for log in (stack.home / "logs" / "dag_id=e2e_crowd").rglob("*.log")]
    told = [line for log in logs for line in log.splitlines() if "Trigger fired event" in line]
    resumed = [line for log in logs for line in log.splitlines() if f"Check {check} of monitor" in line]
    assert len(resumed) == CROWD
    # Not twice; see `Run.resumed_once`.
    assert len(told) <= CROWD
    assert all("learned by webhook" in line for line in resumed)
    # Each task fetches its result; the waiting itself asked about the check for all of them together.
    assert len(sandbox.requests(f"/v2/monitor/{monitor}")) < CROWD + 10
