# SPDX-License-Identifier: Apache-2.0
"""The earliest time at which a task that left its worker comes back."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, TaskDeferred

from airflow_provider_webdata.api.errors import (
    CertificateRefusedError,
    RateLimitError,
    TransportError,
    UnknownHostError,
)
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from tests.support.certificates import self_signed
from tests.support.direct import TaskInstance, context_of, postponed
from tests.support.fault_server import FaultServer, Step, answer
from tests.support.ports import free_port
from tests.support.service import connection_text

JOB = "0b9c1f4e-0000-4000-8000-000000000001"
PROCESSING = {
    "success": False,
    "code": "SCRAPE_TIMEOUT",
    "error": "still working",
    "details": {"state": "processing_continues", "jobStatus": "running", "retryAfterSeconds": 1},
}
LIMITED = answer(429, '{"success": false, "error": "Rate limit"}', headers={"Retry-After": "1"})


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Step], None]]:
    """Return a function that starts a server with one answer. A worker lingers for up to 60 seconds."""
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "60")
    servers: list[FaultServer] = []

    def start(step: Step) -> None:
        servers.append(FaultServer([step]))
        text = connection_text(servers[-1].url, retry_budget=0)
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", text)

    yield start
    for server in servers:
        server.close()


def scrape() -> Any:
    return WebDataScrapeOperator(task_id="t", url="https://airship.example/").execute(
        context_of(TaskInstance())
    )


def poke() -> Any:
    sensor = WebDataJobSensor(
        task_id="t", kind="crawl", job_id=JOB, poke_interval=1, mode="reschedule", deferrable=False
    )
    return sensor.execute(context_of(TaskInstance()))


@pytest.mark.rule("retry-after")
@pytest.mark.parametrize(
    ("step", "act"),
    [
        (LIMITED, scrape),
        (answer(408, json.dumps(PROCESSING)), scrape),
        (answer(200, '{"success": true, "status": "scraping", "data": []}'), poke),
    ],
    ids=["rate limit", "document in process", "sensor"],
)
def test_a_rescheduled_task_outlasts_its_worker(
    serve: Callable[[Step], None], step: Step, act: Callable[[], Any]
) -> None:
    """Airflow fails a task that comes back before its first worker has reported its end."""
    serve(step)
    began = datetime.now(timezone.utc)
    with pytest.raises(AirflowRescheduleException) as later:
        act()
    assert later.value.reschedule_date >= began + timedelta(seconds=62)


def test_a_result_that_is_limited_is_resumed_after_its_worker(serve: Callable[[Step], None]) -> None:
    serve(LIMITED)
    began = datetime.now(timezone.utc)
    crawl = WebDataCrawlOperator(task_id="t", url="https://airship.example/", deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        crawl.execute_complete(
            context_of(TaskInstance()),
            {"status": "done", "job_id": JOB, "kind": "crawl", "job_status": "completed"},
        )
    assert deferred.value.trigger.when >= began.timestamp() + 62


def point_to(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(url, retry_budget=0))


@pytest.mark.parametrize(("reschedules", "again"), [(4, True), (5, False)])
def test_reschedules_are_counted_without_memory(
    serve: Callable[[Step], None], reschedules: int, again: bool
) -> None:
    """Airflow 3.2: nothing was started, so that the task may start anew."""
    serve(LIMITED)
    task = WebDataScrapeOperator(task_id="t", url="https://airship.example/")
    with pytest.raises(AirflowRescheduleException if again else RateLimitError):
        task.execute(context_of(TaskInstance(), None, task_reschedule_count=reschedules))


@pytest.mark.rule("transport")
def test_a_dead_service_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """For one hour without a retry, with growing pauses, as nothing was sent; then the error is the task's."""
    point_to(monkeypatch, f"http://127.0.0.1:{free_port()}")
    page = "https://airship.example/"
    task = WebDataScrapeOperator(task_id="t", url=page)
    now = datetime.now(timezone.utc)
    for minutes, least in ((0, 30), (5, 300), (40, 600)):
        with pytest.raises(AirflowRescheduleException) as later:
            task.execute(postponed(60 * minutes, 9) if minutes else context_of(TaskInstance()))
        assert later.value.reschedule_date >= now + timedelta(seconds=least), minutes
    with pytest.raises(TransportError):
        task.execute(postponed(60 * 59, 9))
    patient = WebDataScrapeOperator(task_id="t", url=page, rate_limit_timeout=timedelta(hours=2))
    with pytest.raises(AirflowRescheduleException):
        patient.execute(postponed(60 * 59, 9))


def test_an_unknown_host_fails_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the attempt reached it before: then its name server is down."""
    point_to(monkeypatch, "http://no-such-host.invalid")
    task = WebDataScrapeOperator(task_id="t", url="https://airship.example/")
    # Without retry policies (Airflow 3.2), the error says that no retry helps.
    with pytest.raises(
        (UnknownHostError, AirflowFailException), match=r"no-such-host.*nothing was sent[\s\S]*\(WD-017\)"
    ) as failure:
        task.execute(context_of(TaskInstance()))
    assert isinstance(failure.value, AirflowFailException) or failure.value.verdict == "never"
    with pytest.raises(AirflowRescheduleException):
        task.execute(postponed(300))


def test_a_refused_certificate_fails_immediately(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = FaultServer([answer()], tls=context)
    point_to(monkeypatch, server.url)
    refused = (CertificateRefusedError, AirflowFailException)
    with pytest.raises(refused, match=r"CERTIFICATE_VERIFY_FAILED[\s\S]*\(WD-018\)") as failure:
        scrape()
    server.close()
    assert isinstance(failure.value, AirflowFailException) or failure.value.verdict == "never"
