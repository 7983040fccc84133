"""The service's long jobs and other operations on a real Airflow: started once whatever happens, ended on demand."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pendulum
import psutil
import pytest
from pyarrow import parquet

from airflow_provider_webdata.sandbox.control import SandboxControl
from demo.examples import POOL
from tests.e2e.conftest import Run
from tests.e2e.holding_proxy import HoldingProxy
from tests.support.airflow_api import ENDED
from tests.support.runs import follow, scheduled_run
from tests.support.service import JOB_PATHS
from tests.support.stack import Stack
from tests.support.waiting import PATIENCE, wait_until

KINDS = tuple(JOB_PATHS)
HOUR = 3600
EXAMPLES = ("webdata_site_to_table", "webdata_incremental_search", "webdata_operations")
DAGS = (
    *EXAMPLES,
    *(f"e2e_{kind}_by_{how}" for kind in KINDS for how in ("webhook", "polling", "worker")),
    *(f"e2e_sensed_{kind}" for kind in KINDS),
    "e2e_killed_crawl",
    "e2e_killed_batch_scrape",
    "e2e_job_to_file",
    "e2e_short_operations",
)


@pytest.fixture(autouse=True)
def known(stack: Stack) -> None:
    """The DAGs are parsed, and the pool of an example is made, as its first lines say."""
    stack.wait_for_dags(DAGS)
    stack.api.add_pool(POOL, 8)


@pytest.fixture
def held(sandbox: SandboxControl) -> Iterator[SandboxControl]:
    """Jobs stand still until the sandbox's clock is moved forward."""
    sandbox.configure(page_seconds=HOUR, step_seconds=HOUR)
    yield sandbox
    sandbox.configure(page_seconds=0, step_seconds=0)
    sandbox.advance(24 * HOUR)


def let_go(sandbox: SandboxControl, kind: str, job_id: str) -> None:
    """Move the clock until the job is over."""
    for _ in range(20):
        if job(sandbox, kind, job_id)["status"] not in ("scraping", "processing", "queued", "pending"):
            return
        sandbox.advance(HOUR)
    raise AssertionError(f"{kind} {job_id} does not end: {job(sandbox, kind, job_id)}")


def job(sandbox: SandboxControl, kind: str, job_id: str) -> dict[str, Any]:
    return next(found for found in sandbox.jobs(kind) if found["id"] == job_id)


def started(sandbox: SandboxControl, kind: str) -> list[dict[str, Any]]:
    """The requests to start such a job that the service took."""
    posts = sandbox.requests(JOB_PATHS[kind] + "$", "POST")
    return [request for request in posts if request["status"] == 200]


@pytest.mark.parametrize("how", ["webhook", "polling"])
def test_a_job_is_waited_for_without_a_worker(stack: Stack, held: SandboxControl, how: str) -> None:
    runs = {kind: Run(stack, f"e2e_{kind}_by_{how}") for kind in KINDS}
    ids = {}
    for kind, run in runs.items():
        run.wait_for("wait", "deferred")
        ids[kind] = run.xcom("wait", "job_id")
        assert [request["status"] for request in held.requests(JOB_PATHS[kind] + "$", "POST")] == [200]

    for kind, job_id in ids.items():
        let_go(held, kind, job_id)

    for kind, run in runs.items():
        log = run.log(run.end("wait"))
        # See `Run.resumed_once`.
        assert log.count("Trigger fired event") <= 1, log
        result = run.xcom("wait")
        assert (result["id"], result["status"]) == (ids[kind], "completed")
        told = [found["event"] for found in held.deliveries() if found["jobId"] == ids[kind]]
        # The safety poll of those that wait by webhook is farther away than this test is long.
        assert (f"{kind}.completed" in told) is (how == "webhook"), told
        assert len(started(held, kind)) == 1
    assert len(runs["crawl"].xcom("wait")["data"]) == 3
    assert [page["metadata"]["sourceURL"] for page in runs["batch_scrape"].xcom("wait")["data"]] == [
        "https://shop.example/kettles",
        "https://shop.example/grinders",
    ]
    assert runs["extract"].xcom("wait")["data"]["title"]
    assert runs["agent"].xcom("wait")["data"]["title"]


def test_the_sensor_takes_the_result_of_a_job_started_elsewhere(stack: Stack, held: SandboxControl) -> None:
    runs = {kind: Run(stack, f"e2e_sensed_{kind}") for kind in KINDS}
    for kind, run in runs.items():
        run.wait_for("wait", "deferred")
        let_go(held, kind, run.xcom("start"))

    for run in runs.values():
        run.end("wait")
        result = run.xcom("wait")
        assert (result["id"], result["status"]) == (run.xcom("start"), "completed")
        assert result["data"]


@pytest.mark.parametrize("kind", ["crawl", "batch_scrape", "agent"])
@pytest.mark.parametrize("how, state", [("polling", "deferred"), ("worker", "running")])
def test_a_user_who_ends_the_task_cancels_the_job(
    stack: Stack, held: SandboxControl, kind: str, how: str, state: str
) -> None:
    run = Run(stack, f"e2e_{kind}_by_{how}")
    run.wait_for("wait", state)
    # The worker's task runs before it has started anything.
    assert wait_until(lambda: bool(started(held, kind))), run.log(run.task("wait"))
    job_id = held.jobs(kind)[-1]["id"]
    assert wait_until(lambda: bool(held.requests(f"{JOB_PATHS[kind]}/{job_id}", "GET")))

    path = f"/dags/e2e_{kind}_by_{how}/dagRuns/{run.id}/taskInstances/wait"
    stack.api.call("PATCH", path, json={"new_state": "failed"})

    cancels = f"{JOB_PATHS[kind]}/{job_id}"
    assert wait_until(lambda: bool(held.requests(cancels, "DELETE"))), run.log(run.task("wait"))
    # An agent run stops at its next step.
    held.advance(HOUR)
    assert job(held, kind, job_id)["status"] == "cancelled"
    assert run.wait_until_ended() == "failed"
    assert [request["status"] for request in held.requests(cancels, "DELETE")] == [200]


def task_process(task: psutil.Process) -> list[psutil.Process]:
    return [task]


def worker_and_task(task: psutil.Process) -> list[psutil.Process]:
    return [task.parent(), task]


@pytest.mark.parametrize(
    "kind, webhook, victims",
    [
        # By the crawls under way and the idempotency key; by the inbox; by the inbox, when nobody reports the death.
        ("crawl", False, task_process),
        ("batch_scrape", True, task_process),
        ("crawl", True, worker_and_task),
    ],
)
def test_one_job_after_the_retry_of_a_worker_that_died(
    stack: Stack,
    held: SandboxControl,
    kind: str,
    webhook: bool,
    victims: Callable[[psutil.Process], list[psutil.Process]],
) -> None:
    with HoldingProxy(stack.sandbox_url, hold=("POST", JOB_PATHS[kind])) as proxy:
        name = f"webdata_held_{kind}_{victims.__name__}"
        extra = {} if webhook else {"webhook_url": None, "webhook_secret": None}
        stack.api.add_connection(stack.connection(name, extra, proxy.url))
        run = Run(stack, f"e2e_killed_{kind}", {"connection": name})
        running = run.wait_for("wait", "running")
        assert proxy.answered.wait(PATIENCE), run.log(running)
        assert len(started(held, kind)) == 1
        job_id = held.jobs(kind)[-1]["id"]
        held.settle()

        for process in victims(psutil.Process(run.task("wait")["pid"])):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        proxy.release()
        task = run.wait_for("wait", "deferred", "failed")
        assert (task["state"], task["try_number"]) == ("deferred", 2), run.log(task)
        let_go(held, kind, job_id)
        run.end("wait")

    assert run.xcom("wait")["id"] == job_id
    assert len(started(held, kind)) == 1


def test_pages_of_a_job_go_to_a_file_that_the_next_task_reads(
    stack: Stack, sandbox: SandboxControl, tmp_path: Path
) -> None:
    path = tmp_path / "deep" / "pages.jsonl"
    run = Run(stack, "e2e_job_to_file", {"path": str(path)})

    assert run.wait_until_ended() == "success", run.log(run.task("crawl"))

    found = run.xcom("crawl")
    assert (found["count"], found["bytes"]) == (5, path.stat().st_size)
    assert "data" not in found
    assert run.xcom("read")["pages"] == 5
    assert all(urlsplit(url).hostname == "river.example" for url in run.xcom("read")["urls"])
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["pages.jsonl"]


def test_short_operations(stack: Stack, sandbox: SandboxControl, tmp_path: Path) -> None:
    path = tmp_path / "found.parquet"
    run = Run(stack, "e2e_short_operations", {"path": f"file://{path}"})

    assert run.wait_until_ended() == "failed"

    states = {task["task_id"]: (task["state"], task["try_number"]) for task in run.tasks()}
    assert states == {
        "searches": ("success", 1),
        "scrape": ("success", 1),
        "on_the_page": ("success", 1),
        "failing_code": ("failed", 1),
        "guard": ("skipped", 1),
        "guarded": ("skipped", 0),
        "nowhere": ("failed", 1),
    }
    # Equal searches are made once.
    assert len(sandbox.requests("/v2/search", "POST")) == 2
    table = parquet.read_table(path)
    assert set(table["query"].to_pylist()) == {"river", "kettle"}
    assert table.num_rows == run.xcom("searches")["count"]
    assert run.xcom("on_the_page")["steps"][0]["exitCode"] == 0
    assert "no such button" in run.log(run.task("failing_code"))
    assert {session["status"] for session in sandbox.sessions()}.isdisjoint({"active"})
    # Neither behind the guard nor with nowhere to write was anything paid for.
    scraped = [request["body"]["url"] for request in sandbox.requests("/v2/scrape$", "POST")]
    assert scraped == ["https://shop.example/kettles"]


def run_example(stack: Stack, dag_id: str) -> str:
    run_id = scheduled_run(stack.api, dag_id)
    follow(stack.api, dag_id, run_id, print)
    return run_id


def test_example_site_to_table(stack: Stack, sandbox: SandboxControl) -> None:
    run_id = run_example(stack, "webdata_site_to_table")

    urls = stack.api.xcom("webdata_site_to_table", run_id, "find_pages")
    batches = stack.api.xcom("webdata_site_to_table", run_id, "batches")
    assert sorted(url for batch in batches for url in batch) == sorted(urls)
    assert len(batches) > 1
    paths = [
        urlsplit(stack.api.xcom("webdata_site_to_table", run_id, "scrape", map_index=index)["path"]).path
        for index in range(len(batches))
    ]
    assert len(set(paths)) == len(batches)
    read = [url for path in paths for url in parquet.read_table(path)["source_url"].to_pylist()]
    assert sorted(read) == sorted(urls)
    report = stack.api.xcom("webdata_site_to_table", run_id, "report")
    assert report.startswith(f"{len(urls)} pages in {len(batches)} files")
    bodies = [request["body"] for request in started(sandbox, "batch_scrape")]
    assert sorted(tuple(body["urls"]) for body in bodies) == sorted(map(tuple, batches))


def test_example_incremental_search(stack: Stack, sandbox: SandboxControl) -> None:
    """Catch-up gives every month its run, its days and its file."""
    dag_id = "webdata_incremental_search"
    scheduled_run(stack.api, dag_id)
    started_on = pendulum.parse(stack.api.call("GET", f"/dags/{dag_id}/details")["start_date"])
    runs: list[dict[str, Any]] = []

    def all_ended() -> bool:
        runs[:] = stack.api.runs(dag_id)
        months = pendulum.now("UTC").diff(started_on).in_months()
        return len(runs) == months and all(run["state"] in ENDED for run in runs)

    # The scheduler makes them two at a time, and the next when it has seen that one of them ended.
    assert wait_until(all_ended, pause=0.5), runs
    assert {run["state"] for run in runs} == {"success"}
    ranges = [request["body"]["tbs"] for request in sandbox.requests("/v2/search", "POST")]
    assert len(set(ranges)) == len(ranges) == len(runs)
    paths = set()
    for run in runs:
        found = stack.api.xcom(dag_id, run["dag_run_id"], "search")
        assert run["data_interval_start"][:10] in found["path"]
        paths.add(found["path"])
    assert len(paths) == len(runs)
    urls: list[str] = []
    for path in paths:
        with open(urlsplit(path).path) as file:
            urls += [json.loads(line)["url"] for line in file]
    # No page is found in two months.
    assert urls
    assert len(set(urls)) == len(urls)


def test_example_operations(stack: Stack, sandbox: SandboxControl) -> None:
    run_id = run_example(stack, "webdata_operations")

    report = stack.api.xcom("webdata_operations", run_id, "report")
    names = [line.split(":")[0] for line in report.splitlines()]
    assert names == ["scrape", "crawl", "extract", "agent", "interact", "parse"]
    crawled = stack.api.xcom("webdata_operations", run_id, "crawl")["path"]
    with gzip.open(urlsplit(crawled).path, "rt") as file:
        pages = [json.loads(line) for line in file]
    assert f"crawl: {len(pages)} pages in" in report
    assert {kind: len(started(sandbox, kind)) for kind in ("crawl", "extract", "agent")} == {
        "crawl": 1,
        "extract": 1,
        "agent": 1,
    }
