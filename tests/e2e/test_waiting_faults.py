# SPDX-License-Identifier: Apache-2.0
"""Components that are killed while tasks wait, and many tasks that wait for the same check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import httpx
import pytest

from tests.e2e.conftest import CROWD, DATABASES, WEBHOOK_SECRET, known_monitors, on
from tests.e2e.killed_triggerer import KilledTriggerer
from tests.e2e.outside import InboxTable, Monitors, Sender, body_of, new_key
from tests.e2e.run import Run
from tests.support.service import CHECK_COMPLETED, SECRET_HEADER
from tests.support.stack import Stack
from tests.support.waiting import wait_until
from webdata_sandbox.control import SandboxControl


@on(*DATABASES)
def test_literal_arguments_take_no_worker(stack: Stack, crowd: Run) -> None:
    assert {(task["pid"], task["hostname"]) for task in crowd.tasks()} == {(None, "")}
    pool = stack.api.call("GET", "/pools/default_pool")
    assert (pool["running_slots"], pool["queued_slots"], pool["deferred_slots"]) == (0, 0, CROWD)


@on(*DATABASES)
def test_triggerer_killed_while_tasks_wait(
    stack: Stack, inbox: InboxTable, crowd: Run, killed_triggerer: KilledTriggerer
) -> None:
    assert killed_triggerer.while_dead == ["deferred", "deferred"]
    killed_triggerer.by_webhook.resumed_once("crawl.completed, received at")
    killed_triggerer.by_polling.resumed_once(" (reported by ")
    assert killed_triggerer.by_polling.xcom("wait")["id"] == killed_triggerer.polled_check
    assert len(inbox.rows(correlation_key=killed_triggerer.key)) == 1
    assert Counter(crowd.states().values()) == {"deferred": CROWD}


@on(*DATABASES)
def test_api_server_killed_while_it_stores_a_delivery(
    stack: Stack,
    sandbox: SandboxControl,
    start: Callable[..., Run],
    monitors: Monitors,
    sender: Sender,
    inbox: InboxTable,
    crowd: Run,
) -> None:
    key = new_key()
    monitor = monitors.create("held up", key=key)
    run = start("e2e_check", {"monitor": monitor})
    run.wait_for("wait", "deferred")
    monitors.wait_until_watched(monitor)

    with inbox.locked():
        check = monitors.start(monitor)
        # No request is answered while nothing can be stored: neither the service's nor ours.
        with pytest.raises(httpx.ReadTimeout):
            sender.send(key, body_of("unanswered"), {SECRET_HEADER: WEBHOOK_SECRET}, timeout=0.3)
        inbox.wait_until_waited_for()
        stack.kill("api-server")
    assert inbox.rows(correlation_key=key) == []
    # The second attempt reaches no server, the third the new one.
    sandbox.advance(60)
    stack.launch("api-server")
    stack.wait_until_healthy()
    # At the first request it imports what it reads connections with, for which no delivery waits.
    assert wait_until(lambda: sender.send(new_key(), b"{}", {}).status_code == 401)
    assert run.states() == {"wait": "deferred"}
    sandbox.advance(300)

    attempts = monitors.deliveries(check)[CHECK_COMPLETED]["attempts"]
    statuses = [attempt["statusCode"] for attempt in attempts]
    # 503: the server gave the lock up before it was killed.
    assert statuses[0] in (None, 503)
    assert statuses[1:] == [None, 200]
    log = run.resumed_once(" (reported by ")
    assert run.xcom("wait")["id"] == check
    assert "does not respond" in log, log
    assert "retries continue until" in log, log
    assert [row["event"] for row in inbox.rows(correlation_key=key)] == [CHECK_COMPLETED]
    assert Counter(crowd.states().values()) == {"deferred": CROWD}


@on(*DATABASES)
def test_a_crowd_asks_little_and_resumes_once(
    stack: Stack, control: SandboxControl, monitors: Monitors, crowd: Run
) -> None:
    monitor = known_monitors(stack)["crowd"]
    assert len(control.requests(f"/v2/monitor/{monitor}")) < 10
    control.clear_requests()
    check = monitors.run(monitor)

    assert crowd.wait_until_ended() == "success"

    assert {task["try_number"] for task in crowd.tasks()} == {1}
    logs = [log.read_text() for log in (stack.home / "logs" / "dag_id=e2e_crowd").rglob("*.log")]
    fired = [line for log in logs for line in log.splitlines() if "Trigger fired event" in line]
    resumed = [line for log in logs for line in log.splitlines() if f"Check {check} of monitor" in line]
    assert len(resumed) == CROWD
    # Not twice; see `Run.resumed_once`.
    assert len(fired) <= CROWD
    assert all("reported by webhook" in line for line in resumed)
    # Each task fetches its result; the wait itself requested the check for all of them together.
    assert len(control.requests(f"/v2/monitor/{monitor}")) < CROWD + 10
