# SPDX-License-Identifier: Apache-2.0
"""The job sensor, against a service that answers what a test sets.

DAG runs in a real Airflow show how each mode waits and how waits end; the rest needs no DAG run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowRescheduleException

from airflow_provider_webdata.options import Quality
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.states import answers
from airflow_provider_webdata.waiting import subjects
from tests.integration.sensors.conftest import MODES, task
from tests.support import direct
from tests.support.dag_runner import dag_runner
from tests.support.job_service import REFUSED, RUNNING, JobService
from tests.support.service import CONNECTION_ID, JOB_PATHS, connection_text
from tests.support.waiting import wait_until

IMPORT = "from airflow_provider_webdata.sensors.job import WebDataJobSensor\n"
JOB = "0b9c1f4e-0000-4000-8000-000000000001"
SECOND = {"poke_interval": 1}
DATA: dict[str, Any] = {
    "crawl": [{"markdown": "m"}],
    "batch_scrape": [{"markdown": "m"}],
    "agent": {},
}


def job_of(name: str) -> str:
    """Return the id of the job that a task waits for."""
    return f"0b9c1f4e-0000-4000-8000-{name.encode().hex()[-12:]:0>12}"


@pytest.fixture
def jobs() -> Iterator[JobService]:
    service = JobService()
    service.ends_after = 2
    yield service
    service.stop()


# In a real Airflow


@pytest.fixture
def run(airflow: Any, jobs: JobService) -> Callable[..., Any]:
    """Run a DAG of tasks."""
    runner = dag_runner(airflow, jobs)  # type: ignore[arg-type]
    return lambda *tasks: runner("\n".join(tasks), IMPORT, retry_budget=0)


def sensor(task_id: str, mode: str, kind: str = "crawl", **more: Any) -> str:
    arguments = {"kind": kind, "job_id": job_of(task_id), **SECOND, **MODES[mode], **more}
    return task("WebDataJobSensor", task_id, **arguments)


def test_waits_and_returns_the_result(run: Any, jobs: JobService) -> None:
    """Kinds differ in the request, and modes in the process that polls."""
    modes = {"crawl": "poke", "batch_scrape": "defer", "agent": "reschedule"}
    assert modes.keys() == JOB_PATHS.keys()
    for kind in modes:
        jobs.set(kind, job_of(kind), RUNNING[kind], data=DATA[kind])
    done = run(*(sensor(kind, mode, kind) for kind, mode in modes.items()))
    for kind in modes:
        assert done.state(kind) == "success", done.log_of(kind)[-3000:]
        result = done.xcom[f"{kind}.return_value"]
        assert (result["id"], result["status"], result["data"]) == (job_of(kind), "completed", DATA[kind])


def test_waits_that_end_without_a_result(run: Any, jobs: JobService) -> None:
    """A timeout, which leaves the job running, and a job without a result are errors without a retry."""
    jobs.ends_after = None
    for mode in MODES:
        jobs.set("crawl", job_of(mode), "scraping")
    for name in ("failing", "soft_failing"):
        jobs.set("crawl", job_of(name), "failed", error="the queue was full")
    done = run(
        *(sensor(mode, mode, timeout=1, retries=2) for mode in MODES),
        sensor("failing", "defer", retries=2),
        sensor("soft_failing", "defer", retries=2, soft_fail=True),
    )
    for name in (*MODES, "failing", "soft_failing"):
        assert done.ended(name) == ("failed", 1), done.log_of(name)[-3000:]
    assert "the queue was full" in done.log_of("failing")
    assert not [line for line in jobs.requests if line.startswith("DELETE")]


# In this process


@pytest.fixture
def wait(jobs: JobService, monkeypatch: pytest.MonkeyPatch, no_worker_lingers: None) -> Any:
    """Run a sensor to its end."""
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION_ID.upper()}", connection_text(jobs.url, retry_budget=0))

    def run(mode: str, kind: Any = "crawl", job_id: str = JOB, **more: Any) -> direct.Outcome:
        arguments: dict[str, Any] = {"retries": 2, **SECOND, **MODES[mode], **more}
        return direct.run(WebDataJobSensor(task_id="wait", kind=kind, job_id=job_id, **arguments))

    return run


@pytest.mark.rule("job-failed", "job-cancelled")
@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_a_job_without_a_result(wait: Any, jobs: JobService, end: str) -> None:
    for mode in ("poke", "defer"):
        jobs.set("crawl", JOB, end, error="the queue was full", creditsUsed=3)
        done = wait(mode, soft_fail=True)
        assert done.ended == ("failed", 1), mode
        assert done.xcom["credits"]["jobs"] == {f"crawl/{JOB}": 3}, mode
        assert ("the queue was full" if end == "failed" else "was canceled") in str(done.error), mode


def test_only_a_timeout_is_skipped(
    wait: Any, jobs: JobService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An unknown job and a key that stays wrong are errors with `soft_fail` too; the log has the reason of a skip."""
    monkeypatch.setattr(subjects, "MISSING_LIMIT", 0.1)
    monkeypatch.setattr(answers, "OUTAGE_SECONDS", 0.2)
    jobs.ends_after = None
    jobs.set("crawl", JOB, "scraping")
    for mode in ("poke", "defer"):
        unknown = wait(mode, job_id="0b9c1f4e-0000-4000-8000-00000000dead", soft_fail=True, retries=0)
        assert (unknown.state, "not found" in str(unknown.error)) == ("failed", True), mode
        jobs.accepts = "another"
        refused = wait(mode, soft_fail=True, retries=1)
        assert refused.ended == ("failed", 2), "a retry waits for the same job"
        assert "(WD-401)" in str(refused.error), mode
        jobs.accepts = None
    caplog.clear()
    done = wait("defer", soft_fail=True, timeout=1)
    assert done.ended == ("skipped", 1)
    lines = caplog.messages
    assert [line for line in lines if f"crawl {JOB}" in line and line.endswith("(soft_fail=True)")], lines


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("soft_fail", [False, True])
def test_a_timeout_names_the_last_state(
    wait: Any, jobs: JobService, caplog: pytest.LogCaptureFixture, mode: str, soft_fail: bool
) -> None:
    """Also one that this release does not know."""
    jobs.ends_after = None
    jobs.set("crawl", JOB, "archiving")
    done = wait(mode, timeout=1, soft_fail=soft_fail)
    assert done.ended == ("skipped" if soft_fail else "failed", 1)
    skipped = "".join(line for line in caplog.messages if "soft_fail=True" in line)
    said = skipped if soft_fail else str(done.error)
    assert f"Timed out waiting for crawl {JOB}: " in said
    assert "its state was: archiving" in said
    assert "(WD-030)" in said


@pytest.mark.rule("job-cancelled", "parts-end")
@pytest.mark.parametrize("mode", ["poke", "defer"])
def test_a_cancelled_job_that_is_accepted(wait: Any, jobs: JobService, mode: str) -> None:
    jobs.set("crawl", JOB, "cancelled", data=DATA["crawl"])
    done = wait(mode, accept_canceled=True)
    assert done.ended == ("success", 1), done.error
    assert (done.value["status"], done.value["data"]) == ("cancelled", DATA["crawl"])
    jobs.set("crawl", JOB, "failed", error="the queue was full")
    assert wait(mode, accept_canceled=True).ended == ("failed", 1)


@pytest.mark.parametrize("mode", ["reschedule", "defer"])
def test_trouble_that_passes(wait: Any, jobs: JobService, mode: str) -> None:
    jobs.ends_as = {"status": "completed", "data": []}
    jobs.set("crawl", JOB, "scraping")
    jobs.faults = [(503, {"error": "down"}, {}), (404, {"error": "Job not found."}, {})]
    done = wait(mode)
    assert done.ended == ("success", 1), done.error
    assert jobs.faults == []


@pytest.mark.rule("status-401")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("refusal", [401, 402, 403])
def test_a_refusal_that_passes(wait: Any, jobs: JobService, mode: str, refusal: int) -> None:
    """In each mode, and while the result is read."""
    jobs.ends_after = 1
    jobs.set("crawl", JOB, "scraping", data=DATA["crawl"])
    jobs.faults = [(refusal, {"success": False, "error": "no"}, {})] * 4
    done = wait(mode)
    assert done.ended == ("success", 1), done.error
    assert jobs.faults == []


@pytest.mark.rule("status-401")
@pytest.mark.parametrize("mode", MODES)
def test_the_next_poke_uses_a_corrected_key(
    wait: Any, jobs: JobService, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so does the request for the result."""
    jobs.set("crawl", JOB, "completed", data=DATA["crawl"])
    jobs.accepts = "new"

    def correct() -> None:
        wait_until(lambda: len(jobs.requests) >= 2)
        monkeypatch.setenv(
            f"AIRFLOW_CONN_{CONNECTION_ID.upper()}", connection_text(jobs.url, key="new", retry_budget=0)
        )

    correcting = threading.Thread(target=correct)
    correcting.start()
    done = wait(mode)
    correcting.join()
    assert done.ended == ("success", 1), done.error


@pytest.mark.parametrize("mode", ["poke", "defer"])
def test_a_lasting_refusal_of_the_result_ends_the_attempt(
    wait: Any, jobs: JobService, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "OUTAGE_SECONDS", 0.5)
    jobs.set("crawl", JOB, "completed", data=DATA["crawl"])
    real = jobs.answer

    def answer(method: str, path: str, body: Any, key: Any, query: str = "") -> Any:
        return real(method, path, body, key, query) if query == "limit=1" else REFUSED

    jobs.answer = answer  # type: ignore[method-assign]
    done = wait(mode, retries=1)
    assert done.ended == ("failed", 2)
    assert "(WD-401)" in str(done.error)


@pytest.mark.parametrize("mode", ["poke", "defer"])
def test_a_refusal_while_the_result_is_read_is_retried(wait: Any, jobs: JobService, mode: str) -> None:
    jobs.set("crawl", JOB, "completed", data=DATA["crawl"])
    real = jobs.answer
    refusals = [REFUSED] * 2

    def answer(method: str, path: str, body: Any, key: Any, query: str = "") -> Any:
        return refusals.pop() if query != "limit=1" and refusals else real(method, path, body, key, query)

    jobs.answer = answer  # type: ignore[method-assign]
    done = wait(mode)
    assert done.state == "success", done.error
    assert not refusals


def test_pages_of_a_poke_that_failed_are_not_counted_again(wait: Any, jobs: JobService) -> None:
    pages = [{"markdown": "m", "metadata": {"sourceURL": f"https://a.example/{n}"}} for n in range(101)]
    jobs.set("crawl", JOB, "completed", data=pages)
    real, failed = jobs.answer, list[str]()

    def answer(method: str, path: str, body: Any, key: Any, query: str = "") -> Any:
        if "skip=100" in query and not failed:
            failed.append(query)
            return 502, "Bad gateway", {}
        return real(method, path, body, key, query)

    jobs.answer = answer  # type: ignore[method-assign]
    done = wait("poke", quality=Quality(min_items=101))
    assert done.ended == ("success", 1), done.error
    assert done.xcom["quality"]["items"] == 101
    assert failed


@pytest.mark.rule("retry-after")
@pytest.mark.parametrize(("pause", "is_before_timeout"), [(300, True), (86_000, False)])
def test_a_rate_limit_late_in_a_long_wait(
    jobs: JobService, monkeypatch: pytest.MonkeyPatch, pause: int, is_before_timeout: bool
) -> None:
    """It does not end the wait, and does not extend it."""
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION_ID.upper()}", connection_text(jobs.url, retry_budget=0))
    jobs.faults = [(429, {"error": "Rate limit exceeded"}, {"Retry-After": str(pause)})]
    arguments = {"timeout": 8 * 3600, "poke_interval": 60, **MODES["reschedule"]}
    sensor = WebDataJobSensor(task_id="wait", kind="crawl", job_id=JOB, **arguments)
    now = datetime.now(timezone.utc)
    ti = direct.TaskInstance(first_reschedule=now - timedelta(hours=7), start_date=now)
    with pytest.raises(AirflowRescheduleException) as later:
        sensor.execute(direct.context_of(ti, dag_run=None))
    assert (later.value.reschedule_date >= now + timedelta(seconds=pause)) is is_before_timeout


@pytest.mark.parametrize(
    ("kind", "job_id", "words"),
    [
        ("{{ 'map' }}", JOB, "kind must be one of"),
        ("{{ 'agent' }}", JOB, "a canceled agent run has no result"),
        ("crawl", "{{ '' }}", "job_id must name a job"),
    ],
    ids=["kind", "kind without pages", "job_id"],
)
def test_invalid_arguments_fail_immediately(
    wait: Any, jobs: JobService, kind: str, job_id: str, words: str
) -> None:
    done = wait("defer", kind, job_id, accept_canceled=True)
    assert done.ended == ("failed", 1)
    assert words in str(done.error)
    assert jobs.requests == []
    with pytest.raises(ValueError, match="accept_canceled applies to crawls and batch scrapes"):
        WebDataJobSensor(task_id="wait", kind="agent", job_id=JOB, accept_canceled=True)
