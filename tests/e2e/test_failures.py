"""What goes wrong at a task, and what Airflow's scheduler makes of it."""

from __future__ import annotations

import time

import psutil

from airflow_provider_webdata.sandbox.control import SandboxControl
from tests.e2e.conftest import Run, asked_by_tasks
from tests.support.stack import Stack
from tests.support.waiting import wait_until


def test_bad_field_fails_at_once_and_unseen_by_the_service(stack: Stack, sandbox: SandboxControl) -> None:
    run = Run(stack, "e2e_bad_field")

    assert run.wait_until_ended() == "failed"

    task = run.task("search")
    assert (task["state"], task["try_number"], task["max_tries"]) == ("failed", 1, 3)
    assert asked_by_tasks(stack, sandbox) == []
    for word in ("limit", "100", "101"):
        assert word in run.log(task)


def test_rate_limit_gives_the_worker_back_and_comes_back_in_time(
    stack: Stack, sandbox: SandboxControl
) -> None:
    pause = 30
    sandbox.add_fault("status", path="/v2/search", status=429, headers={"Retry-After": str(pause)})
    asked = time.monotonic()
    run = Run(stack, "e2e_rate_limit")

    waiting = run.wait_for("search", "up_for_reschedule", "failed", "success")

    assert waiting["state"] == "up_for_reschedule", run.log(waiting)
    assert wait_until(lambda: not psutil.pid_exists(waiting["pid"]))
    pool = stack.api.call("GET", "/pools/default_pool")
    assert (pool["running_slots"], pool["queued_slots"]) == (0, 0)
    assert len(sandbox.requests("/v2/search")) == 1

    assert run.wait_until_ended() == "success"
    assert time.monotonic() - asked >= pause
    assert [request["status"] for request in sandbox.requests("/v2/search")] == [429, 200]
    # The task has no retries, so that coming back cannot have cost one.
    assert run.task("search")["max_tries"] == 0
