# SPDX-License-Identifier: Apache-2.0
"""Everything that a task writes to last, counted and named: Airflow's task state store, XCom, and files.

`docs/contributing/state.md` is the table of it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.common.xcom_keys import XCOM_KEYS
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.monitor.create import WebDataCreateMonitorOperator
from airflow_provider_webdata.operators.monitor.run import WebDataRunMonitorOperator
from airflow_provider_webdata.operators.provider import WebDataProviderOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Changes, Quality
from tests.support import direct
from tests.support.direct import StateStore, TaskInstance
from tests.support.snippets import ROOT
from webdata_sandbox.server import SandboxServer

TARGETS = [{"type": "scrape", "urls": ["https://river.example/"]}]
LONG = "https://river.example/long"
COMPANIES = {
    "provider": "company-register",
    "capability": "companies/search",
    "options": {"query": "river"},
}
SCHEDULE = {"cron": "0 6 1 1 *"}


class Writes(Counter[str]):
    """The number of writes by medium and name."""

    @property
    def names(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for written in self:
            medium, _, name = written.partition(" ")
            found.setdefault(medium, set()).add(name)
        return found


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Writes:
    """Record each write to the store and to XCom, and each file that takes its place."""
    counted = Writes()

    def counting(medium: str, method: Callable[..., Any]) -> Any:
        def write(self: Any, key: str, *args: Any, **options: Any) -> Any:
            counted[f"{medium} {key}"] += 1
            return method(self, key, *args, **options)

        return write

    monkeypatch.setattr(StateStore, "set", counting("store", StateStore.set))
    monkeypatch.setattr(StateStore, "delete", counting("store", StateStore.delete))
    monkeypatch.setattr(TaskInstance, "xcom_push", counting("xcom", TaskInstance.xcom_push))
    replace = os.replace

    def replacing(source: Any, target: Any, **options: Any) -> None:
        replace(source, target, **options)
        path = Path(os.fsdecode(target))
        if tmp_path in path.parents:
            name = re.sub(r"[0-9a-f]{8,}", "*", str(path.relative_to(tmp_path)))
            counted[f"file {name}"] += 1

    monkeypatch.setattr(os, "replace", replacing)
    return counted


def crawl(folder: Path, **more: Any) -> WebDataCrawlOperator:
    return WebDataCrawlOperator(
        task_id="t",
        url="https://river.example/",
        save_to=f"{folder}/out/*.jsonl",
        changes=Changes(f"{folder}/seen", removed_after=timedelta(days=1)),
        deferrable=True,
        poll_interval=1,
        **{"limit": 5, "credit_limit": 100, "quality": Quality(min_items=1), **more},
    )


def test_a_crawl_with_options(here: SandboxServer, writes: Writes, tmp_path: Path) -> None:
    done = direct.run(crawl(tmp_path), StateStore())
    assert done.state == "success", done.error
    assert sum(writes.values()) <= 24, writes


def test_a_search(here: SandboxServer, writes: Writes, tmp_path: Path) -> None:
    task = WebDataSearchOperator(
        task_id="t", query="river", save_to=f"{tmp_path}/out/*.jsonl", credit_limit=10
    )
    done = direct.run(task, StateStore())
    assert done.state == "success", done.error
    assert sum(writes.values()) <= 12, writes


def tasks(folder: Path, monitor_id: str) -> list[Any]:
    """Return one task of each way of remembering."""
    out = f"{folder}/out/*.jsonl"
    step = "console.log(await page.title())"
    return [
        crawl(folder),
        crawl(folder, limit=100, quality=Quality(min_items=99)),
        WebDataSearchOperator(task_id="t", query="river", credit_limit=10),
        WebDataScrapeOperator(task_id="t", url=LONG, save_to=out),
        WebDataBatchSearchOperator(task_id="t", queries=["river", "floods"], save_to=out),
        WebDataIncrementalCrawlOperator(
            task_id="t",
            url="https://river.example/",
            save_to=out,
            changes=f"{folder}/seen",
            refresh_after=60,
            poll_interval=1,
        ),
        WebDataInteractOperator(task_id="t", steps=[step]),
        WebDataProviderOperator(task_id="t", **COMPANIES),
        WebDataCreateMonitorOperator(task_id="t", name="declared", schedule=SCHEDULE, targets=TARGETS),
        WebDataRunMonitorOperator(task_id="t", monitor_id=monitor_id, poll_interval=1),
    ]


def listed() -> dict[str, list[str]]:
    """Return the names in the table, by medium: keys, and patterns of paths."""
    page = (ROOT / "docs/contributing/state.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| (task state store|file|XCom): (.+?) \|", page, re.M)
    found: dict[str, list[str]] = {"store": [], "file": [], "xcom": [*XCOM_KEYS, "return_value"]}
    for medium, cell in rows:
        found[{"task state store": "store", "file": "file", "XCom": "xcom"}[medium]] += re.findall(
            "`([^`]+)`", cell
        )
    return found


def test_what_tasks_write_is_in_the_table(here: SandboxServer, writes: Writes, tmp_path: Path) -> None:
    with WebDataHook() as hook:
        monitor = hook.create_monitor(name="m", schedule=SCHEDULE, targets=TARGETS)
    here.control.set_page(LONG, f"<main>{'Much text. ' * 9999}</main>")
    for task in tasks(tmp_path, monitor.id):
        done = direct.run(task, StateStore())
        assert done.state == "success" or isinstance(getattr(task, "quality", None), Quality), done.error
    table, names = listed(), writes.names
    assert names["store"] == set(table["store"]), names["store"]
    assert names["xcom"] <= set(table["xcom"]), names["xcom"] - set(table["xcom"])
    patterns = [re.sub(r"<[a-z_]+>", "[^/]+", re.escape(path).replace(r"\<", "<")) for path in table["file"]]
    unknown = [
        name for name in names["file"] if not any(re.search(f"{pattern}$", name) for pattern in patterns)
    ]
    assert unknown == []
