"""One page scraped, in a real Airflow against the sandbox over HTTP."""

from __future__ import annotations

import datetime
import json
import re

import pytest
from airflow.sdk.exceptions import AirflowRescheduleException

from airflow_provider_webdata.api.errors import ProcessingContinuesError
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from tests.support.direct import TaskInstance, context_of
from tests.support.fault_server import FaultServer, answer
from tests.support.service import connection_text

IMPORT = "from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator"
PAGE = "https://airship.example/"


@pytest.fixture(autouse=True)
def _page(sandbox):
    sandbox.control.set_page(PAGE, markdown="# Airship\n\nIt floats.", title="Airship")


@pytest.mark.rule("scrape-headers", "document-warning", "metadata-scrape-id", "metadata-credits")
@pytest.mark.rule("scrape-answer")
def test_the_document_and_its_facts(run_dag, sandbox):
    """The document is the return value; the facts that later tasks want are keys of their own."""
    done = run_dag(
        """
        scrape = WebDataScrapeOperator(
            task_id="scrape", url="https://{{ 'airship' }}.example/", formats=["markdown", {"type": "links"}],
            only_main_content="{{ 'false' }}", max_age=0, headers={"X-Pass": "{{ 'hush-' ~ 'header' }}"},
            extra_body={"origin": "{{ dag.dag_id }}"},
        )

        @task
        def title(document):
            return document["metadata"]["title"]

        title(scrape.output)
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    document = done.xcom["scrape.return_value"]
    assert "It floats." in document["markdown"]
    assert done.xcom["title.return_value"] == "Airship"
    assert done.xcom["scrape.scrapeId"] == document["metadata"]["scrapeId"]
    assert done.xcom["scrape.statusCode"] == 200
    assert done.xcom["scrape.creditsUsed"] == document["metadata"]["creditsUsed"]
    (sent,) = sandbox.control.requests("/v2/scrape")
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


def test_mapped_with_output(run_dag, sandbox, tmp_path):
    """Each mapped task writes its own file and tells where."""
    sandbox.control.set_page(f"{PAGE}two", markdown="Two.")
    done = run_dag(
        f"""
        WebDataScrapeOperator.partial(
            task_id="scrape", output="{tmp_path}/{{{{ ti.map_index }}}}.jsonl"
        ).expand(url=["{PAGE}", "{PAGE}two"])
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    value = done.xcom["scrape[0].return_value"]
    assert value["path"] == f"{tmp_path}/0.jsonl"
    assert (value["count"], value["statusCode"]) == (1, 200)
    assert "markdown" not in value
    assert "It floats." in json.loads((tmp_path / "0.jsonl").read_text())["markdown"]
    assert (tmp_path / "1.jsonl").exists()


@pytest.mark.rule("metadata-status")
def test_a_page_that_its_site_refuses_is_a_result_with_a_warning(run_dag, sandbox):
    """It is billed like any other; the log says so."""
    sandbox.control.set_page("https://airship.example/gone", markdown="Gone.", status=404)
    done = run_dag(
        "WebDataScrapeOperator(task_id='scrape', url='https://airship.example/gone')", before=IMPORT
    )
    assert done.state("scrape") == "success"
    assert done.xcom["scrape.statusCode"] == 404
    assert "https://airship.example/gone with status 404" in done.log


@pytest.mark.rule("scrape-max-age", "credits-page")
def test_the_log_says_how_old_a_page_may_be_and_where_it_came_from(run_dag, sandbox):
    """A page from the cache costs as much as a new one."""
    done = run_dag(
        f"""
        first = WebDataScrapeOperator(task_id="first", url="{PAGE}")
        kept = WebDataScrapeOperator(task_id="kept", url="{PAGE}")
        fresh = WebDataScrapeOperator(task_id="fresh", url="{PAGE}", max_age=0)
        first >> kept >> fresh
        """,
        before=IMPORT,
    )
    documents = [done.xcom[f"{task}.return_value"] for task in ("first", "kept", "fresh")]
    assert [document["metadata"]["cacheState"] for document in documents] == ["miss", "hit", "miss"]
    assert [document["metadata"]["creditsUsed"] for document in documents] == [1, 1, 1]
    assert done.log.count("scrape: pages may be up to 2 days old, from the service's cache; max_age=0") == 2
    cached = documents[1]["metadata"]["cachedAt"]
    told = rf"of {re.escape(PAGE)}, from the service's cache of {re.escape(cached)}, \d+ seconds old; credits used: 1"
    assert len(re.findall(told, done.log)) == 1
    assert done.log.count("from the service's cache of") == 1


BAD_INPUT = {
    "no address": ("url='{{ \"not an address at all\" }}'", ["url", "(WD-002)"]),
    "unknown format": ("url='https://a.example/', formats=['{{ \"markdwon\" }}']", ["formats", "markdwon"]),
    "time over its limit": ("url='https://a.example/', timeout='{{ 300001 }}'", ["timeout", "300000"]),
    "nested options": (
        "url='https://a.example/', location={'country': '{{ \"Germany\" }}'}",
        ["location", "country", "Germany"],
    ),
    "storage that is not there": (
        "url='https://a.example/', output='{{ \"nosuch\" }}://bucket/x.jsonl'",
        ["nosuch", "(WD-005)"],
    ),
}


@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(run_dag, sandbox, arguments, words):
    done = run_dag(f"WebDataScrapeOperator(task_id='scrape', retries=2, {arguments})", before=IMPORT)
    assert done.run["tasks"]["scrape"] == {"state": "failed", "try_number": 1}
    assert sandbox.control.requests() == []
    for word in words:
        assert word in done.log


@pytest.mark.rule("repeat-unsafe")
def test_a_lost_answer_is_left_to_the_task(run_dag, sandbox):
    """A scrape is billed: the client does not repeat it, the task's own retries do."""
    sandbox.control.add_fault("drop_after_work", path="/v2/scrape", method="POST", times=None)
    done = run_dag(f"WebDataScrapeOperator(task_id='scrape', url='{PAGE}')", before=IMPORT)
    assert done.state("scrape") == "failed"
    assert len(sandbox.control.requests("/v2/scrape")) == 1


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
def test_a_large_document_brings_the_task_back(run_dag, sandbox):
    """The wait that the service names is over the budget: the task comes back then, on the same try."""
    sandbox.control.add_fault("status", path="/v2/scrape", status=408, body=STILL_WORKING)
    done = run_dag(f"WebDataScrapeOperator(task_id='scrape', url='{PAGE}')", before=IMPORT, retry_budget=1)
    assert done.run["tasks"]["scrape"] == {"state": "success", "try_number": 1}
    assert len(done.run["reschedules"]) == 1
    assert [request["status"] for request in sandbox.control.requests("/v2/scrape")] == [408, 200]
    assert "812 pages" in done.log


@pytest.fixture
def still_working(monkeypatch):
    """A service that never gets through with a document, and a connection without patience."""
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
    first = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds_ago)
    ti = TaskInstance(first_reschedule=first if times else None)
    operator = WebDataScrapeOperator(task_id="t", url=PAGE)
    with pytest.raises(AirflowRescheduleException if again else ProcessingContinuesError):
        operator.execute(context_of(ti, task_reschedule_count=times))
    assert len(still_working.requests) == 1
