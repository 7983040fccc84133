# SPDX-License-Identifier: Apache-2.0
"""One page scraped."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

from airflow_provider_webdata.api.errors import ProcessingContinuesError, TransportError
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.options import Quality
from airflow_provider_webdata.results.files.formats import rejected_url
from airflow_provider_webdata.results.files.paths import warn_if_relative
from tests.support import direct
from tests.support.direct import TaskInstance, context_of, postponed
from tests.support.fault_server import FaultServer, answer
from tests.support.service import UNFETCHED, connection_text

IMPORT = "from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator"
PAGE = "https://airship.example/"


@pytest.fixture(autouse=True)
def _page(sandbox):
    sandbox.control.set_page(PAGE, markdown="# Airship\n\nIt floats.", title="Airship")


def scrape(**arguments):
    return WebDataScrapeOperator(task_id="scrape", **{"url": PAGE, **arguments})


@pytest.mark.rule("scrape-headers", "document-warning", "metadata-scrape-id", "metadata-credits")
@pytest.mark.rule("scrape-answer")
@pytest.mark.says(
    "The XCom keys `scrape_id`, `credits_used`, `status_code`, and `warning` contain these values"
)
def test_documents_in_a_real_airflow(run_dag, sandbox, tmp_path):
    """The document is the return value, and its facts have their own keys; a mapped task writes its own file."""
    sandbox.control.set_page(f"{PAGE}two", markdown="Two.")
    done = run_dag(
        f"""
        scrape = WebDataScrapeOperator(
            task_id="scrape", url="https://{{{{ 'airship' }}}}.example/", formats=["markdown", {{"type": "links"}}],
            only_main_content="{{{{ 'false' }}}}", max_age=0, headers={{"X-Pass": "{{{{ 'hush-' ~ 'header' }}}}"}},
            extra_body={{"origin": "{{{{ dag.dag_id }}}}"}},
        )

        @task
        def title(document):
            return document["metadata"]["title"]

        mapped = WebDataScrapeOperator.partial(
            task_id="mapped", save_to="{tmp_path}/{{{{ ti.map_index }}}}.jsonl"
        ).expand(url=["{PAGE}", "{PAGE}two"])
        title(scrape.output) >> mapped
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    document = done.xcom["scrape.return_value"]
    assert "It floats." in document["markdown"]
    assert done.xcom["title.return_value"] == "Airship"
    assert done.xcom["scrape.scrape_id"] == document["metadata"]["scrapeId"]
    assert done.xcom["scrape.status_code"] == 200
    assert "scrape.warning" in done.xcom
    assert done.xcom["scrape.credits_used"] == document["metadata"]["creditsUsed"]
    sent = sandbox.control.requests("/v2/scrape")[0]
    assert sent["body"].pop("origin").startswith("dag_")
    assert sent["body"] == {
        "url": PAGE,
        "formats": ["markdown", {"type": "links"}],
        "onlyMainContent": False,
        "maxAge": 0,
        "headers": {"X-Pass": "hush-header"},
    }
    assert done.run["rendered"]["scrape"]["headers"] == {"X-Pass": "***"}
    assert "hush-header" not in done.log

    value = done.xcom["mapped[0].return_value"]
    assert value["path"] == f"{tmp_path}/0.jsonl"
    assert (value["count"], value["status_code"]) == (1, 200)
    assert "markdown" not in value
    assert "It floats." in json.loads((tmp_path / "0.jsonl").read_text())["markdown"]
    assert (tmp_path / "1.jsonl").exists()


def test_what_a_page_says_is_no_template_of_a_mapped_task(run_dag, sandbox):
    """The service and the site would get the key. Templates of the DAG's author render."""
    done = run_dag(
        f"""
        KEY = "{{{{ conn.webdata_default.password }}}}"

        @task
        def links():
            return [{{"url": "{PAGE}", "headers": {{"Referer": KEY}}}}]

        each = WebDataScrapeOperator.partial(task_id="each", extra_body={{"origin": "{{{{ dag.dag_id }}}}"}})
        each.expand_kwargs(links())
        WebDataScrapeOperator.partial(task_id="own").expand_kwargs(
            [{{"url": "{PAGE}", "headers": {{"Referer": "{{{{ 6 * 7 }}}}"}}}}]
        )
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    sent = [one["body"] for one in sandbox.control.requests("/v2/scrape")]
    assert sorted(one["headers"]["Referer"] for one in sent) == [
        "42",
        "{{ conn.webdata_default.password }}",
    ]
    assert any(str(one.get("origin")).startswith("dag_") for one in sent)


def test_instances_of_a_mapped_task_do_not_replace_each_others_files(run_dag, sandbox, tmp_path):
    """A path that all of them share is refused before anything is billed, also if there is one instance."""
    pages = [PAGE, f"{PAGE}two"]
    sandbox.control.set_page(pages[1], markdown="Two.")
    done = run_dag(
        f"""
        from airflow.sdk import task_group

        def scrape(name, **more):
            return WebDataScrapeOperator.partial(task_id=name, retries=0, **more)

        day = "{tmp_path}/{{{{ dag_run.run_after | ds_nodash }}}}.jsonl"
        scrape("by_run", save_to=day, documents=True).expand(url={pages})
        scrape("by_index", save_to="{tmp_path}/{{{{ ti.map_index }}}}.jsonl").expand(url={pages})
        scrape("own").expand_kwargs(
            [{{"url": url, "save_to": f"{tmp_path}/own_{{place}}.jsonl"}} for place, url in enumerate({pages})]
        )
        scrape("alone", save_to=day).expand(url={pages[:1]})
        starred = scrape("starred", save_to="{tmp_path}/starred/*.jsonl").expand(url={pages})

        @task
        def paths(files):
            return [file["path"] for file in files]

        paths(starred.output)

        @task_group
        def site(url):
            WebDataScrapeOperator(task_id="one", url=url, save_to="{tmp_path}/{{{{ params }}}}.jsonl", retries=0)
            WebDataScrapeOperator(task_id="two", url=url, save_to="{tmp_path}/starred/*.jsonl")

        site.expand(url={pages})
        """,
        before=IMPORT,
    )
    states = {name: one["state"] for name, one in done.run["tasks"].items()}
    shared = ["by_run[0]", "by_run[1]", "alone[0]", "site.one[0]", "site.one[1]"]
    assert {name: states[name] for name in shared} == dict.fromkeys(shared, "failed")
    each = [f"{name}[{index}]" for name in ("by_index", "own", "starred", "site.two") for index in (0, 1)]
    assert {name: states[name] for name in each} == dict.fromkeys(each, "success")
    for name in ("by_run", "alone", "site.one"):
        assert "all instances of the mapped task would write the same file" in done.log_of(name)
    assert len(sandbox.control.requests("/v2/scrape")) == 8
    # Each file is where XCom says, and has the page of its instance.
    paths = [*done.xcom["paths.return_value"]]
    paths += [done.xcom[f"site.two[{index}].return_value"]["path"] for index in (0, 1)]
    assert sorted(paths) == sorted(map(str, (tmp_path / "starred").iterdir()))
    read = [json.loads(Path(path).read_text())["metadata"]["sourceURL"] for path in paths]
    assert read == pages * 2


def test_each_attempt_of_an_instance_replaces_its_own_file(here, tmp_path):
    """Another run has another file; rejected results are beside it, where the error names them."""
    task = {"save_to": f"{tmp_path}/*.jsonl", "documents": True}
    days = [datetime.datetime(2026, 1, day, tzinfo=datetime.timezone.utc) for day in (1, 2)]
    first, again = (direct.run(scrape(**task), day=days[0]).value for _ in range(2))
    assert first["path"] == again["path"]
    assert [*map(str, tmp_path.iterdir())] == [first["path"]]
    done = direct.run(scrape(**task, quality=Quality(coverage={"json.price": 1})), day=days[1])
    (rejected,) = {*tmp_path.iterdir()} - {Path(first["path"])}
    output = done.xcom["path"]
    assert str(rejected) == rejected_url(output)
    assert "*" not in output
    assert output in str(done.error)
    assert str(rejected) in str(done.error)


@pytest.mark.parametrize("is_relative", [True, False])
def test_a_relative_path_warns_once(here, tmp_path, monkeypatch, log, is_relative):
    monkeypatch.chdir(tmp_path)
    warn_if_relative.cache_clear()
    folder = "pages" if is_relative else f"file://{tmp_path}"
    for day in (1, 2):
        when = datetime.datetime(2026, 1, day, tzinfo=datetime.timezone.utc)
        assert direct.run(scrape(save_to=f"{folder}/*.jsonl"), day=when).state == "success"
    words = "save_to: the path pages/*.jsonl is relative, and each worker has a separate folder"
    assert log().count(words) == is_relative


@pytest.mark.rule("metadata-status")
def test_a_page_that_its_site_refuses_is_a_result_with_a_warning(here, log):
    """It is billed like any other; the log says so."""
    here.control.set_page(f"{PAGE}gone", markdown="Gone.", status=404)
    document = direct.run(scrape(url=f"{PAGE}gone")).value
    assert document["metadata"]["statusCode"] == 404
    assert f"{PAGE}gone with status 404" in log()


@pytest.mark.rule("metadata-not-fetched")
def test_a_page_that_was_not_fetched_fails_the_task(monkeypatch):
    """As on the hosted service, which reports the same page as an error."""
    server = FaultServer([answer(body=json.dumps({"success": True, "data": UNFETCHED}))])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    outcome = direct.run(scrape(url="http://nohost.example.net/x"))
    server.close()
    assert outcome.state == "failed"
    assert "could not be fetched: Network Connect Timeout Error" in str(outcome.error)
    assert "(WD-020)" in str(outcome.error)
    assert "return_value" not in outcome.xcom


@pytest.mark.rule("scrape-max-age", "credits-page")
def test_the_log_says_how_old_a_page_may_be_and_where_it_came_from(here, log):
    """A page from the cache costs as much as a new one."""
    documents = [direct.run(scrape(**more)).value for more in ({}, {}, {"max_age": 0})]
    assert [document["metadata"]["cacheState"] for document in documents] == ["miss", "hit", "miss"]
    assert [document["metadata"]["creditsUsed"] for document in documents] == [1, 1, 1]
    logged = log()
    assert logged.count("scrape: pages may be up to 2 days old, from the service's cache; set max_age=0") == 2
    cached = documents[1]["metadata"]["cachedAt"]
    age = r"(?:a few|\d+) seconds old"
    told = rf"of {re.escape(PAGE)}, from the service's cache of {re.escape(cached)}, {age}"
    assert len(re.findall(told, logged)) == 1
    assert logged.count("from the service's cache of") == 1


def test_of_a_mapped_task_only_the_first_instance_logs_what_is_the_same_for_all(here, log):
    for index in range(3):
        direct.execute(scrape(), context_of(TaskInstance(map_index=index)))
    assert log().count("pages may be up to 2 days old") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"url": "{{ 'not an address at all' }}"}, ["url", "(WD-002)"]),
        (
            {"location": {"country": "{{ 'Germany' }}"}},
            ["location.country", "two-letter", "such as DE", "Germany"],
        ),
        ({"save_to": "{{ 'nosuch' }}://bucket/x.jsonl"}, ["nosuch", "(WD-005)"]),
    ],
    ids=["address", "nested", "storage"],
)
def test_bad_input_fails_before_any_request(here, arguments, words):
    with pytest.raises(AirflowFailException) as failure:
        direct.execute(scrape(**arguments), context_of(TaskInstance()))
    assert here.control.requests() == []
    assert all(word in str(failure.value) for word in words)


@pytest.mark.rule("repeat-unsafe")
def test_a_lost_answer_is_left_to_the_task(here):
    """A scrape is billed: the client does not repeat it, the task's own retries do."""
    here.control.add_fault("drop_after_work", path="/v2/scrape", method="POST", times=None)
    with pytest.raises(TransportError):
        scrape().execute(context_of(TaskInstance()))
    assert len(here.control.requests("/v2/scrape")) == 1


STILL_WORKING = {
    "success": False,
    "code": "SCRAPE_TIMEOUT",
    "error": "still working",
    "details": {
        "state": "processing_continues",
        "documentPages": 812,
        "jobStatus": "running",
        "retryAfterSeconds": 6,
    },
}


@pytest.mark.rule("large-documents-again")
def test_a_large_document_brings_the_task_back(here, connect, log):
    """The wait that the service names is over the budget: the task comes back then, on the same try."""
    connect(here, retry_budget=1)
    here.control.add_fault("status", path="/v2/scrape", status=408, body=STILL_WORKING)
    outcome = direct.run(scrape())
    assert (*outcome.ended, outcome.reschedules) == ("success", 1, 1)
    assert [request["status"] for request in here.control.requests("/v2/scrape")] == [408, 200]
    assert "812 pages" in log()


@pytest.fixture
def still_working(monkeypatch):
    """A service that never finishes a document, and a connection without patience."""
    server = FaultServer([answer(408, json.dumps(STILL_WORKING))])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url, retry_budget=0))
    yield server
    server.close()


RETURNS = {
    "first": (0, 0, True),
    "fifth": (4, 1000, True),
    "sixth": (5, 300, False),
    "over twenty minutes": (2, 1198, False),
}


@pytest.mark.rule("large-documents-again")
@pytest.mark.parametrize(("times", "seconds_ago", "again"), RETURNS.values(), ids=RETURNS.keys())
def test_coming_back_ends(still_working, times, seconds_ago, again):
    """At most five times, and within 20 minutes of the first; then the error is the task's."""
    context = postponed(seconds_ago, times) if times else context_of(TaskInstance())
    with pytest.raises(AirflowRescheduleException if again else ProcessingContinuesError):
        scrape().execute(context)
    assert len(still_working.requests) == 1
