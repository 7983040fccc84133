# SPDX-License-Identifier: Apache-2.0
"""Failures of a task, and the scheduler's reaction.

The tasks of all tests start together, because the scheduler needs half a minute to miss a worker that cannot report.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from tests.e2e.conftest import HAS_AGENTS
from tests.e2e.holding_proxy import HoldingProxy
from tests.e2e.run import Run
from tests.support.errors import StackError
from tests.support.runs import follow
from tests.support.service import JOB_PATHS
from tests.support.stack import Stack
from tests.support.waiting import wait_until
from webdata_sandbox.control import SandboxControl

HOUR = 3600
RIVER, DOCS = "https://river.example/", "https://docs.pipeline.example/"
FLOODS = f"{RIVER}floods"


def test_bad_field_fails_at_once_and_unseen_by_the_service(
    stack: Stack, start: Callable[..., Run], sandbox: SandboxControl
) -> None:
    run = start("e2e_bad_field")

    assert run.wait_until_ended() == "failed"

    task = run.task("search")
    assert (task["state"], task["try_number"], task["max_tries"]) == ("failed", 1, 3)
    assert sandbox.requests("/v2/search") == []
    for word in ("limit", "100", "101"):
        assert word in run.log(task)
    # As the demo reports it.
    with pytest.raises(StackError, match=r"e2e_bad_field\.search failed on try 1") as failure:
        follow(stack.api, "e2e_bad_field", run.id, print)
    assert "limit" in str(failure.value)


@dataclass(frozen=True)
class Victim:
    """A task that is killed while it waits for an answer.

    :ivar with_worker: its supervisor dies, too, as with the machine. Otherwise the supervisor reports the death.
    """

    dag_id: str
    task_id: str
    hold: str
    conf: dict[str, Any]
    with_worker: bool = False


AGENT_PROMPT = f'CALL read_page {{"url": "{FLOODS}"}}\nCALL list_site {{"url": "{RIVER}"}}'
VICTIMS = {
    "monitor": Victim("e2e_killed_worker", "keep_monitor", "/v2/monitor", {"monitor": "reported"}),
    "monitor, worker": Victim(
        "e2e_killed_worker", "keep_monitor", "/v2/monitor", {"monitor": "not reported"}, with_worker=True
    ),
    # The inbox names the jobs by the keys of their webhooks.
    "crawl": Victim("e2e_killed_crawl", "wait", JOB_PATHS["crawl"], {"url": RIVER}),
    "batch_scrape": Victim("e2e_killed_batch_scrape", "wait", JOB_PATHS["batch_scrape"], {}),
    "crawl, worker": Victim("e2e_killed_crawl", "wait", JOB_PATHS["crawl"], {"url": DOCS}, with_worker=True),
}
if HAS_AGENTS:
    VICTIMS["agent"] = Victim("e2e_agent", "agent", "/v2/map", {"prompt": AGENT_PROMPT})


@dataclass(frozen=True)
class Killed:
    """The run of a killed task, and what stands between the task and the service."""

    run: Run
    proxy: HoldingProxy


@dataclass(frozen=True)
class Limited:
    """The run of a task that met the service's rate limit, and the task while it waits."""

    run: Run
    began: float
    waiting: dict[str, Any]


PAUSE = 30


@pytest.fixture(scope="module")
def limited(start: Callable[..., Run], control: SandboxControl) -> Limited:
    control.clear_requests()
    control.add_fault("status", path="/v2/search", status=429, headers={"Retry-After": str(PAUSE)})
    began = time.monotonic()
    run = start("e2e_rate_limit")
    waiting = run.wait_for("search", "up_for_reschedule", "failed", "success")
    return Limited(run, began, waiting)


@pytest.fixture(scope="module")
def killed(
    stack: Stack, start: Callable[..., Run], control: SandboxControl, limited: Limited
) -> Iterator[dict[str, Killed]]:
    if HAS_AGENTS:
        stack.api.add_connection(
            {"connection_id": "pydanticai_default", "conn_type": "pydanticai", "password": "none"}
        )
    # Jobs stand still until the clock is moved forward.
    control.configure(page_seconds=HOUR, step_seconds=HOUR)
    with contextlib.ExitStack() as opened:
        found = {}
        for name, victim in VICTIMS.items():
            proxy = opened.enter_context(HoldingProxy(stack.sandbox_url, hold=("POST", victim.hold)))
            connection = f"webdata_held_{name.replace(', ', '_')}"
            stack.api.add_connection(stack.connection(connection, None, proxy.url))
            conf = {**victim.conf, "connection": connection}
            found[name] = Killed(start(victim.dag_id, conf), proxy)
        alive = dict(VICTIMS)

        def all_killed() -> bool:
            """They are killed in the order in which the scheduler runs them."""
            for name, victim in [*alive.items()]:
                if found[name].proxy.answered.is_set():
                    del alive[name]
                    _kill(found[name], victim, control)
            return not alive

        assert wait_until(all_killed), {name: found[name].run.states() for name in alive}
        yield found
    control.configure(page_seconds=0, step_seconds=0)


def _kill(killed: Killed, victim: Victim, control: SandboxControl) -> None:
    # The service's webhook about the job may arrive before the death.
    control.settle()
    process = psutil.Process(killed.run.task(victim.task_id)["pid"])
    for doomed in [process.parent(), process] if victim.with_worker else [process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            doomed.kill()
    killed.proxy.release()


def test_rate_limit_gives_the_worker_back(stack: Stack, control: SandboxControl, limited: Limited) -> None:
    waiting = limited.waiting
    assert waiting["state"] == "up_for_reschedule", limited.run.log(waiting)
    assert wait_until(lambda: not psutil.pid_exists(waiting["pid"]))
    pool = stack.api.call("GET", "/pools/default_pool")
    assert (pool["running_slots"], pool["queued_slots"]) == (0, 0)
    assert len(control.requests("/v2/search")) == 1


@pytest.mark.skipif(not HAS_AGENTS, reason="Common AI needs Python 3.11")
def test_an_agent_whose_worker_died_pays_for_no_page_again(
    control: SandboxControl, killed: dict[str, Killed]
) -> None:
    agent = killed["agent"]
    task = agent.run.end("agent")

    assert task["try_number"] == 2
    assert "412 cm" in agent.run.xcom("agent")
    assert [source["url"] for source in agent.run.xcom("agent", "sources")][:1] == [FLOODS]
    paths = [request["path"] for request in control.requests("/v2/(scrape|map)", "POST")]
    # The answer to the second call never arrived: only this one is made again.
    assert paths == ["/v2/scrape", "/v2/map", "/v2/map"]


@pytest.mark.parametrize("name", [name for name in VICTIMS if "monitor" in name])
def test_one_monitor_after_the_retry(control: SandboxControl, killed: dict[str, Killed], name: str) -> None:
    run = killed[name].run
    run.succeed()

    task = run.task("keep_monitor")
    assert task["try_number"] == 2
    monitor_name = VICTIMS[name].conf["monitor"]
    found = [monitor for monitor in control.state()["monitors"] if monitor["name"] == monitor_name]
    assert [monitor["id"] for monitor in found] == [run.xcom("keep_monitor")["id"]]
    # The first attempt's.
    assert len(killed[name].proxy.held) == 1


JOBS = [name for name, victim in VICTIMS.items() if victim.task_id == "wait"]


@pytest.fixture(scope="module")
def retried(control: SandboxControl, killed: dict[str, Killed]) -> None:
    """The second attempts wait for the jobs, which end only then."""
    for name in JOBS:
        task = killed[name].run.wait_for("wait", "deferred", "failed", "success")
        assert (task["state"], task["try_number"]) == ("deferred", 2), killed[name].run.log(task)
    for name in JOBS:
        job = job_of(killed[name])
        while not any(done["id"] == job for done in _ended(control, name.split(",")[0])):
            control.advance(HOUR)


def job_of(killed: Killed) -> str:
    """Return the id of the job. The service accepted one request to start it."""
    (accepted,) = [answer for answer in killed.proxy.held if answer.status_code == 200]
    return str(accepted.json()["id"])


def _ended(control: SandboxControl, kind: str) -> list[dict[str, Any]]:
    return [job for job in control.jobs(kind) if job["status"] == "completed"]


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.usefixtures("retried")
def test_one_job_after_the_retry_of_a_worker_that_died(killed: dict[str, Killed], name: str) -> None:
    killed[name].run.end("wait")
    assert killed[name].run.xcom("wait")["id"] == job_of(killed[name])


def test_rate_limit_comes_back_in_time(control: SandboxControl, limited: Limited) -> None:
    limited.run.succeed()
    assert time.monotonic() - limited.began >= PAUSE
    assert [request["status"] for request in control.requests("/v2/search")] == [429, 200]
    # The task has no retries, so that coming back cannot have cost one.
    assert limited.run.task("search")["max_tries"] == 0
