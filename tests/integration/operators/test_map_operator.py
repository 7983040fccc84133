"""The URLs of a site, in a real Airflow against the sandbox over HTTP."""

from __future__ import annotations

import json

import pytest

IMPORT = (
    "from airflow_provider_webdata.operators.map import WebDataMapOperator\n"
    "from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator"
)


@pytest.fixture(autouse=True)
def _site(sandbox):
    sandbox.control.set_site("site.example", pages=5, sitemap=True)


@pytest.mark.rule("map-links")
def test_links_with_wire_names(run_dag, sandbox):
    done = run_dag(
        """
        WebDataMapOperator(
            task_id="map", url="https://site.example/", limit="{{ 1 + 2 }}", sitemap="only",
            include_subdomains=False,
        )
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    value = done.xcom["map.return_value"]
    assert {"id", "warning", "links", "count"} <= value.keys()
    assert len(value["links"]) == value["count"] == 3
    assert all(link["url"].startswith("https://site.example/") for link in value["links"])
    assert "map.warning" in done.xcom
    (sent,) = sandbox.control.requests("/v2/map")
    assert sent["body"] == {
        "url": "https://site.example/",
        "limit": 3,
        "sitemap": "only",
        "includeSubdomains": False,
    }
    assert "https://site.example/ has 3 links" in done.log


def test_urls_map_over_scrapes(run_dag):
    """`returns` makes the list the return value: one scrape per URL, with no task in between."""
    done = run_dag(
        """
        urls = WebDataMapOperator(task_id="map", url="https://site.example/", limit=2, returns="urls")
        WebDataScrapeOperator.partial(task_id="scrape").expand(url=urls.output)
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    urls = done.xcom["map.return_value"]
    assert len(urls) == 2
    sources = [done.xcom[f"scrape[{i}].return_value"]["metadata"]["sourceURL"] for i in range(2)]
    assert sources == urls


def test_output(run_dag, tmp_path):
    done = run_dag(
        f"""
        WebDataMapOperator(task_id="map", url="https://site.example/", output="{tmp_path}/{{{{ 1 }}}}.jsonl")
        """,
        before=IMPORT,
    )
    value = done.xcom["map.return_value"]
    links = [json.loads(line) for line in (tmp_path / "1.jsonl").read_text().splitlines()]
    assert value["count"] == len(links) >= 5
    assert "links" not in value


BAD_INPUT = {
    "limit": ("url='https://a.example/', limit='{{ 100001 }}'", ["limit", "100000"]),
    "sitemap": ("url='https://a.example/', sitemap='{{ \"some\" }}'", ["sitemap", "some"]),
    "address": ("url='{{ none or \"\" }}'", ["url"]),
}


@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(run_dag, sandbox, arguments, words):
    done = run_dag(f"WebDataMapOperator(task_id='map', retries=2, {arguments})", before=IMPORT)
    assert done.run["tasks"]["map"] == {"state": "failed", "try_number": 1}
    assert sandbox.control.requests() == []
    for word in words:
        assert word in done.log


@pytest.mark.rule("repeat-unsafe")
def test_a_lost_answer_is_left_to_the_task(run_dag, sandbox):
    """A map is billed: the client does not repeat it."""
    sandbox.control.add_fault("drop_after_work", path="/v2/map", times=None)
    done = run_dag("WebDataMapOperator(task_id='map', url='https://site.example/')", before=IMPORT)
    assert done.state("map") == "failed"
    assert len(sandbox.control.requests("/v2/map")) == 1
