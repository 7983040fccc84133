# SPDX-License-Identifier: Apache-2.0
"""Operators of long jobs in a real Airflow, against the sandbox, whose webhooks arrive in a real inbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from tests.integration.operators.test_job_operators import AT_ONCE, HEAD
from tests.support import direct
from tests.support.airflow_versions import NEEDS_MEMORY
from tests.support.dag_runner import Airflow, Outcome, dag_runner
from tests.support.inbox_server import InboxServer
from tests.support.service import JOB_PATHS
from webdata_sandbox.server import SandboxServer

KINDS = tuple(JOB_PATHS)
TASKS = {
    "crawl": "{}(task_id='crawl', url='https://river.example/', limit=2, {more})",
    "batch_scrape": "{}(task_id='batch_scrape', urls=['https://river.example/', 'https://shop.example/'], {more})",
    "agent": "{}(task_id='agent', prompt='find rivers', {more})",
}
NAMES = {
    "crawl": "WebDataCrawlOperator",
    "batch_scrape": "WebDataBatchScrapeOperator",
    "agent": "WebDataAgentOperator",
}
HEAR = "deferrable=True"
RETRY = f"retries=1, {AT_ONCE}"


def task(kind: str, more: str = "", operator: str = "") -> str:
    arguments = f"{HEAR}, {more}"
    return TASKS[kind].format(operator or NAMES[kind], more=arguments)


class Runner(NamedTuple):
    """Runs the body of a DAG whose connection receives deliveries."""

    sandbox: SandboxServer
    run: Callable[..., Outcome]

    def starts(self, kind: str) -> list[Any]:
        return self.sandbox.control.requests(f"{JOB_PATHS[kind]}$", "POST")

    def looks(self, kind: str) -> list[Any]:
        return self.sandbox.control.requests(f"{JOB_PATHS[kind]}/[-0-9a-f]+$", "GET")


@pytest.fixture(scope="module")
def runner(airflow: Airflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with (
        SandboxServer() as sandbox,
        InboxServer(tmp_path_factory.mktemp("inbox")) as inbox,
    ):
        run = dag_runner(airflow, sandbox)
        yield Runner(sandbox, lambda *lines, **more: run("\n".join(lines), HEAD, **inbox.extra, **more))


@pytest.fixture
def hear(runner: Runner) -> Runner:
    runner.sandbox.control.reset()
    return runner


@pytest.mark.rule("event-job-completed", "event-agent", "job-status")
def test_jobs_of_all_kinds(hear: Runner) -> None:
    """They are polled when the wait begins, when the delivery comes, and when the result is read."""
    hear.sandbox.control.configure(page_seconds=1, step_seconds=0.5)
    sensor = f"WebDataJobSensor(task_id='wait', kind='crawl', job_id=job.output, {HEAR})"
    started = task("crawl", "wait_for_completion=False").replace("'crawl'", "'started'")
    done = hear.run(*map(task, KINDS), f"job = {started}", sensor)
    assert done.run["state"] == "success", done.log[-5000:]
    for kind in KINDS:
        result = done.xcom[f"{kind}.return_value"]
        assert (result["id"], result["status"]) == (done.xcom[f"{kind}.job_id"], "completed")
        assert result["data"]
        origin = hear.starts(kind)[0]["body"]["webhook"]["metadata"]
        assert set(origin) == {"dag_id", "run_id", "task_id", "map_index"}
        assert (origin["task_id"], origin["map_index"]) in ((kind, "-1"), ("started", "-1"))
        assert len(hear.looks(kind)) <= 16
    assert done.xcom["wait.return_value"]["id"] == done.xcom["started.return_value"]


@NEEDS_MEMORY
def test_a_retry_after_a_crash_returns_the_result_of_the_same_job(hear: Runner) -> None:
    """Between the start and the wait, and while the result is read."""
    crashes = {"crawl": "push", "agent": "result_of"}
    done = hear.run(
        *(
            task(kind, RETRY, operator=f"special({NAMES[kind]}, {method!r}, die)")
            for kind, method in crashes.items()
        )
    )
    for kind in crashes:
        assert "the worker dies here" in done.log_of(kind)
        assert done.ended(kind) == ("success", 2), done.log_of(kind)
        assert len(hear.starts(kind)) == 1


@pytest.mark.rule("repeat-unsafe")
def test_a_lost_answer_starts_no_second_job(hear: Runner) -> None:
    faults = {
        "crawl": "truncate",
        "batch_scrape": "drop_after_work",
        "agent": "garbage",
    }
    for kind, fault in faults.items():
        hear.sandbox.control.add_fault(fault, path=f"{JOB_PATHS[kind]}$", method="POST")
    done = hear.run(*(task(kind, RETRY) for kind in KINDS), retry_budget=0)
    for kind in KINDS:
        assert done.state(kind) == "success", done.log_of(kind)
        assert len(hear.sandbox.control.jobs(kind)) == 1


# In this process, by polling.


@pytest.mark.rule("batch-answer", "job-errors")
def test_pages_that_fail_and_urls_that_are_dropped(here: SandboxServer) -> None:
    here.control.set_page("https://half.example/good", "<p>fine</p>")
    here.control.set_page("https://half.example/bad", "<p>bad</p>", error="SCRAPE_TIMEOUT")
    outcome = direct.run(
        WebDataBatchScrapeOperator(
            task_id="job",
            urls=["https://half.example/good", "https://half.example/bad", "https://nowhere/"],
            max_error_ratio=0.4,
            poll_interval=1,
        )
    )
    assert outcome.state == "failed"
    result = outcome.xcom["return_value"]
    assert [page["metadata"]["sourceURL"] for page in result["data"]] == ["https://half.example/good"]
    assert [page["url"] for page in result["errors"]["pages"]] == ["https://half.example/bad"]
    assert outcome.xcom["invalid_urls"] == ["https://nowhere/"]


@pytest.mark.rule("parts-next")
def test_many_pages_go_to_a_file_part_by_part(here: SandboxServer, tmp_path: Path) -> None:
    here.control.set_site("large.example", pages=230)
    path = tmp_path / "pages.jsonl"
    crawl = WebDataCrawlOperator(
        task_id="job",
        url="https://large.example/",
        limit=300,
        poll_interval=1,
        save_to=str(path),
        deferrable=True,
    )
    outcome = direct.run(crawl)
    result = outcome.value
    assert outcome.xcom[crawl.output["path"].key] == result["path"] == str(path)  # type: ignore[attr-defined]
    assert {name: outcome.xcom[name] for name in ("count", "id", "credits_used")}.items() <= result.items()
    assert [name for name in (*result, *outcome.xcom) if name != name.lower()] == []
    assert not {"status", "total", "expires_at"} & {*outcome.xcom}, "a result is stored once"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == result["count"] == result["completed"] >= 230
    assert "data" not in result
    looks = here.control.requests(f"{JOB_PATHS['crawl']}/[-0-9a-f]+$", "GET")
    assert len(looks) >= 4, "read in parts"


@pytest.mark.says("waits by polling, and its log says why")
def test_without_an_inbox_a_task_polls_and_says_why_once(
    here: SandboxServer, connect: Callable[..., None], log: Callable[[], str]
) -> None:
    nowhere = "http://127.0.0.1:9"
    connect(here, webhook_url=nowhere, inbox_url=nowhere, webhook_secret="a-secret-that-is-long")
    here.control.configure(page_seconds=0.5)
    outcome = direct.run(
        WebDataCrawlOperator(
            task_id="job",
            url="https://river.example/",
            limit=2,
            poll_interval=1,
            deferrable=True,
        )
    )
    assert outcome.state == "success"
    (start,) = here.control.requests(f"{JOB_PATHS['crawl']}$", "POST")
    assert "webhook" not in start["body"]
    logged = log()
    assert logged.count(nowhere) == 1
    assert f"No webhook is attached, and waits poll: the inbox at {nowhere} does not respond" in logged
    assert "polling the service every 1 s, until" in logged
