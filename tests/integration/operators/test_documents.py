"""Flat documents, files by partition, and a site that goes into a table run by run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.sandbox.server import SandboxServer
from tests.support.dag_runner import Outcome

IMPORTS = """
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.operators.to_table import WebDataToTableOperator
"""
BATCH = """
WebDataBatchScrapeOperator(
    task_id="t", urls=["https://one.example/", "https://two.example/"], deferrable=False, poll_interval=1, MORE
)
"""


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def two_sites(sandbox: SandboxServer) -> None:
    for name in ("one", "two"):
        sandbox.control.set_page(
            f"https://{name}.example/",
            f"<html><head><title>{name}</title></head><body><p>The {name}.</p></body></html>",
        )


@pytest.mark.usefixtures("two_sites")
def test_partitions(run_dag: Callable[..., Outcome], tmp_path: Path) -> None:
    more = f'output="file://{tmp_path}/pages.jsonl", partition_by="host"'
    done = run_dag(BATCH.replace("MORE", more), IMPORTS)
    told = done.xcom["t.return_value"]
    assert (told["path"], told["count"]) == (f"file://{tmp_path}/pages.files.json", 2)
    assert [entry["partition"] for entry in told["files"]] == [
        {"host": "one.example"},
        {"host": "two.example"},
    ]
    (page,) = lines(tmp_path / "host=two.example" / "pages.jsonl")
    assert page["metadata"]["title"] == "two"


@pytest.mark.usefixtures("two_sites")
def test_flat_documents(run_dag: Callable[..., Outcome]) -> None:
    ids = []
    for _ in range(2):
        found = run_dag(BATCH.replace("MORE", "documents=True"), IMPORTS).xcom["t.return_value"]["data"]
        assert {(row["url"], row["title"], row["text"]) for row in found} == {
            (f"https://{name}.example/", name, f"The {name}.") for name in ("one", "two")
        }
        ids.append({row["id"] for row in found})
    assert ids[0] == ids[1]
    assert len(ids[0]) == 2


PAGES = 1000
RUNS = """
from datetime import datetime
from pathlib import Path
from airflow_provider_webdata.sandbox.control import SandboxControl

FOLDER = Path({folder!r})
PAGES = {pages}
logical_dates = [f"2026-01-0{{day}}T00:00:00+00:00" for day in range(1, 6) for _ in range(2)]

def names(day):
    # One page in a hundred goes each day from the second on, and as many come.
    return range((day - 1) * PAGES // 100, PAGES + (day - 1) * PAGES // 100)

def text(name, day):
    # One in fifty changes each day.
    return f"Page {{name}} as of day {{max([1, *(d for d in range(2, day + 1) if name % 50 == d)])}}."

@task
def publish(url, logical_date=None):
    day = logical_date.day
    output = FOLDER / f"{{day}}.jsonl"
    if output.exists():
        output.rename(FOLDER / f"{{day}}.first.jsonl")
    control = SandboxControl(url)
    links = " ".join(f'<a href="/{{name}}">{{name}}</a>' for name in names(day))
    control.set_page("https://big.example/", f"<main>{{links}}</main>")
    for name in names(day):
        if day == 1 or text(name, day) != text(name, day - 1) or name not in names(day - 1):
            # Some cannot be read on the fourth day.
            control.set_page(f"https://big.example/{{name}}", f"<p>{{text(name, day)}}</p>")
        if name % 97 == 0:
            control.set_page(
                f"https://big.example/{{name}}", f"<p>{{text(name, day)}}</p>", status=500 if day == 4 else 200
            )
"""
SITE = """
crawl = WebDataCrawlOperator(
    task_id="crawl", url="https://big.example/", limit=2 * PAGES, scrape_options={"max_age": 0}, documents=True,
    manifest=f"{FOLDER}/seen", emit="changed", removed_after=1, deferrable=False, poll_interval=1,
    output="file://" + str(FOLDER) + "/{{ logical_date.day }}.jsonl",
)
load = WebDataToTableOperator(task_id="load", path="{{ ti.xcom_pull('crawl')['path'] }}", table="pages", conn_id="db")
publish(URL) >> crawl >> load
"""


def test_a_site_of_a_thousand_pages_over_five_runs(
    run_dag: Callable[..., Outcome], sandbox: SandboxServer, tmp_path: Path
) -> None:
    """Pages come, change, go and fail, each day is run twice, and the table is the site of the day."""
    sandbox.control.configure(credits=10**6)
    database = tmp_path / "pages.db"
    sqlite3.connect(database).close()
    before = RUNS.format(folder=str(tmp_path), pages=PAGES) + IMPORTS + f"URL = {sandbox.url!r}"
    done = run_dag(
        SITE, before, environ={"AIRFLOW_CONN_DB": json.dumps({"conn_type": "sqlite", "host": str(database)})}
    )
    runs = done.runs
    assert [run["state"] for run in runs] == ["success"] * 10, done.log[-3000:]
    step = PAGES // 100
    for day in range(1, 6):
        # Airflow forgets the first run of a date when there is a second one.
        first = runs[2 * day - 1]["xcom"]["crawl.changes"]
        assert (tmp_path / f"{day}.jsonl").read_bytes() == (tmp_path / f"{day}.first.jsonl").read_bytes()
        told = [row.get("change") for row in lines(tmp_path / f"{day}.jsonl")]
        assert (told.count("new"), told.count("changed"), told.count("removed")) == (
            first["new"],
            first["changed"],
            first["removed"],
        )
        assert sum(first.values()) - first["removed"] == PAGES + 1
        # The start page changes with its links.
        expected = PAGES + 1 if day == 1 else step
        failing = [name for name in range((day - 1) * step, PAGES + (day - 1) * step) if name % 97 == 0]
        if day < 4:
            assert first["new"] == expected
            assert first["removed"] == (0 if day == 1 else step)
        assert first["failed"] == (len(failing) if day == 4 else 0)
    with sqlite3.connect(database) as connection:
        rows = dict(connection.execute("SELECT url, text FROM pages").fetchall())
    day = 5
    assert {url.rpartition("/")[2] for url in rows} - {""} == {
        str(name) for name in range(4 * step, PAGES + 4 * step)
    }
    for name in range(4 * step, PAGES + 4 * step):
        since = max([1, *(d for d in range(2, day + 1) if name % 50 == d)])
        assert rows[f"https://big.example/{name}"] == f"Page {name} as of day {since}."
    spent = sum(run["xcom"]["crawl.credits"]["used"] for run in runs[1::2])
    assert spent == 5 * (PAGES + 1)
