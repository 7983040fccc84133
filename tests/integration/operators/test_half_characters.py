"""Half an emoji in an answer, on its way through operators into XCom, files and asset events, in a real Airflow."""

from __future__ import annotations

import json

import pytest
from pyarrow import parquet

from tests.support.fault_server import FaultServer, answer
from tests.support.service import connection_text

ANSWER = r"""
{"success": true, "id": "s-1", "creditsUsed": 1, "warning": "cut \ud83d",
 "data": {"web": [{"url": "https://a.example", "title": "\ude00", "markdown": "a\ud83d", "new\ud83d": "\ud83d\ude00"}]}}
"""
ITEM = {"url": "https://a.example", "title": "\ufffd", "markdown": "a\ufffd", "new\ufffd": "😀"}


@pytest.mark.rule("half-characters")
def test_half_an_emoji_costs_no_result(run_dag, tmp_path):
    """One paid call each; what is read later is text that everything can carry."""
    server = FaultServer([answer(body=ANSWER)])
    done = run_dag(
        f"""
        from airflow.sdk import Asset

        found = Asset("half")
        to_xcom = WebDataSearchOperator(
            task_id="to_xcom", query="q", returns="web", webdata_conn_id="raw", outlets=[found]
        )
        for ending in ("jsonl", "jsonl.gz", "parquet"):
            WebDataSearchOperator(
                task_id=f"to_{{ending.replace('.', '_')}}", query="q", returns="web", webdata_conn_id="raw",
                output=f"{tmp_path}/found.{{ending}}",
            )

        @task(inlets=[found])
        def reads(*, inlet_events):
            return inlet_events[found][-1].extra["warning"]

        to_xcom >> reads()
        """,
        environ={"AIRFLOW_CONN_RAW": connection_text(server.url)},
    )
    server.close()
    assert done.run["state"] == "success", done.log
    assert len(server.requests) == 4
    assert done.xcom["to_xcom.return_value"] == [ITEM]
    assert done.xcom["reads.return_value"] == "cut \ufffd"
    assert json.loads((tmp_path / "found.jsonl").read_bytes()) == ITEM
    (row,) = parquet.read_table(tmp_path / "found.parquet").to_pylist()
    assert (row["title"], row["markdown"]) == ("\ufffd", "a\ufffd")
    assert json.loads(row["extra"]) == {"new\ufffd": "😀"}
