# SPDX-License-Identifier: Apache-2.0
"""Rejected results of a task with `changes`: requested again, or accepted by hand, in a table of a real database."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.options import Changes, Quality
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.support import direct
from tests.support.direct import Outcome, StateStore
from webdata_sandbox.server import SandboxServer

HOME = "https://corner.example/"
REJECT = Quality(min_items=9, coverage={"json.price": 1})


class Shop:
    """A site, the nightly crawl of it, and the table."""

    def __init__(self, sandbox: SandboxServer, folder: Path, database: Path) -> None:
        self.control, self.folder, self.database = sandbox.control, folder, database
        links = "".join(f'<a href="/{name}">{name}</a> ' for name in "ab")
        self.control.set_page(HOME, f"<main>{links}</main>")
        self.show(a="first", b="second")

    def show(self, **pages: str) -> None:
        for name, text in pages.items():
            self.control.set_page(f"{HOME}{name}", f"<main>{text}</main>")

    def crawl(self, day: int, quality: Quality | int = 1) -> Outcome:
        task = WebDataCrawlOperator(
            task_id="crawl",
            url=HOME,
            scrape_options={"max_age": 0},
            changes=Changes(str(self.folder / "seen"), removed_after=timedelta(0)),
            quality=quality,
            save_to=str(self.folder / "*.jsonl"),
            deferrable=False,
            poll_interval=1,
        )
        return direct.run(task, StateStore(), day=datetime(2026, 1, day, tzinfo=timezone.utc))

    def load(self, crawled: Outcome) -> None:
        """Load the file of a crawl, as a task downstream reads its return value."""
        path = crawled.xcom.get("return_value", crawled.value)
        task = WebDataToTableOperator(task_id="load", path=path, table="pages", conn_id="warehouse")
        done = direct.run(task)
        assert done.state == "success", done.error

    def night(self, day: int) -> list[tuple[str, str]]:
        """Crawl and load, and return what was emitted."""
        crawled = self.crawl(day)
        assert crawled.state == "success", crawled.error
        self.load(crawled)
        items = map(json.loads, Path(crawled.value["path"]).read_text().splitlines())
        return sorted((item["change"], item["page"].removeprefix(HOME)) for item in items)

    def rows(self) -> dict[str, str]:
        """Return the text of each page of today, without the front page."""
        with sqlite3.connect(self.database) as connection:
            found = connection.execute(
                "SELECT page, markdown FROM pages WHERE webdata_removed_at IS NULL AND page != ?", (HOME,)
            )
            return {page.removeprefix(HOME): text for page, text in found}


@pytest.fixture
def shop(here: SandboxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    database = tmp_path / "pages.db"
    sqlite3.connect(database).close()
    connection = json.dumps({"conn_type": "sqlite", "host": str(database)})
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", connection)
    shop = Shop(here, tmp_path, database)
    assert shop.night(1) == [("new", ""), ("new", "a"), ("new", "b")]
    return shop


def accepted(rejected: Outcome) -> Outcome:
    """Move the rejected file, as the message says; Airflow keeps the XComs of a task that is marked as success."""
    path = Path(rejected.xcom["path"])
    path.with_name(f"_{path.name}.rejected").rename(path)
    return rejected


@pytest.mark.says(
    "the log has each failed condition and the ways to go on",
    "The XComs `path`, `count`, and the return value are those of published results",
    "The message lists each failed condition with the expected and the actual value",
)
def test_the_failed_task_pushes_what_it_would_have_published(shop: Shop) -> None:
    shop.show(a="first, changed")
    rejected = shop.crawl(2, REJECT)
    assert rejected.state == "failed"
    value: dict[str, Any] = rejected.xcom["return_value"]
    path = Path(value["path"])
    assert value == {**value, **{name: rejected.xcom[name] for name in ("path", "count")}, "count": 1}
    assert not path.exists()
    beside = path.with_name(f"_{path.name}.rejected")
    assert value["bytes"] == beside.stat().st_size
    text = " ".join(str(rejected.error).split())
    for condition in (
        "min_items: expected at least 9, got 3",
        "coverage json.price: expected at least 1, got 0",
    ):
        assert condition in text
    assert f"{path} is unchanged, and the results are in {beside}" in text
    assert f"move that file to {path}, mark the task as success, and clear the tasks downstream" in text
    assert "clear the task, which is billed" in text
    published = shop.crawl(3)
    assert value.keys() - {"quality_rejected"} == published.value.keys() - {"quality"}


def test_accepted_results_are_loaded_and_emitted_again(shop: Shop) -> None:
    shop.show(a="first, changed")
    shop.load(accepted(shop.crawl(2, REJECT)))
    assert shop.rows() == {"a": "first, changed", "b": "second"}
    assert shop.night(3) == [("changed", "a")]
    assert shop.night(4) == []
    assert shop.rows() == {"a": "first, changed", "b": "second"}


def test_a_page_that_went_back_after_accepted_results_is_emitted(shop: Shop) -> None:
    shop.show(a="first, changed")
    shop.load(accepted(shop.crawl(2, REJECT)))
    shop.show(a="first")
    assert shop.night(3) == [("changed", "a")]
    assert shop.rows() == {"a": "first", "b": "second"}


def test_a_page_that_returns_after_accepted_results_removed_it(shop: Shop) -> None:
    shop.control.delete_page(f"{HOME}b")
    assert shop.night(2) == []
    shop.load(accepted(shop.crawl(3, REJECT)))
    assert shop.rows() == {"a": "first"}
    shop.show(b="second")
    assert shop.night(4) == [("new", "b")]
    assert shop.rows() == {"a": "first", "b": "second"}


@pytest.mark.parametrize("is_late", [False, True], ids=["never accepted", "accepted a night later"])
def test_rejected_results_are_healed_by_the_next_night(shop: Shop, is_late: bool) -> None:
    """A load of accepted results that runs late does not replace the newer rows."""
    shop.show(a="first, changed")
    rejected = shop.crawl(2, REJECT)
    shop.show(a="first, changed again")
    assert shop.night(3) == [("changed", "a")]
    if is_late:
        shop.load(accepted(rejected))
    assert shop.rows() == {"a": "first, changed again", "b": "second"}


def test_rejected_results_miss_no_page(shop: Shop) -> None:
    shop.control.delete_page(f"{HOME}b")
    for day in (2, 3):
        assert shop.crawl(day, REJECT).state == "failed"
    assert shop.night(4) == []
    assert shop.night(5) == [("removed", "b")]
    assert shop.rows() == {"a": "first"}
