"""Operators of long jobs in a real Airflow, against the sandbox, whose webhooks arrive in a real inbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_webdata.sandbox.server import SandboxServer
from tests.integration.operators.test_job_operators import AT_ONCE, DIE, IMPORTS, SPECIAL
from tests.support.service import JOB_PATHS

KINDS = tuple(JOB_PATHS)
MODES = [pytest.param("deferrable=False", id="worker"), pytest.param("deferrable=True", id="defer")]
TASKS = {
    "crawl": "WebDataCrawlOperator(task_id='job', url='https://river.example/', limit=4, {more})",
    "batch_scrape": "WebDataBatchScrapeOperator(task_id='job', urls=['https://river.example/', "
    "'https://shop.example/'], {more})",
    "extract": "WebDataExtractOperator(task_id='job', urls=['https://river.example/'], prompt='title', {more})",
    "agent": "WebDataAgentOperator(task_id='job', prompt='find rivers', {more})",
}
POLL = "poll_interval=1"
HEAR = "wait_by='webhook', deferrable=True, safety_poll=600"


@pytest.fixture
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer(quirks=("http-webhooks",)) as server:
        yield server


@pytest.fixture
def run(run_dag: Callable[..., Any]) -> Callable[..., Any]:
    def run_it(body: str, before: str = "", **more: Any) -> Any:
        return run_dag(body, IMPORTS + before, **more)

    return run_it


@pytest.fixture
def hear(run: Callable[..., Any], inbox: Any) -> Callable[..., Any]:
    """Run the body of a DAG whose connection receives deliveries."""

    def run_it(body: str, before: str = "", **more: Any) -> Any:
        return run(body, before, **{**inbox.extra, **more})

    return run_it


def starts(sandbox: Any, kind: str) -> list[Any]:
    return sandbox.control.requests(f"{JOB_PATHS[kind]}$", "POST")


def looks(sandbox: Any, kind: str) -> list[Any]:
    return sandbox.control.requests(f"{JOB_PATHS[kind]}/[-0-9a-f]+$", "GET")


@pytest.mark.rule("job-status")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_by_polling(run: Any, sandbox: Any, kind: str, mode: str) -> None:
    done = run(TASKS[kind].format(more=f"{POLL}, {mode}"))
    assert done.state("job") == "success", done.log[-3000:]
    result = done.xcom["job.return_value"]
    assert result["id"] == done.xcom["job.job_id"]
    assert result["status"] == "completed"
    assert result["data"]
    assert len(starts(sandbox, kind)) == 1


@pytest.mark.rule("event-job-completed", "event-extract", "event-agent")
@pytest.mark.parametrize("kind", KINDS)
def test_by_webhook(hear: Any, sandbox: Any, kind: str) -> None:
    """The job is looked at when the wait begins, when its delivery comes, and when its result is taken."""
    sandbox.control.configure(page_seconds=1)
    done = hear(TASKS[kind].format(more=HEAR))
    assert done.state("job") == "success", done.log[-3000:]
    assert done.xcom["job.return_value"]["status"] == "completed"
    (start,) = starts(sandbox, kind)
    origin = start["body"]["webhook"]["metadata"]
    assert set(origin) == {"dag_id", "run_id", "task_id", "map_index"}
    assert (origin["task_id"], origin["map_index"]) == ("job", "-1")
    assert len(looks(sandbox, kind)) <= 8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["_push_job", "result_of"])
def test_a_retry_after_a_crash_takes_the_same_job(hear: Any, sandbox: Any, kind: str, method: str) -> None:
    done = hear(
        TASKS[kind].format(more=f"{HEAR}, retries=1, {AT_ONCE}"), SPECIAL.format(method=method, act=DIE)
    )
    assert "the worker dies here" in done.log
    assert done.run["tasks"]["job"] == {"state": "success", "try_number": 2}, done.log[-3000:]
    assert len(starts(sandbox, kind)) == 1


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["drop_after_work", "truncate", "garbage"])
def test_a_lost_answer_starts_no_second_job(hear: Any, sandbox: Any, kind: str, fault: str) -> None:
    sandbox.control.add_fault(fault, path=f"{JOB_PATHS[kind]}$", method="POST")
    done = hear(TASKS[kind].format(more=f"{HEAR}, retries=1, {AT_ONCE}"), retry_budget=0)
    assert done.state("job") == "success", done.log[-3000:]
    assert len(starts(sandbox, kind)) == 1


@pytest.mark.rule("event-none-for-failure")
@pytest.mark.parametrize("kind", ["crawl", "batch_scrape"])
def test_a_failure_that_nobody_delivers_is_found(hear: Any, sandbox: Any, kind: str) -> None:
    sandbox.control.add_fault(f"fail_{kind}")
    more = f"{HEAR.replace('600', '1')}, retries=1, {AT_ONCE}"
    done = hear(TASKS[kind].format(more=more))
    assert done.run["tasks"]["job"] == {"state": "success", "try_number": 2}, done.log[-3000:]
    assert len(starts(sandbox, kind)) == 2


@pytest.mark.rule("batch-answer", "job-errors")
def test_pages_that_fail_and_urls_that_are_dropped(run: Any, sandbox: Any) -> None:
    sandbox.control.set_page("https://half.example/good", "<p>fine</p>")
    sandbox.control.set_page("https://half.example/bad", "<p>bad</p>", error="SCRAPE_TIMEOUT")
    urls = "['https://half.example/good', 'https://half.example/bad', 'https://nowhere/']"
    done = run(
        f"WebDataBatchScrapeOperator(task_id='job', urls={urls}, max_error_ratio=0.4, {POLL})",
    )
    assert done.state("job") == "failed", done.log[-3000:]
    result = done.xcom["job.return_value"]
    assert [page["metadata"]["sourceURL"] for page in result["data"]] == ["https://half.example/good"]
    assert [page["url"] for page in result["errors"]["pages"]] == ["https://half.example/bad"]
    assert done.xcom["job.invalidURLs"] == ["https://nowhere/"]


@pytest.mark.rule("parts-next")
@pytest.mark.parametrize("mode", MODES)
def test_many_pages_go_to_a_file_part_by_part(run: Any, sandbox: Any, tmp_path: Any, mode: str) -> None:
    sandbox.control.set_site("large.example", pages=230)
    path = tmp_path / "pages.jsonl"
    done = run(
        f"WebDataCrawlOperator(task_id='job', url='https://large.example/', limit=300, {POLL}, "
        f"output={str(path)!r}, {mode})"
    )
    assert done.state("job") == "success", done.log[-3000:]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    result = done.xcom["job.return_value"]
    assert len(lines) == result["count"] == result["completed"] >= 230
    assert "data" not in result
    assert len(looks(sandbox, "crawl")) >= 4, "read in parts"


def test_the_sensor_by_webhook(hear: Any, sandbox: Any) -> None:
    sandbox.control.configure(page_seconds=1)
    done = hear(
        "job = " + TASKS["crawl"].format(more="wait_for_completion=False") + "\n"
        "WebDataJobSensor(task_id='wait', kind='crawl', job_id=job.output, wait_by='webhook', deferrable=True)"
    )
    assert done.state("wait") == "success", done.log[-3000:]
    assert done.xcom["wait.return_value"]["id"] == done.xcom["job.return_value"]
