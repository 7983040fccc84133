# SPDX-License-Identifier: Apache-2.0
"""Metrics of waits and polls in Airflow's triggerer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.observability.stats import Stats

from airflow_provider_webdata.states.checks import CheckCriteria
from airflow_provider_webdata.triggers.job import WebDataJobTrigger
from airflow_provider_webdata.triggers.monitor import WebDataMonitorCheckTrigger
from airflow_provider_webdata.triggers.webhook import WebDataWebhookTrigger
from tests.support.job_service import JobService
from tests.support.metrics import Recorder, recording

pytestmark = pytest.mark.usefixtures("leftovers")

CONNECTION = "webdata_default"
JOB = "0b9c1f4e-0000-4000-8000-000000000001"


@pytest.fixture
def backend() -> Iterator[Recorder]:
    with recording(Stats) as recorder:
        yield recorder


@pytest.mark.parametrize(("state", "status"), [("completed", "done"), ("failed", "failed")])
async def test_job(
    jobs: JobService, connect: Any, tools: Any, backend: Recorder, state: str, status: str
) -> None:
    connect(jobs.url, retry_budget=0)
    jobs.set("crawl", JOB, state)
    await tools.event_of(WebDataJobTrigger(CONNECTION, "crawl", JOB, 1.0, deadline=time.time() + 60))
    tags = {"conn_id": CONNECTION, "kind": "crawl", "status": status}
    assert backend.of("webdata.polls") == [{"conn_id": CONNECTION, "kind": "crawl"}]
    assert backend.of("webdata.waits") == [{**tags, "via": "polling"}]
    assert backend.of("webdata.wait.duration") == [tags]
    ((milliseconds,),) = [[number] for _, name, number, _ in backend.calls if name == "webdata.wait.duration"]
    assert 0 < milliseconds < 60_000


async def test_check(world: Any, tools: Any, backend: Recorder) -> None:
    monitor_id = world.monitor(webhook=False)
    world.run(monitor_id)
    await tools.event_of(
        WebDataMonitorCheckTrigger(
            CONNECTION, monitor_id, 1.0, CheckCriteria().serialize(), after="2020-01-01T00:00:00Z"
        )
    )
    assert backend.of("webdata.polls") == [{"conn_id": CONNECTION, "kind": "monitor"}]
    (tags,) = backend.of("webdata.waits")
    assert tags == {"conn_id": CONNECTION, "kind": "check", "status": "done", "via": "polling"}


async def test_wait_that_times_out(world: Any, tools: Any, backend: Recorder) -> None:
    await tools.event_of(WebDataWebhookTrigger(CONNECTION, key="none", deadline=time.time() + 0.1))
    (tags,) = backend.of("webdata.waits")
    assert tags == {"conn_id": CONNECTION, "kind": "delivery", "status": "timeout", "via": "none"}


async def test_delivery(world: Any, backend: Recorder) -> None:
    """The inbox counts deliveries, and redeliveries apart."""
    monitor_id = world.monitor()
    world.run(monitor_id)
    body = {"success": True, "type": "monitor.check.completed", "id": JOB, "webhookId": "w"}
    for _ in range(2):
        world.inbox.deliver(body, "k")
    counted = backend.of("webdata.deliveries")
    assert {tags["conn_id"] for tags in counted} == {CONNECTION}
    assert {tags["operation"] for tags in counted} == {"monitor"}
    assert [tags["result"] for tags in counted] == ["stored", "stored", "duplicate"]
