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

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Changes, Quality
from tests.support import direct
from tests.support.direct import StateStore, TaskInstance


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


def test_a_crawl_with_options(here: Any, writes: Writes, tmp_path: Path) -> None:
    task = WebDataCrawlOperator(
        task_id="t",
        url="https://river.example/",
        limit=5,
        save_to=f"{tmp_path}/out/*.jsonl",
        changes=Changes(f"{tmp_path}/seen", removed_after=timedelta(days=1)),
        quality=Quality(min_items=1),
        credit_limit=100,
        deferrable=True,
        poll_interval=1,
    )
    done = direct.run(task, StateStore())
    assert done.state == "success", done.error
    print(dict(writes))
    assert sum(writes.values()) <= 24


def test_a_search(here: Any, writes: Writes, tmp_path: Path) -> None:
    task = WebDataSearchOperator(
        task_id="t", query="river", save_to=f"{tmp_path}/out/*.jsonl", credit_limit=10
    )
    done = direct.run(task, StateStore())
    assert done.state == "success", done.error
    print(dict(writes))
    assert sum(writes.values()) <= 12
