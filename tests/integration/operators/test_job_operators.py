# SPDX-License-Identifier: Apache-2.0
"""Operators of long jobs, in a real Airflow and in this process, against a service that does what the test needs."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferralError, TaskDeferred

from airflow_provider_webdata.api.models import CrawlRequest
from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from airflow_provider_webdata.hooks.task_memory import DamagedRecordError
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.runs import outside_handler as kill
from airflow_provider_webdata.runs.failures import JobFailedError, WaitTimeoutError
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.states.credits import report
from airflow_provider_webdata.states.task_record import KEY, read_stored
from tests.support import direct
from tests.support.airflow_versions import NEEDS_MEMORY
from tests.support.dag_runner import Airflow, Outcome, connection
from tests.support.direct import StateStore, TaskInstance, context_of, killed_in_a_call
from tests.support.job_service import RUNNING, JobService
from tests.support.service import JOB_PATHS, UNFETCHED
from tests.support.signals import killed_in_a_log_call, killed_like_by_airflow
from tests.support.waiting import wait_until

KINDS = tuple(JOB_PATHS)
URL = "https://example.com/"
PAGES = [
    {"markdown": "one", "metadata": {"sourceURL": URL, "statusCode": 200}},
    {"markdown": "two", "metadata": {"sourceURL": f"{URL}2", "statusCode": 200}},
]
DATA: dict[str, Any] = {"crawl": PAGES, "batch_scrape": PAGES, "agent": {"b": [2]}}
FAILED = {"status": "failed", "error": "the queue was full"}


def night(day: int) -> datetime:
    return datetime(2026, 1, day, tzinfo=timezone.utc)


def ended(kind: str, status: str = "completed", **fields: Any) -> dict[str, Any]:
    counts = {"total": 2, "completed": 2} if kind in ("crawl", "batch_scrape") else {}
    return {**counts, "status": status, "data": DATA[kind], "creditsUsed": 2, **fields}


# In a real Airflow: one DAG, whose tasks have a service each.

HEAD = """
import datetime, os, signal, time, urllib.request
from airflow.sdk import DAG
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor

def special(operator, method, act):
    '''Return a class of operators that act, once, before a method.'''
    left = [act]

    def _new_run(self, context):
        run = super(made, self)._new_run(context)
        real = getattr(run, method)

        def once(*args, **kwargs):
            if left:
                left.pop()()
            return real(*args, **kwargs)

        setattr(run, method, once)
        return run

    made = type(operator)(operator.__name__, (operator,), {"_new_run": _new_run})
    return made

def die():
    raise RuntimeError("the worker dies here")

def die_late():
    time.sleep(2)
    die()

def kill():
    os.kill(os.getpid(), signal.SIGTERM)

def limit(url):
    urllib.request.urlopen(urllib.request.Request(url, method="PUT")).close()
"""
NAMES = {
    "crawl": "WebDataCrawlOperator",
    "batch_scrape": "WebDataBatchScrapeOperator",
    "agent": "WebDataAgentOperator",
}
TARGETS = {
    "crawl": f"url={URL!r}",
    "batch_scrape": f"urls=[{URL!r}]",
    "agent": "prompt='find'",
}
AT_ONCE = "retry_delay=datetime.timedelta(0)"
DEFER, POLL = "deferrable=True", "deferrable=False"


class Case(NamedTuple):
    """A task of the DAG.

    :param arguments: of the operator, as Python.
    :param special: method and act of `special`.
    :param service: attributes of the task's service.
    """

    kind: str
    arguments: str
    special: str = ""
    service: dict[str, Any] = {}  # noqa: RUF012 - nothing changes it


NEVER_ENDS = {"ends_after": None}
CASES = {
    "crawl": Case("crawl", DEFER, service={"ends_after": 2}),
    "batch": Case("batch_scrape", DEFER),
    "agent": Case("agent", DEFER),
    "polled": Case("crawl", POLL, service={"ends_after": 1}),
    "fails": Case("crawl", f"retries=1, {AT_ONCE}, {DEFER}", service={"ends_as": FAILED}),
    "cancelled": Case(
        "agent", f"retries=1, {AT_ONCE}, {POLL}", service={"ends_as": {"status": "cancelled"}}
    ),
    "dies_early": Case("batch_scrape", f"retries=1, {AT_ONCE}, {DEFER}", "'push', die"),
    "dies_waiting": Case("agent", f"retries=1, {AT_ONCE}, {POLL}", "'wait_here', die"),
    "dies_reading": Case("crawl", f"retries=1, {AT_ONCE}, {DEFER}", "'result_of', die"),
    "times_out": Case("crawl", f"wait_timeout=0.1, retries=2, {DEFER}", service=NEVER_ENDS),
    "times_out_alone": Case("agent", f"wait_timeout=0.1, retries=2, {POLL}", service=NEVER_ENDS),
    "ends_in_time": Case(
        "crawl", f"wait_timeout=0.1, {DEFER}", service={**NEVER_ENDS, "ends_at_cancel": True}
    ),
    "too_many_errors": Case(
        "batch_scrape", f"max_error_ratio='{{{{ 0.2 }}}}', retries=1, {DEFER}",
        service={"errors": {"errors": [{"id": "1", "url": f"{URL}3", "error": "timed out"}], "robotsBlocked": []}},
    ),
    "limited": Case("crawl", POLL, "'result_of', limit"),
    "limited_after": Case("crawl", DEFER, "'result_of', limit"),
    "bad_input": Case("crawl", "max_error_ratio='{{ 2 }}', retries=2"),
    "killed": Case("crawl", POLL, "'wait_here', kill", NEVER_ENDS),
    "started": Case("batch_scrape", "wait_for_completion=False"),
}  # fmt: skip
if HAS_RETRY_POLICIES:
    # Airflow 3.2 keeps no state of a task.
    CASES["dies_late"] = Case(
        "crawl",
        f"wait_timeout=2, retries=3, {AT_ONCE}, {POLL}",
        "'wait_here', die_late",
        NEVER_ENDS,
    )


class Done(NamedTuple):
    outcome: Outcome
    services: dict[str, JobService]


@pytest.fixture(scope="module")
def done(airflow: Airflow) -> Iterator[Done]:
    """Run the DAG."""
    services = {name: JobService() for name in CASES}
    lines = [HEAD, 'with DAG("DAG_ID", schedule=None) as dag:']
    environ = {}
    for name, case in CASES.items():
        service = services[name]
        service.ends_after, service.ends_as = 0, ended(case.kind)
        vars(service).update(case.service)
        environ[f"AIRFLOW_CONN_{name.upper()}"] = connection(service, retry_budget=0)  # type: ignore[arg-type]
        operator = f"special({NAMES[case.kind]}, {case.special})" if case.special else NAMES[case.kind]
        if "limit" in case.special:
            operator = operator.replace("limit", f"lambda: limit({service.url!r})")
        arguments = f"{case.arguments}, poll_interval=1"
        lines.append(
            f"    {operator}(task_id={name!r}, webdata_conn_id={name!r}, {TARGETS[case.kind]}, {arguments})"
        )
    lines.append(
        "    WebDataJobSensor(task_id='sensor', webdata_conn_id='started', kind='batch_scrape', poke_interval=1, "
        "job_id=dag.get_task('started').output)"
    )
    yield Done(airflow.run("\n".join(lines), **environ), services)
    for service in services.values():
        service.stop()


@pytest.mark.parametrize(
    ("name", "kind"),
    [("crawl", "crawl"), ("batch", "batch_scrape"), ("agent", "agent"), ("polled", "crawl")],
)  # fmt: skip
def test_a_job_is_started_waited_for_and_its_result_returned(done: Done, name: str, kind: str) -> None:
    outcome, services = done
    assert outcome.state(name) == "success", outcome.log_of(name)
    result = outcome.xcom[f"{name}.return_value"]
    assert [result["id"]] == [outcome.xcom[f"{name}.job_id"]] == services[name].started()
    assert (result["status"], result["data"], result["creditsUsed"]) == ("completed", DATA[kind], 2)
    if kind in ("crawl", "batch_scrape"):
        assert (result["count"], result["total"]) == (2, 2)
        assert result["errors"] == {"count": 0, "robots_blocked": 0, "pages": []}


@pytest.mark.rule("job-counts")
@pytest.mark.says("The task's log shows the job's progress")
def test_progress_is_logged(done: Done) -> None:
    job = done.services["crawl"].started()[0]
    log = done.outcome.log_of("crawl")
    assert f"Crawl {job}: scraping" in log
    assert f"Crawl {job}: completed, 2 of 2 pages done, 2 credits used" in log


@pytest.mark.parametrize(
    ("name", "text"), [("fails", "failed: the queue was full"), ("cancelled", "was canceled")]
)
@pytest.mark.says("The message has the service's reason")
def test_a_failed_job_fails_the_attempt_and_a_retry_starts_another(done: Done, name: str, text: str) -> None:
    outcome, services = done
    assert outcome.ended(name) == ("failed", 2), outcome.log_of(name)
    assert len(services[name].started()) == 2
    advice = (
        f"Connection '{name}': inspect the job before a retry starts another one, which is billed (WD-031)."
    )
    assert f"{text}.\n{advice}\nSee https://" in outcome.log_of(name)


@NEEDS_MEMORY
@pytest.mark.parametrize("name", ["dies_early", "dies_waiting", "dies_reading"])
def test_a_retry_after_a_crash_returns_the_result_of_the_same_job(done: Done, name: str) -> None:
    outcome, services = done
    assert "the worker dies here" in outcome.log_of(name)
    assert outcome.ended(name) == ("success", 2), outcome.log_of(name)
    assert [outcome.xcom[f"{name}.return_value"]["id"]] == services[name].started()


@pytest.mark.rule("job-cancel")
@pytest.mark.parametrize("name", ["times_out", "times_out_alone"])
def test_a_timeout_is_final_and_cancels_the_job(done: Done, name: str) -> None:
    outcome, services = done
    assert outcome.ended(name) == ("failed", 1), outcome.log_of(name)
    (job,) = services[name].jobs.values()
    assert job["status"] == "cancelled"
    log = outcome.log_of(name)
    assert re.search(f"Timed out waiting for [a-z ]+ {services[name].started()[0]}", log)
    assert "The job was canceled" in log


@pytest.mark.rule("job-cancel-ended")
def test_a_job_that_ends_at_the_timeout_has_a_result(done: Done) -> None:
    """A cancel that is answered with 409 means that there is one."""
    outcome, services = done
    assert outcome.state("ends_in_time") == "success", outcome.log_of("ends_in_time")
    assert outcome.xcom["ends_in_time.return_value"]["data"] == PAGES
    assert services["ends_in_time"].cancels()


def test_too_many_errors_fail_the_task_for_good(done: Done) -> None:
    """The result is there anyway."""
    outcome, _ = done
    assert outcome.ended("too_many_errors") == ("failed", 1), outcome.log_of("too_many_errors")
    result = outcome.xcom["too_many_errors.return_value"]
    assert (result["data"], result["errors"]["count"]) == (PAGES, 1)


@pytest.mark.rule("retry-after")
@pytest.mark.parametrize("name", [pytest.param("limited", marks=NEEDS_MEMORY), "limited_after"])
def test_rate_limited_while_the_result_is_read(done: Done, name: str) -> None:
    """The task is rescheduled for it, also after it was deferred; nothing is started again."""
    outcome, services = done
    assert outcome.state(name) == "success", outcome.log_of(name)
    assert "Rescheduling the task to" in outcome.log_of(name)
    assert [outcome.xcom[f"{name}.return_value"]["id"]] == services[name].started()


def test_bad_input_is_final(done: Done) -> None:
    outcome, services = done
    assert outcome.ended("bad_input") == ("failed", 1), outcome.log_of("bad_input")
    assert services["bad_input"].requests == []


@pytest.mark.rule("job-cancel")
def test_the_signal_that_ends_a_task_cancels_the_job(done: Done) -> None:
    (job,) = done.services["killed"].jobs.values()
    assert job["status"] == "cancelled"


def test_the_sensor_returns_the_result_of_a_job_that_an_operator_started(done: Done) -> None:
    outcome, services = done
    assert outcome.state("sensor") == "success", outcome.log_of("sensor")
    assert [outcome.xcom["started.return_value"]] == services["started"].started()
    assert outcome.xcom["sensor.return_value"]["data"] == PAGES


@NEEDS_MEMORY
def test_the_waiting_time_includes_earlier_attempts(done: Done) -> None:
    outcome, services = done
    assert "the worker dies here" in outcome.log_of("dies_late")
    assert outcome.ended("dies_late") == ("failed", 2), outcome.log_of("dies_late")
    assert len(services["dies_late"].started()) == 1


# In this process.

OPERATORS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "crawl": (WebDataCrawlOperator, {"url": URL}),
    "batch_scrape": (WebDataBatchScrapeOperator, {"urls": [URL]}),
    "agent": (WebDataAgentOperator, {"prompt": "find"}),
}


@pytest.fixture
def service(connect: Callable[..., None]) -> Iterator[JobService]:
    made = JobService()
    made.ends_after = 0
    connect(made, retry_budget=0)
    yield made
    made.stop()


def job(kind: str, **arguments: Any) -> Any:
    operator, target = OPERATORS[kind]
    return operator(
        task_id="job",
        **{"poll_interval": 1, "deferrable": False, "retries": 2, **target, **arguments},
    )


def test_pages_from_the_cache_are_counted(service: JobService, log: Callable[[], str]) -> None:
    kept = {**PAGES[0], "metadata": {"cacheState": "hit", "cachedAt": "2026-01-30T02:00:04Z"}}
    other = {**PAGES[0], "metadata": {"cacheState": "hit"}}
    service.ends_as = {"status": "completed", "data": [kept, *PAGES, other]}
    assert direct.run(job("crawl")).state == "success"
    logged = log()
    assert "start crawl: pages may be up to 2 days old" in logged
    assert re.search(
        r"Started crawl of https://\S+ \(limit \d+, connection 'webdata_default'\): job \S+", logged
    ), logged
    assert "2 pages came from the service's cache, the oldest of 2026-01-30T02:00:04Z, " in logged


@pytest.mark.parametrize("store", [StateStore, lambda: None])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("error", "retries", "ends", "state", "cancels"),
    [
        ("Trigger timeout", 1, True, "success", False),
        ("Trigger timeout", 1, False, "timed out", True),
        ("Trigger failure", 1, True, "retried", False),
        ("Trigger failure", 0, True, "success", False),
        ("Trigger failure", 0, False, "timed out", True),
    ],
)
def test_no_job_runs_unseen_after_its_trigger_failed(
    service: JobService,
    store: Any,
    kind: str,
    error: str,
    retries: int,
    ends: bool,
    state: str,
    cancels: bool,
) -> None:
    """As while no triggerer runs."""
    service.ends_after = None
    task, ti = job(kind, deferrable=True, retries=retries), TaskInstance(max_tries=retries)
    context = context_of(ti, store())
    with pytest.raises(TaskDeferred):
        task.execute(context)
    if ends:
        service.set_all(**ended(kind))
    expected = {
        "success": contextlib.nullcontext(),
        "retried": pytest.raises(TaskDeferralError, match=error),
        "timed out": pytest.raises(WaitTimeoutError, match=f"did not report the end of .*: {error}"),
    }
    with expected[state]:
        assert task.resume_execution("__fail__", {"error": error}, context)["data"] == DATA[kind]
    assert {job["status"] for job in service.jobs.values()} == (
        {"cancelled"} if cancels else {ended(kind)["status"]} if ends else {RUNNING[kind]}
    )


@pytest.mark.parametrize("event", [{"status": "error", "message": "KeyError: x", "verdict": "unknown"}])
def test_a_trigger_that_failed_before_it_knew_the_job(service: JobService, event: dict[str, Any]) -> None:
    service.ends_after = None
    task, context = job("batch_scrape", deferrable=True), context_of(TaskInstance(max_tries=0), StateStore())
    with pytest.raises(TaskDeferred):
        task.execute(context)
    service.set_all(**ended("batch_scrape"))
    assert task.execute_complete(context, event)["data"] == PAGES


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_not_read_from_a_replica_that_lags_behind(
    service: JobService, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A poll has seen the job's end, the next answer is older."""
    service.ends_as = ended(kind)
    looks: list[str] = []
    answer = service.answer

    def lagging(method: str, path: str, *more: Any) -> Any:
        if path in service.jobs:
            looks.append(path)
            if len(looks) == 2:
                return 200, {"success": True, "status": "processing", "creditsUsed": 1}, {}
        return answer(method, path, *more)

    monkeypatch.setattr(service, "answer", lagging)
    outcome = direct.run(job(kind, retries=0), StateStore())
    assert (outcome.state, outcome.reschedules) == ("success", 1)
    assert (outcome.value["data"], outcome.value["status"]) == (DATA[kind], "completed")
    assert outcome.xcom["credits"]["used"] == 2
    assert len(service.started()) == 1


@pytest.mark.says("the log has the server's warning")
def test_warnings_of_pages_are_logged_once(service: JobService, log: Callable[[], str]) -> None:
    warned = {**PAGES[0], "warning": "values are samples"}
    service.ends_as = {"status": "completed", "data": [*PAGES, warned, {**warned, "warning": "more"}]}
    assert direct.run(job("crawl")).state == "success"
    logged = log()
    assert "2 of 4 pages have a warning from the service, such as: values are samples" in logged
    assert "more\n" not in logged


@pytest.mark.rule("batch-ignore-invalid-urls", "crawl-credit-check")
def test_what_is_always_sent(service: JobService) -> None:
    for kind in ("crawl", "batch_scrape"):
        job(kind, wait_for_completion=False).execute(context_of(TaskInstance()))
    crawl, batch = service.bodies
    assert crawl == {"url": URL, "limit": 100}
    assert batch == {"urls": [URL], "ignoreInvalidURLs": True}


@pytest.mark.parametrize(("kind", "state"), [("agent", "failed"), ("batch_scrape", "cancelled")])
def test_a_failed_job_is_replaced(service: JobService, kind: str, state: str) -> None:
    service.ends_as = {"status": state, "error": "no"}
    outcome = direct.run(job(kind), StateStore())
    assert outcome.ended == ("failed", 3)
    assert len(service.started()) == 3


@pytest.mark.parametrize(("kind", "cancelled"), [("crawl", True), ("batch_scrape", True), ("agent", False)])
def test_a_retry_with_corrected_arguments(
    service: JobService, log: Callable[[], str], kind: str, cancelled: bool
) -> None:
    """The former job is canceled where a kill would cancel it, and its credits stay in the account."""
    service.ends_after, store = None, StateStore()
    name = {"crawl": "url", "batch_scrape": "urls", "agent": "prompt"}[kind]
    more = {"wait_for_completion": False, "cancel_on_kill": kind != "agent", "webhook": None}
    job(kind, **more).execute(context_of(TaskInstance(), store))
    service.set_all(RUNNING[kind], creditsUsed=7)
    corrected = [f"{URL}new"] if name == "urls" else f"{URL}new"
    second = TaskInstance(try_number=2)
    job_id = job(kind, **{**more, name: corrected}).execute(context_of(second, store))
    former, new = service.started()
    assert job_id == new
    assert service.bodies[1][name] == corrected
    assert any(former in line for line in service.cancels()) is cancelled
    assert second.xcom["credits"]["used"] == 7
    assert "arguments changed since an earlier attempt" in log()


def test_an_abandoned_job_that_continues_may_use_all_that_was_reserved_for_it(service: JobService) -> None:
    service.ends_after, store = None, StateStore()
    one_page = {"proxy": "basic", "parsers": [{"type": "pdf", "maxPages": 1}]}
    more = {"limit": 5, "scrape_options": one_page, "credit_limit": 8, "cancel_on_kill": False}
    more |= {"wait_for_completion": False, "webhook": None}
    job("crawl", **more).execute(context_of(TaskInstance(), store))
    service.set_all(RUNNING["crawl"], creditsUsed=2)
    second = TaskInstance(try_number=2)
    with pytest.raises(
        AirflowFailException, match="credit_limit=8, after 5 credits that were or may have been"
    ):
        job("crawl", **{**more, "url": f"{URL}new"}).execute(context_of(second, store))
    assert len(service.started()) == 1
    assert (second.xcom["credits"]["used"], second.xcom["credits"]["unknown"]) == (2, 1)


def test_a_webhook_does_not_start_another_job(service: JobService) -> None:
    service.ends_after, store = None, StateStore()
    job("crawl", wait_for_completion=False).execute(context_of(TaskInstance(), store))
    job(
        "crawl",
        wait_for_completion=False,
        webhook={"url": "https://a.example/"},
    ).execute(context_of(TaskInstance(try_number=2), store))
    assert len(service.started()) == 1


def follow(message: str) -> Any:
    """Run the sensor that a message names, and return its result."""
    (text,) = re.findall(r"WebDataJobSensor\([^)]*\)", message)
    return direct.run(eval(text, {"WebDataJobSensor": WebDataJobSensor})).value


FAULT = (500, {"error": "Internal server error"}, {})


@pytest.mark.rule("job-cancel", "job-cancelled", "parts-end")
@pytest.mark.parametrize(
    ("kind", "faults", "outcome", "end"),
    [
        ("batch_scrape", [], "The job was canceled; its pages so far are billed", "cancelled"),
        ("crawl", [FAULT], "The job may continue and bill: cancel crawl: ", "cancelled"),
        ("agent", [FAULT], "The job may continue and bill: cancel agent: ", "completed"),
    ],
)
@pytest.mark.says("The message names the [`WebDataJobSensor`](operators/job_sensor.md)")
def test_what_a_timeout_names_leads_to_the_result(
    service: JobService, kind: str, faults: Any, outcome: str, end: str
) -> None:
    service.ends_after, service.cancel_faults = None, faults
    task = job(kind, poll_interval=1, wait_timeout=0.01)
    with pytest.raises(WaitTimeoutError, match=outcome) as raised:
        task.execute(context_of(TaskInstance()))
    service.set_all(**ended(kind, end))
    result = follow(str(raised.value))
    assert [result["id"]] == service.started()
    assert (result["status"], result["data"]) == (end, DATA[kind])


@pytest.mark.rule("job-cancel")
def test_a_timeout_cancels_an_agent_run_which_then_has_no_result(service: JobService) -> None:
    service.ends_after = None
    with pytest.raises(
        WaitTimeoutError, match="was canceled and has no result; its work until then"
    ) as raised:
        job("agent", poll_interval=1, wait_timeout=0.01).execute(context_of(TaskInstance()))
    assert "WebDataJobSensor" not in str(raised.value)
    assert len(service.cancels()) == 1


def test_a_timeout_cancels_a_job_whose_file_of_urls_is_gone(service: JobService, tmp_path: Path) -> None:
    service.ends_after, store = None, StateStore()
    file = tmp_path / "urls.jsonl"
    file.write_text(json.dumps({"url": URL}) + "\n")

    def batch(**arguments: Any) -> Any:
        task = job("batch_scrape", **arguments)
        # As the result of another task renders.
        task.urls = {"path": str(file)}
        return task

    job_id = batch(wait_for_completion=False).execute(context_of(TaskInstance(), store))
    file.unlink()
    event = {"status": "timeout", "job_id": job_id, "message": "Timed out waiting for the batch"}
    with pytest.raises(AirflowFailException, match=r"(?s)urls: .*Timed out.*was canceled") as raised:
        batch().resume_execution("execute_complete", {"event": event}, context_of(TaskInstance(), store))
    assert len(service.cancels()) == 1
    service.set_all("cancelled", data=PAGES)
    assert follow(str(raised.value))["data"] == PAGES


@pytest.mark.parametrize(("over", "status"), [({}, "completed"), ({"over_limit": 12}, "cancelled")])
def test_a_job_that_ended_after_its_file_of_urls_was_deleted(
    service: JobService, over: dict[str, int], status: str
) -> None:
    """A job beyond its credit limit is canceled first."""
    service.ends_after, store = None, StateStore()
    task = job("batch_scrape", credit_limit=100, wait_for_completion=False)
    job_id = task.execute(context_of(TaskInstance(), store))
    service.set_all("scraping" if over else "completed", data=PAGES)
    task.urls = {"path": "/missing/urls.jsonl"}
    event = {"status": "done", "job_id": job_id, **over}
    with pytest.raises(AirflowFailException, match=f"(?s)urls: .*Job {job_id} was ") as raised:
        task.resume_execution("execute_complete", {"event": event}, context_of(TaskInstance(), store))
    result = follow(str(raised.value))
    assert (result["status"], result["data"]) == (status, PAGES)


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_job_beyond_its_credit_limit_is_cancelled_and_its_pages_are_kept(
    service: JobService, log: Callable[[], str], deferrable: bool
) -> None:
    """The service bills more than is documented."""
    fields = ended("crawl", creditsUsed=12)
    service.ends_after, service.ends_as = 0, {name: fields[name] for name in fields if name != "status"}
    arguments = {"limit": 2, "scrape_options": {"proxy": "basic"}, "credit_limit": 10}
    outcome = direct.run(job("crawl", **arguments, deferrable=deferrable))
    assert len(service.started()) == len(service.cancels()) == 1
    assert (outcome.value["status"], outcome.value["data"]) == ("cancelled", PAGES)
    assert (outcome.xcom["over_credit_limit"], outcome.xcom["credits"]["used"]) == (True, 12)
    assert outcome.xcom["incomplete"] == [{"kind": "over_credit_limit", "number": 1, "of": 1}]
    assert "has used 12 credits, more than credit_limit=10: it was canceled" in log()
    rejected = direct.run(job("crawl", **arguments, quality=1, deferrable=deferrable))
    assert "unfinished: expected all work within credit_limit, got a job canceled at the limit" in str(
        rejected.error
    )


@pytest.mark.parametrize("deferrable", [True, False])
def test_retries_deliver_the_pages_of_a_job_beyond_its_credit_limit(
    service: JobService, log: Callable[[], str], deferrable: bool
) -> None:
    """The first attempt fails to cancel the job, the second to read its pages."""
    fields = ended("crawl", creditsUsed=12)
    service.ends_after, service.ends_as = 0, {name: fields[name] for name in fields if name != "status"}
    service.cancel_faults = [(500, {"error": "Internal server error"}, {})]
    valid = service.errors

    def damage(number: int) -> None:
        service.errors = valid if number > 2 else None

    arguments = {"limit": 2, "scrape_options": {"proxy": "basic"}, "credit_limit": 10}
    outcome = direct.run(job("crawl", **arguments, deferrable=deferrable), StateStore(), before_try=damage)
    assert outcome.ended == ("success", 3), outcome.error
    assert (len(service.started()), len(service.cancels())) == (1, 2)
    assert (outcome.value["status"], outcome.value["data"]) == ("cancelled", PAGES)
    assert (outcome.xcom["over_credit_limit"], outcome.xcom["credits"]["used"]) == (True, 12)
    assert (
        f"Job {service.started()[0]} continues and bills: it could not be canceled. It has used 12 credits"
        in log()
    )


@pytest.mark.rule("credits-pdf")
def test_a_retry_bounds_pdfs_by_the_remaining_credits(service: JobService) -> None:
    service.ends_as = {"status": "failed", "error": "no", "creditsUsed": 3}
    arguments = {"limit": 2, "scrape_options": {"proxy": "basic"}, "credit_limit": 10}
    assert direct.run(job("crawl", **arguments), StateStore()).ended == ("failed", 3)
    parsers = [body["scrapeOptions"]["parsers"][0] for body in service.bodies]
    assert [parser["maxPages"] for parser in parsers] == [5, 3, 2]


def test_an_abandoned_job_may_have_cost_all_of_the_limit(service: JobService) -> None:
    service.ends_as = ended("crawl")
    store, limited = StateStore(), {"retries": 5, "scrape_options": {"proxy": "basic"}, "credit_limit": 10}
    with killed_in_a_call(store):
        job("crawl", limit=2, **limited).execute(context_of(TaskInstance(1, 5), store))
    for number in (2, 3):
        with pytest.raises(AirflowFailException, match="after 10 credits that were or may have been spent"):
            job("crawl", limit=1, **limited).execute(context_of(TaskInstance(number, 5), store))
    assert len(service.started()) == 1


@pytest.mark.rule("job-cancel-ended")
def test_a_job_that_ends_at_the_timeout_while_polling(service: JobService) -> None:
    service.ends_after, service.ends_at_cancel, service.ends_as = None, True, ended("batch_scrape")
    result = job("batch_scrape", poll_interval=1, wait_timeout=0.01).execute(context_of(TaskInstance()))
    assert result["data"] == PAGES
    assert service.cancels()


class MovingService(JobService):
    """A service that moves at the first poll of a job."""

    def __init__(self, refusal: int, move: Callable[[JobService], None]) -> None:
        self.refusal, self.move = refusal, move
        super().__init__()

    def answer(self, method: str, *given: Any) -> Any:
        if method != "GET":
            return super().answer(method, *given)
        self.move(self)
        return self.refusal, {"error": "no"}, {}


@pytest.mark.parametrize("refusal", [401, 404, 503])
def test_a_wait_in_a_worker_follows_a_changed_connection(
    service: JobService, connect: Callable[..., None], refusal: int
) -> None:
    """So does the reading of the result."""

    def move(former: JobService) -> None:
        service.jobs = former.jobs
        connect(service, retry_budget=0)

    service.ends_as = ended("crawl")
    former = MovingService(refusal, move)
    connect(former, retry_budget=0)
    try:
        result = job("crawl").execute(context_of(TaskInstance()))
    finally:
        former.stop()
    assert result["data"] == PAGES


ERRORS = {
    "errors": [
        {"id": "1", "url": f"{URL}3", "error": "timed out", "code": "SCRAPE_TIMEOUT"},
        {"id": "2", "url": "https://other.example/", "error": "external", "code": "EXTERNAL_LINK"},
    ],
    "robotsBlocked": [f"{URL}private"],
}


@pytest.mark.rule("metadata-status", "job-completed", "job-errors")
@pytest.mark.parametrize(
    ("ratio", "state"), [(None, "success"), (0.5, "success"), (0.49, "failed"), (0, "failed")]
)
def test_page_errors_fail_the_task_only_past_a_ratio(
    service: JobService, ratio: float | None, state: str
) -> None:
    """Two of four: one that the service lists, one whose site answered 404. The result is there anyway."""
    pages = [*PAGES, {"markdown": "?", "metadata": {"sourceURL": f"{URL}4", "statusCode": 404}}]
    service.ends_as, service.errors = ended("crawl", data=pages), ERRORS
    outcome = direct.run(job("crawl", max_error_ratio=ratio))
    assert outcome.ended == (state, 1)
    result = outcome.value or outcome.xcom["return_value"]
    assert result["data"] == pages
    assert (result["errors"]["count"], result["errors"]["robots_blocked"]) == (2, 1)
    assert {page["url"] for page in result["errors"]["pages"]} == {f"{URL}3", f"{URL}4"}
    assert outcome.xcom["incomplete"] == [{"kind": "pages_failed", "number": 2, "of": 4}]


@pytest.mark.parametrize(
    ("error", "text"), [({"message": "gone"}, "gone"), (["gone"], "['gone']"), (7, "7"), (None, None)]
)
def test_the_reason_of_a_failed_page_may_have_any_shape(
    service: JobService, error: Any, text: str | None
) -> None:
    """The result of a job that was billed is published anyway."""
    service.ends_as, service.errors = (
        ended("crawl", data=PAGES),
        {"errors": [{"url": f"{URL}3", "error": error, "code": "X"}]},
    )
    outcome = direct.run(job("crawl"))
    assert outcome.ended == ("success", 1)
    assert outcome.value["errors"]["pages"] == [{"url": f"{URL}3", "error": text, "code": "X"}]


@pytest.mark.rule("metadata-not-fetched")
@pytest.mark.parametrize("kind", ["crawl", "batch_scrape"])
def test_a_page_that_was_not_fetched_has_failed(service: JobService, tmp_path: Path, kind: str) -> None:
    """Later runs in which no page could be fetched remove none."""
    service.ends_as = ended(kind, data=[PAGES[0], UNFETCHED])
    changes = Changes(f"{tmp_path}/seen", removed_after=timedelta(0))
    first = job(kind, changes=changes, save_to=f"{tmp_path}/*.jsonl", max_error_ratio=0.4)
    outcome = direct.run(first, day=night(1))
    assert outcome.ended == ("failed", 1)
    result = outcome.xcom["return_value"]
    [line] = Path(result["path"]).read_text().splitlines()
    assert json.loads(line)["markdown"] == "one"
    failed = {"url": "http://nohost.example.net/x", "error": "Network Connect Timeout Error", "code": "599"}
    assert (result["count"], result["errors"]["count"], result["errors"]["pages"]) == (1, 1, [failed])
    service.ends_as = ended(kind, data=[UNFETCHED], completed=1)
    for number in (2, 3, 4):
        outcome = direct.run(job(kind, changes=changes), day=night(number))
        result = outcome.xcom["return_value"]
        assert outcome.ended == ("failed", 1)
        assert (result["changes"]["removed"], result["errors"]["count"]) == (0, 1)


@pytest.mark.parametrize("deferrable", [True, False])
def test_pages_that_the_service_lost_are_not_removed(
    service: JobService, tmp_path: Path, deferrable: bool
) -> None:
    """Unlike those that it refuses to fetch, such as those of a site that it does not support anymore."""
    urls = [page["metadata"]["sourceURL"] for page in PAGES]
    changes = Changes(f"{tmp_path}/seen", removed_after=timedelta(0))
    nights = map(night, itertools.count(1))

    def batch(pages: list[Any], dropped: list[str]) -> Any:
        service.ends_as = ended("batch_scrape", data=pages, completed=len(pages))
        service.invalid_urls = dropped
        task = job("batch_scrape", urls=urls, changes=changes, deferrable=deferrable)
        return direct.run(task, StateStore(), day=next(nights)).value["changes"]

    assert batch(PAGES, [])["new"] == 2
    assert [batch(PAGES[:1], [])["removed"] for _ in range(3)] == [0, 0, 0]
    assert [batch(PAGES[:1], [urls[1], "htp://x"])["removed"] for _ in range(3)] == [0, 1, 0]


def test_a_deferral_carries_the_record_without_a_store(service: JobService) -> None:
    """Airflow 3.2: what the attempt knew before its deferral."""
    urls = [page["metadata"]["sourceURL"] for page in PAGES]
    service.ends_as, service.invalid_urls = ended("batch_scrape"), ["htp://x"]
    task = job("batch_scrape", urls=[*urls, "htp://x"], deferrable=True)
    assert direct.run(task, None).xcom["incomplete"] == [{"kind": "urls_invalid", "number": 1, "of": 1}]


def test_pages_that_a_job_counts_but_does_not_deliver_are_not_removed(
    service: JobService, tmp_path: Path, log: Callable[[], str]
) -> None:
    changes = Changes(f"{tmp_path}/seen", removed_after=timedelta(0))
    nights = map(night, itertools.count(1))

    def crawl(pages: list[Any], counted: Any) -> dict[str, Any]:
        service.ends_as = ended("crawl", data=pages, completed=counted)
        done = direct.run(job("crawl", changes=changes), day=next(nights))
        return done.value | {"incomplete": done.xcom.get("incomplete")}

    assert "missing_pages" not in crawl(PAGES, 2)
    result = crawl(PAGES[:1], 10)
    assert result["incomplete"] == [{"kind": "pages_missing", "number": 9, "of": 10}]
    assert (result["changes"]["same"], result["changes"]["removed"], result["missing_pages"]) == (1, 0, 9)
    warned = r"The service counts 10 completed pages in job \S+ but returned (\d+)"
    assert re.findall(warned, log()) == ["1"]
    assert "may be incomplete" not in log()
    assert crawl(PAGES[:1], 10)["changes"]["removed"] == 0
    assert [crawl(PAGES[:1], 1)["changes"]["removed"] for _ in range(2)] == [0, 1]


@pytest.mark.parametrize(("ends_with", "opened"), [(".jsonl", open), (".jsonl.gz", gzip.open)])
def test_pages_go_to_a_file(service: JobService, tmp_path: Path, ends_with: str, opened: Any) -> None:
    service.ends_as = ended("crawl")
    path = tmp_path / f"pages{ends_with}"
    run = direct.run(job("crawl", save_to=str(path), deferrable=True))
    result = run.value
    assert (result["count"], "data" in result) == (2, False)
    # So that `crawl.output["path"]` is another task's argument.
    assert run.xcom["path"] == str(path)
    with opened(path, "rt") as file:
        assert [json.loads(line)["markdown"] for line in file] == ["one", "two"]


@pytest.mark.rule("batch-answer")
@pytest.mark.says("XCom `invalid_urls` lists it")
def test_invalid_urls_are_reported(service: JobService, log: Callable[[], str]) -> None:
    service.invalid_urls = ["htp://x"]
    outcome = direct.run(job("batch_scrape", wait_for_completion=False))
    assert outcome.xcom["invalid_urls"] == ["htp://x"]
    assert outcome.xcom["incomplete"] == [{"kind": "urls_invalid", "number": 1, "of": 1}]
    assert "dropped 1 invalid URLs: htp://x" in log()


@pytest.mark.parametrize("deferrable", [True, False])
def test_what_a_start_lacks_is_reported_beside_what_the_result_lacks(
    service: JobService, deferrable: bool
) -> None:
    service.invalid_urls = ["htp://x"]
    service.ends_as, service.errors = ended("batch_scrape", data=PAGES), ERRORS
    outcome = direct.run(job("batch_scrape", deferrable=deferrable))
    kinds = {lack["kind"]: lack["number"] for lack in outcome.xcom["incomplete"]}
    assert kinds == {"urls_invalid": 1, "pages_failed": 1}


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (
            {"max_error_ratio": "{{ 2 }}"},
            "max_error_ratio: must be a number of at least 0 and at most 1",
        ),
        ({"save_to": "/tmp/x.{{ 1 }}"}, ".jsonl"),
        ({"attach_webhook": True}, "webhook_url"),
        ({"extra_body": "{{ 1 }}"}, "extra_body"),
        ({"max_discovery_depth": "{{ -1 }}"}, "max_discovery_depth"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_work_fails_before_it_is_billed(
    service: JobService, argument: dict[str, Any], words: str
) -> None:
    outcome = direct.run(job("crawl", **argument))
    assert outcome.ended == ("failed", 1)
    assert words in str(outcome.error)
    assert service.started() == []


@pytest.mark.rule("job-cancel", "agent-cancel")
@pytest.mark.parametrize(
    ("kind", "more", "cancelled"),
    [
        ("crawl", {"poll_interval": 1, "cancel_on_kill": False}, False),
        ("batch_scrape", {}, True),
        ("agent", {}, True),
    ],
)
def test_a_kill_cancels_by_choice(
    service: JobService, kind: str, more: dict[str, Any], cancelled: bool
) -> None:
    """The signal with which Airflow ends a task, in the middle of the wait."""
    # What the signal does not end ends at the next poll.
    service.ends_after = None if cancelled else 1
    task = job(kind, **more)
    with (
        killed_like_by_airflow(task, lambda: service.looks(f"{JOB_PATHS[kind]}/")),
        pytest.raises(JobFailedError, match="was canceled") if cancelled else contextlib.nullcontext(),
    ):
        task.execute(context_of(TaskInstance()))
    (found,) = service.jobs.values()
    assert (found["status"] == "cancelled", len(service.cancels())) == (cancelled, int(cancelled))


def test_the_cost_of_a_killed_task_is_in_its_record(service: JobService) -> None:
    """Airflow takes no XCom from a task that it ends."""
    service.ends_after, store = None, StateStore()
    task, context = job("crawl", deferrable=True), context_of(TaskInstance(), store)
    with pytest.raises(TaskDeferred):
        task.execute(context)
    service.set_all("scraping", creditsUsed=7)
    run = task._new_run(context_of(TaskInstance(), store))
    (run._running,) = service.started()
    run._cancel_killed()
    record = read_stored(store.get(KEY))
    assert (record.phase, report(record.credits)["used"]) == ("ended", 7)


@pytest.mark.parametrize("runs_on", [True, False])
def test_a_cleared_task_counts_the_job_that_it_left(
    service: JobService, log: Callable[[], str], runs_on: bool
) -> None:
    """Airflow reports no end by hand before a triggerer has the trigger."""
    service.ends_after, store = None, StateStore()
    with pytest.raises(TaskDeferred):
        job("crawl", deferrable=True).execute(context_of(TaskInstance(), store))
    service.set_all("scraping" if runs_on else "completed", creditsUsed=7, completed=7)
    service.ends_after, service.ends_as = 1, ended("crawl")
    second = TaskInstance(try_number=2, max_tries=1)
    assert job("crawl").execute(context_of(second, store))["data"] == PAGES
    left, new = service.started()
    assert second.xcom["credits"]["by_operation"] == {"crawl": 7 + 2}
    assert (f"Job {left}, which the task started before it was cleared, may still run" in log()) is runs_on
    assert (second.xcom["job_id"], service.cancels()) == (new, [])


def test_a_kill_in_the_middle_of_a_log_call_cancels(
    service: JobService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler must not wait for the log's lock, which the interrupted call holds."""
    monkeypatch.setattr(kill, "SECONDS", 0.5)
    service.ends_after = None
    task = job("crawl")
    with killed_in_a_log_call(task, "Waiting for") as log, pytest.raises(JobFailedError, match="canceled"):
        task.execute(context_of(TaskInstance()))
    assert wait_until(lambda: "was canceled" in log.getvalue())
    assert len(service.cancels()) == 1


def test_a_request_is_validated_once_and_once_with_its_bound(
    here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time, `credit_limit` adds a page limit for PDFs."""
    validated: list[Any] = []
    validate = CrawlRequest.model_validate

    def spy(request: Any) -> CrawlRequest:
        validated.append(request)
        return validate(request)

    monkeypatch.setattr(CrawlRequest, "model_validate", spy)
    task = WebDataCrawlOperator(
        task_id="t", url=URL, limit=2, credit_limit=50, max_error_ratio=1, deferrable=False, poll_interval=1
    )
    assert task.execute(context_of(TaskInstance(), StateStore()))["status"] == "completed"
    assert len(validated) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_record_names_the_connection(service: JobService, kind: str) -> None:
    store = StateStore()
    store.set(KEY, {"phase": "known"})
    with pytest.raises(DamagedRecordError, match=r"Connection 'webdata_default'.*WD-072"):
        job(kind).execute(context_of(TaskInstance(), store))
    assert service.requests == []
