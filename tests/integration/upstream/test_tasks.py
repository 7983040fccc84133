# SPDX-License-Identifier: Apache-2.0
"""Faults of Airflow that tasks, sensors, and their connections meet."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import time
import weakref
from collections.abc import Callable
from typing import Any

import pendulum
import pytest
from airflow._shared.secrets_masker import redact
from airflow.sdk.api.client import Client
from airflow.sdk.bases.sensor import BaseSensorOperator
from airflow.sdk.definitions.connection import Connection
from airflow.sdk.exceptions import AirflowException, AirflowSkipException, AirflowTaskTimeout
from airflow.sdk.execution_time import supervisor
from airflow.sdk.execution_time.timeout import timeout
from airflow.sdk.log import mask_secret
from airflow.timetables.trigger import CronPartitionTimetable
from structlog.testing import capture_logs

from tests.support.dag_runner import Outcome
from tests.support.fault_server import FaultServer, answer
from tests.support.upstream import Report

DAG = """
class Limited(BaseOperator):
    def used(self):
        return self.execution_timeout.total_seconds() - signal.getitimer(signal.ITIMER_REAL)[0]

    def execute(self, context):
        context["ti"].xcom_push("began", time.time() - self.used())
        self.defer(trigger=DateTimeTrigger(timezone.utcnow()), method_name="resume")

    def resume(self, context, event=None):
        began = context["ti"].xcom_pull(task_ids=self.task_id, key="began", map_indexes=-1)
        # Of the two clocks, the timer's may differ by its resolution.
        return {"used": self.used() + 0.01, "passed": time.time() - began}

@task
def number(of):
    return of

@task
def count(numbers):
    from airflow.sdk.execution_time import task_runner

    kind, requests = type(task_runner.SUPERVISOR_COMMS), []
    send = kind.send
    kind.send = lambda comms, msg: requests.append(msg) or send(comms, msg)
    try:
        assert list(numbers) == [0, 1, 2]
        one_by_one = len(requests)
        assert list(numbers[:]) == [0, 1, 2]
        return {"one_by_one": one_by_one, "together": len(requests) - one_by_one}
    finally:
        kind.send = send
"""
IMPORTS = """
import signal, time
from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import BaseOperator, timezone
"""
TASKS = """
Limited(task_id="limited", execution_timeout=datetime.timedelta(hours=1))
count(number.expand(of=[0, 1, 2]))
"""


def test_in_a_dag_run(run_dag: Callable[..., Outcome]) -> None:
    seen = run_dag(TASKS, IMPORTS + DAG).xcom
    limited, requests = seen["limited.return_value"], seen["count.return_value"]
    Report("timeout_starts_anew").check(limited["used"] < limited["passed"])
    assert requests["together"] == 1
    Report("lazy_sequence_requests").check(requests["one_by_one"] > 2)


def test_a_timeout_within_a_callback_of_an_event_loop() -> None:
    """The loop takes the error that the signal raises for the end of a connection, and goes on."""
    lost: list[BaseException | None] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        class Busy(asyncio.Protocol):
            def data_received(self, data: bytes) -> None:
                while True:
                    time.sleep(0.01)

            def connection_lost(self, error: Exception | None) -> None:
                lost.append(error)
                over.set_result(None)

        ours, theirs = socket.socketpair()
        with theirs:
            await loop.create_connection(Busy, sock=ours)
            theirs.send(b"data")
            await over

    before = signal.getsignal(signal.SIGALRM)
    try:
        with timeout(0.2):
            asyncio.run(main())
        swallowed = True
    except AirflowTaskTimeout:
        swallowed = False
    finally:
        signal.signal(signal.SIGALRM, before)
    Report("timeout_in_event_loop").check(swallowed and isinstance(lost[0], AirflowTaskTimeout))


class Misconfigured(BaseSensorOperator):
    def resumed(self, context: Any, event: Any) -> None:
        raise AirflowException("the key is invalid")

    def poke(self, context: Any) -> bool:
        raise AirflowException("the key is invalid")


def test_soft_fail_skips_every_error_of_a_deferred_sensor() -> None:
    """One that polls in a worker fails on the same error."""
    sensor = Misconfigured(task_id="wait", soft_fail=True)
    with pytest.raises(AirflowException) as polled:
        sensor.execute({})
    with pytest.raises(AirflowException) as resumed:
        sensor.resume_execution("resumed", {"event": 1}, {})
    kinds = [isinstance(one.value, AirflowSkipException) for one in (polled, resumed)]
    Report("soft_fail_hides_errors").check(kinds == [False, True])


def test_a_missing_xcom_is_logged_as_an_error() -> None:
    missing = answer(404, '{"detail": {"reason": "not_found", "message": "no XCom"}}')
    server = FaultServer([missing])
    with capture_logs() as logs:
        found = Client(base_url=f"{server.url}/", token="token").xcoms.get("dag", "run", "task", "key")
    assert found.value is None
    Report("missing_xcom_is_an_error").check(any(one["log_level"] == "error" for one in logs))


def test_a_secret_of_the_task_sdk_is_unknown_to_the_core() -> None:
    mask_secret("a-secret-of-the-sdk")
    Report("two_maskers").check(redact("a-secret-of-the-sdk") == "a-secret-of-the-sdk")


def test_partition_keys_are_in_utc() -> None:
    timetable = CronPartitionTimetable("0 0 * * *", timezone="Asia/Taipei")
    midnight = pendulum.datetime(2026, 1, 5, tz="Asia/Taipei").in_timezone("UTC")
    Report("partition_keys_in_utc").check(timetable._format_key(midnight) == "2026-01-04T16:00:00")


def test_the_extras_of_a_uri_are_a_mapping() -> None:
    connection = Connection(conn_id="uri", uri="webdata://key@example.com/?server=gateway")
    Report("uri_extras_as_mapping").check(isinstance(connection.extra, dict))


def test_the_in_process_server_is_collected() -> None:
    """A client uses its transport, and nothing else keeps the server."""
    api = supervisor.in_process_api_server()
    collected = weakref.ref(api)
    del api
    gc.collect()
    Report("execution_api_collected").check(collected() is None)
