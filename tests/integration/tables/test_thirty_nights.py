# SPDX-License-Identifier: Apache-2.0
"""Thirty nights of a site that changes at random, with failed loads, overlapping nights, and killed workers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.runs.publishing.detect_changes import DetectChanges
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.integration.tables.conftest import Target
from tests.support import direct
from tests.support.dag_runner import connection
from tests.support.direct import KilledError, StateStore
from webdata_sandbox.server import SandboxServer

HOME = "https://corner.example/"
NAMES = "abcdefghij"
NIGHTS = 30
QUIET_NIGHTS = 2


def when(night: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(days=night)


class Nights:
    """A pipeline with a load downstream, what Airflow knows of its runs, and what it emitted.

    :ivar last: the newest emission of each page: its version, its content (None: removed), and its night.
    """

    def __init__(self, site: SandboxServer, folder: Path, rnd: random.Random) -> None:
        self._control, self._rnd = site.control, rnd
        self.states: dict[str, dict[str, str | None]] = {}
        self.paths: dict[int, str] = {}
        self.waiting: list[int] = []
        self.last: dict[str, tuple[int, str | None, int]] = {}
        self.emissions = 0
        self.unneeded: list[tuple[int, str]] = []
        self.is_up = dict.fromkeys(NAMES, True)
        crawl: dict[str, Any] = {"url": HOME, "scrape_options": {"max_age": 0}, "deferrable": False}
        with DAG("shop", schedule=None):
            self._crawl = WebDataCrawlOperator(
                task_id="crawl",
                changes=Changes(str(folder / "state"), removed_after=timedelta(days=1)),
                save_to=str(folder / "*.jsonl"),
                poll_interval=1,
                **crawl,
            )
            output: Any = self._crawl.output
            WebDataToTableOperator(task_id="load", path=output, table="shop", conn_id="warehouse")
        self._plain = WebDataCrawlOperator(task_id="all", poll_interval=1, **crawl)
        self._control.set_page(
            HOME, "<main>" + " ".join(f'<a href="/{name}">{name}</a>' for name in NAMES) + "</main>"
        )
        for name in NAMES:
            self._show(name)

    def _show(self, name: str) -> None:
        self._control.set_page(f"{HOME}{name}", f"<main>{name} {self._rnd.random()}</main>")
        self.is_up[name] = True

    def change_site(self, *, heals: bool = False) -> None:
        """Let pages change, fail for days, vanish, return, and redirect."""
        for name in NAMES:
            choice = self._rnd.random()
            if not self.is_up[name]:
                if heals or choice < 0.3:
                    self._show(name)
            elif heals or choice > 0.4:
                continue
            elif choice < 0.2:
                self._show(name)
            elif choice < 0.3:
                self._control.set_page(f"{HOME}{name}", "<p>no</p>", status=self._rnd.choice((404, 410, 503)))
                self.is_up[name] = False
            elif choice < 0.35:
                self._control.set_page(f"{HOME}{name}", "<p>no</p>", error="SCRAPE_SITE_ERROR")
                self.is_up[name] = False

    def crawl(self, night: int) -> None:
        """Crawl in a night."""
        run_id = direct.run_id_of(when(night))
        self.states[run_id] = {"load": None}
        before = dict(self.last)
        done = direct.run(self._crawl, StateStore(), day=when(night), states=self.states)
        assert done.state == "success", done.error
        self.paths[night] = done.value["path"]
        self.waiting.append(night)
        for line in Path(done.value["path"]).read_text().splitlines():
            item = json.loads(line)
            page, version, content = item["page"], item["webdata_version"], item.get("markdown")
            self.emissions += 1
            _, same, by = before.get(page, (0, "", night))
            if same == content and by != night and self._is_consumed(by):
                self.unneeded.append((night, page))
            self.last[page] = max(self.last.get(page, (0, None, 0)), (version, content, night))

    def crawl_with_kill(self, night: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Kill the worker between the file and the state; the next attempt finds the job."""
        with monkeypatch.context() as patch:
            patch.setattr(DetectChanges, "written", _killed)
            with pytest.raises(KilledError):
                direct.run(self._crawl, StateStore(), day=when(night), states=self.states)
        self.crawl(night)

    def crawl_two(self, night: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Crawl in a night, and in the next one before the first has written its state."""
        written = DetectChanges.written

        def later(step: DetectChanges) -> None:
            patch.undo()
            self.crawl(night + 1)
            written(step)

        with monkeypatch.context() as patch:
            patch.setattr(DetectChanges, "written", later)
            self.crawl(night)

    def _is_consumed(self, night: int) -> bool:
        return self.states[direct.run_id_of(when(night))]["load"] == "success"

    def load(self, night: int, *, fails: bool = False) -> None:
        """Load the file of a night; one that fails waits until it is cleared."""
        self.waiting.remove(night)
        run_id = direct.run_id_of(when(night))
        if fails:
            self.states[run_id] = {"load": "failed"}
            self.waiting.append(night)
            return
        with DAG("shop", schedule=None):
            load = WebDataToTableOperator(
                task_id="load", path=self.paths[night], table="shop", conn_id="warehouse"
            )
        done = direct.run(load, day=when(night))
        assert done.state == "success", done.error
        self.states[run_id] = {"load": "success"}

    def site(self) -> dict[str, str]:
        """Return the pages of the site as a crawl without `changes` reads them."""
        pages = direct.run(self._plain, StateStore(), day=when(99)).value["data"]
        return {
            page["metadata"]["sourceURL"]: page["markdown"]
            for page in pages
            if page["metadata"]["statusCode"] == 200
        }


def _killed(_: DetectChanges) -> None:
    raise KilledError


@pytest.fixture
def nights(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nights]:
    with SandboxServer() as server:
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection(server))
        yield Nights(server, tmp_path, random.Random(seed))


def rows(database: Target) -> dict[str, str]:
    return dict(
        database.query("SELECT page, markdown FROM shop WHERE webdata_removed_at IS NULL")  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(("database", "seed"), [("postgresql", 0), ("sqlite", 1)], indirect=["database"])
def test_the_table_is_the_site_after_two_quiet_nights(
    nights: Nights, database: Target, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rnd, night = random.Random(seed), 0
    while night < NIGHTS:
        nights.change_site()
        choice = rnd.random()
        if choice < 0.15:
            nights.crawl_two(night, monkeypatch)
            night += 1
        elif choice < 0.3:
            nights.crawl_with_kill(night, monkeypatch)
        else:
            nights.crawl(night)
        night += 1
        late = [number for number in nights.waiting if rnd.random() < 0.5]
        rnd.shuffle(late)
        for number in late:
            nights.load(number, fails=rnd.random() < 0.4)
    nights.change_site(heals=True)
    expected = nights.site()
    for number in range(NIGHTS + 1, NIGHTS + 1 + QUIET_NIGHTS):
        nights.crawl(number)
        nights.load(number)
    assert rows(database) == expected
    # The loads that failed are cleared, in any order.
    rnd.shuffle(nights.waiting)
    for number in [*nights.waiting]:
        nights.load(number)
    assert rows(database) == expected
    assert nights.emissions > 3 * len(NAMES)
    assert nights.unneeded == []
    emitted = nights.emissions
    nights.crawl(NIGHTS + 10)
    assert nights.emissions == emitted, "a quiet night emits nothing"
