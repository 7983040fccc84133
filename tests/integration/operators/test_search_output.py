"""Results of searches in files, in a real Airflow, against the sandbox over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.results.media_server import MediaServer, serve


@pytest.fixture(autouse=True)
def _pages(sandbox):
    for number in range(3):
        sandbox.control.set_page(
            f"https://zeppelin.example/{number}",
            markdown=f"# Zeppelin {number}\n\nOf airships.",
            title="Zeppelin",
        )


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_to_a_file(run_dag, tmp_path):
    """The path is a template; XCom has it, the counts and the credits; downstream reads the file."""
    done = run_dag(
        f"""
        search = WebDataSearchOperator(
            task_id="search", query="zeppelin", sources=["web", "news"],
            output="{tmp_path}/{{{{ dag.dag_id }}}}/found.jsonl",
            scrape_options={{"formats": ["markdown"]}},
        )

        @task
        def reads(found):
            import json
            from airflow.sdk import ObjectStoragePath

            with ObjectStoragePath(found["path"]).open() as file:
                return sorted({{json.loads(line)["source"] for line in file}})

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
    assert value["creditsUsed"] > 0
    assert done.xcom["search.path"] == str(path)
    assert "Of airships." in found[0]["markdown"]
    assert done.xcom["reads.return_value"] == sorted({item["source"] for item in found})
    assert done.run["rendered"]["search"]["output_url"] == str(path)


def test_one_list_to_a_file(run_dag, tmp_path):
    """With `returns`, the items are as they came; a retry or another run replaces the file."""
    body = f"""
        WebDataSearchOperator(
            task_id="search", query="zeppelin", returns="web", output="{tmp_path}/found.jsonl", limit=LIMIT
        )
    """
    for limit in ("3", "1"):
        done = run_dag(body.replace("LIMIT", limit))
        assert done.xcom["search.return_value"]["count"] == int(limit)
    (item,) = lines(tmp_path / "found.jsonl")
    assert "source" not in item
    assert [found.name for found in tmp_path.iterdir()] == ["found.jsonl"]


def test_event_of_the_outlet(run_dag, tmp_path):
    """What a DAG that is scheduled on the asset reads."""
    done = run_dag(
        f"""
        from airflow.sdk import Asset
        found = Asset("found")
        search = WebDataSearchOperator(
            task_id="search", query="zeppelin", output="{tmp_path}/found.jsonl", outlets=[found]
        )

        @task(inlets=[found])
        def reads(*, inlet_events):
            return inlet_events[found][-1].extra

        search >> reads()
        """
    )
    extra = done.xcom["reads.return_value"]
    assert extra["path"] == f"{tmp_path}/found.jsonl"
    assert extra["count"] == 3
    assert extra["creditsUsed"] == done.xcom["search.creditsUsed"]


def test_large_result_is_pushed_with_a_warning(run_dag):
    done = run_dag(
        "WebDataSearchOperator(task_id='search', query='zeppelin')",
        environ={"AIRFLOW__WEBDATA__XCOM_WARNING_KB": "0.1"},
    )
    assert len(done.xcom["search.return_value"]["web"]) == 3
    assert "[webdata] xcom_warning_kb" in done.log
    assert "output='s3://bucket/name.jsonl'" in done.log


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("/tmp/{{ 'x' }}.csv", "/tmp/x.csv"),
        ("{{ 'martian' }}://b/x.jsonl", "this storage cannot be used here"),
    ],
)
def test_no_credit_is_spent_on_what_cannot_be_written(run_dag, sandbox, output, words):
    done = run_dag(f"WebDataSearchOperator(task_id='search', query='q', retries=3, output={output!r})")
    assert done.run["tasks"]["search"] == {"state": "failed", "try_number": 1}
    assert sandbox.control.requests() == []
    assert words in done.log


@pytest.mark.rule("document-screenshot", "document-media-expires")
def test_media_is_kept(run_dag, sandbox, tmp_path):
    """The links of the results lead to the kept files; links that are dead are told, and the task succeeds."""
    picture = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="  # noqa: E501
    body = {
        "success": True,
        "id": "s-1",
        "creditsUsed": 2,
        "data": {
            "web": [
                {"url": "https://a.example/", "title": "A", "screenshot": picture},
                {"url": "https://b.example/", "title": "B", "screenshot": f"{sandbox.url}/expired.png"},
            ]
        },
    }
    sandbox.control.add_fault("status", path="/v2/search", status=200, body=body)
    done = run_dag(f"WebDataSearchOperator(task_id='search', query='q', save_media='{tmp_path}/media')")
    assert done.run["state"] == "success"
    value = done.xcom["search.return_value"]
    kept, lost = value["web"]
    assert Path(kept["screenshot"]).read_bytes()[:4] == b"\x89PNG"
    assert lost["screenshot"] == f"{sandbox.url}/expired.png"
    assert "HTTP 404" in lost["keptMedia"][0]["error"]
    assert {name: value["media"][name] for name in ("kept", "failed")} == {"kept": 1, "failed": 1}
    assert "1 media files could not be kept" in done.log


@pytest.mark.parametrize("hosts", ["", "localhost"], ids=["not allowed", "allowed"])
def test_media_inside_is_kept_where_the_connection_allows_it(run_dag, sandbox, tmp_path, hosts):
    """Its own host is allowed (above); another name of this machine is not, unless it is named."""
    server = MediaServer()
    server.routes = {"/shot": serve(b"\x89PNG\r\n\x1a\n and more")}
    link = server.url.replace("127.0.0.1", "localhost") + "/shot"
    body = {"success": True, "data": {"web": [{"url": "https://a.example/", "screenshot": link}]}}
    sandbox.control.add_fault("status", path="/v2/search", status=200, body=body)
    try:
        done = run_dag(
            f"WebDataSearchOperator(task_id='search', query='q', save_media='{tmp_path}/media')",
            media_hosts=hosts,
        )
    finally:
        server.close()
    assert done.xcom["search.return_value"]["media"]["kept"] == len(server.requests) == bool(hosts)
    assert ("localhost is no public host" in done.log) is not bool(hosts)
