# SPDX-License-Identifier: Apache-2.0
"""The service's long jobs and other operations on a real Airflow: started once whatever happens, ended on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyarrow import parquet

from tests.e2e.run import Run
from tests.support.service import JOB_PATHS
from tests.support.stack import Stack
from tests.support.waiting import wait_until
from webdata_sandbox.control import SandboxControl

KINDS = tuple(JOB_PATHS)
HOUR = 3600


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outputs")


@pytest.fixture(scope="module")
def runs(start: Callable[..., Run], control: SandboxControl, outputs: Path) -> Iterator[dict[str, Run]]:
    """The runs of the first tests, started together."""
    control.clear_faults()
    control.clear_requests()
    control.configure(entitlements=["threatProtection"])
    file = outputs / "level.html"
    file.write_text("<title>Level</title><p>412 cm</p>")
    confs = {
        "e2e_monitor_life": {},
        "e2e_indexes": {"file": str(file)},
        "e2e_job_to_file": {"path": str(outputs / "deep" / "pages.jsonl")},
        "e2e_short_operations": {"path": f"file://{outputs}/found.parquet"},
    }
    yield {dag_id: start(dag_id, conf) for dag_id, conf in confs.items()}
    control.configure(entitlements=[])


def test_pages_of_a_job_go_to_a_file_that_the_next_task_reads(runs: dict[str, Run], outputs: Path) -> None:
    run, path = runs["e2e_job_to_file"], outputs / "deep" / "pages.jsonl"
    run.succeed()

    found = run.xcom("crawl")
    assert (found["count"], found["bytes"]) == (5, path.stat().st_size)
    assert "data" not in found
    assert run.xcom("read")["pages"] == 5
    assert all(urlsplit(url).hostname == "river.example" for url in run.xcom("read")["urls"])
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["pages.jsonl"]


@pytest.mark.rule("monitor-status", "monitor-list", "monitor-delete", "monitor-run")
def test_a_monitor_is_created_run_paused_listed_and_deleted(
    runs: dict[str, Run], control: SandboxControl
) -> None:
    run = runs["e2e_monitor_life"]
    run.succeed()

    monitor = run.xcom("create")["id"]
    assert run.xcom("run")["monitorId"] == monitor
    assert run.xcom("pause")["status"] == "paused"
    assert [(found["id"], found["status"]) for found in run.xcom("paused")] == [(monitor, "paused")]
    assert run.xcom("left") == []
    calls = [(request["method"], request["status"]) for request in control.requests("/v2/monitor")]
    assert [calls.count((method, 200)) for method in ("POST", "PATCH", "DELETE")] == [2, 1, 1]


def test_indexes_feedback_and_the_team(runs: dict[str, Run], control: SandboxControl) -> None:
    run = runs["e2e_indexes"]
    run.succeed()

    assert run.xcom("rate") == 1
    assert "412 cm" in run.xcom("parse")["markdown"]
    found = run.xcom("of_the_team")
    assert found.keys() == {"issues", "papers", "similar", "policy", "most"}
    assert found["issues"] >= 1
    assert found["papers"] >= 1
    # Each is requested once; the file goes to the storage that the service names, and not with the call.
    paths = [request["path"] for request in control.requests("/v2/parse", "POST")]
    assert sorted(paths) == ["/v2/parse", "/v2/parse/upload-url"]


def test_short_operations(runs: dict[str, Run], control: SandboxControl, outputs: Path) -> None:
    run = runs["e2e_short_operations"]
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
    # Of three searches, the equal ones are requested once. Other runs search without a limit.
    bodies = [request["body"] for request in control.requests("/v2/search", "POST")]
    assert sorted(body["query"] for body in bodies if body.get("limit") == 3) == ["kettle", "river"]
    table = parquet.read_table(outputs / "found.parquet")
    assert set(table["query"].to_pylist()) == {"river", "kettle"}
    assert table.num_rows == run.xcom("searches")["count"]
    assert run.xcom("on_the_page")["steps"][0]["exitCode"] == 0
    assert "no such button" in run.log(run.task("failing_code"))
    assert {session["status"] for session in control.sessions()}.isdisjoint({"active"})
    # Neither behind the guard nor with nowhere to write was anything billed.
    scraped = [request["body"]["url"] for request in control.requests("/v2/scrape$", "POST")]
    assert scraped == ["https://shop.example/kettles"]


# The tasks that wait for a job without a worker, by how its end is reported.
WAITS = (
    *((f"e2e_{kind}_by_webhook", kind) for kind in KINDS),
    *((f"e2e_{kind}_by_polling", kind) for kind in ("crawl", "agent")),
    *((f"e2e_sensed_{kind}", kind) for kind in ("batch_scrape", "agent")),
)
# Those that a user ends; the last one holds a worker.
ENDED_BY_USER = (
    ("e2e_batch_scrape_by_polling", "batch_scrape"),
    ("e2e_agent_by_polling", "agent"),
    ("e2e_crawl_by_worker", "crawl"),
)

LIMITED = "e2e_crawl_with_a_limit"


@pytest.fixture(scope="module")
def jobs(start: Callable[..., Run], control: SandboxControl) -> Iterator[dict[str, Run]]:
    """Tasks that wait for jobs, which stand still until the sandbox's clock is moved forward."""
    control.clear_faults()
    control.clear_requests()
    control.configure(page_seconds=HOUR, step_seconds=HOUR)
    waits = {dag_id: start(dag_id) for dag_id, _ in WAITS}
    ended_by_user = {f"ended {dag_id}": start(dag_id) for dag_id, _ in ENDED_BY_USER}
    yield {**waits, **ended_by_user, LIMITED: start(LIMITED)}
    control.configure(page_seconds=0, step_seconds=0)


@pytest.mark.parametrize("dag_id, kind", ENDED_BY_USER, ids=[dag_id for dag_id, _ in ENDED_BY_USER])
def test_a_user_who_ends_the_task_cancels_the_job(
    stack: Stack, control: SandboxControl, jobs: dict[str, Run], dag_id: str, kind: str
) -> None:
    run = jobs[f"ended {dag_id}"]
    run.wait_for("wait", "running" if "worker" in dag_id else "deferred")
    # The worker's task runs before it has started the job.
    assert wait_until(lambda: run.has_xcom("wait", "job_id")), run.log(run.task("wait"))
    job_id = job_id_of(run)
    path = f"{JOB_PATHS[kind]}/{job_id}"
    assert wait_until(lambda: bool(control.requests(path, "GET")))

    task = f"/dags/{dag_id}/dagRuns/{run.id}/taskInstances/wait"
    stack.api.call("PATCH", task, json={"new_state": "failed"})

    assert wait_until(lambda: bool(control.requests(path, "DELETE"))), run.log(run.task("wait"))
    assert run.wait_until_ended() == "failed"
    assert [request["status"] for request in control.requests(path, "DELETE")] == [200]


def job_id_of(run: Run) -> str:
    """Return the job that a task has started."""
    found = run.xcom("start") if "start" in run.states() else run.xcom("wait", "job_id")
    return str(found)


def test_a_limit_that_passes_during_the_wait_cancels_the_job(
    control: SandboxControl, jobs: dict[str, Run]
) -> None:
    run = jobs[LIMITED]
    assert run.wait_until_ended() == "failed"
    log = run.log(run.task("wait"))
    assert "WaitTimeoutError" in log
    assert 200 in [
        request["status"] for request in control.requests(f"{JOB_PATHS['crawl']}/{job_id_of(run)}", "DELETE")
    ]


def test_a_job_is_waited_for_without_a_worker(control: SandboxControl, jobs: dict[str, Run]) -> None:
    ids = {}
    for dag_id, _ in WAITS:
        jobs[dag_id].wait_for("wait", "deferred")
        ids[dag_id] = job_id_of(jobs[dag_id])
    running = ("scraping", "processing", "queued", "pending")
    while any(job["status"] in running for kind in KINDS for job in control.jobs(kind)):
        control.advance(HOUR)

    deliveries = control.deliveries()
    for dag_id, kind in WAITS:
        run = jobs[dag_id]
        log = run.log(run.end("wait"))
        # See `Run.resumed_once`.
        assert log.count("Trigger fired event") <= 1, log
        result = run.xcom("wait")
        assert (result["id"], result["status"]) == (ids[dag_id], "completed")
        if "sensed" not in dag_id:
            # The safety poll of those that wait by webhook is farther away than this test is long.
            events = [delivery["event"] for delivery in deliveries if delivery["jobId"] == ids[dag_id]]
            assert (f"{kind}.completed" in events) is dag_id.endswith("webhook"), events
    data = {kind: jobs[f"e2e_{kind}_by_webhook"].xcom("wait")["data"] for kind in KINDS}
    assert len(data["crawl"]) == 3
    assert [page["metadata"]["sourceURL"] for page in data["batch_scrape"]] == [
        "https://shop.example/kettles",
        "https://shop.example/grinders",
    ]
    assert data["agent"]["title"]
    assert all(jobs[f"e2e_sensed_{kind}"].xcom("wait")["data"] for kind in ("batch_scrape", "agent"))
    # Each job was requested once.
    counts = Counter(kind for _, kind in (*WAITS, *ENDED_BY_USER, (LIMITED, "crawl")))
    for kind in KINDS:
        posts = control.requests(JOB_PATHS[kind] + "$", "POST")
        assert [request["status"] for request in posts] == [200] * counts[kind]


@pytest.mark.parametrize("dag_id, kind", ENDED_BY_USER, ids=[dag_id for dag_id, _ in ENDED_BY_USER])
def test_a_job_that_a_user_ended_is_cancelled(
    control: SandboxControl, jobs: dict[str, Run], dag_id: str, kind: str
) -> None:
    """An agent run stops at its next step only, which it has made by now."""
    (job,) = (job for job in control.jobs(kind) if job["id"] == job_id_of(jobs[f"ended {dag_id}"]))
    assert job["status"] == "cancelled"
