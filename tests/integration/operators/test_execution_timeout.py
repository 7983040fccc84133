# SPDX-License-Identifier: Apache-2.0
"""The end of an attempt by Airflow's `execution_timeout`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
import pytest
from airflow.sdk.exceptions import AirflowRescheduleException, AirflowTaskTimeout, TaskDeferred

from airflow_provider_webdata.api.errors import RateLimitError
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.states.task_record import KEY
from tests.support import direct
from tests.support.direct import StateStore, TaskInstance, context_of
from tests.support.fault_server import FaultServer, answer
from tests.support.job_service import JobService
from tests.support.service import connection_text

JOB = "0b9c1f4e-0000-4000-8000-000000000001"
URL = "https://airship.example/"


@pytest.fixture
def jobs(connect: Callable[..., None]) -> Iterator[JobService]:
    service = JobService()
    connect(service, retry_budget=0)
    yield service
    service.stop()


def crawl(**more: Any) -> WebDataCrawlOperator:
    return WebDataCrawlOperator(task_id="t", url=URL, deferrable=True, **more)


def started(minutes: float) -> TaskInstance:
    return TaskInstance(start_date=datetime.now(timezone.utc) - timedelta(minutes=minutes))


def test_a_deferral_has_only_its_own_timeout(jobs: JobService) -> None:
    """Airflow (3.3.2) counts `execution_timeout` only in a worker."""
    limit = timedelta(minutes=1)
    sensor = WebDataJobSensor(
        task_id="t",
        kind="crawl",
        job_id="{{ 'x' }}",
        deferrable=True,
        timeout=3600,
        execution_timeout=limit,
    )
    for task in (crawl(execution_timeout=limit, wait_timeout=3600), sensor):
        with pytest.raises(TaskDeferred) as deferred:
            task.execute(context_of(started(4)))
        assert timedelta(hours=1) <= deferred.value.timeout <= timedelta(hours=1, minutes=1)


def test_a_job_that_may_have_started_at_the_end_of_an_attempt_is_reported(
    jobs: JobService, monkeypatch: pytest.MonkeyPatch, log: Callable[[], str]
) -> None:
    send = httpx.Client.send

    def sending(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        response = send(client, request, **options)
        if request.method == "POST":
            raise AirflowTaskTimeout("Timeout")
        return response

    monkeypatch.setattr(httpx.Client, "send", sending)
    ti, store = TaskInstance(), StateStore()
    with pytest.raises(AirflowTaskTimeout):
        direct.execute(crawl(), context_of(ti, store))
    assert len(jobs.started()) == 1
    assert "a crawl may have started, and bill; see the service's dashboard" in log()
    assert ti.xcom["credits"]["unknown"] == 1


def test_no_wait_for_the_service_outlasts_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FaultServer(
        [answer(429, '{"success": false, "error": "Limit"}', headers={"Retry-After": "120"})]
    )
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url, retry_budget=0))
    task = WebDataScrapeOperator(task_id="t", url=URL, execution_timeout=timedelta(minutes=10))
    store = StateStore()
    with pytest.raises(AirflowRescheduleException):
        task.execute(context_of(started(1), store))
    first = datetime.now(timezone.utc) - timedelta(minutes=9)
    store.set(KEY, {**store.get(KEY), "postponed_at": first.isoformat()})
    with pytest.raises(RateLimitError):
        task.execute(context_of(TaskInstance(), store, task_reschedule_count=1))
    event = {"status": "done", "job_id": JOB, "kind": "crawl", "job_status": "completed"}
    limit = timedelta(minutes=10)
    with pytest.raises(TaskDeferred) as deferred:
        crawl(execution_timeout=limit).execute_complete(context_of(started(1)), event)
    assert deferred.value.timeout is not None
    with pytest.raises(RateLimitError):
        crawl(execution_timeout=limit).execute_complete(context_of(started(9)), event)
    server.close()
