"""Every recipe of the cookbook, unchanged, on a real Airflow, against the sandbox, started by hand."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DeadlineReference
from airflow.sdk.module_loading import import_string
from pyarrow import parquet

from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from airflow_provider_webdata.common.supported_airflow import PARTITION_EVENTS, airflow_release
from airflow_provider_webdata.sandbox.server import SandboxServer
from tests.integration.operators.test_documentation import empty
from tests.support.airflow_features import HAS_LOOPS
from tests.support.dag_runner import Airflow, Outcome, connection
from tests.support.snippets import ROOT

FOLDER = ROOT / "docs" / "cookbook"
PDF = Path(__file__).parents[1] / "sandbox" / "files" / "chromium.pdf"
RECIPES = {
    found[1]: found[2]
    for page in sorted(FOLDER.glob("*.md"))
    if (
        found := re.match(
            r"# ([^\n]+)\n\n(?:[^\n]+\n)+\n```python\n(.*?)^```\n\nAdapt ",
            page.read_text(),
            re.MULTILINE | re.DOTALL,
        )
    )
}
CI = "Testing in CI"
CHANGES, NEW = "Changed pages to a message", "Only pages not seen before"
WATCH = "Price watch"
FAILED, HISTORY = "Retry only the failed queries", "Backfill 30 days of searches"
DAYS, AGENT, CHECKED = "A partition for each day", "Ask an agent", "A DAG for each check"
APPROVED, LOOP = "Ask before a paid crawl", "Search until enough"
LATE, EACH_CHECK = "A check that is late", "A report after each check and every morning"
asks_a_person = pytest.mark.skipif(
    not HAS_RETRY_POLICIES, reason="in Airflow 3.2, dag.test() does not wait for a person's answer"
)
NEEDS = {
    APPROVED: asks_a_person,
    LOOP: pytest.mark.skipif(not HAS_LOOPS, reason="this Airflow has no loops"),
    AGENT: pytest.mark.skipif(sys.version_info < (3, 11), reason="the extra ai needs Python 3.11"),
}
RUN = [
    pytest.param(title, marks=NEEDS.get(title, ()))
    for title in RECIPES
    # That of each check needs an event: tests/integration/testing/test_user_project.py.
    if title not in (CI, CHANGES, NEW, WATCH, FAILED, HISTORY, DAYS, CHECKED)
]
"""Recipes that need one run, and nothing else."""

BY_HAND = "logical_dates = [None]\n"
SETTINGS = {
    "A DAG for each new file": "dags = [crawl_docs, load_docs]\n",
    APPROVED: 'responses = {"approve": "Approve"}\n',
    # dag.test() looks alerts up under ids that only a DAG from Airflow's database has.
    LATE: "dag.deadline = None\n",
}
"""The reader's actions besides starting the DAG."""

Cook = Callable[..., Outcome]


@pytest.fixture
def cook(airflow: Airflow, sandbox: SandboxServer, tmp_path: Path) -> Cook:
    """Run a recipe, which writes to the folder of the test."""

    def run(title: str, settings: str = "") -> Outcome:
        code = RECIPES[title].replace("/tmp/webdata", str(tmp_path))
        source = code + BY_HAND + SETTINGS.get(title, "") + settings
        return airflow.run(
            source,
            AIRFLOW_CONN_WEBDATA_DEFAULT=connection(sandbox),
            AIRFLOW_CONN_WAREHOUSE=json.dumps(
                {"conn_type": "sqlite", "host": str(tmp_path / "warehouse.db")}
            ),
            # pydantic-ai's own model for tests, which calls each tool once.
            AIRFLOW_CONN_PYDANTICAI_DEFAULT=json.dumps(
                {"conn_type": "pydanticai", "extra": {"model": "test"}}
            ),
        )

    (tmp_path / "pdfs").mkdir()
    for name in ("first", "second"):
        shutil.copy(PDF, tmp_path / "pdfs" / f"{name}.pdf")
    (tmp_path / "queries.csv").write_text("query,limit\nriver level,5\ncoffee,3\n")
    return run


def result(outcome: Outcome, task: str) -> Any:
    return outcome.xcom[f"{task}.return_value"]


def rows(path: str) -> list[dict[str, Any]]:
    return parquet.read_table(path.removeprefix("file://")).to_pylist()


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path.removeprefix("file://")).read_text().splitlines()]


def prices(outcome: Outcome, folder: Path) -> None:
    found = {row["name"]: row["price"] for row in rows(result(outcome, "store"))}
    assert found == {"Gooseneck kettle": 75.5, "Hand grinder": 59.0}


def digest(outcome: Outcome, folder: Path) -> None:
    assert "River level rises" in result(outcome, "digest")
    assert "flood of the century" not in result(outcome, "digest")


def site(outcome: Outcome, folder: Path) -> None:
    pages = [path for path in (folder / "site").iterdir() if path.suffix == ".md"]
    assert len(pages) == result(outcome, "pages")["count"] == 6
    assert all(page.read_text() for page in pages)


def pdfs(outcome: Outcome, folder: Path) -> None:
    with sqlite3.connect(folder / "warehouse.db") as warehouse:
        parts = warehouse.execute("SELECT file, text, vector FROM parts").fetchall()
    assert {Path(file).name for file, _, _ in parts} == {"first.pdf", "second.pdf"}
    assert all(json.loads(vector) == [len(text), text.count("river")] for _, text, vector in parts)


def agent(outcome: Outcome, folder: Path) -> None:
    assert "River level rises" in str(result(outcome, "report"))


def queries(outcome: Outcome, folder: Path) -> None:
    assert {row["query"] for row in rows(result(outcome, "search")["path"])} == {"river level", "coffee"}


def sites(outcome: Outcome, folder: Path) -> None:
    first, second = result(outcome, "report")
    assert "/sites/0/" in first
    assert "/sites/1/" in second
    assert not first.startswith("0 ")


def chunks(outcome: Outcome, folder: Path) -> None:
    found = lines(result(outcome, "chunks"))
    assert len(found) > result(outcome, "crawl")["count"]
    assert {"url", "text"} == found[0].keys()


def alert(outcome: Outcome, folder: Path) -> None:
    assert result(outcome, "alert") == "https://shop.example/kettles: 75.5 EUR"
    assert outcome.state("nothing") == "skipped"


def events(outcome: Outcome, folder: Path) -> None:
    crawl, load = outcome.runs
    facts = crawl["xcom"]["crawl.return_value"]
    assert load["xcom"]["load.return_value"] == f"{facts['count']} pages from {facts['path']}"


def late(outcome: Outcome, folder: Path) -> None:
    assert result(outcome, "check")["status"] == "completed"


def each_check(outcome: Outcome, folder: Path) -> None:
    assert result(outcome, "report").startswith("0 checks: ")


def approved(outcome: Outcome, folder: Path) -> None:
    assert (
        outcome.run["rendered"]["approve"]["subject"]
        == "Crawl up to 6 pages of https://docs.pipeline.example/?"
    )
    assert result(outcome, "crawl")["count"] == 4


def pooled(outcome: Outcome, folder: Path) -> None:
    assert result(outcome, "crawl")["count"] == 4
    assert result(outcome, "batch")["count"] == 1


def guarded(outcome: Outcome, folder: Path) -> None:
    assert "Bean" in result(outcome, "agent")["data"]["title"]


def checked(outcome: Outcome, folder: Path) -> None:
    assert result(outcome, "report").startswith("4 pages published to ")
    assert len(lines(str(folder / "published.jsonl"))) == 4


def on_demand(outcome: Outcome, folder: Path) -> None:
    assert lines(result(outcome, "crawl")["path"])[0]["markdown"]


def companies(outcome: Outcome, folder: Path) -> None:
    facts = result(outcome, "companies")
    assert (facts["creditsUsed"], facts["changes"]["new"]) == (2, 2)
    assert {row["number"]: row["change"] for row in rows(facts["path"])} == {
        "SC-1001": "new",
        "SC-1002": "new",
    }


def answer(outcome: Outcome, folder: Path) -> None:
    assert result(outcome, "first_answer")["text"]


def loop(outcome: Outcome, folder: Path) -> None:
    assert [line for line in outcome.log.splitlines() if "8 pages, 8 wanted" in line]


CHECKS = {
    "Prices to Parquet": prices,
    "A news digest": digest,
    "A site to files": site,
    "A folder of PDFs into vectors": pdfs,
    AGENT: agent,
    "Queries from a CSV file": queries,
    "One DAG for many sites": sites,
    "Chunks for a vector store": chunks,
    "An alert when a price falls": alert,
    LATE: late,
    EACH_CHECK: each_check,
    "A DAG for each new file": events,
    APPROVED: approved,
    LOOP: loop,
    "A pool for all crawls": pooled,
    "Stop before the credits run out": guarded,
    "A check before publishing": checked,
    "A crawl that colleagues start from the UI": on_demand,
    "Company records by provider": companies,
    "The hook in a task of your own": answer,
}


def test_each_recipe_has_its_form() -> None:
    """A sentence of motivation, 10 to 25 lines of code, and a sentence on adapting it; the table counts the lines."""
    table = (FOLDER / "README.md").read_text()
    for title, code in RECIPES.items():
        count = sum(1 for line in code.splitlines() if line.strip())
        assert 10 <= count <= 25, title
        assert re.search(rf"\[{re.escape(title)}\]\(\w+\.md\) {count} \|", table), (title, count)
    assert len(RECIPES) == len(list(FOLDER.glob("*.md"))) - 1


@pytest.mark.parametrize("title", RUN)
def test_a_recipe(title: str, cook: Cook, tmp_path: Path) -> None:
    outcome = cook(title)
    for run in outcome.runs:
        assert run["state"] == "success", outcome.log[-4000:]
        for key, value in run["xcom"].items():
            if key.endswith(".return_value"):
                assert not list(empty(value, key)), value
    CHECKS[title](outcome, tmp_path)


def test_a_change_is_reported_once(cook: Cook, sandbox: SandboxServer) -> None:
    assert result(cook(CHANGES), "message") == "new: https://shop.example/plans"
    sandbox.control.set_page("https://shop.example/plans", "<p>Small: 14 EUR. Large: 33 EUR.</p>")
    assert result(cook(CHANGES), "message") == "changed: https://shop.example/plans"
    assert cook(CHANGES).state("message") == "skipped"


def test_a_new_price_updates_its_row_and_is_reported(
    cook: Cook, sandbox: SandboxServer, tmp_path: Path
) -> None:
    assert {"Gooseneck kettle: 75.5 EUR", "Hand grinder: 59.0 EUR"} < {*result(cook(WATCH), "alert")}
    offer = {"@type": "Product", "name": "Gooseneck kettle", "offers": {"price": 69.5}}
    html = f'<script type="application/ld+json">{json.dumps(offer)}</script>'
    sandbox.control.set_page("https://shop.example/kettles", html)
    outcome = cook(WATCH)
    assert result(outcome, "alert") == ["Gooseneck kettle: 69.5 EUR"]
    assert outcome.xcom["load.loaded"] == 1
    with sqlite3.connect(tmp_path / "warehouse.db") as warehouse:
        prices = dict(warehouse.execute("SELECT json_name, json_offers ->> 'price' FROM prices"))
    assert prices["Gooseneck kettle"] == 69.5
    assert prices["Hand grinder"] == 59


def test_only_new_pages_are_scraped(cook: Cook, sandbox: SandboxServer, tmp_path: Path) -> None:
    first = cook(NEW)
    assert (tmp_path / "seen.txt").read_text().split() == result(first, "new")
    assert result(first, "pages")["count"] == len(result(first, "new"))
    assert cook(NEW).state("pages") == "skipped"
    sandbox.control.set_page("https://river.example/ferry", "<p>The ferry sails again.</p>")
    assert result(cook(NEW), "new") == ["https://river.example/ferry"]


@asks_a_person
def test_a_crawl_that_is_not_approved(cook: Cook, sandbox: SandboxServer) -> None:
    outcome = cook(APPROVED, 'responses = {"approve": "Reject"}\n')
    assert outcome.state("crawl") == "skipped"
    assert sandbox.control.requests("/v2/crawl") == []


def test_only_the_failed_query_is_made_again(cook: Cook, sandbox: SandboxServer) -> None:
    sandbox.control.add_fault("status", path="/v2/search", status=500)
    at_once = 'dag.get_task("search").retry_delay = timedelta(seconds=0.1)\n'
    outcome = cook(FAILED, at_once)
    assert outcome.run["tasks"]["search"] == {"state": "success", "try_number": 2}
    asked = [call["body"]["query"] for call in sandbox.control.requests("/v2/search")]
    assert sorted(asked) == sorted(["river level", "stone bridge", "coffee", asked[0]])
    assert result(outcome, "report") == "0 searches failed: []"


def test_days_are_searched_one_by_one(cook: Cook, tmp_path: Path, sandbox: SandboxServer) -> None:
    dates = 'logical_dates = ["2026-01-02T00:00:00+00:00", None]\n'
    outcome = cook(HISTORY, dates)
    assert {run["state"] for run in outcome.runs} == {"success"}
    asked = [call["body"]["tbs"] for call in sandbox.control.requests("/v2/search")]
    written = [Path(run["xcom"]["search.return_value"]["path"]).stem for run in outcome.runs]
    # One that is started by hand searches its own day.
    for day, tbs in zip(written, asked, strict=True):
        searched = datetime.fromisoformat(day).strftime("%m/%d/%Y")
        assert tbs == f"cdr:1,cd_min:{searched},cd_max:{searched}"
    assert written[0] == "2026-01-01"
    assert len({*written}) == 2


@pytest.mark.skipif(airflow_release() < PARTITION_EVENTS, reason="tasks cannot emit partitions")
def test_a_day_is_a_partition(cook: Cook) -> None:
    """Its consumer needs a scheduler: tests/e2e/test_partitions.py."""
    (file,) = result(cook(DAYS), "search")["files"]
    assert file["partition"] == {"date": Path(file["path"]).stem}


def test_nothing_bad_is_published(cook: Cook, sandbox: SandboxServer, tmp_path: Path) -> None:
    sandbox.control.set_page("https://shop.example/plans", "<p></p>")
    outcome = cook("A check before publishing")
    assert (outcome.state("crawl"), outcome.state("report")) == ("failed", "upstream_failed")
    assert "coverage markdown: expected at least 1, got 0.75 (3 of 4)" in outcome.log
    assert not (tmp_path / "published.jsonl").exists()


def test_a_check_is_late_an_hour_after_the_run_was_queued() -> None:
    """The email, of which Airflow's triggerer gets the path and the arguments, can be written."""
    names: dict[str, Any] = {}
    exec(RECIPES[LATE], names)
    alert = names["dag"].deadline
    alert = alert[0] if isinstance(alert, list) else alert
    assert alert.interval == timedelta(hours=1)
    assert alert.reference is DeadlineReference.DAGRUN_QUEUED_AT
    email = import_string(alert.callback.path)(**alert.callback.kwargs)
    assert email.subject == "No prices by 06:00"


def test_a_report_is_due_after_each_check_and_every_morning() -> None:
    names: dict[str, Any] = {}
    exec(RECIPES[EACH_CHECK], names)
    schedule = names["dag"].timetable
    assert schedule.can_be_scheduled
    assert schedule.timetable.expression == "0 6 * * *"
    (checks,) = schedule.asset_condition.objects
    (watcher,) = checks.watchers
    assert watcher.trigger.serialize()[1]["events"] == ["monitor.check.completed"]


def test_every_job_uses_a_slot() -> None:
    names: dict[str, Any] = {}
    exec(RECIPES["A pool for all crawls"], names)
    tasks = names["dag"].tasks
    assert [(task.pool, task.deferrable, task.retries) for task in tasks] == [("webdata", True, 2)] * 2
