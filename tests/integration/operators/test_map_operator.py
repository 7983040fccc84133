# SPDX-License-Identifier: Apache-2.0
"""The URLs of a site."""

from __future__ import annotations

import json

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.api.errors import TransportError
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from tests.support import direct
from tests.support.direct import TaskInstance, context_of

IMPORT = (
    "from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator\n"
    "from airflow_provider_webdata.operators.map import WebDataMapOperator\n"
    "from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator"
)
SITE = "https://site.example/"


@pytest.fixture(autouse=True)
def _site(sandbox):
    sandbox.control.set_site("site.example", pages=5, sitemap=True)


@pytest.mark.rule("map-links")
@pytest.mark.says("The XCom keys `id` and `warning` contain these values")
def test_links_and_scrapes_that_map_over_them(run_dag, sandbox, tmp_path):
    """Names are those of the service. `returns` makes the URLs the return value: one scrape each, no task between."""
    done = run_dag(
        f"""
        links = WebDataMapOperator(
            task_id="map", url="{SITE}", limit="{{{{ 1 + 2 }}}}", sitemap="only", include_subdomains=False,
            multiple_outputs=True,
        )
        for name, results in {{"whole": links.output, "list": links.output["links"]}}.items():
            WebDataBatchScrapeOperator(task_id=name, urls=results, wait_for_completion=False)
        files = WebDataMapOperator(
            task_id="files", url="{SITE}", limit=3, sitemap="only",
            save_to="{tmp_path}/links.csv.gz",
        )
        WebDataBatchScrapeOperator(task_id="filed", urls=files.output, wait_for_completion=False)
        urls = WebDataMapOperator(task_id="urls", url="{SITE}", limit=2, returns="urls")
        WebDataScrapeOperator.partial(task_id="scrape").expand(url=urls.output)
        each = WebDataMapOperator.partial(
            task_id="each", limit=1, save_to="{tmp_path}/each-{{{{ ti.map_index }}}}.jsonl"
        ).expand(url=["{SITE}"])
        WebDataBatchScrapeOperator(task_id="all_files", urls=each.output, wait_for_completion=False)
        WebDataBatchScrapeOperator.partial(task_id="each_file", wait_for_completion=False).expand(urls=each.output)

        @task
        def found():
            return [{{"path": "{tmp_path}/each-0.jsonl", "count": 1, "bytes": 1}}]

        items = found()
        @task(trigger_rule="all_failed")
        def refused(): ...

        [
            WebDataBatchScrapeOperator.partial(task_id="item", retries=0).expand(urls=items),
            WebDataBatchScrapeOperator(task_id="items", urls=items, retries=0),
        ] >> refused()
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success", done.run["tasks"]
    value = done.xcom["map.return_value"]
    assert {"id", "warning", "links", "count"} <= value.keys()
    assert len(value["links"]) == value["count"] == 3
    assert all(link["url"].startswith(SITE) for link in value["links"])
    assert {"map.id", "map.warning"} <= done.xcom.keys()
    assert {
        "url": SITE,
        "limit": 3,
        "sitemap": "only",
        "includeSubdomains": False,
    } in [sent["body"] for sent in sandbox.control.requests("/v2/map")]
    assert f"{SITE} has 3 links" in done.log_of("map")
    batches = [sent["body"]["urls"] for sent in sandbox.control.requests("/v2/batch/scrape")]
    batches.sort(key=len)
    assert batches == [batches[0][:1]] * 2 + [[link["url"] for link in value["links"]]] * 3
    for name in ("item", "items"):
        assert "its `path` (" in done.log_of(name)
    assert [row["url"] for row in done.xcom["files.preview"]] == batches[-1]

    urls = done.xcom["urls.return_value"]
    assert len(urls) == 2
    sources = [done.xcom[f"scrape[{i}].return_value"]["metadata"]["sourceURL"] for i in range(2)]
    assert sources == urls


def test_output(here, tmp_path):
    value = direct.run(
        WebDataMapOperator(task_id="map", url=SITE, save_to=f"{tmp_path}/{{{{ 1 }}}}.jsonl")
    ).value
    links = [json.loads(line) for line in (tmp_path / "1.jsonl").read_text().splitlines()]
    assert value["count"] == len(links) >= 5
    assert "links" not in value


def test_bad_input_fails_before_any_request(here):
    batch = WebDataBatchScrapeOperator(task_id="batch", urls=["{{ later }}"])
    # As Airflow renders the output of another task.
    batch.urls = {"path": "/missing/links.jsonl", "count": 1}
    for task, message in (
        (WebDataMapOperator(task_id="map", url=SITE, limit="{{ 100001 }}"), r"limit: .*100000"),
        (batch, r"urls: .*/missing/links.jsonl"),
    ):
        with pytest.raises(AirflowFailException, match=message):
            direct.execute(task, context_of(TaskInstance()))
    assert here.control.requests() == []
    over = {"status": "done", "job_id": "a-job"}
    with pytest.raises(AirflowFailException, match=r"(?s)Job a-job was billed.*WebDataJobSensor"):
        batch.execute_complete(context_of(TaskInstance()), over)


def test_the_path_of_an_item_names_no_file(here, tmp_path):
    """An item may have any field. Only what a task returned names a file of the worker."""
    file = tmp_path / "secret.jsonl"
    file.write_text(json.dumps({"url": f"{SITE}a"}) + "\n")
    item = {"path": str(file), "count": 1, "bytes": 9}
    dag = DAG("d", schedule=None)
    other = WebDataMapOperator(task_id="other", url=SITE, dag=dag)

    def run(urls, **found):
        number = len(dag.task_dict)
        task = WebDataBatchScrapeOperator(task_id=f"b{number}", urls=urls, wait_for_completion=False, dag=dag)
        return direct.execute(task, context_of(TaskInstance(earlier=found)))

    for key in ("data", "return_value"):
        with pytest.raises(
            AirflowFailException, match=r"(?s)urls: a result has no URL, and its `path` \('.*secret"
        ):
            run(other.output[key], **{key: [[item]]})
    for key in ("data", "first"):
        with pytest.raises(AirflowFailException, match="urls: a result has no URL"):
            run(other.output[key], **{key: item})
    assert here.control.requests() == []
    run(other.output, return_value=item)
    run([other.output, other.output], return_value=item)
    sent = [request["body"]["urls"] for request in here.control.requests("/v2/batch/scrape")]
    assert sent == [[f"{SITE}a"], [f"{SITE}a"] * 2]


def test_the_urls_of_results_in_files(here, tmp_path):
    paths = {}
    for name, urls in {"one": [f"{SITE}a"], "two": [f"{SITE}a", f"{SITE}b"]}.items():
        paths[name] = tmp_path / f"{name}.jsonl"
        paths[name].write_text("".join(json.dumps({"url": url}) + "\n" for url in urls))
    links = WebDataMapOperator(task_id="map", url="{{ later }}")
    links.url = {"path": str(paths["one"]), "count": 1}
    assert direct.execute(links, context_of(TaskInstance()))["links"]
    assert here.control.requests("/v2/map")[0]["body"]["url"] == f"{SITE}a"
    links.url = {"path": str(paths["two"]), "count": 2}
    with pytest.raises(AirflowFailException, match="has 2; pass them to urls= of WebDataBatchScrapeOperator"):
        direct.execute(links, context_of(TaskInstance()))
    # Of a mapped task.
    pages = WebDataBatchScrapeOperator(task_id="batch", urls=["{{ later }}"], wait_for_completion=False)
    pages.urls = [{"path": str(path), "count": 1} for path in paths.values()]
    direct.execute(pages, context_of(TaskInstance()))
    assert here.control.requests("/v2/batch/scrape")[0]["body"]["urls"] == [
        f"{SITE}a",
        f"{SITE}a",
        f"{SITE}b",
    ]


def test_scanned_urls_have_an_unknown_cost(here):
    """The service does not report it."""
    here.control.configure(entitlements=["threatProtection"])
    task = WebDataMapOperator(task_id="map", url=SITE, threat_protection={"mode": "normal"})
    credits = direct.run(task).xcom["credits"]
    assert (credits["used"], credits["unknown"]) == (0, 1)


@pytest.mark.rule("repeat-unsafe")
def test_a_lost_answer_is_left_to_the_task(here):
    """A map is billed: the client does not repeat it."""
    here.control.add_fault("drop_after_work", path="/v2/map", times=None)
    with pytest.raises(TransportError):
        WebDataMapOperator(task_id="map", url=SITE).execute(context_of(TaskInstance()))
    assert len(here.control.requests("/v2/map")) == 1
