# SPDX-License-Identifier: Apache-2.0
"""Private targets and webhooks of a self-hosted server, which refuses them without a setting: the task names it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from tests.support import direct
from tests.support.inbox_server import InboxServer
from webdata_sandbox.server import SandboxServer

SWITCH = "ALLOW_LOCAL_WEBHOOKS=true"


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer(profile="self-hosted", settle=True, closing_seconds=0, queue_seconds=0) as running:
        yield running


@pytest.fixture
def own(server: SandboxServer, connect: Any) -> SandboxServer:
    server.control.reset()
    connect(server, server="self-hosted")
    return server


def task_of(kind: str, url: str) -> Any:
    match kind:
        case "scrape":
            return WebDataScrapeOperator(task_id="t", url=url)
        case "batch":
            return WebDataBatchScrapeOperator(task_id="t", urls=[url])
        case "crawl":
            return WebDataCrawlOperator(task_id="t", url=url, limit=2)
    return WebDataMapOperator(task_id="t", url=url)


@pytest.mark.rule("delivery-private")
@pytest.mark.parametrize("kind", ["scrape", "batch", "crawl", "map"])
@pytest.mark.parametrize("url", ["http://10.0.0.5/stock", "https://192.168.0.7/"])
def test_a_private_target_names_the_setting(own: SandboxServer, log: Any, kind: str, url: str) -> None:
    outcome = direct.run(task_of(kind, url))
    assert SWITCH in f"{outcome.error}{log()}"


def test_a_failure_of_another_cause_keeps_its_advice(own: SandboxServer, log: Any) -> None:
    own.control.set_page("http://10.0.0.5/stock", "<p>Stock</p>", error="SCRAPE_ACTION_ERROR")
    outcome = direct.run(task_of("scrape", "http://10.0.0.5/stock"))
    assert outcome.state == "failed"
    assert SWITCH not in f"{outcome.error}{log()}"


@pytest.mark.parametrize("kind", ["scrape", "batch", "crawl", "map"])
def test_a_public_target_does_not(own: SandboxServer, log: Any, kind: str) -> None:
    outcome = direct.run(task_of(kind, "https://nowhere.example/"))
    assert SWITCH not in f"{outcome.error}{log()}"


@pytest.mark.parametrize("kind", ["scrape", "crawl"])
def test_the_hosted_service_has_no_such_setting(here: SandboxServer, log: Any, kind: str) -> None:
    outcome = direct.run(task_of(kind, "http://10.0.0.5/stock"))
    assert SWITCH not in f"{outcome.error}{log()}"


@pytest.mark.rule("delivery-private")
@pytest.mark.parametrize(
    ("url", "is_private"),
    [
        ("http://airflow-api:8080", True),
        ("http://172.16.4.1:8080", True),
        ("https://airflow.example", False),
    ],
)
def test_a_private_webhook_names_the_setting(
    server: SandboxServer, connect: Any, tmp_path: Path, log: Any, url: str, is_private: bool
) -> None:
    server.control.reset()
    with InboxServer(tmp_path) as inbox:
        connect(server, server="self-hosted", **{**inbox.extra, "webhook_url": url})
        outcome = direct.run(task_of("crawl", "https://river.example/"))
    assert outcome.state == "success", outcome.error
    assert (SWITCH in log()) is is_private
