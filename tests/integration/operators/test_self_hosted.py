# SPDX-License-Identifier: Apache-2.0
"""Tasks on a self-hosted server: nothing is billed, and what it lacks fails at once with its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator
from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator
from airflow_provider_webdata.operators.provider import WebDataProviderOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.waiting import subjects
from tests.support import direct
from webdata_sandbox.server import SandboxServer


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer(profile="self-hosted", settle=True, closing_seconds=0, queue_seconds=0) as running:
        yield running


@pytest.fixture
def own(server: SandboxServer, connect: Any) -> SandboxServer:
    server.control.reset()
    connect(server, server="self-hosted")
    return server


SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
LACKING: dict[str, tuple[Any, str, int]] = {
    "credits": (
        lambda: WebDataCreditUsageOperator(task_id="t", min_remaining=1, retries=2),
        "it does not report credits",
        1,
    ),
    "monitor": (
        lambda: WebDataCreateMonitorOperator(
            task_id="t", name="m", targets=[{"type": "scrape", "urls": ["https://river.example/"]}],
            schedule={"cron": "0 * * * *"}, retries=2,
        ),
        "it has no monitors",
        1,
    ),
    "providers": (
        lambda: WebDataProviderOperator(task_id="t", provider="market-prices", capability="prices/latest", retries=2),
        "it has no data providers",
        1,
    ),
    "json": (
        lambda: WebDataScrapeOperator(
            task_id="t", url="https://river.example/", formats=[{"type": "json", "schema": SCHEMA}], retries=2,
        ),
        "it needs a language model. Configure one on the server, or omit the option (format json)",
        1,
    ),
    "question": (
        lambda: WebDataScrapeOperator(
            task_id="t", url="https://river.example/", formats=[{"type": "question", "question": "km?"}], retries=2,
        ),
        "it needs a language model. Configure one on the server, or omit the option (format question)",
        1,
    ),
    "screenshot": (
        lambda: WebDataScrapeOperator(task_id="t", url="https://river.example/", formats=["screenshot"], retries=2),
        "none of its engines supports the option. Omit it, or use a connection to the hosted service",
        1,
    ),
    "session": (
        lambda: WebDataInteractOperator(task_id="t", steps=["1"], retries=2),
        "it has no browser sessions, which need its browser service and a database",
        1,
    ),
}  # fmt: skip


@pytest.mark.rule("server-lacks")
@pytest.mark.parametrize("name", LACKING)
def test_what_it_lacks_fails_once(own: SandboxServer, name: str) -> None:
    """One request, no retry by the client or by Airflow."""
    make, lack, requests = LACKING[name]
    outcome = direct.run(make())
    assert outcome.ended == ("failed", 1)
    assert lack in " ".join(str(outcome.error).split())
    assert "(WD-016)" in str(outcome.error)
    assert len(own.control.requests()) == requests


def test_a_crawl_costs_nothing(own: SandboxServer) -> None:
    """Its cost is 0, not unknown, and no request but the start precedes its job."""
    outcome = direct.run(
        WebDataCrawlOperator(task_id="t", url="https://river.example/", limit=3, credit_limit=50)
    )
    assert outcome.state == "success", outcome.error
    assert (outcome.xcom["credits"]["used"], outcome.xcom["credits"]["unknown"]) == (0, 0)
    paths = [(request["method"], request["path"]) for request in own.control.requests()]
    assert paths[0] == ("POST", "/v2/crawl")


@pytest.mark.says("the log names what is missing")
def test_a_batch_of_searches_says_so_once(own: SandboxServer, tmp_path: Path, log: Any) -> None:
    task = WebDataBatchSearchOperator(task_id="t", queries=["river", "lake"], save_to=f"{tmp_path}/a.jsonl")
    outcome = direct.run(task)
    assert outcome.state == "success", outcome.error
    assert (
        log().count("as from a self-hosted server without a search backend. Configure one on the server") == 1
    )


def test_a_failed_job_is_not_called_billed(own: SandboxServer) -> None:
    own.control.add_fault("fail_crawl")
    error = direct.run(WebDataCrawlOperator(task_id="t", url="https://river.example/", limit=3)).error
    assert "inspect the job before a retry starts another one (WD-031)" in str(error)


@pytest.mark.rule("self-hosted-search")
def test_a_search_without_a_backend_says_so(own: SandboxServer, log: Any) -> None:
    outcome = direct.run(WebDataSearchOperator(task_id="t", query="river", returns="web"))
    assert (outcome.state, outcome.value) == ("success", [])
    assert "as from a self-hosted server without a search backend. Configure one on the server" in log()


@pytest.mark.rule("map-unread")
@pytest.mark.parametrize("operator", [WebDataMapOperator, WebDataIncrementalCrawlOperator])
@pytest.mark.parametrize("sitemap", [False, True])
def test_a_map_without_links_says_that_it_needs_a_sitemap(
    own: SandboxServer, tmp_path: Path, log: Any, operator: Any, sitemap: bool
) -> None:
    """Without a search engine, the server lists only the pages of the sitemap."""
    own.control.set_site("hill.example", pages=3, sitemap=sitemap)
    more = {"refresh_after": 60} if operator is WebDataIncrementalCrawlOperator else {}
    task = operator(task_id="t", url="https://hill.example/", changes=str(tmp_path), **more)
    found = direct.run(task)
    assert found.state == "success", found.error
    assert found.xcom["changes"]["new"] == (4 if sitemap else 1 if more else 0)
    assert ("lists only the pages of the site's sitemap" in log()) is not sitemap


def test_a_lost_answer_of_a_batch_is_not_ambiguous(own: SandboxServer, tmp_path: Path) -> None:
    """Nothing is billed, so a later attempt sends the search again, and no limit stops it."""
    own.control.add_fault("drop_after_work", path="/v2/search", method="POST", times=1)
    store = direct.StateStore()
    batch = WebDataBatchSearchOperator(
        task_id="t",
        queries=["river", "coffee"],
        save_to=f"{tmp_path}/a.jsonl",
        credit_limit="{{ 1 }}",
        max_concurrency=1,
        retries=1,
    )
    outcome = direct.run(batch, store)
    assert outcome.ended == ("success", 2)
    assert len(own.control.requests("/v2/search")) == 3
    assert (outcome.xcom["credits"]["used"], outcome.xcom["credits"]["unknown"]) == (0, 0)


@pytest.mark.rule("document-without-formats")
@pytest.mark.parametrize(
    "request_of", [{"prompt": "The level"}, {"schema": SCHEMA}], ids=["error", "warning"]
)
@pytest.mark.parametrize("kind", ["batch", "crawl"])
def test_pages_that_all_fail_for_lack_of_a_model_fail_the_task(
    own: SandboxServer, kind: str, request_of: dict[str, Any]
) -> None:
    formats = [{"type": "json", **request_of}]
    outcome = direct.run(
        WebDataBatchScrapeOperator(task_id="t", urls=["https://river.example/"], formats=formats, retries=2)
        if kind == "batch"
        else WebDataCrawlOperator(
            task_id="t", url="https://river.example/", limit=2, scrape_options={"formats": formats}, retries=2
        )
    )
    assert outcome.ended == ("failed", 1)
    assert "(WD-016)" in str(outcome.error)
    lack = "needs a language model. Configure one on the server, or omit the option (format json)"
    assert lack in " ".join(str(outcome.error).split())
    assert outcome.xcom["return_value"]["errors"]["count"] >= 1


@pytest.mark.rule("document-without-formats")
@pytest.mark.parametrize("declared", [{"server": "hosted"}, {}], ids=["hosted", "not declared"])
def test_a_job_on_a_server_that_may_bill_names_the_missing_model(
    own: SandboxServer, connect: Any, declared: dict[str, str]
) -> None:
    connect(own, **declared)
    formats = [{"type": "json", "schema": SCHEMA}]
    outcome = direct.run(
        WebDataBatchScrapeOperator(task_id="t", urls=["https://river.example/"], formats=formats, retries=2)
    )
    assert outcome.ended == ("failed", 1)
    text = " ".join(str(outcome.error).split())
    assert "Configure one on the server, or omit the option (format json)" in text
    assert "(WD-016)" in text


@pytest.mark.says("The message names what is missing")
def test_a_missing_model_is_named_beside_a_page_that_failed_by_itself(own: SandboxServer) -> None:
    urls = ["http://10.0.0.1/a", "https://river.example/", "https://lake.example/"]
    formats = [{"type": "json", "schema": SCHEMA}]
    outcome = direct.run(WebDataBatchScrapeOperator(task_id="t", urls=urls, formats=formats, retries=2))
    assert outcome.ended == ("failed", 1)
    text = " ".join(str(outcome.error).split())
    assert "it needs a language model. Configure one on the server, or omit the option (format json)" in text
    assert "(WD-016)" in text
    assert "JSON extraction failed" in text


@pytest.mark.rule("document-without-formats")
def test_the_formats_that_came_back_are_kept(own: SandboxServer, log: Any) -> None:
    formats = ["markdown", {"type": "json", "schema": SCHEMA}]
    page = direct.run(WebDataScrapeOperator(task_id="t", url="https://river.example/", formats=formats))
    assert page.state == "success"
    assert page.value["markdown"]
    assert "The service warns: JSON extraction failed: OpenAI API key is missing" in log()
    batch = direct.run(
        WebDataBatchScrapeOperator(task_id="t", urls=["https://river.example/"], formats=formats)
    )
    assert batch.state == "success"
    assert batch.value["data"][0]["markdown"]
    assert "1 of 1 pages have a warning from the service" in log()
    assert "it needs a language model. Configure one on the server, or omit the option (format json)" in log()


def test_a_server_that_bills_keeps_its_warning(own: SandboxServer, connect: Any, log: Any) -> None:
    """The page was billed, so its response is kept, and the task says what it lacks."""
    connect(own, server="hosted")
    formats = [{"type": "json", "schema": SCHEMA}]
    outcome = direct.run(WebDataScrapeOperator(task_id="t", url="https://river.example/", formats=formats))
    assert outcome.state == "success"
    assert {"kind": "formats_missing", "number": 1, "of": 1} in outcome.xcom["incomplete"]
    assert "The service warns: JSON extraction failed" in log()


@pytest.mark.rule("metadata-not-fetched", "metadata-no-host")
@pytest.mark.parametrize(("host", "failed"), [("down.example", 2), ("10.0.0.1", 0)])
def test_pages_of_a_host_that_is_down_are_removed_by_age(
    own: SandboxServer, tmp_path: Path, host: str, failed: int
) -> None:
    """A name that does not resolve is a page with 404; a refused connection is in the errors of the job."""
    urls = ["http://up.example/", f"http://{host}/a", f"http://{host}/b"]
    for url in urls:
        own.control.set_page(url, "<main>Text</main>")
    changes = Changes(str(tmp_path), removed_after=timedelta(days=2))

    def batch(day: int) -> Any:
        task = WebDataBatchScrapeOperator(task_id="t", urls=urls, changes=changes)
        return direct.run(task, day=datetime(2026, 1, day, tzinfo=timezone.utc)).value

    assert batch(1)["changes"]["new"] == 3
    for url in urls[1:]:
        own.control.delete_page(url)
    for day, removed in ((2, 0), (3, 0), (4, 2), (5, 0)):
        result = batch(day)
        assert [result["changes"][name] for name in ("same", "removed", "failed")] == [1, removed, failed]
        assert result["errors"]["count"] == 2


@pytest.mark.rule("metadata-no-host")
@pytest.mark.says("XCom `status_code` has the site's status")
def test_a_scrape_of_a_host_that_may_not_resolve_says_so(own: SandboxServer, log: Any) -> None:
    scraped = direct.run(WebDataScrapeOperator(task_id="t", url="http://down.example/"))
    assert (scraped.state, scraped.xcom["status_code"]) == ("success", 404)
    assert "if the host does not resolve. Check the URL" in log()


@pytest.mark.rule("metadata-not-fetched")
def test_a_scrape_of_a_refused_connection_fails(own: SandboxServer) -> None:
    error = direct.run(WebDataScrapeOperator(task_id="t", url="http://10.0.0.1/")).error
    assert "http://10.0.0.1/ could not be fetched: Unknown Error (status 594)" in str(error)


@pytest.mark.rule("self-hosted-lost-jobs")
def test_a_job_that_the_server_lost_is_started_again(
    own: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that restarts without its database forgets its jobs."""
    monkeypatch.setattr(subjects, "MISSING_LIMIT", 0.0)
    own.control.add_fault("status", path="/v2/crawl/.*", method="GET", status=404, times=3)
    outcome = direct.run(WebDataCrawlOperator(task_id="t", url="https://river.example/", limit=2, retries=1))
    assert outcome.ended == ("success", 2), outcome.error
    assert len(own.control.requests("/v2/crawl", "POST")) == 2


def test_a_lost_job_has_no_cost_and_its_error_names_the_retry(
    own: SandboxServer, monkeypatch: pytest.MonkeyPatch, log: Any
) -> None:
    monkeypatch.setattr(subjects, "MISSING_LIMIT", 0.0)
    crawl = {"task_id": "t", "url": "https://river.example/", "limit": 2}
    own.control.add_fault("status", path="/v2/crawl/.*", method="GET", status=404, times=3)
    outcome = direct.run(WebDataCrawlOperator(**crawl, retries=1), direct.StateStore())
    assert outcome.ended == ("success", 2), outcome.error
    assert "is unknown: the server lost it" in log()
    assert "The cost of job" not in log()
    own.control.add_fault("status", path="/v2/crawl/.*", method="GET", status=404, times=3)
    error = direct.run(WebDataCrawlOperator(**crawl)).error
    assert "a retry starts another job (WD-404)" in str(error)


def test_the_log_has_one_number_of_credits_and_no_cache(own: SandboxServer, log: Any, tmp_path: Path) -> None:
    """The server reports a credit per page, although it bills none, and has no cache."""
    for task in (
        WebDataScrapeOperator(task_id="t", url="https://river.example/"),
        WebDataCrawlOperator(task_id="t", url="https://river.example/", limit=2),
        WebDataSearchOperator(task_id="t", query="river", scrape_options={"formats": ["markdown"]}),
        WebDataBatchSearchOperator(
            task_id="t",
            queries=["river"],
            scrape_options={"formats": ["markdown"]},
            save_to=f"{tmp_path}/a.jsonl",
        ),
    ):
        done = direct.run(task)
        assert done.state == "success", done.error
    assert "days old" not in log()
    numbers = re.findall(r"(?:credits used(?: so far)?|Credits of this task): (\S+)", log())
    assert set(numbers) == {"0"}
