# SPDX-License-Identifier: Apache-2.0
"""Two Airflows with the same DAG, one key, and one bucket, for a simulated day."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator
from tests.support import direct
from tests.support.direct import Outcome, StateStore
from tests.support.inbox_server import InboxServer
from webdata_sandbox.server import SandboxServer

PAGES = [f"https://corner.example/{name}" for name in "abc"]
MIDNIGHT = datetime(2026, 1, 1, tzinfo=timezone.utc)
NAMES = ("production", "staging")
WAITING: dict[str, Any] = {"deferrable": False, "poll_interval": 1}


@pytest.fixture(scope="module")
def inbox_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with InboxServer(tmp_path_factory.mktemp("inbox")) as inbox:
        inbox.others = ("hush-secret",)
        yield inbox.url


@pytest.fixture
def enter(
    here: SandboxServer, connect: Any, monkeypatch: pytest.MonkeyPatch, inbox_url: str
) -> Callable[[str], None]:
    """Return a function that makes this process one of the Airflows."""

    def become(name: str) -> None:
        monkeypatch.setenv("AIRFLOW__WEBDATA__ENVIRONMENT", name)
        address = {"webhook_url": f"https://{name}.example", "inbox_url": inbox_url}
        connect(here, **address, webhook_secret="hush-secret")

    return become


def declare(name: str, hour: int) -> Outcome:
    """Declare a monitor in the DAG of both Airflows."""
    with DAG("shop", schedule=None):
        targets = [{"type": "scrape", "urls": [PAGES[0]]}]
        task = WebDataCreateMonitorOperator(
            task_id="keep", name=name, schedule={"cron": "0 * * * *"}, targets=targets
        )
    return direct.run(task, StateStore(), day=MIDNIGHT + timedelta(hours=hour))


def read(folder: Path, hour: int, **more: Any) -> tuple[str, list[tuple[str, str]]]:
    """Scrape the pages; return the path of the file, and what it says about each emitted page."""
    with DAG("shop", schedule=None):
        task = WebDataBatchScrapeOperator(
            task_id="read",
            urls=PAGES,
            max_age=0,
            changes=str(folder / "seen"),
            save_to=str(folder / "*.jsonl"),
            **WAITING,
        )
    done = direct.run(task, StateStore(), day=MIDNIGHT + timedelta(hours=hour), **more)
    assert done.state == "success", done.error
    items = [json.loads(line) for line in Path(done.value["path"]).read_text().splitlines()]
    return done.value["path"], sorted((item["change"], item["page"][-1]) for item in items)


def monitors(sandbox: SandboxServer) -> dict[str, Any]:
    return {monitor["name"]: monitor for monitor in sandbox.control.state()["monitors"]}


def test_a_day_of_two_airflows(here: SandboxServer, enter: Callable[[str], None], tmp_path: Path) -> None:
    """No monitor is changed in turns, each change reaches both, and only what is requested is billed."""
    for url in PAGES:
        here.control.set_page(url, "<p>0</p>")
    before = here.control.state()["credits"]
    emitted: dict[str, list[tuple[int, str, str]]] = {name: [] for name in NAMES}
    paths: list[str] = []
    for hour in range(24):
        if hour and hour % 6 == 0:
            here.control.set_page(PAGES[1], f"<p>{hour}</p>")
        for name in NAMES:
            enter(name)
            assert declare(f"prices of {name}", hour).state == "success"
            # One name in both belongs to the first that declares it.
            shared = declare("prices", hour)
            assert shared.state == ("success" if name == "production" else "failed")
            if name == "staging":
                assert "production.example" in str(shared.error)
                assert "staging.example" in str(shared.error)
            path, found = read(tmp_path, hour)
            paths.append(path)
            emitted[name] += [(hour, change, page) for change, page in found]
        here.control.advance(3600)

    assert here.control.requests(method="PATCH") == []
    addresses = {name: monitor["webhook"]["url"].split("/")[2] for name, monitor in monitors(here).items()}
    assert addresses == {
        "prices of production": "production.example",
        "prices of staging": "staging.example",
        "prices": "production.example",
    }
    day = [*((0, "new", page) for page in "abc"), *((hour, "changed", "b") for hour in (6, 12, 18))]
    assert emitted == dict.fromkeys(NAMES, day)
    assert len(set(paths)) == len(paths) == 48
    checked = sum(check["actualCredits"] or 0 for check in here.control.state()["checks"])
    assert before - here.control.state()["credits"] == 2 * 24 * len(PAGES) + checked
    assert checked == 3 * 24


def test_a_restored_database(here: SandboxServer, enter: Callable[[str], None], tmp_path: Path) -> None:
    """Airflow knows nothing of the last run any more: what it emitted is emitted again, and its monitor is found."""
    enter("production")
    for url in PAGES:
        here.control.set_page(url, "<p>0</p>")
    declare("prices", 0)
    read(tmp_path, 0)
    here.control.set_page(PAGES[1], "<p>1</p>")
    assert read(tmp_path, 1)[1] == [("changed", "b")]
    lost = direct.run_id_of(MIDNIGHT + timedelta(hours=1))
    assert read(tmp_path, 2, states={lost: None})[1] == [("changed", "b")]
    assert read(tmp_path, 3, states={lost: None})[1] == []
    assert declare("prices", 2).state == "success"
    assert len(monitors(here)) == 1
    assert here.control.requests(method="PATCH") == []


def test_an_airflow_that_moves(here: SandboxServer, enter: Callable[[str], None], tmp_path: Path) -> None:
    """Its former name gives it back its monitors and its state."""
    for url in PAGES:
        here.control.set_page(url, "<p>0</p>")
    enter("former.example")
    declare("prices", 0)
    read(tmp_path, 0)
    enter("moved.example")
    refused = declare("prices", 1)
    assert refused.state == "failed"
    assert "set [webdata] environment to its former value, former.example" in str(refused.error)
    assert read(tmp_path, 1)[1] == [("new", page) for page in "abc"]
    enter("former.example")
    assert declare("prices", 2).state == "success"
    assert read(tmp_path, 2)[1] == []


def test_a_stored_response_belongs_to_one_airflow(
    here: SandboxServer, enter: Callable[[str], None], tmp_path: Path
) -> None:
    """One file for both: the other Airflow neither uses the response nor deletes it."""
    store = StateStore()

    def search(store: StateStore) -> Outcome:
        with DAG("shop", schedule=None):
            task = WebDataBatchSearchOperator(
                task_id="search",
                queries=["river", "rain"],
                max_concurrency=1,
                save_to=str(tmp_path / "found.jsonl"),
            )
        return direct.run(task, store, day=MIDNIGHT)

    def sent() -> list[tuple[str, int]]:
        """Return the queries sent since the last call, with the status of the response."""
        requests = here.control.requests("/v2/search")
        here.control.clear_requests()
        return [(request["body"]["query"], request["status"]) for request in requests]

    enter("production")
    here.control.configure(credits=2)  # enough for the first query
    assert search(store).state == "failed"
    assert sent() == [("river", 200), ("rain", 402)]
    here.control.configure(credits=1000)
    enter("staging")
    assert search(StateStore()).state == "success"
    assert sent() == [("river", 200), ("rain", 200)]
    enter("production")
    assert search(store).state == "success"
    assert sent() == [("rain", 200)]


@pytest.mark.parametrize("cut", NAMES)
def test_a_lost_response_finds_no_job_of_the_other_airflow(
    here: SandboxServer, enter: Callable[[str], None], cut: str
) -> None:
    here.control.configure(page_seconds=3600)
    jobs = []
    for name in NAMES:
        enter(name)
        if name == cut:
            here.control.add_fault("drop_after_work", method="POST", path="/v2/crawl")
        with DAG("shop", schedule=None):
            task = WebDataCrawlOperator(task_id="crawl", url=PAGES[0], limit=3, wait_for_completion=False)
        done = direct.run(task, StateStore(), day=MIDNIGHT)
        if done.state == "success":
            jobs.append(done.value)
    assert len(jobs) == len(set(jobs)) >= 1
    assert len(here.control.jobs("crawl")) == 2
