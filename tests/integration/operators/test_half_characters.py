# SPDX-License-Identifier: Apache-2.0
"""Half an emoji in an answer, through an operator into XCom, a file, and an asset event, in a real Airflow."""

from __future__ import annotations

import json

import pytest
from pyarrow import parquet

from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.results.files.formats import SUFFIXES
from tests.support import direct
from tests.support.fault_server import FaultServer, answer
from tests.support.service import connection_text

ANSWER = r"""
{"success": true, "id": "s-1", "creditsUsed": 1, "warning": "cut \ud83d",
 "data": {"web": [{"url": "https://a.example", "title": "\ude00", "markdown": "a\ud83d", "new\ud83d": "\ud83d\ude00"}]}}
"""
ITEM = {"url": "https://a.example", "title": r"\ude00", "markdown": r"a\ud83d", r"new\ud83d": "😀"}


@pytest.fixture
def server():
    server = FaultServer([answer(body=ANSWER)])
    yield server
    server.close()


@pytest.mark.rule("half-characters")
def test_half_an_emoji_costs_no_result(run_dag, server):
    """Every reader gets text that everything can carry."""
    done = run_dag(
        """
        from airflow.sdk import Asset

        found = Asset("half")
        to_xcom = WebDataSearchOperator(
            task_id="to_xcom", query="q", returns="web", webdata_conn_id="raw", outlets=[found]
        )

        @task(inlets=[found])
        def reads(*, inlet_events):
            return inlet_events[found][-1].extra["warning"]

        to_xcom >> reads()
        """,
        environ={"AIRFLOW_CONN_RAW": connection_text(server.url)},
    )
    assert done.run["state"] == "success", done.log
    assert len(server.requests) == 1
    assert done.xcom["to_xcom.return_value"] == [ITEM]
    assert done.xcom["reads.return_value"] == r"cut \ud83d"


@pytest.mark.rule("half-characters")
def test_half_an_emoji_in_files(server, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    for ending in SUFFIXES:
        output = f"{tmp_path}/found{ending}"
        task = WebDataSearchOperator(task_id="t", query="q", returns="web", save_to=output)
        assert direct.run(task).value["count"] == 1
    assert json.loads((tmp_path / "found.jsonl").read_bytes()) == ITEM
    (row,) = parquet.read_table(tmp_path / "found.parquet").to_pylist()
    assert (row["title"], row["markdown"]) == (r"\ude00", r"a\ud83d")
    assert json.loads(row["extra"]) == {r"new\ud83d": "😀"}
