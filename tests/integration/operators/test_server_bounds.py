# SPDX-License-Identifier: Apache-2.0
"""Tasks whose request only some kinds of servers accept: refused before anything is sent or recorded, or sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
from airflow_provider_webdata.operators.monitor import (
    WebDataCreateMonitorOperator,
    WebDataUpdateMonitorOperator,
)
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from tests.support import direct
from tests.support.direct import StateStore
from tests.support.service import connection_text
from webdata_sandbox.server import SandboxServer

SITE = "https://airship.example/"
LONG = {"timeout": 400_000}
PLAIN = "http://10.0.0.7:8080/hook"
EXPOSED = "webhook.url: plain http exposes every delivery and its headers, with any secret, on the network; use https"


@pytest.fixture(scope="module")
def self_hosted() -> Iterator[SandboxServer]:
    with SandboxServer(profile="self-hosted") as server:
        server.control.set_page(SITE, markdown="# Airship", title="Airship")
        yield server


def test_refused_before_anything_is_sent_or_recorded(here: SandboxServer, tmp_path: Any) -> None:
    """Literal arguments are accepted while the DAG file is parsed, which does not know the server."""
    tasks = [
        (WebDataScrapeOperator(task_id="t", url=SITE, **LONG), "timeout: must be at most 300000 ms"),
        (
            WebDataCrawlOperator(task_id="t", url=SITE, limit=1, webhook=PLAIN),
            "webhook.url: must be an https URL",
        ),
        (
            WebDataIncrementalCrawlOperator(
                task_id="t",
                url=SITE,
                save_to=f"{tmp_path}/*.jsonl",
                changes=f"{tmp_path}/seen",
                refresh_after=86_400,
                **LONG,
            ),
            "timeout: must be at most",
        ),
        (
            WebDataBatchSearchOperator(
                task_id="t", queries=["a", {"query": "b", "categories": ["github"]}], save_to="/tmp/a.jsonl"
            ),
            "queries, item 2: categories[0]: must be 'codehost'",
        ),
        (
            WebDataCreateMonitorOperator(
                task_id="t", name="m", schedule="hourly", targets=[SITE], webhook={"url": PLAIN}
            ),
            "webhook.url: must be an https URL",
        ),
        (
            WebDataUpdateMonitorOperator(task_id="t", monitor_id="m", webhook={"url": PLAIN}),
            "webhook.url: must be an https URL",
        ),
    ]
    for task, problem in tasks:
        store = StateStore()
        error = direct.run(task, store).error
        assert isinstance(error, AirflowFailException)
        assert problem in str(error)
        assert "set server of the connection to 'self-hosted'" in str(error)
        assert store.values == {}
    assert here.control.requests() == []


@pytest.mark.rule("server-bounds")
def test_accepted_by_a_self_hosted_server(
    self_hosted: SandboxServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, log: Any
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(self_hosted.url, server="self-hosted"))
    scrape = WebDataScrapeOperator(task_id="t", url=SITE, **LONG)
    crawl = WebDataCrawlOperator(task_id="t", url=SITE, limit=1, webhook=PLAIN, wait_for_completion=False)
    search = WebDataBatchSearchOperator(
        task_id="t",
        queries=[{"query": "a", "categories": ["codehost"]}],
        save_to=f"{tmp_path}/a.jsonl",
    )
    for task in (scrape, crawl, search):
        assert direct.run(task).state == "success"
    sent = {
        found["path"]: found["body"] for found in self_hosted.control.requests() if found["method"] == "POST"
    }
    assert sent["/v2/scrape"]["timeout"] == 400_000
    assert sent["/v2/crawl"]["webhook"] == {"url": PLAIN}
    assert sent["/v2/search"]["categories"] == ["github"]
    assert log().count(EXPOSED) == 1
