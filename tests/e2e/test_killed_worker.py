"""A worker that dies at the worst moment: the monitor exists, and its id was never stored."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import psutil
import pytest

from airflow_provider_webdata.sandbox.control import SandboxControl
from tests.e2e.conftest import API_KEY, Run
from tests.e2e.holding_proxy import HoldingProxy
from tests.support.stack import Stack
from tests.support.waiting import PATIENCE


def task_process(task: psutil.Process) -> list[psutil.Process]:
    """Out of memory, say: Airflow's supervisor of the task lives and reports the death."""
    return [task]


def worker_and_task(task: psutil.Process) -> list[psutil.Process]:
    """The machine is gone, say: nobody reports; the scheduler has to miss the heartbeats."""
    return [task.parent(), task]


@pytest.mark.parametrize("victims", [task_process, worker_and_task])
def test_one_monitor_after_the_retry(
    stack: Stack,
    sandbox: SandboxControl,
    victims: Callable[[psutil.Process], list[psutil.Process]],
) -> None:
    name = f"survives {victims.__name__}"
    with HoldingProxy(stack.sandbox_url, hold=("POST", "/v2/monitor")) as proxy:
        stack.api.add_connection(
            {
                "connection_id": "webdata_held",
                "conn_type": "webdata",
                "host": proxy.url,
                "password": API_KEY,
            }
        )
        run = Run(stack, "e2e_killed_worker", {"monitor": name})
        running = run.wait_for("keep_monitor", "running")
        assert proxy.answered.wait(PATIENCE), run.log(running)
        assert len(_named(sandbox, name)) == 1

        doomed = victims(psutil.Process(run.task("keep_monitor")["pid"]))
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        proxy.release()
        assert run.wait_until_ended() == "success", run.log(run.task("keep_monitor"))

    task = run.task("keep_monitor")
    assert task["try_number"] == 2
    (monitor,) = _named(sandbox, name)
    assert run.xcom("keep_monitor")["id"] == monitor["id"]
    posts = [request for request in sandbox.requests("/v2/monitor") if request["method"] == "POST"]
    assert len(posts) == 1


def _named(sandbox: SandboxControl, name: str) -> list[dict[str, object]]:
    return [monitor for monitor in sandbox.state()["monitors"] if monitor["name"] == name]
