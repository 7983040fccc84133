# SPDX-License-Identifier: Apache-2.0
"""Billed results that Airflow would refuse to store or to map over."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.results.tables.items import ResultsFile
from tests.support import direct
from tests.support.fault_server import FaultServer, answer
from tests.support.service import connection_text

URL = "https://example.com/"


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch):
    servers: list[FaultServer] = []

    def start(body: str) -> FaultServer:
        servers.append(FaultServer([answer(body=body)]))
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(servers[-1].url))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def test_nul_in_a_page(serve, caplog):
    server = serve(r'{"success": true, "data": {"markdown": "a\u0000b", "metadata": {"creditsUsed": 1}}}')
    done = direct.run(WebDataScrapeOperator(task_id="t", url=URL, retries=2))
    assert (done.ended, len(server.requests)) == (("success", 1), 1)
    assert done.value["markdown"] == "a\ufffdb"
    assert caplog.text.count("cannot store") == 1


def test_nul_beside_an_output(serve, tmp_path):
    """The file keeps the text, and what is pushed beside it is storable."""
    serve(
        r'{"success": true, "id": "s", "creditsUsed": 1, "warning": "cut\u0000",'
        r' "data": {"web": [{"url": "https://a.example", "title": "a\u0000"}]}}'
    )
    output = tmp_path / "found.jsonl"
    done = direct.run(WebDataSearchOperator(task_id="t", query="q", returns="web", save_to=str(output)))
    assert done.state == "success", done.error
    assert json.loads(output.read_text())["title"] == "a\0"
    assert "\\u0000" not in json.dumps([done.value, done.xcom])
    assert done.xcom["warning"] == "cut\ufffd"


def test_an_integer_above_64_bits(serve, tmp_path, caplog):
    """In XCom it is rounded, which the log says once; a file has each digit."""
    body = json.dumps(
        {
            "success": True,
            "data": {
                "json": {"id": 2**64 + 1, "other": -(2**63) - 1, "last": 2**63 - 1},
                "metadata": {"creditsUsed": 1},
            },
        }
    )
    serve(body)
    done = direct.run(WebDataScrapeOperator(task_id="t", url=URL, formats=["json"]))
    assert done.value["json"] == {"id": float(2**64), "other": -float(2**63), "last": 2**63 - 1}
    assert caplog.text.count("integers above 64 bits") == 1
    caplog.clear()
    for end in (".jsonl", ".csv", ".parquet"):
        serve(body)
        path = str(tmp_path / f"found{end}")
        done = direct.run(WebDataScrapeOperator(task_id="t", url=URL, save_to=path))
        assert done.state == "success", done.error
        with ResultsFile(path, "document") as file:
            [row] = file.rows()
        assert json.loads(row["json"])["id"] == 2**64 + 1
    assert "integers above" not in caplog.text


def mapped_over(**given: Any) -> WebDataMapOperator:
    with DAG("refused"):
        found = WebDataMapOperator(task_id="t", url=URL, retries=2, **given)
        WebDataScrapeOperator.partial(task_id="scrape").expand(url=found.output)
    return found


def test_a_list_that_is_too_long_to_map(serve, monkeypatch):
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "2")
    urls = [f"{URL}{number}" for number in range(3)]
    server = serve(json.dumps({"success": True, "links": [{"url": url} for url in urls]}))
    done = direct.run(mapped_over(returns="urls"))
    assert (done.ended, len(server.requests)) == (("failed", 1), 1)
    assert isinstance(done.error, AirflowFailException)
    assert "'scrape'" in str(done.error)
    assert "3 items, more than the 2 of [core] max_map_length" in str(done.error)
    assert done.xcom["unmapped"] == urls


def test_a_result_that_nothing_can_map_over(serve):
    server = serve(json.dumps({"success": True, "links": [{"url": URL}]}))
    done = direct.run(mapped_over(returns="urls", do_xcom_push=False))
    assert (done.ended, len(server.requests)) == (("failed", 1), 1)
    assert "no result in XCom" in str(done.error)
