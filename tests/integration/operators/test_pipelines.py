# SPDX-License-Identifier: Apache-2.0
"""Each operator with results, on sites in every state: how the task ends, what it says is missing, and the rows.

The tables state what is promised, not how it is kept: a task without all results fails or pushes XCom `incomplete`,
and XCom, file, and table have what the site says.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from airflow_provider_webdata.common.item_urls import site_failed, url_of
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.monitor import (
    WebDataCreateMonitorOperator,
    WebDataRunMonitorOperator,
)
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.support import direct
from tests.support.pdf import pdf
from webdata_sandbox.engine.formats import produce
from webdata_sandbox.server import SandboxServer

SITE = "https://pipes.example/"
FRONT, PRICE, LAST = URLS = [SITE, f"{SITE}a", f"{SITE}b"]
WORD = "zephyr"

# The end of a task: its state, and the kinds in `incomplete`.
DONE = ("success", ())
FAILED = ("failed", ())


def lacks(*kinds: str) -> tuple[str, tuple[str, ...]]:
    return "success", kinds


PAGES = ("batch scrape", "crawl", "incremental crawl", "job sensor")
SEARCHES = ("search", "batch search")
FORMATTED = ("batch scrape", "crawl", "incremental crawl", "scrape", "parse")
CELLS: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "up": dict.fromkeys((*PAGES, *SEARCHES, "scrape", "parse", "map", "monitor check"), DONE),
    "down": {
        **dict.fromkeys(PAGES, FAILED),
        **dict.fromkeys((*SEARCHES, "scrape", "monitor check"), lacks("pages_failed")),
    },
    "half down": dict.fromkeys((*PAGES, *SEARCHES, "monitor check"), lacks("pages_failed")),
    # The service reports a site that it cannot read as one without links.
    "nothing found": {**dict.fromkeys(SEARCHES, DONE), "map": lacks("no_links")},
    "without content": dict.fromkeys((*PAGES, *SEARCHES, "scrape", "parse"), lacks("pages_empty")),
    "cut": dict.fromkeys((*PAGES, *SEARCHES, "scrape", "parse"), lacks("documents_cut")),
    # The sensor does not know what was requested.
    "in another format": {
        **dict.fromkeys(("batch scrape", "crawl", "incremental crawl"), FAILED),
        **dict.fromkeys(("scrape", "parse", *SEARCHES), lacks("formats_missing")),
    },
    "in one of two formats": dict.fromkeys((*FORMATTED, *SEARCHES), lacks("formats_missing")),
    "in few characters": dict.fromkeys((*PAGES, *SEARCHES, "scrape", "parse", "map"), DONE),
}
TEXTS = {FRONT: "本日休業", PRICE: "1299", LAST: "晴 25°C"}
BEFORE = {url: f"{WORD} of the night before at {url}" for url in URLS}


class Case(NamedTuple):
    """One cell: an operator and the state of the site."""

    operator: str
    state: str

    @property
    def formats(self) -> list[str]:
        return {"in another format": ["html"], "in one of two formats": ["markdown", "html"]}.get(
            self.state, ["markdown"]
        )

    @property
    def options(self) -> dict[str, Any]:
        parsers = [{"type": "pdf", "maxPages": 1}] if self.state == "cut" else None
        found: dict[str, Any] = {"formats": self.formats, "max_age": 0}
        return found if parsers is None else {**found, "parsers": parsers}

    @property
    def search(self) -> str:
        return "nowhere" if self.state == "nothing found" else WORD


def scrape(case: Case, folder: Path, **output: Any) -> Any:
    return WebDataScrapeOperator(task_id="t", url=LAST, **case.options, **output)


def batch_scrape(case: Case, folder: Path, **output: Any) -> Any:
    return WebDataBatchScrapeOperator(task_id="t", urls=URLS, **case.options, **WAITING, **output)


def crawl(case: Case, folder: Path, **output: Any) -> Any:
    return WebDataCrawlOperator(
        task_id="t", url=SITE, limit=9, scrape_options=case.options, **WAITING, **output
    )


def incremental_crawl(case: Case, folder: Path, **output: Any) -> Any:
    seen = str(folder / "seen" / ("file" if output else "xcom"))
    output = {name: direct.fixed(path) for name, path in output.items()}
    return WebDataIncrementalCrawlOperator(
        task_id="t",
        url=SITE,
        changes=seen,
        refresh_after=timedelta(0),
        **case.options,
        **WAITING,
        **output,
    )


def job_sensor(case: Case, folder: Path, **output: Any) -> Any:
    start = WebDataBatchScrapeOperator(task_id="s", urls=URLS, wait_for_completion=False, **case.options)
    job = direct.run(start).xcom["job_id"]
    return WebDataJobSensor(
        task_id="t", kind="batch_scrape", job_id=job, max_error_ratio=0.9, poke_interval=1, **output
    )


def search(case: Case, folder: Path, **output: Any) -> Any:
    return WebDataSearchOperator(
        task_id="t", query=case.search, returns="web", scrape_options=case.options, **output
    )


def batch_search(case: Case, folder: Path, **output: Any) -> Any:
    return WebDataBatchSearchOperator(
        task_id="t", queries=[case.search], scrape_options=case.options, **output
    )


def parse(case: Case, folder: Path, **output: Any) -> Any:
    file = folder / "report.html"
    text = "<script>start()</script>" if case.state == "without content" else f"<p>{TEXTS[LAST]}</p>"
    file.write_text(text, encoding="utf-8")
    options = {name: value for name, value in case.options.items() if name != "max_age"}
    if case.state == "cut":
        file = folder / "report.pdf"
        file.write_bytes(pdf(*(b"BT /F1 12 Tf (%s) Tj ET" % word for word in (b"one", b"two", b"three"))))
    return WebDataParseOperator(task_id="t", file=str(file), **options, **output)


def map_(case: Case, folder: Path, **output: Any) -> Any:
    more: dict[str, Any] = {"include_paths": ["^/nowhere"]} if case.state == "nothing found" else {}
    return WebDataMapOperator(task_id="t", url=SITE, **more, **output)


def monitor_check(case: Case, folder: Path, **output: Any) -> Any:
    made = WebDataCreateMonitorOperator(task_id="m", name="m", schedule="0 5 * * *", targets=URLS)
    return WebDataRunMonitorOperator(
        task_id="t",
        monitor_id=direct.run(made).value["id"],
        wait_for_completion=True,
        include_pages=True,
        poll_interval=1,
    )


WAITING: dict[str, Any] = {"deferrable": False, "poll_interval": 1}
OPERATORS: dict[str, Callable[..., Any]] = {
    "scrape": scrape,
    "batch scrape": batch_scrape,
    "crawl": crawl,
    "incremental crawl": incremental_crawl,
    "job sensor": job_sensor,
    "search": search,
    "batch search": batch_search,
    "parse": parse,
    "map": map_,
    "monitor check": monitor_check,
}
ALL = [Case(operator, state) for state, ends in CELLS.items() for operator in ends]


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer(settle=True, closing_seconds=0, queue_seconds=0) as running:
        yield running


def put(server: SandboxServer, case: Case) -> dict[str, str]:
    """Bring the site into a state, and return the texts of its pages that can be read."""
    texts = (
        dict(TEXTS) if case.state == "in few characters" else {url: f"{WORD} now at {url}" for url in URLS}
    )
    show(server, texts)
    failing = {"down": URLS, "half down": [LAST]}.get(case.state, [])
    for url in failing:
        # A search finds no page with an error status, and a monitor compares it like another.
        how = (
            {"error": "SCRAPE_SITE_ERROR"}
            if case.operator in (*SEARCHES, "monitor check")
            else {"status": 503}
        )
        server.control.set_page(url, f"<p>503 Service Unavailable, {WORD}</p>", **how)
    if case.state == "without content":
        server.control.set_page(LAST, "<script>start()</script>", title=WORD)
    if case.state == "cut":
        text = f"{WORD} one\f{WORD} two\f{WORD} three"
        server.control.set_page(LAST, markdown=text, title=WORD, content_type="application/pdf")
        texts[LAST] = f"{WORD} one"
    lost = [*failing, *([LAST] if case.state == "without content" else [])]
    return {url: text for url, text in texts.items() if url not in lost}


def show(server: SandboxServer, texts: dict[str, str]) -> None:
    links = "".join(f'<nav><a href="{url}">{url}</a></nav>' for url in URLS[1:])
    for url, text in texts.items():
        server.control.set_page(url, f"<p>{text}</p>{links if url == SITE else ''}", title=WORD)


def items_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the items in what a task returned, in whatever form."""
    if isinstance(value, dict) and url_of(value) is not None:
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from items_in(part)


def read(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the text of each item that is no failed page, by URL."""
    return {
        str(url_of(item)): item.get("markdown")
        for item in found
        if "metadata" in item and not site_failed(item["metadata"])
    }


def readable(case: Case, folder: Path, texts: dict[str, str]) -> dict[str, str]:
    """Return the texts that an operator should return, of those that the site has."""
    if case.state == "nothing found":
        return {}
    if case.operator == "scrape":
        return {url: text for url, text in texts.items() if url == LAST}
    if case.operator == "parse":
        found: dict[str, dict[str, str]] = {
            "without content": {},
            "cut": {str(folder / "report.pdf"): "one"},
        }
        return found.get(case.state, {str(folder / "report.html"): TEXTS[LAST]})
    return texts


class Table:
    """The table in SQLite that a file is loaded into."""

    def __init__(self, case: Case, file: Path, environment: pytest.MonkeyPatch) -> None:
        self._key = "url" if case.operator in SEARCHES else "source_url"
        self._file = file
        self._database = file.with_name("warehouse.db")
        connection = {"conn_type": "sqlite", "host": str(self._database)}
        environment.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps(connection))

    def load(self) -> None:
        task = WebDataToTableOperator(
            task_id="load", path=str(self._file), table="pages", conn_id="warehouse"
        )
        outcome = direct.run(task)
        assert outcome.state == "success", outcome.error

    def rows(self) -> dict[str, Any]:
        with sqlite3.connect(self._database) as connection:
            return dict(connection.execute(f'SELECT "{self._key}", markdown FROM pages').fetchall())


@pytest.mark.parametrize("case", ALL, ids=" - ".join)
def test_the_end_says_what_the_rows_lack(
    server: SandboxServer,
    connect: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: Case,
) -> None:
    server.control.reset()
    connect(server, retry_budget=0)
    file = tmp_path / "rows.jsonl"
    outputs: list[dict[str, Any]] = [{}, {"save_to": str(file)}]
    if case.operator == "batch search":
        del outputs[0]
    # Only pages are compared below; the links of a map have no text, and a check has no file.
    table = Table(case, file, monkeypatch) if case.operator not in ("map", "monitor check") else None
    night = datetime(2026, 1, 1, tzinfo=timezone.utc)
    before: dict[str, Any] = {}
    if table:
        show(server, BEFORE)
        for output in outputs:
            good = OPERATORS[case.operator](Case(case.operator, "up"), tmp_path, **output)
            assert direct.run(good, day=night).state == "success"
        table.load()
        before = table.rows()
    texts = readable(case, tmp_path, put(server, case))
    if case.formats != ["markdown"]:
        for module in ("engine.scraper", "operations.parse"):
            monkeypatch.setattr(f"webdata_sandbox.{module}.produce", in_markdown)

    state, kinds = wanted = CELLS[case.state][case.operator]
    for output in outputs if case.operator != "monitor check" else [{}]:
        task = OPERATORS[case.operator](case, tmp_path, **output)
        outcome = direct.run(task, day=night + timedelta(days=1))
        where = "file" if output else "XCom"
        assert outcome.state == state, (where, outcome.error)
        if wanted == FAILED:
            if case.state == "down":
                assert "WD-033" in str(outcome.error), where
                assert "503" in str(outcome.error), where
            continue
        assert tuple(lack["kind"] for lack in outcome.xcom.get("incomplete", ())) == kinds, where
        lines = file.read_text().splitlines() if output else []
        found = [*map(json.loads, lines)] if output else [*items_in(outcome.value)]
        assert case.state != "nothing found" or found == [], where
        if table:
            shown = read(found)
            assert {url: shown.get(url) for url in texts} == texts, where
            assert not any("503" in str(text) for text in shown.values()), where

    if table:
        if wanted != FAILED:
            table.load()
            before |= texts
        after = table.rows()
        if case.state == "without content":
            # Nothing is promised of the row of a page that its site has emptied.
            for found_rows in (before, after):
                found_rows.pop(LAST, None) if case.operator != "parse" else found_rows.clear()
        assert after == before


def in_markdown(page: Any, options: dict[str, Any], *more: Any) -> dict[str, Any]:
    """Answer as a server that knows one format only."""
    return produce(page, {**options, "formats": ["markdown"]}, *more)
