"""Flat documents, and files by partition."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.sandbox.server import SandboxServer
from tests.support.dag_runner import Outcome

IMPORTS = """
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
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
