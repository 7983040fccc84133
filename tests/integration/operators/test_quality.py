# SPDX-License-Identifier: Apache-2.0
"""Results with conditions: compared by data interval in a real Airflow, billed once, held back in an object store."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Quality
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.integration.results.conftest import CONNECTION, bucket, s3_client, s3_connection, s3_server
from tests.support import direct
from tests.support.dag_runner import Airflow, dag_runner
from webdata_sandbox.server import SandboxServer

__all__ = ["bucket", "s3_client", "s3_connection", "s3_server"]

SITE = "https://checked.example/"
DAYS = [*(f"2026-01-0{day}T00:00:00+00:00" for day in (1, 5, 3, 7)), None]


def test_a_run_compares_with_the_one_before_it_by_data_interval(
    airflow: Airflow, here: SandboxServer
) -> None:
    """Also a backfill between two runs, and a run without a logical date; a rejected run does not count."""
    pages = [f"{SITE}{number}" for number in range(10)]
    for url in pages:
        here.control.set_page(url, f"<p>{url}</p>")
    done = dag_runner(airflow, here)(
        f"""
        WebDataBatchScrapeOperator(
            task_id="t", urls="{{{{ {pages}[:params.count[dag_run.logical_date | string]] }}}}",
            poll_interval=1, quality=Quality(drop_vs_last=0.3),
        )
        dag.params["count"] = {{"2026-01-01 00:00:00+00:00": 4, "2026-01-05 00:00:00+00:00": 10,
            "2026-01-03 00:00:00+00:00": 4, "2026-01-07 00:00:00+00:00": 6, "None": 5}}
        dag.render_template_as_native_obj = True
        """,
        f"""
        from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
        from airflow_provider_webdata.options import Quality
        logical_dates = {DAYS}
        """,
    )
    found = [run["xcom"].get("t.quality", run["xcom"].get("t.quality_rejected")) for run in done.runs]
    assert [(quality["items"], len(quality["failed"])) for quality in found] == [
        (4, 0),
        (10, 0),
        (4, 0),
        (6, 1),
        (5, 1),
    ]
    for count in (6, 5):
        assert f"expected at least 7, because the previous run had 10, got {count}" in done.log_of("t")
    assert "XCom not found" not in done.log, "the first run reads none"


# Operator, arguments, path, and credits.
CALLS: dict[str, tuple[Any, dict[str, Any], str, int]] = {
    "scrape": (WebDataScrapeOperator, {"url": SITE}, "/v2/scrape", 1),
    "search": (WebDataSearchOperator, {"query": "river", "limit": 2}, "/v2/search", 2),
    "batch search": (WebDataBatchSearchOperator, {"queries": ["river"], "limit": 2}, "/v2/search", 2),
    "crawl": (WebDataCrawlOperator, {"url": SITE, "poll_interval": 1}, "/v2/crawl$", 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_rejected_results_are_billed_once(here: SandboxServer, tmp_path: Path, name: str) -> None:
    """They are written beside the file: nothing is kept for a retry, of which there is none."""
    here.control.set_page(SITE, "<title>Page not found</title><p>Oops.</p>")
    operator, arguments, path, price = CALLS[name]
    output = {"save_to": f"{tmp_path}/found.jsonl"} if operator is WebDataBatchSearchOperator else {}
    store = direct.StateStore()
    quality = Quality(coverage={"colour": 1})
    outcome = direct.run(operator(task_id="t", quality=quality, retries=2, **arguments, **output), store)
    assert outcome.ended == ("failed", 1)
    assert "coverage colour: expected at least 1, got 0" in str(outcome.error)
    assert "(WD-064)" in str(outcome.error)
    assert outcome.xcom["return_value"]
    assert outcome.xcom["credits"]["used"] == price
    assert len(here.control.requests(path, "POST")) == 1
    assert not any("answer" in value for value in store.values.values())
    assert not [*tmp_path.glob("*.partial")]


def test_a_page_whose_requested_text_is_null_is_a_shell(here: SandboxServer, log: Callable[[], str]) -> None:
    """A short text is none; and a page that has what was requested in place of a text is none either."""
    urls = [f"{SITE}price", f"{SITE}app"]
    here.control.set_page(urls[0], "<p>1299</p>")
    here.control.set_page(urls[1], '<div id="root"></div>')

    def run(*formats: str, **more: Any) -> direct.Outcome:
        waits: dict[str, Any] = {"poll_interval": 1, "deferrable": False}
        return direct.run(
            WebDataBatchScrapeOperator(task_id="t", urls=urls, formats=formats, **waits, **more)
        )

    done = run("markdown")
    assert (done.state, done.xcom["incomplete"]) == (
        "success",
        [{"kind": "pages_empty", "number": 1, "of": 2}],
    )
    assert f"1 of 2 pages have no content, such as {urls[1]}" in log()
    done = run("markdown", quality=Quality(blocked=0))
    assert done.ended == ("failed", 1)
    assert done.xcom["quality_rejected"]["blocked"] == {"shell": 1}
    done = run("links", quality=Quality(blocked=0))
    assert (done.state, done.xcom.get("incomplete")) == ("success", None), done.error


def test_a_file_without_html_is_no_shell(here: SandboxServer) -> None:
    urls = [f"{SITE}price", f"{SITE}report.pdf"]
    here.control.set_page(urls[0], "<p>1299</p>")
    here.control.set_page(urls[1], markdown="x", content_type="application/pdf")
    task = WebDataBatchScrapeOperator(
        task_id="t",
        urls=urls,
        formats=["html"],
        quality=Quality(blocked=0),
        poll_interval=1,
        deferrable=False,
    )
    done = direct.run(task)
    assert (done.state, done.xcom.get("incomplete")) == ("success", None), done.error


def test_in_an_object_store(here: SandboxServer, s3_client: Any, bucket: str) -> None:
    keys: Callable[[], list[str]] = lambda: sorted(  # noqa: E731
        found["Key"] for found in s3_client.list_objects_v2(Bucket=bucket).get("Contents", ())
    )
    url = f"s3://{CONNECTION}@{bucket}/found/all.jsonl"

    def run(quality: Quality) -> direct.Outcome:
        task = WebDataSearchOperator(
            task_id="t", query="river", limit=3, returns="web", save_to=url, quality=quality
        )
        return direct.run(task)

    assert run(Quality()).state == "success"
    assert keys() == ["found/all.jsonl"]
    assert run(Quality(min_items=4)).state == "failed"
    assert keys() == ["found/_all.jsonl.rejected", "found/all.jsonl"]


def test_rejected_results_are_accepted_by_hand_and_loaded(
    here: SandboxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the error says: move the file, and run the tasks downstream, which read what the failed task pushed."""
    connection = {"conn_type": "sqlite", "host": str(tmp_path / "pages.db")}
    monkeypatch.setenv("AIRFLOW_CONN_PAGES", json.dumps(connection))
    urls = [f"{SITE}{number}" for number in range(3)]
    for url in urls:
        here.control.set_page(url, f"<p>{url}</p>")

    def scraped(count: int, quality: Quality) -> direct.Outcome:
        task = WebDataBatchScrapeOperator(
            task_id="t",
            urls=urls[:count],
            save_to=str(tmp_path / "pages.jsonl"),
            quality=quality,
            poll_interval=1,
            deferrable=False,
        )
        return direct.run(task)

    def loaded(done: direct.Outcome) -> int:
        # A failed task pushes what it would have returned.
        path = done.xcom.get("return_value", done.value)
        task = WebDataToTableOperator(task_id="l", path=path, table="pages", conn_id="pages", mode="replace")
        return int(direct.run(task).value["loaded"])

    assert loaded(scraped(3, Quality())) == 3
    rejected = scraped(2, Quality(min_items=3))
    assert rejected.state == "failed"
    assert (rejected.xcom["path"], rejected.xcom["count"]) == (str(tmp_path / "pages.jsonl"), 2)
    assert loaded(rejected) == 3
    text = " ".join(str(rejected.error).split())
    [(source, target)] = re.findall(r"results are in (\S+)\. .*, move that file to ([^ ,]+),", text)
    Path(source).replace(target)
    assert loaded(rejected) == 2


def test_results_of_unfinished_work_are_rejected(here: SandboxServer, tmp_path: Path) -> None:
    """The cleared task makes the searches that the credit limit left, and no others."""
    arguments: dict[str, Any] = {
        "task_id": "t",
        "queries": ["river", "bridge"],
        "quality": 1,
        "save_to": f"{tmp_path}/found.jsonl",
    }
    store = direct.StateStore()
    outcome = direct.run(WebDataBatchSearchOperator(credit_limit=3, **arguments), store)
    assert outcome.ended == ("failed", 1)
    assert "unfinished: expected all work within credit_limit, got 1 searches not started" in str(
        outcome.error
    )
    assert (outcome.xcom["left"], outcome.xcom["not_begun"]) == (["bridge"], 1)
    assert direct.run(WebDataBatchSearchOperator(**arguments), store).ended == ("success", 1)
    assert [call["body"]["query"] for call in here.control.requests("/v2/search")] == ["river", "bridge"]
