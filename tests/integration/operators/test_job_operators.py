"""Operators whose operation is a long job, in a real Airflow, against a service that does what the test needs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_webdata.tasks.retry_policy import HAS_RETRY_POLICIES
from tests.support.dag_runner import dag_runner
from tests.support.job_service import JobService
from tests.support.service import JOB_PATHS

KINDS = tuple(JOB_PATHS)
MODES = [pytest.param("deferrable=False", id="worker"), pytest.param("deferrable=True", id="defer")]
IMPORTS = """
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.extract import WebDataExtractOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor
"""
TASKS = {
    "crawl": "WebDataCrawlOperator(task_id='job', url='https://example.com/', poll_interval=1, {more})",
    "batch_scrape": "WebDataBatchScrapeOperator(task_id='job', urls=['https://example.com/'], poll_interval=1, {more})",
    "extract": "WebDataExtractOperator(task_id='job', urls=['https://example.com/'], poll_interval=1, {more})",
    "agent": "WebDataAgentOperator(task_id='job', prompt='find', poll_interval=1, {more})",
}
AT_ONCE = "retry_delay=datetime.timedelta(0)"
PAGES = [
    {"markdown": "one", "metadata": {"sourceURL": "https://example.com/", "statusCode": 200}},
    {"markdown": "two", "metadata": {"sourceURL": "https://example.com/2", "statusCode": 200}},
]
DATA: dict[str, Any] = {"crawl": PAGES, "batch_scrape": PAGES, "extract": {"a": 1}, "agent": {"b": [2]}}


@pytest.fixture
def service() -> Iterator[JobService]:
    made = JobService()
    made.ends_after = 2
    yield made
    made.stop()


@pytest.fixture
def run(airflow: Any, service: JobService) -> Callable[..., Any]:
    """Run the body of a DAG against the service."""
    runner = dag_runner(airflow, service)  # type: ignore[arg-type]

    def run_it(body: str, before: str = "", **more: Any) -> Any:
        return runner(body, IMPORTS + before, **{"retry_budget": 0, **more})

    return run_it


def ends(service: JobService, kind: str, status: str = "completed", **fields: Any) -> None:
    service.ends_as = {"status": status, "data": DATA[kind], "creditsUsed": 2, **fields}
    if kind in ("crawl", "batch_scrape"):
        service.ends_as = {"total": 2, "completed": 2, **service.ends_as}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_started_waited_for_and_taken(run: Any, service: JobService, kind: str, mode: str) -> None:
    ends(service, kind)
    done = run(TASKS[kind].format(more=mode))
    assert done.state("job") == "success", done.log[-3000:]
    result = done.xcom["job.return_value"]
    assert [result["id"]] == [done.xcom["job.job_id"]] == service.started()
    assert (result["status"], result["data"], result["creditsUsed"]) == ("completed", DATA[kind], 2)
    if kind in ("crawl", "batch_scrape"):
        assert (result["count"], result["total"]) == (2, 2)
        assert result["errors"] == {"count": 0, "robotsBlocked": 0, "pages": []}


def test_pages_from_the_cache_are_counted(run: Any, service: JobService) -> None:
    kept = {**PAGES[0], "metadata": {"cacheState": "hit", "cachedAt": "2026-01-30T02:00:04Z"}}
    other = {**PAGES[0], "metadata": {"cacheState": "hit"}}
    service.ends_as = {"status": "completed", "data": [kept, *PAGES, other]}
    done = run(TASKS["crawl"].format(more=""))
    assert done.state("job") == "success"
    assert "start crawl: pages may be up to 2 days old" in done.log
    assert "2 pages came from the service's cache, the oldest of 2026-01-30T02:00:04Z, " in done.log


@pytest.mark.rule("batch-ignore-invalid-urls", "crawl-credit-check")
def test_what_is_always_sent(run: Any, service: JobService) -> None:
    for kind in ("crawl", "batch_scrape"):
        ends(service, kind)
        run(TASKS[kind].format(more=""))
    crawl, batch = service.bodies
    assert crawl == {"url": "https://example.com/", "limit": 100}
    assert batch == {"urls": ["https://example.com/"], "ignoreInvalidURLs": True}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_failed_job_fails_the_attempt_and_a_retry_starts_another(
    run: Any, service: JobService, kind: str, mode: str, state: str
) -> None:
    ends(service, kind, state, error="the queue was full")
    done = run(TASKS[kind].format(more=f"retries=1, {AT_ONCE}, {mode}"))
    assert done.run["tasks"]["job"] == {"state": "failed", "try_number": 2}, done.log[-3000:]
    assert len(service.started()) == 2
    what = "failed: the queue was full" if state == "failed" else "was cancelled"
    assert (
        f"{what}. Connection 'webdata_default': look at the job before a retry pays for another (WD-031)"
        in done.log
    )


# Put before the operators of a DAG: a class of its own, since the process that runs the DAGs is one for all tests.
SPECIAL = """
import time, urllib.request

left = [1]

class Special:
    def {method}(self, *given):
        if left[0]:
            left[0] -= 1
            {act}
        return super().{method}(*given)

class WebDataCrawlOperator(Special, WebDataCrawlOperator): pass
class WebDataBatchScrapeOperator(Special, WebDataBatchScrapeOperator): pass
class WebDataExtractOperator(Special, WebDataExtractOperator): pass
class WebDataAgentOperator(Special, WebDataAgentOperator): pass
"""
DIE = "raise RuntimeError('the worker dies here')"


def order(service: JobService, path: str) -> str:
    """Code that has the service do something."""
    return f"urllib.request.urlopen(urllib.request.Request({service.url + path!r}, method='PUT')).close()"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["_push_job", "_wait", "result_of"])
def test_a_retry_after_a_crash_takes_the_same_job(
    run: Any, service: JobService, kind: str, mode: str, method: str
) -> None:
    """Before the wait, and while the result is taken."""
    ends(service, kind)
    done = run(
        TASKS[kind].format(more=f"retries=1, {AT_ONCE}, {mode}"), SPECIAL.format(method=method, act=DIE)
    )
    assert "the worker dies here" in done.log
    assert done.run["tasks"]["job"] == {"state": "success", "try_number": 2}, done.log[-3000:]
    assert [done.xcom["job.return_value"]["id"]] == service.started()


@pytest.mark.rule("job-cancel")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("cancel", "left"), [("True", "cancelled"), ("False", "running")])
def test_a_timeout_cancels_by_choice(
    run: Any, service: JobService, kind: str, mode: str, cancel: str, left: str
) -> None:
    service.ends_after = None
    more = f"wait_timeout=1, cancel_on_timeout={cancel}, retries=2, {mode}"
    done = run(TASKS[kind].format(more=more))
    assert done.run["tasks"]["job"] == {"state": "failed", "try_number": 1}, done.log[-3000:]
    (job,) = service.jobs.values()
    cancelled = left == "cancelled" and kind != "extract"
    assert (job["status"] == "cancelled") is cancelled
    assert re.search(f"Timed out waiting for [a-z ]+ {service.started()[0]}", done.log)
    assert ("The job was cancelled" if cancelled else "The job goes on") in done.log
    if kind == "extract" and cancel == "True":
        assert "cannot cancel extract jobs" in done.log


@pytest.mark.rule("job-cancel-ended")
@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_ends_at_the_timeout_is_taken(run: Any, service: JobService, mode: str) -> None:
    """A cancel that is answered with 409 means that there is a result."""
    ends(service, "crawl")
    service.ends_after = None
    before = SPECIAL.format(method="_at_timeout", act=order(service, "/end"))
    done = run(TASKS["crawl"].format(more=f"wait_timeout=1, {mode}"), before)
    assert done.state("job") == "success", done.log[-3000:]
    assert done.xcom["job.return_value"]["data"] == PAGES
    assert [line for line in service.requests if line.startswith("DELETE")]


@pytest.mark.parametrize("kind", KINDS)
def test_the_sensor_takes_what_an_operator_started(run: Any, service: JobService, kind: str) -> None:
    ends(service, kind)
    done = run(
        "job = " + TASKS[kind].format(more="wait_for_completion=False") + "\n"
        f"WebDataJobSensor(task_id='wait', kind={kind!r}, job_id=job.output, poke_interval=1, poll_interval=1)"
    )
    assert done.state("wait") == "success", done.log[-3000:]
    assert [done.xcom["job.return_value"]] == service.started()
    assert done.xcom["wait.return_value"]["data"] == DATA[kind]


ERRORS = {
    "errors": [
        {"id": "1", "url": "https://example.com/3", "error": "timed out", "code": "SCRAPE_TIMEOUT"},
        {"id": "2", "url": "https://other.example/", "error": "external", "code": "EXTERNAL_LINK"},
    ],
    "robotsBlocked": ["https://example.com/private"],
}


@pytest.mark.rule("metadata-status", "job-completed", "job-errors")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("ratio", "state"), [("None", "success"), ("0.5", "success"), ("0.49", "failed"), ("0", "failed")]
)
def test_page_errors_fail_the_task_only_past_a_ratio(
    run: Any, service: JobService, mode: str, ratio: str, state: str
) -> None:
    """Two of four: one that the service lists, one whose site answered 404. The result is there all the same."""
    ends(service, "crawl")
    pages = [*PAGES, {"markdown": "?", "metadata": {"sourceURL": "https://example.com/4", "statusCode": 404}}]
    service.ends_as["data"], service.errors = pages, ERRORS
    done = run(TASKS["crawl"].format(more=f"max_error_ratio={ratio}, retries=1, {mode}"))
    assert done.run["tasks"]["job"] == {"state": state, "try_number": 1}, done.log[-3000:]
    result = done.xcom["job.return_value"]
    assert result["data"] == pages
    assert (result["errors"]["count"], result["errors"]["robotsBlocked"]) == (2, 1)
    assert {page["url"] for page in result["errors"]["pages"]} == {
        "https://example.com/3",
        "https://example.com/4",
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ends_with", [".jsonl", ".jsonl.gz"])
def test_pages_go_to_a_file(run: Any, service: JobService, tmp_path: Any, mode: str, ends_with: str) -> None:
    ends(service, "crawl")
    path = tmp_path / f"pages{ends_with}"
    done = run(TASKS["crawl"].format(more=f"output={str(path)!r}, {mode}"))
    assert done.state("job") == "success", done.log[-3000:]
    result = done.xcom["job.return_value"]
    assert (result["count"], "data" in result) == (2, False)
    if ends_with == ".jsonl":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["markdown"] for line in lines] == ["one", "two"]


@pytest.mark.rule("job-counts")
def test_progress_shows_in_the_log(run: Any, service: JobService) -> None:
    ends(service, "crawl")
    done = run(TASKS["crawl"].format(more="deferrable=True"))
    job = service.started()[0]
    assert f"Crawl {job}: scraping" in done.log
    assert f"Crawl {job}: completed, 2 of 2 pages done, 2 credits used" in done.log


@pytest.mark.rule("retry-after")
@pytest.mark.parametrize("mode", MODES)
def test_rate_limited_while_the_result_is_taken(run: Any, service: JobService, mode: str) -> None:
    """The task is rescheduled for it; nothing is started again."""
    ends(service, "crawl")
    before = SPECIAL.format(method="result_of", act=order(service, "/limit"))
    done = run(TASKS["crawl"].format(more=mode), before)
    assert done.state("job") == "success", done.log[-3000:]
    assert "The task is rescheduled to" in done.log
    assert [done.xcom["job.return_value"]["id"]] == service.started()


@pytest.mark.rule("batch-answer")
def test_invalid_urls_are_told(run: Any, service: JobService) -> None:
    ends(service, "batch_scrape")
    service.invalid_urls = ["htp://x"]
    done = run(TASKS["batch_scrape"].format(more=""))
    assert done.xcom["job.invalidURLs"] == ["htp://x"]
    assert "dropped 1 invalid URLs: htp://x" in done.log


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("wait_by='webhook'", "wait_by='webhook'"),
        ("max_error_ratio='{{ 2 }}'", "max_error_ratio: must be a number of at least 0 and at most 1"),
        ("output='/tmp/x.{{ 1 }}'", ".jsonl"),
        ("attach_webhook=True", "webhook_url"),
        ("extra_body='{{ 1 }}'", "extra_body"),
        ("max_discovery_depth='{{ -1 }}'", "max_discovery_depth"),
    ],
)
def test_what_cannot_work_fails_before_anything_is_paid_for(
    run: Any, service: JobService, more: str, words: str
) -> None:
    done = run(TASKS["crawl"].format(more=f"retries=2, {more}"))
    assert done.run["tasks"]["job"] == {"state": "failed", "try_number": 1}, done.log[-3000:]
    assert words in done.log
    assert not [line for line in service.requests if line.startswith("POST")]


@pytest.mark.rule("job-cancel", "agent-cancel")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("more", "cancelled"), [("", True), ("cancel_on_kill=False", False)], ids=["default", "not to"]
)
def test_a_kill_on_the_worker_cancels(
    run: Any, service: JobService, kind: str, more: str, cancelled: bool
) -> None:
    """The signal with which Airflow ends a task, in the middle of the wait."""
    service.ends_after = None if cancelled and kind != "extract" else 2
    ends(service, kind)
    before = SPECIAL.format(
        method="poll_job_until", act="import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    )
    run(TASKS[kind].format(more=f"{more}, deferrable=False" if more else "deferrable=False"), before)
    (job,) = service.jobs.values()
    deletes = [line for line in service.requests if line.startswith("DELETE")]
    assert (job["status"] == "cancelled", len(deletes)) == (
        (True, 1) if cancelled and kind != "extract" else (False, 0)
    )


@pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="Airflow 3.2 keeps no state of a task")
def test_time_runs_on_over_retries(run: Any, service: JobService) -> None:
    service.ends_after = None
    before = SPECIAL.format(method="poll_job_until", act=f"time.sleep(2); {DIE}")
    done = run(TASKS["crawl"].format(more=f"wait_timeout=2, retries=3, {AT_ONCE}, deferrable=False"), before)
    assert "the worker dies here" in done.log
    assert done.run["tasks"]["job"] == {"state": "failed", "try_number": 2}, done.log[-3000:]
    assert len(service.started()) == 1
