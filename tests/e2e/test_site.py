# SPDX-License-Identifier: Apache-2.0
"""A site of a thousand pages over five runs, each with a worker killed, and each cleared once."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.holding_proxy import HoldingProxy
from tests.e2e.run import Run
from tests.support.stack import REPOSITORY, Stack
from tests.support.waiting import PATIENCE, wait_until
from webdata_sandbox.control import SandboxControl

SITE = "https://thousand.example/"
HOUR = 3600
NOTHING = range(0)


@dataclass(frozen=True)
class Day:
    """What becomes of the site before a run, by the numbers of its pages."""

    added: range = NOTHING
    changed: range = NOTHING
    gone: range = NOTHING
    moved: range = NOTHING
    failing: range = NOTHING


DAYS = (
    Day(added=range(1, 1000), failing=range(990, 992)),
    Day(added=range(1001, 1011), changed=range(1, 21), gone=range(101, 106), moved=range(201, 204)),
    Day(
        added=range(1011, 1016),
        changed=range(21, 51),
        gone=range(106, 116),
        moved=range(204, 206),
        failing=range(301, 305),
    ),
    Day(failing=range(305, 310)),
    Day(added=range(1016, 1031), changed=range(51, 76), gone=range(116, 136), moved=range(206, 211)),
)


@dataclass(frozen=True)
class Expected:
    """What a run gives, computed by hand, in the order of the table in the documentation."""

    new: int
    changed: int
    removed: int
    failed: int
    same: int
    credits: int
    rows: int


EXPECTED = (
    # All that can be read, of 999 pages and the front page.
    Expected(new=998, changed=0, removed=0, failed=2, same=0, credits=1000, rows=998),
    # 10 added, 3 moved and the 2 that failed.
    Expected(new=15, changed=20, removed=0, failed=0, same=970, credits=1005, rows=1013),
    # 5 added and 2 moved; the 5 and the 3 that went before the second run were missed twice.
    Expected(new=7, changed=30, removed=8, failed=4, same=959, credits=1000, rows=1012),
    # The 10 and the 2 that went before the third.
    Expected(new=0, changed=0, removed=12, failed=5, same=983 + 12, credits=1000, rows=1000),
    # 15 added and 5 moved; what is gone is missed once.
    Expected(new=20, changed=25, removed=0, failed=0, same=950, credits=995, rows=1020),
)


@dataclass
class Site:
    """The site as it is, and what a run should have told of it by now."""

    control: SandboxControl
    texts: dict[str, str] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    rows: dict[str, str] = field(default_factory=dict)
    missed: set[str] = field(default_factory=set)

    def become(self, number: int, day: Day) -> dict[str, set[str]]:
        """Change the site, and return the URLs that the run is to give, by their change."""
        recovered = self.failing
        self.failing = {address(page) for page in day.failing}
        fresh = {address(page): f"Page {page}." for page in day.added}
        fresh |= {f"{SITE}new/{page}": self.texts[address(page)] for page in day.moved}
        if number == 1:
            fresh[SITE] = "The front page."
        changed = {address(page): f"Page {page} of day {number}." for page in day.changed}
        gone = {address(page) for page in (*day.gone, *day.moved)}
        self.texts = {url: text for url, text in (self.texts | fresh | changed).items() if url not in gone}
        for url in {*fresh, *changed, *recovered, *self.failing}:
            status = 500 if url in self.failing else 200
            self.control.set_page(url, f"<p>{self.texts[url]}</p>", status=status)
        for url in gone:
            self.control.delete_page(url)
        self.control.set_site("thousand.example", sitemap=[*self.texts])

        readable = {url: text for url, text in self.texts.items() if url not in self.failing}
        given = {
            "new": {*readable} - {*self.rows},
            "changed": {url for url in readable if self.rows.get(url, readable[url]) != readable[url]},
            "removed": self.missed,
        }
        self.rows = {url: text for url, text in (self.rows | readable).items() if url not in self.missed}
        self.missed = gone
        return given


def address(page: int) -> str:
    return f"{SITE}{page}"


def kill(task: dict[str, Any], with_its_worker: bool = False) -> None:
    process = psutil.Process(task["pid"])
    # Without its worker nobody reports the death: the scheduler has to miss the heartbeats.
    for victim in [process.parent(), process] if with_its_worker else [process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()


Begin = Callable[[], Run]


def before_it_learns_its_job(begin: Begin, site: Site, folder: Path, proxy: HoldingProxy) -> Run:
    run = begin()
    running = run.wait_for("crawl", "running")
    assert proxy.answered.wait(PATIENCE), run.log(running)
    kill(run.task("crawl"))
    proxy.release()
    return run


def while_it_waits(begin: Begin, site: Site, folder: Path, proxy: HoldingProxy) -> Run:
    return _waiting(begin, site, with_its_worker=False)


def while_it_waits_and_nobody_reports(begin: Begin, site: Site, folder: Path, proxy: HoldingProxy) -> Run:
    return _waiting(begin, site, with_its_worker=True)


def _waiting(begin: Begin, site: Site, *, with_its_worker: bool) -> Run:
    control = site.control
    control.configure(page_seconds=10)
    control.clear_requests()
    run = begin()
    assert wait_until(lambda: bool(control.requests("/v2/crawl/[^/]+$", "GET"))), run.log(run.task("crawl"))
    kill(run.task("crawl"), with_its_worker)
    control.configure(page_seconds=0)
    # The results of a job are kept for a day.
    control.advance(12 * HOUR)
    return run


def with_its_output_written(begin: Begin, site: Site, folder: Path, proxy: HoldingProxy) -> Run:
    return _held(begin, folder, "crawl")


def with_the_table_loaded(begin: Begin, site: Site, folder: Path, proxy: HoldingProxy) -> Run:
    return _held(begin, folder, "load")


def _held(begin: Begin, folder: Path, task_id: str) -> Run:
    held = folder / f"hold_{task_id}"
    held.touch()
    run = begin()
    assert wait_until((folder / f"{held.name}.reached").exists), run.states()
    kill(run.task(task_id))
    held.unlink()
    return run


DEATHS = (
    ("crawl", before_it_learns_its_job),
    ("crawl", while_it_waits),
    ("crawl", while_it_waits_and_nobody_reports),
    ("crawl", with_its_output_written),
    ("load", with_the_table_loaded),
)


@pytest.fixture
def folder(stack: Stack, tmp_path: Path) -> Path:
    sqlite3.connect(tmp_path / "pages.db").close()
    stack.api.add_connection(
        {"connection_id": "site_table", "conn_type": "sqlite", "host": str(tmp_path / "pages.db")}
    )
    return tmp_path


@pytest.fixture
def proxy(stack: Stack) -> Iterator[HoldingProxy]:
    with HoldingProxy(stack.sandbox_url, hold=("POST", "/v2/crawl")) as proxy:
        stack.api.add_connection(stack.connection("webdata_site", service_url=proxy.url))
        yield proxy


def test_a_thousand_pages_over_five_runs(
    stack: Stack, start: Callable[..., Run], sandbox: SandboxControl, folder: Path, proxy: HoldingProxy
) -> None:
    """Each run gives exactly what changed, again when it is cleared, and the table is what was seen."""
    sandbox.configure(credits=10**6)
    site = Site(sandbox)
    documents: dict[str, str] = {}
    told = []
    for number, (day, (victim, die)) in enumerate(zip(DAYS, DEATHS, strict=True), 1):
        given = site.become(number, day)
        output = folder / f"{number}.jsonl"
        conf = {"connection": "webdata_site", "folder": str(folder), "day": number}

        run = die(lambda conf=conf: start("e2e_site", conf), site, folder, proxy)
        run.succeed()
        tries = {task["task_id"]: task["try_number"] for task in run.tasks()}
        assert tries == {"crawl": 1, "load": 1} | {victim: 2}
        items = without_versions(output.read_bytes())
        credits = run.xcom("crawl", "credits")
        once = credits["used"]
        # The second attempt took the job of the one that was killed.
        assert credits["saved"] == (once if victim == "crawl" else 0)
        assert read(folder / "pages.db") == site.rows

        clear(stack, run)
        run.succeed()
        assert without_versions(output.read_bytes()) == items
        assert read(folder / "pages.db") == site.rows

        for change, urls in given.items():
            found = [item["url"] for item in items if item["change"] == change]
            assert (len(found), {*found}) == (len(urls), urls), (number, change)
        # A vector store takes the file as upserts and deletes by id, and knows what the table knows.
        for item in items:
            if item["change"] == "removed":
                del documents[item["id"]]
            else:
                documents[item["id"]] = item["text"]
        assert sorted(documents.values()) == sorted(site.rows.values())

        # What both crawls cost, and neither of the attempts more.
        assert run.xcom("crawl", "credits")["used"] == 2 * once
        counts = run.xcom("crawl", "changes")
        names = ("new", "changed", "removed", "failed", "same")
        told.append(Expected(*(counts[name] for name in names), credits=once, rows=len(site.rows)))
    assert tuple(told) == EXPECTED
    spent = [job["spent"] for job in sandbox.jobs("crawl") if job["request"]["url"] == SITE]
    assert spent == [once.credits for once in EXPECTED for _ in range(2)]


def test_the_documentation_has_these_figures() -> None:
    page = (REPOSITORY / "docs/contributing/reliability.md").read_text()
    before = 0
    for number, (day, expected) in enumerate(zip(DAYS, EXPECTED, strict=True), 1):
        added = len(day.added) + (number == 1)
        site = [added, len(day.changed), len(day.gone), len(day.moved), len(day.failing)]
        before += added - len(day.gone)
        gives = [expected.new, expected.changed, expected.removed, expected.failed]
        cells = [number, *site, before, *gives, expected.credits, expected.rows]
        assert "| " + " | ".join(f"{cell:,}" for cell in cells) + " |" in page


def without_versions(lines: bytes) -> list[dict[str, Any]]:
    items = [json.loads(line) for line in lines.splitlines()]
    return [{name: value for name, value in item.items() if name != "webdata_version"} for item in items]


def read(database: Path) -> dict[str, str]:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        today = "SELECT url, text FROM pages WHERE webdata_removed_at IS NULL"
        return dict(connection.execute(today).fetchall())


def clear(stack: Stack, run: Run) -> None:
    body = {"dry_run": False, "dag_run_id": run.id, "only_failed": False, "reset_dag_runs": True}
    stack.api.call("POST", "/dags/e2e_site/clearTaskInstances", json=body)
