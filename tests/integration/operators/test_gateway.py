# SPDX-License-Identifier: Apache-2.0
"""Tasks behind a gateway that drops the headers of requests and the queries of job reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from tests.support import direct
from tests.support.direct import StateStore
from tests.support.other_servers import FirecrawlLb
from tests.support.waiting import wait_until
from webdata_sandbox.server import SandboxServer

SITE = "https://river.example/"


@pytest.fixture
def gateway(sandbox: SandboxServer) -> Iterator[FirecrawlLb]:
    with FirecrawlLb(sandbox.url, sandbox.api_key) as server:
        yield server


@pytest.mark.rule("idempotency-key-servers")
@pytest.mark.parametrize("kind", ["hosted", "gateway", None])
def test_a_lost_answer_starts_no_second_crawl(
    sandbox: SandboxServer, gateway: FirecrawlLb, connect: Any, log: Any, kind: str | None
) -> None:
    connect(gateway, server=kind)
    gateway.cut = ["/v2/crawl"]
    before = sandbox.control.state()["credits"]
    outcome = direct.run(WebDataCrawlOperator(task_id="t", url=SITE, limit=3, retries=2), StateStore())
    assert outcome.state == "failed"
    assert "an earlier request may have started a crawl, and its outcome cannot be determined" in " ".join(
        str(outcome.error).split()
    )
    assert len(gateway.starts()) == 1
    assert before - sandbox.control.state()["credits"] <= 3
    assert "idempotency key" not in log()


@pytest.mark.parametrize("kind", ["hosted", "gateway", None])
def test_an_inbox_names_the_crawl_of_a_lost_answer(
    sandbox: SandboxServer, gateway: FirecrawlLb, connect: Any, inbox: Any, kind: str | None
) -> None:
    connect(gateway, server=kind, **inbox.extra)
    gateway.cut = ["/v2/crawl"]
    outcome = direct.run(WebDataCrawlOperator(task_id="t", url=SITE, limit=3, retries=2), StateStore())
    assert outcome.state == "success"
    assert len(gateway.starts()) == 1


def test_a_job_that_cannot_be_read_to_its_end_names_what_lies_between(
    sandbox: SandboxServer, gateway: FirecrawlLb, connect: Any
) -> None:
    connect(gateway, server="gateway")
    urls = [f"{SITE}{number}" for number in range(150)]
    outcome = direct.run(WebDataBatchScrapeOperator(task_id="t", urls=urls, retries=2), StateStore())
    assert outcome.ended == ("failed", 1)
    error = " ".join(str(outcome.error).split())
    assert "a gateway on the way drops the query of the request" in error
    assert "(WD-016)" in error
    assert 'check "Base URL" and "Proxy"' not in error
    assert len(gateway.starts("/v2/batch/scrape")) == 1


def test_a_canceled_job_that_fits_in_one_part_is_read(
    sandbox: SandboxServer, gateway: FirecrawlLb, connect: Any
) -> None:
    """It keeps `next`, which leads to the first part again."""
    connect(gateway, server="gateway", retry_budget=0)
    sandbox.control.configure(page_seconds=1, concurrency=1)
    sandbox.control.set_site("slow.example", pages=30)
    urls = [f"https://slow.example/p/{number}" for number in range(1, 20)]
    with WebDataHook() as hook:
        job_id = hook.start_batch_scrape(urls=urls).id
        assert wait_until(lambda: (hook.job_status("batch_scrape", job_id).completed or 0) > 0)
        assert hook.cancel_job("batch_scrape", job_id)
    sensor = WebDataJobSensor(
        task_id="t", kind="batch_scrape", job_id=job_id, poke_interval=1, accept_canceled=True
    )
    done = direct.run(sensor, StateStore())
    assert done.state == "success", done.error
    assert done.value["data"]
