# SPDX-License-Identifier: Apache-2.0
"""Faults of Airflow's triggerer, shown by its own supervisor and runner in this process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

from airflow.executors.workloads import RunTrigger
from airflow.jobs import triggerer_job_runner as triggerer
from airflow.jobs.job import Job
from airflow.models.trigger import Trigger
from airflow.sdk.execution_time.comms import GetXComSequenceSlice
from airflow.triggers.base import BaseTrigger, TriggerEvent
from pydantic import ValidationError

from tests.support.triggerer import supervisor_of
from tests.support.upstream import Report
from tests.support.waiting import until


class Recorder(triggerer.TriggerRunnerSupervisor):
    """Keeps what it would send to the process that runs triggers."""

    def send_msg(self, msg: Any, *_: Any, **__: Any) -> None:  # type: ignore[override]
        self.sent = set(msg.to_cancel)


class Cancels(BaseTrigger):
    """A trigger that cancels its work slowly.

    :ivar events: what happened to `on_kill`.
    """

    events: list[str]

    def __init__(self) -> None:
        super().__init__()

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "cancels", {}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        type(self).events.append("runs")
        await asyncio.Event().wait()
        yield TriggerEvent(None)

    async def on_kill(self) -> None:
        type(self).events.append("on_kill")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            type(self).events.append("on_kill is canceled")
            raise


async def test_on_kill_is_canceled() -> None:
    """Each answer to the runner lists a trigger that is being canceled again."""
    report = Report("on_kill_canceled")
    report.skip_before()
    Cancels.events = []
    runner = triggerer.TriggerRunner()
    runner.trigger_cache["cancels"] = Cancels
    runner.to_create.append(
        RunTrigger(id=1, ti=None, classpath="cancels", encrypted_kwargs=Trigger.encrypt_kwargs({}))
    )
    await runner.create_triggers()
    while not Cancels.events:
        await asyncio.sleep(0)
    supervisor = supervisor_of(Job(job_type="TriggererJob", id=1), Recorder)
    supervisor.running_triggers.add(1)
    supervisor.cancelling_triggers.add(1)
    task, found = runner.triggers[1]["task"], []
    for seen in ("on_kill", "on_kill is canceled"):
        supervisor._handle_request(triggerer.messages.TriggerStateChanges(), triggerer.log, 0)
        runner.to_cancel.extend(supervisor.sent)
        await runner.cancel_triggers()
        # An Airflow without the fault never cancels.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(until(lambda seen=seen: seen in Cancels.events), 20)
        found.append(seen in Cancels.events)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert found[0], "on_kill was not called"
    report.check(found == [True, True])


def test_templates_of_triggers_are_not_answered() -> None:
    """The supervisor cannot read the request for an XCom of a task, and so never answers it."""
    slice_of = dict.fromkeys(("start", "stop", "step"))
    request = GetXComSequenceSlice(
        key="return_value", dag_id="dag", run_id="run", task_id="first", include_prior_dates=False, **slice_of
    )
    try:
        triggerer.TriggerRunnerSupervisor.decoder.validate_python(request.model_dump())
        is_unknown = False
    except ValidationError as error:
        is_unknown = "union_tag_invalid" in str(error)
    Report("templated_start_from_trigger").check(is_unknown)


def test_the_supervisor_reads_no_log_while_it_sends() -> None:
    """It sends until the runner has read all, which the runner cannot while its log is full."""
    ours, runners = socket.socketpair()
    with ours, runners:
        # Nothing is read at the other end, so this ends the call if it waits for that.
        ours.settimeout(0.1)
        supervisor = supervisor_of(Job(job_type="TriggererJob", id=1), stdin=ours)
        triggers = [
            RunTrigger(id=number, ti=None, classpath="a.b", encrypted_kwargs="x" * 1000)
            for number in range(2000)
        ]
        message = triggerer.messages.TriggerStateSync(to_create=triggers, to_cancel=set())
        try:
            supervisor.send_msg(message, request_id=1)
            waits = False
        except TimeoutError:
            waits = True
    Report("triggerer_log_deadlock").check(waits)
