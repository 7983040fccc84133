# SPDX-License-Identifier: Apache-2.0
"""A task without work: an empty list is an empty result, without a request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.spelling import snake_case
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.monitor import (
    WebDataCreateMonitorOperator,
    WebDataUpdateMonitorOperator,
)
from airflow_provider_webdata.operators.provider import WebDataProviderOperator
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.support import direct
from tests.support.direct import StateStore

EMPTY = {"a list": [], "native or XCom": (), "JSON": "{{ [] | tojson }}", "a literal text": "[]"}

WORK: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "pages": (
        WebDataBatchScrapeOperator,
        "urls",
        {
            "id": None,
            "status": "completed",
            "total": 0,
            "completed": 0,
            "creditsUsed": 0,
            "errors": {"count": 0, "robots_blocked": 0, "pages": []},
            "count": 0,
            "data": [],
        },
    ),
    "calls": (
        WebDataProviderOperator,
        "calls",
        {
            "scrape_id": None,
            "creditsUsed": 0,
            "requestId": None,
            "calls": [],
            "failed": 0,
            "count": 0,
            "data": [],
        },
    ),
}


@pytest.mark.parametrize("given", EMPTY.values(), ids=EMPTY.keys())
@pytest.mark.parametrize(("task", "name", "result"), WORK.values(), ids=WORK.keys())
def test_no_work_is_an_empty_result(here: Any, task: Any, name: str, result: Any, given: Any) -> None:
    outcome = direct.run(task(task_id="t", credit_limit=1, **{name: given}), StateStore())
    assert (outcome.state, outcome.value) == ("success", result)
    assert here.control.requests() == []
    assert outcome.xcom.get("credits", {"used": 0})["used"] == 0


SEARCHED = {"done": 0, "failed": [], "left": [], "not_begun": 0, "credits_used": 0, "count": 0}


@pytest.mark.parametrize(
    ("task", "name", "result"), [(WebDataBatchSearchOperator, "queries", SEARCHED), *WORK.values()]
)
def test_no_work_is_an_empty_file(here: Any, task: Any, name: str, result: Any, tmp_path: Path) -> None:
    """It replaces that of an earlier run."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"url": "https://a.example/"}\n')
    outcome = direct.run(task(task_id="t", save_to=str(path), **{name: []}))
    assert (outcome.state, outcome.value["count"], outcome.value["path"]) == ("success", 0, str(path))
    assert path.read_text() == ""
    assert here.control.requests() == []
    assert outcome.value.keys() - {"path", "bytes"} == {*map(snake_case, result)} - {"data"}


def test_results_without_urls_are_no_pages(here: Any) -> None:
    """What a search found, for example."""
    task: Any = WebDataBatchScrapeOperator(task_id="t", urls=["a.example"])
    task.urls = {"web": [], "creditsUsed": 2}  # As Airflow renders XCom.
    assert direct.run(task).value["total"] == 0
    assert here.control.requests() == []


def test_without_pages_there_is_no_job_to_return(here: Any) -> None:
    outcome = direct.run(WebDataBatchScrapeOperator(task_id="t", urls=[], wait_for_completion=False))
    assert outcome.state == "skipped"
    assert "no job was started" in str(outcome.error)
    assert here.control.requests() == []


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (WebDataBatchScrapeOperator(task_id="t", urls=[], timeout="{{ 0 }}"), "timeout"),
        (
            WebDataBatchSearchOperator(task_id="t", queries="{{ '' }}", save_to="a.jsonl"),
            "queries has no value",
        ),
        (
            WebDataBatchSearchOperator(task_id="t", queries="{{ none }}", save_to="a.jsonl"),
            "queries has no value",
        ),
        (WebDataInteractOperator(task_id="t", steps="{{ [] | tojson }}"), "steps: at least one is required"),
        (WebDataAgentOperator(task_id="t", prompt="p", urls="{{ [] | tojson }}"), "urls is empty"),  # type: ignore[arg-type]
        (
            WebDataCreateMonitorOperator(
                task_id="t",
                name="n",
                schedule="daily",
                targets="{{ [] | tojson }}",  # type: ignore[arg-type]
            ),
            "targets",
        ),
        (
            WebDataUpdateMonitorOperator(task_id="t", monitor_name="n", targets="{{ [] | tojson }}"),  # type: ignore[arg-type]
            "targets",
        ),
    ],
    ids=["another argument", "an empty text", "none", "steps", "an agent's pages", "targets", "new targets"],
)
def test_what_can_only_be_a_mistake_is_refused(here: Any, task: Any, words: str) -> None:
    outcome = direct.run(task)
    assert outcome.ended == ("failed", 1)
    assert words in str(outcome.error)
    assert here.control.requests() == []


@pytest.mark.parametrize("path", [[], "{{ [] | tojson }}"])
def test_no_files_are_an_empty_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: Any) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DB", json.dumps({"conn_type": "sqlite", "host": str(tmp_path / "x.db")}))
    outcome = direct.run(WebDataToTableOperator(task_id="t", path=path, table="t", conn_id="db"))
    assert (outcome.state, outcome.value) == (
        "success",
        {"table": "t", "loaded": 0, "removed": 0, "outdated": 0, "duplicates": 0, "files": 0},
    )


def test_an_agent_without_pages_is_refused_while_the_file_is_parsed() -> None:
    with pytest.raises(ArgumentError, match="urls is empty: the agent would search the whole web"):
        WebDataAgentOperator(task_id="t", prompt="p", urls=[])
