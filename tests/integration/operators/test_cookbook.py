# SPDX-License-Identifier: Apache-2.0
"""Every recipe of the cookbook, unchanged, on a real Airflow, against the sandbox, started by hand."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import psycopg2
import pytest
from airflow.sdk import DeadlineReference
from airflow.sdk.module_loading import import_string
from pyarrow import parquet

from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from tests.integration.operators.test_documentation import empty
from tests.integration.operators.test_tutorial import messages
from tests.support.airflow_features import HAS_LOOPS
from tests.support.dag_runner import Airflow, Outcome, connection
from tests.support.postgres import Postgres
from tests.support.snippets import ROOT
from webdata_sandbox.server import SandboxServer

FOLDER = ROOT / "docs" / "cookbook"
PDF = ROOT / "sandbox" / "tests" / "files" / "chromium.pdf"
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
CI, REPORT = "Test DAGs in CI", "Send last month's credits to a chat"
CHANGES = "Message about changed pages"
DOWN, REJECTED = "Crawl many sites, of which some are down", "Reject bad records"
FRAME = "Put results into a DataFrame"
WATCH = "Watch the prices of three shops"
POSTGRES = "Nightly crawl into PostgreSQL"
DLT = "Nightly crawl into Snowflake or BigQuery"
ALERT = "Alert when a page or a price changes"
FAILED, HISTORY = "Retry only the failed queries", "Write a file for each day"
AGENT, CHECKED = "Ask an agent", "Run a DAG after each check"
APPROVED, LOOP = "Ask before a paid crawl", "Search until enough"
LATE, EACH_CHECK = "Email when a check is late", "Report after each check and every morning"
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
    # That of each check needs an event: sandbox/tests/testing/test_user_project.py. The report needs an API server:
    # tests/integration/ui/test_report.py.
    if title
    not in (CI, REPORT, CHANGES, WATCH, FAILED, HISTORY, CHECKED, POSTGRES, DLT, ALERT, DOWN, REJECTED, FRAME)
]
"""Recipes that need one run, and nothing else."""

BY_HAND = "logical_dates = [None]\n"
"""`dag.test()` deletes the former run of the same date, also of none."""
SETTINGS = {
    "Run a DAG for each new file": "dags = [crawl_docs, load_docs]\n",
    APPROVED: 'responses = {"approve": "Approve"}\n',
    # dag.test() looks alerts up under ids that only a DAG from Airflow's database has.
    LATE: "dag.deadline = None\n",
}
"""The reader's actions besides starting the DAG."""

Cook = Callable[..., Outcome]


def of_day(day: int) -> str:
    return f"logical_dates = ['2026-01-{day:02}T00:00:00+00:00']\n"


@pytest.fixture
def cook(airflow: Airflow, sandbox: SandboxServer, tmp_path: Path) -> Cook:
    """Run a recipe, which writes to the folder of the test."""

    def run(
        title: str, settings: str = "", changed: Mapping[str, str] | None = None, day: int = 0
    ) -> Outcome:
        code = RECIPES[title].replace("/tmp/webdata", str(tmp_path))
        for former, new in (changed or {}).items():
            assert former in code
            code = code.replace(former, new)
        source = code + (of_day(day) if day else BY_HAND) + SETTINGS.get(title, "") + settings
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
    # As a spreadsheet saves it: with a byte order mark.
    (tmp_path / "queries.csv").write_text("query,limit\nriver level,5\ncoffee,3\n", encoding="utf-8-sig")
    return run


def result(outcome: Outcome, task: str) -> Any:
    return outcome.xcom[f"{task}.return_value"]


def rows(path: str) -> list[dict[str, Any]]:
    return parquet.read_table(path.removeprefix("file://")).to_pylist()


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path.removeprefix("file://")).read_text().splitlines()]


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


def table(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(folder / "warehouse.db")) as warehouse:
        return warehouse.execute(statement).fetchall()


def queries(outcome: Outcome, folder: Path) -> None:
    assert {*table(folder, "SELECT DISTINCT query FROM found")} == {("river level",), ("coffee",)}


def chunks(outcome: Outcome, folder: Path) -> None:
    found = lines(result(outcome, "chunks"))
    assert len(found) == result(outcome, "crawl")["count"] > 1
    assert all(page["id"] and page["chunks"] for page in found)


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


def capped(outcome: Outcome, folder: Path) -> None:
    assert (
        result(outcome, "report")
        == f"{result(outcome, 'crawl')['count']} credits used, 0 calls of unknown cost"
    )


def long(outcome: Outcome, folder: Path) -> None:
    assert result(outcome, "crawl")["count"] > 1


def checked(outcome: Outcome, folder: Path) -> None:
    assert result(outcome, "report").startswith("4 pages published to ")
    assert len(lines(str(folder / "published.jsonl"))) == 4


def on_demand(outcome: Outcome, folder: Path) -> None:
    assert lines(result(outcome, "crawl")["path"])[0]["markdown"]


def companies(outcome: Outcome, folder: Path) -> None:
    facts = result(outcome, "companies")
    assert (facts["credits_used"], facts["changes"]["new"]) == (2, 2)
    assert {row["number"]: row["change"] for row in rows(facts["path"])} == {
        "SC-1001": "new",
        "SC-1002": "new",
    }


def answer(outcome: Outcome, folder: Path) -> None:
    assert result(outcome, "first_answer")["text"]


def loop(outcome: Outcome, folder: Path) -> None:
    assert [line for line in outcome.log.splitlines() if "8 pages, 8 wanted" in line]


CHECKS = {
    "Send a news digest every morning": digest,
    "Save a site as files": site,
    "Turn a folder of PDFs into vectors": pdfs,
    AGENT: agent,
    "Load searches into a table": queries,
    "Split pages into chunks for a vector store": chunks,
    LATE: late,
    EACH_CHECK: each_check,
    "Run a DAG for each new file": events,
    APPROVED: approved,
    LOOP: loop,
    "Limit concurrent jobs with a pool": pooled,
    "Cap the credits and report them": capped,
    "Wait for hours, through restarts": long,
    "Publish only good pages": checked,
    "Let colleagues start a crawl from a form": on_demand,
    "Load company records": companies,
    "Call several operations in one function": answer,
}


def test_each_recipe_has_its_form() -> None:
    """A sentence of motivation, up to 26 lines of code, and a sentence on adapting it; the index lists each once."""
    index = (FOLDER / "README.md").read_text()
    for title, code in RECIPES.items():
        assert 10 <= sum(1 for line in code.splitlines() if line.strip()) <= 26, title
        assert len(re.findall(rf"\[{re.escape(title)}\]\(\w+\.md\)", index)) == 1, title
    assert len(RECIPES) == len(list(FOLDER.glob("*.md"))) - 1


@pytest.mark.says("XCom `path` has the name")
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
    assert {"Gooseneck kettle: 75.5 EUR", "Hand grinder: 59.0 EUR"} < {*result(cook(WATCH, day=2), "alert")}
    offer = {"@type": "Product", "name": "Gooseneck kettle", "offers": {"price": 69.5}}
    html = f'<script type="application/ld+json">{json.dumps(offer)}</script>'
    sandbox.control.set_page("https://shop.example/kettles", html)
    outcome = cook(WATCH, day=3)
    assert result(outcome, "alert") == ["Gooseneck kettle: 69.5 EUR"]
    assert outcome.xcom["load.return_value"]["loaded"] == 1
    with sqlite3.connect(tmp_path / "warehouse.db") as warehouse:
        prices = dict(warehouse.execute("SELECT json_name, json_offers ->> 'price' FROM prices"))
    assert prices["Gooseneck kettle"] == 69.5
    assert prices["Hand grinder"] == 59


def test_each_change_of_a_price_is_in_the_history(cook: Cook, sandbox: SandboxServer, tmp_path: Path) -> None:
    for day, price in ((2, 75.5), (3, 69.5)):
        offer = {"name": "Gooseneck kettle", "offers": {"price": price}}
        sandbox.control.set_page("https://shop.example/kettles", json=offer)
        cook(WATCH, changed={'table="prices"': 'table="prices", mode="append"'}, day=day)
    found = re.search(
        r"^```sql\n(.*?)^```$", (FOLDER / "price_watch.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert found is not None
    with sqlite3.connect(tmp_path / "warehouse.db") as warehouse:
        rows = warehouse.execute(found[1]).fetchall()
    assert [row[2:] for row in rows if row[0] == "Gooseneck kettle"] == [(75.5, None), (69.5, 75.5)]
    assert [row[2:] for row in rows if row[0] == "Hand grinder"] == [(59, None)]


FAILING = "https://river.example/floods"
SOON = {
    "import pendulum": "import datetime\n\nimport pendulum\n"
    "from airflow_provider_webdata.options import Changes",
    'changes=f"{FOLDER}/seen"': 'changes=Changes(f"{FOLDER}/seen", removed_after=datetime.timedelta(0))',
}
"""Pages that two runs have missed are removed: all runs of a test are of today."""


def three_nights(run: Callable[[int], Outcome], sandbox: SandboxServer) -> None:
    """Load the site, then a changed page, then the removal of one; another page fails the second night."""
    run(2)
    sandbox.control.set_page("https://river.example/market", "<p>The market moves again.</p>", title="Market")
    sandbox.control.delete_page("https://river.example/salmon")
    sandbox.control.set_page(FAILING, "<p>Out of order</p>", status=503)
    run(3)
    # The state counts in seconds, and no page is removed in the second in which it was missed.
    time.sleep(1)
    sandbox.control.set_page(FAILING, "<p>Floods</p>")
    run(4)


def test_a_nightly_crawl_updates_and_marks_rows(
    airflow: Airflow, sandbox: SandboxServer, postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.create_database(f"recipe_{tmp_path.name.replace('-', '_')}").replace("+psycopg2", "")

    def rows() -> dict[str, str]:
        with contextlib.closing(psycopg2.connect(url)) as warehouse, warehouse.cursor() as cursor:
            cursor.execute("SELECT page, markdown FROM pages WHERE webdata_removed_at IS NULL")
            return dict(cursor.fetchall())

    source = RECIPES[POSTGRES].replace("/tmp/webdata", str(tmp_path))
    for former, new in SOON.items():
        source = source.replace(former, new)

    def run(day: int) -> Outcome:
        outcome = airflow.run(
            source + of_day(day),
            AIRFLOW_CONN_WEBDATA_DEFAULT=connection(sandbox),
            AIRFLOW_CONN_WAREHOUSE=url.replace("postgresql:", "postgres:"),
        )
        assert outcome.run["state"] == "success", outcome.log[-4000:]
        loaded = outcome.xcom["load.return_value"]
        loads.append((loaded["loaded"], loaded["removed"], len(rows())))
        return outcome

    loads: list[tuple[int, int, int]] = []
    three_nights(run, sandbox)
    assert FAILING in rows()
    first, *later = loads
    assert first[0] == first[2] > 3
    assert later == [(1, 0, first[2]), (1, 1, first[2] - 1)]
    assert "The market moves again." in rows()["https://river.example/market"]
    assert "https://river.example/salmon" not in rows()


def test_a_nightly_crawl_into_a_warehouse(cook: Cook, sandbox: SandboxServer, tmp_path: Path) -> None:
    """DuckDB stands in for the warehouse, and the pipeline keeps its files in the test's folder."""
    file = tmp_path / "warehouse.duckdb"
    warehouse = 'destination="snowflake"'
    stand_in = f"pipelines_dir={str(tmp_path / 'dlt')!r}, destination=dlt.destinations.duckdb({str(file)!r})"
    assert RECIPES[DLT].count(warehouse) == 1
    counts: list[int] = []

    def rows() -> dict[str, str]:
        with duckdb.connect(str(file)) as database:
            today = "SELECT page, markdown FROM web.pages WHERE webdata_removed_at IS NULL"
            return dict(database.execute(today).fetchall())

    def run(day: int) -> Outcome:
        outcome = cook(DLT, changed={warehouse: stand_in, **SOON}, day=day)
        assert outcome.run["state"] == "success", outcome.log[-4000:]
        counts.append(len(rows()))
        return outcome

    three_nights(run, sandbox)
    assert counts == [counts[0], counts[0], counts[0] - 1]
    assert FAILING in rows()
    assert "The market moves again." in rows()["https://river.example/market"]
    assert "https://river.example/salmon" not in rows()


def test_a_changed_price_is_posted(cook: Cook, sandbox: SandboxServer) -> None:
    with messages() as (alert_url, sent):
        settings = f'import os\nos.environ["AIRFLOW_VAR_ALERT_URL"] = {alert_url!r}\n'
        assert cook(ALERT, settings, day=2).run["state"] == "success"
        assert cook(ALERT, settings, day=3).state("alert") == "skipped"
        assert sent == []
        price = {"name": "Gooseneck kettle", "offers": {"price": 69.5}}
        sandbox.control.set_page("https://shop.example/kettles", json=price)
        assert cook(ALERT, settings, day=4).run["state"] == "success"
        assert sent == ["Gooseneck kettle: now 69.5 EUR"]


def test_a_site_that_is_down_is_reported_and_the_others_are_loaded(cook: Cook, tmp_path: Path) -> None:
    [failed] = result(cook(DOWN), "report")
    assert failed.startswith("https://gone.example/: ")
    assert "DNS resolution failed" in failed
    hosts = {url.split("/")[2] for (url,) in table(tmp_path, "SELECT source_url FROM sites")}
    assert hosts == {"docs.pipeline.example", "river.example", "shop.example", "weather.example"}


def test_a_bad_record_is_kept_aside(cook: Cook, sandbox: SandboxServer, tmp_path: Path) -> None:
    sandbox.control.set_page(
        "https://shop.example/grinders", json={"name": "Hand grinder", "offers": {"price": 0}}
    )
    outcome = cook(REJECTED)
    assert table(tmp_path, "SELECT json_name FROM products") == [("Gooseneck kettle",)]
    [bad] = lines(result(outcome, "good").replace(".good.", ".rejected."))
    [reason] = bad["validationErrors"]
    assert reason in (FOLDER / "reject_bad_records.md").read_text()


def test_results_become_a_frame(cook: Cook) -> None:
    """A table of pyarrow stands in for the DataFrame: pandas is not installed here."""
    outcome = cook(
        FRAME,
        changed={
            "import pandas": "import pyarrow as pandas, pyarrow.parquet",
            "pandas.DataFrame(rows)": "pandas.Table.from_pylist(rows)",
            "frame.to_parquet(file)": "pandas.parquet.write_table(frame, file)",
        },
    )
    found = rows(result(outcome, "store"))
    assert {row["query"] for row in found} == {"river level", "stone bridge"}
    assert all(row["title"] and row["url"] for row in found)


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


def test_nothing_bad_is_published(cook: Cook, sandbox: SandboxServer, tmp_path: Path) -> None:
    sandbox.control.set_page("https://shop.example/plans", "<p></p>")
    outcome = cook("Publish only good pages")
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
    exec(RECIPES["Limit concurrent jobs with a pool"], names)
    tasks = names["dag"].tasks
    assert [(task.pool, task.deferrable, task.retries) for task in tasks] == [("webdata", True, 2)] * 2
