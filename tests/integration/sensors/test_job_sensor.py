"""The job sensor in a real Airflow, against a service that does what the test needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.dag_runner import dag_runner
from tests.support.job_service import RUNNING, JobService
from tests.support.service import JOB_PATHS

KINDS = tuple(JOB_PATHS)
JOB = "0b9c1f4e-0000-4000-8000-000000000001"
POKE = pytest.param("deferrable=False, poke_interval=1", id="poke")
RESCHEDULE = pytest.param("deferrable=False, poke_interval=1, mode='reschedule'", id="reschedule")
DEFER = pytest.param("deferrable=True, poll_interval=1", id="defer")
MODES = [POKE, RESCHEDULE, DEFER]
POKE_MODE, RESCHEDULE_MODE, DEFER_MODE = (mode.values[0] for mode in MODES)
IMPORT = "from airflow_provider_webdata.sensors.job import WebDataJobSensor\n"
DATA: dict[str, Any] = {
    "crawl": [{"markdown": "m"}],
    "batch_scrape": [{"markdown": "m"}],
    "extract": {},
    "agent": {},
}


@pytest.fixture
def jobs() -> Iterator[JobService]:
    made = JobService()
    made.ends_after = 2
    yield made
    made.stop()


@pytest.fixture
def run(airflow: Any, jobs: JobService) -> Callable[..., Any]:
    runner = dag_runner(airflow, jobs)  # type: ignore[arg-type]
    return lambda body, **extra: runner(body, IMPORT, **{"retry_budget": 0, **extra})


def sensor(kind: str, more: str, job_id: str = JOB) -> str:
    return f"WebDataJobSensor(task_id='wait', kind={kind!r}, job_id={job_id!r}, {more})"


@pytest.mark.parametrize(
    ("mode", "kind"),
    # Kinds differ in what is asked, modes in who asks.
    [*((DEFER_MODE, kind) for kind in KINDS), (POKE_MODE, "crawl"), (RESCHEDULE_MODE, "agent")],
)
def test_waits_and_returns_the_result(run: Any, jobs: JobService, kind: str, mode: str) -> None:
    jobs.set(kind, JOB, RUNNING[kind])
    jobs.ends_as = {"status": "completed", "data": DATA[kind]}
    done = run(sensor(kind, mode))
    assert done.state("wait") == "success", done.log[-3000:]
    result = done.xcom["wait.return_value"]
    assert (result["id"], result["status"], result["data"]) == (JOB, "completed", DATA[kind])


@pytest.mark.rule("job-failed", "job-cancelled")
@pytest.mark.parametrize(
    ("mode", "soft", "state", "end"),
    [
        (POKE_MODE, "", "failed", "failed"),
        (POKE_MODE, ", soft_fail=True", "skipped", "cancelled"),
        (RESCHEDULE_MODE, "", "failed", "cancelled"),
        (DEFER_MODE, "", "failed", "failed"),
        (DEFER_MODE, ", soft_fail=True", "skipped", "failed"),
        (DEFER_MODE, ", soft_fail=True", "skipped", "cancelled"),
    ],
)
def test_a_job_without_a_result(
    run: Any, jobs: JobService, mode: str, soft: str, state: str, end: str
) -> None:
    jobs.set("crawl", JOB, "scraping")
    jobs.ends_as = {"status": end, "error": "the queue was full"}
    done = run(sensor("crawl", mode + soft))
    assert done.state("wait") == state, done.log[-3000:]
    if state == "failed":
        assert ("the queue was full" if end == "failed" else "was cancelled") in done.log


@pytest.mark.parametrize("mode", MODES)
def test_timeout_leaves_the_job(run: Any, jobs: JobService, mode: str) -> None:
    jobs.ends_after = None
    jobs.set("crawl", JOB, "scraping")
    done = run(sensor("crawl", f"{mode}, timeout=1, retries=2"))
    assert done.run["tasks"]["wait"] == {"state": "failed", "try_number": 1}, done.log[-3000:]
    assert not [line for line in jobs.requests if line.startswith("DELETE")]


@pytest.mark.parametrize("mode", MODES)
def test_trouble_that_passes(run: Any, jobs: JobService, mode: str) -> None:
    jobs.set("crawl", JOB, "scraping")
    jobs.ends_as = {"status": "completed", "data": []}
    jobs.faults = [(503, {"error": "down"}, {}), (404, {"error": "Job not found."}, {})]
    done = run(sensor("crawl", mode))
    assert done.run["tasks"]["wait"] == {"state": "success", "try_number": 1}, done.log[-3000:]


@pytest.mark.parametrize(
    ("kind", "job_id", "words"),
    [("{{ 'map' }}", JOB, "kind must be one of"), ("crawl", "{{ '' }}", "job_id is empty after rendering")],
)
def test_what_cannot_work_fails_at_once(
    run: Any, jobs: JobService, kind: str, job_id: str, words: str
) -> None:
    done = run(sensor(kind, "deferrable=True, retries=2", job_id))
    assert done.run["tasks"]["wait"] == {"state": "failed", "try_number": 1}, done.log[-3000:]
    assert words in done.log
    assert jobs.requests == []
