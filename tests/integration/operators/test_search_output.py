# SPDX-License-Identifier: Apache-2.0
"""Results of searches in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.operators.search import WebDataSearchOperator
from tests.integration.results.media_server import MediaServer, serve
from tests.support import direct
from tests.support.direct import TaskInstance, context_of


@pytest.fixture(autouse=True)
def _pages(sandbox):
    for number in range(3):
        sandbox.control.set_page(
            f"https://zeppelin.example/{number}",
            markdown=f"# Zeppelin {number}\n\nOf airships.",
            title="Zeppelin",
        )


def search(**arguments):
    return WebDataSearchOperator(task_id="search", **{"query": "zeppelin", **arguments})


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.says("XCom then has `path`, `count`, `bytes`", "XCom has the file's path instead of the pages")
def test_a_file_in_a_real_airflow(run_dag, tmp_path):
    """XCom and the outlet's event have the path, the counts, and the credits; a task after it reads the file."""
    done = run_dag(
        f"""
        from airflow.sdk import Asset
        found = Asset("found")
        search = WebDataSearchOperator(
            task_id="search", query="zeppelin", sources=["web", "news"],
            save_to="{tmp_path}/{{{{ dag.dag_id }}}}/found.jsonl",
            scrape_options={{"formats": ["markdown"]}}, outlets=[found],
        )

        @task(inlets=[found])
        def reads(found_there, *, inlet_events):
            import json
            from airflow.sdk import ObjectStoragePath

            with ObjectStoragePath(found_there["path"]).open() as file:
                sources = sorted({{json.loads(line)["source"] for line in file}})
            return [sources, inlet_events[found][-1].extra]

        reads(search.output)
        """
    )
    assert done.run["state"] == "success"
    value = done.xcom["search.return_value"]
    (path,) = tmp_path.glob("*/found.jsonl")
    found = lines(path)
    assert value["path"] == str(path)
    assert value["count"] == len(found) == sum(value["counts"].values())
    assert value["bytes"] == path.stat().st_size
    assert value["id"]
    assert value["credits_used"] > 0
    assert done.xcom["search.path"] == str(path)
    assert not {"web", "news"} & value.keys()
    assert len(done.xcom["search.preview"]) == min(5, len(found))
    assert "Of airships." in found[0]["markdown"]
    assert done.run["rendered"]["search"]["save_to"] == str(path)
    sources, extra = done.xcom["reads.return_value"]
    assert sources == sorted({item["source"] for item in found})
    assert {name: extra[name] for name in ("path", "count", "credits_used")} == {
        name: value[name] for name in ("path", "count", "credits_used")
    }


def test_one_list_to_a_file(here, tmp_path):
    """With `returns`, the items are unchanged; a retry or another run replaces the file."""
    for limit in (3, 1):
        task = search(returns="web", save_to=f"{tmp_path}/found.jsonl", limit=limit)
        assert direct.run(task).value["count"] == limit
    (item,) = lines(tmp_path / "found.jsonl")
    assert "source" not in item
    assert [found.name for found in tmp_path.iterdir()] == ["found.jsonl"]


def test_a_large_result_is_returned_with_a_warning(here, log, monkeypatch):
    monkeypatch.setenv("AIRFLOW__WEBDATA__XCOM_WARNING_KB", "0.1")
    assert len(direct.run(search()).value["web"]) == 3
    logged = log()
    assert "[webdata] xcom_warning_kb" in logged
    assert "save_to='s3://bucket/*.jsonl'" in logged


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("/tmp/{{ 'x' }}.xlsx", "/tmp/x.xlsx"),
        ("{{ 'martian' }}://b/x.jsonl", "this storage is unavailable on this worker"),
    ],
    ids=["format", "storage"],
)
def test_no_credit_is_spent_on_results_that_cannot_be_written(here, output, words):
    with pytest.raises(AirflowFailException, match=words):
        direct.execute(search(save_to=output), context_of(TaskInstance()))
    assert here.control.requests() == []


@pytest.mark.rule("document-screenshot", "document-media-expires")
@pytest.mark.says("the log warns, and `keptMedia` of the item has the error")
def test_media_is_kept(here, tmp_path, log):
    """The links of the results lead to the kept files; dead links are reported, and the task succeeds."""
    picture = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="  # noqa: E501
    body = {
        "success": True,
        "id": "s-1",
        "creditsUsed": 2,
        "data": {
            "web": [
                {"url": "https://a.example/", "title": "A", "screenshot": picture},
                {"url": "https://b.example/", "title": "B", "screenshot": f"{here.url}/expired.png"},
            ]
        },
    }
    here.control.add_fault("status", path="/v2/search", status=200, body=body)
    done = direct.run(search(media_to=f"{tmp_path}/media"))
    assert done.xcom["incomplete"] == [{"kind": "media_not_kept", "number": 1, "of": 2}]
    value = done.value
    kept, lost = value["web"]
    assert Path(kept["screenshot"]).read_bytes()[:4] == b"\x89PNG"
    assert lost["screenshot"] == f"{here.url}/expired.png"
    assert "HTTP 404" in lost["keptMedia"][0]["error"]
    assert {name: value["media"][name] for name in ("kept", "failed")} == {"kept": 1, "failed": 1}
    assert "1 media files were not kept" in log()


@pytest.mark.parametrize("hosts", ["", "localhost"], ids=["not allowed", "allowed"])
def test_media_inside_is_kept_where_the_connection_allows_it(here, connect, tmp_path, log, hosts):
    """Its own host is allowed (above); another name of this machine is not, unless it is named."""
    connect(here, media_hosts=hosts)
    server = MediaServer()
    server.routes = {"/shot": serve(b"\x89PNG\r\n\x1a\n and more")}
    link = server.url.replace("127.0.0.1", "localhost") + "/shot"
    body = {"success": True, "data": {"web": [{"url": "https://a.example/", "screenshot": link}]}}
    here.control.add_fault("status", path="/v2/search", status=200, body=body)
    try:
        value = direct.run(search(media_to=f"{tmp_path}/media")).value
    finally:
        server.close()
    assert value["media"]["kept"] == len(server.requests) == bool(hosts)
    assert ("localhost is no public host" in log()) is not bool(hosts)
