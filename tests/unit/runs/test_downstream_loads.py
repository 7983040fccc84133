# SPDX-License-Identifier: Apache-2.0
"""Loads that would refuse a task's file are found before the task's call."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.support import direct
from tests.support.fault_server import FaultServer, answer
from tests.support.service import connection_text

URL = "https://a.example/"
SCHEMA = {"type": "object", "properties": {"price": {"type": "number"}}}
WRITERS: dict[str, Any] = {
    "scrape": (WebDataScrapeOperator, {"url": URL}),
    "parse": (WebDataParseOperator, {"file": "FOLDER/a.pdf"}),
    "crawl": (WebDataCrawlOperator, {"url": URL}),
    "batch scrape": (WebDataBatchScrapeOperator, {"urls": [URL]}),
    "incremental crawl": (
        WebDataIncrementalCrawlOperator,
        {"url": URL, "changes": "FOLDER/seen", "refresh_after": timedelta(days=1)},
    ),
    "map": (WebDataMapOperator, {"url": URL}),
    "search": (WebDataSearchOperator, {"query": "q"}),
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    started = FaultServer([answer(500)])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(started.url))
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps({"conn_type": "sqlite", "host": "/tmp/x.db"}))
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps({"conn_type": "mysql"}))
    yield started
    started.close()


def played(made: Any, given: dict[str, Any], end: str, how: str, folder: Path, **load: Any) -> Any:
    path = f"{folder}/{'*' if 'changes' in given else 'pages'}{end}"
    (folder / "a.pdf").write_bytes(b"%PDF-1.4")
    given = {
        name: value.replace("FOLDER", str(folder)) if isinstance(value, str) else value
        for name, value in given.items()
    }
    if "changes" in given:
        # The path of a run's file is known only in the run.
        how = {"literal": "output", "list": "path"}.get(how, how)
    with DAG("d", schedule=None):
        task = made(task_id="write", save_to=path, **given)
        paths = {"output": task.output, "path": task.output["path"], "literal": path, "list": [path]}
        paths["template"] = "{{ ti.xcom_pull('write')['path'] }}"
        arguments = {"conn_id": "warehouse", "table": "pages", **load}
        task >> WebDataToTableOperator(task_id="store", path=paths[how], **arguments)
    return direct.run(task)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "column": ({"columns": ["url", "titel"]}, r"columns: the file has no column 'titel'"),
    "key": (
        {"key": "sku"},
        r"key: the column 'sku' is not loaded|key: rows of a task with changes .* omit key",
    ),
    "key of other columns": ({"columns": ["title"]}, r"key: the column '\w+' is not loaded"),
    "table": ({"table": "a.b.c"}, "table must be 'name' or 'schema.name'"),
    "connection": ({"conn_id": "nowhere"}, "Connection 'nowhere' does not exist"),
    "type of connection": ({"conn_id": "other"}, "has the type 'mysql'"),
}


@pytest.mark.parametrize(
    ("name", "load", "words"),
    [
        pytest.param(name, *case, id=f"{name}-{title}")
        for name, (_, given) in WRITERS.items()
        for title, case in REFUSED.items()
        # The key of a task with changes is always loaded.
        if "changes" not in given or title != "key of other columns"
    ],
)
def test_a_load_that_cannot_work_is_found_before_the_call(
    server: FaultServer, tmp_path: Path, name: str, load: dict[str, Any], words: str
) -> None:
    made, given = WRITERS[name]
    for end, how in ((".jsonl", "output"), (".parquet", "path"), (".csv.gz", "literal"), (".jsonl", "list")):
        done = played(made, given, end, how, tmp_path, **load)
        assert done.ended == ("failed", 1), (end, how, done.error)
        assert isinstance(done.error, AirflowFailException)
        text = str(done.error)
        assert "Task 'store' would refuse the file of this task: " in text
        assert re.search(words, text), text
    assert server.requests == []


ACCEPTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "defaults": ({}, {}),
    "fields of a run": ({"changes": "FOLDER/seen"}, {"columns": {"source_url": "a", "change": "b"}}),
    "columns of the task's schema": (
        {"result_schema": SCHEMA, "formats": [{"type": "json", "prompt": "p"}]},
        {"columns": ["source_url", "json_price"], "result_schema": SCHEMA},
    ),
    "columns of the request's schema": (
        {"formats": [{"type": "json", "schema": SCHEMA}]},
        {"columns": ["source_url", "json_price"]},
    ),
    "flat documents": ({"documents": True}, {"columns": ["id", "text"]}),
    "known at run time": ({}, {"table": "{{ ds }}", "conn_id": "{{ var.value.c }}"}),
    "history": ({}, {"mode": "append"}),
    "a connection of other workers": ({}, {"conn_id": "nowhere", "executor_config": {"image": "loads"}}),
    "other items": ({}, {"kind": "generic", "mode": "replace"}),
    "fields of other items": ({}, {"kind": "generic", "columns": ["metadata", "extra"], "mode": "replace"}),
}


@pytest.mark.parametrize(("given", "load"), ACCEPTED.values(), ids=ACCEPTED)
def test_a_load_that_may_work_is_not_refused(
    server: FaultServer, tmp_path: Path, given: dict[str, Any], load: dict[str, Any]
) -> None:
    made, more = WRITERS["scrape"]
    ends = ((".jsonl", "output"), (".parquet", "path"), (".csv", "template"))
    for end, how in ends[:1] if "metadata" in load.get("columns", ()) else ends:
        done = played(made, {**more, **given}, end, how, tmp_path, **load)
        assert "would refuse" not in str(done.error)
        assert "(WD-003)" not in str(done.error)
    assert len(server.requests) > 0
