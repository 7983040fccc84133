# SPDX-License-Identifier: Apache-2.0
"""Operators whose connection the service refuses while their job or check runs, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator, WebDataRunMonitorOperator
from airflow_provider_webdata.states import answers
from airflow_provider_webdata.waiting import backoff
from tests.support import direct
from tests.support.direct import StateStore
from tests.support.job_service import REFUSED, JobService
from tests.support.service import NEVER

MODES = [pytest.param(False, id="worker"), pytest.param(True, id="triggerer")]
FORBIDDEN = (403, {"success": False, "error": "Forbidden"}, {})
NOT_ALLOWED = (405, {"message": "Not Allowed"}, {})


@pytest.fixture
def jobs(connect: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Iterator[JobService]:
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "0")
    monkeypatch.setattr(backoff, "MAX_PAUSE", 0.2)
    service = JobService()
    service.bills = True
    connect(service, retry_budget=0)
    yield service
    service.stop()


def crawl(deferrable: bool, **more: Any) -> WebDataCrawlOperator:
    return WebDataCrawlOperator(
        task_id="t", url="https://a.example/", deferrable=deferrable, poll_interval=1, **more
    )


def refuse_polls(jobs: JobService, refusals: list[Any], *, of_results: bool = False) -> None:
    """Refuse the next polls of the job, or the next requests for its result."""
    real = jobs.answer

    def answer(method: str, path: str, body: Any, key: Any, query: str = "") -> Any:
        is_poll = method == "GET" and path.count("/") == 3 and "active" not in path
        if is_poll and (query != "limit=1") == of_results and refusals:
            return refusals.pop()
        return real(method, path, body, key, query)

    jobs.answer = answer  # type: ignore[method-assign]


@pytest.mark.rule("status-401", "status-403")
@pytest.mark.parametrize("deferrable", MODES)
@pytest.mark.parametrize("refusal", [REFUSED, FORBIDDEN, NOT_ALLOWED], ids=["401", "403", "405"])
def test_a_short_refusal_does_not_end_the_attempt(jobs: JobService, deferrable: bool, refusal: Any) -> None:
    jobs.ends_after = 1
    refusals = [refusal] * 4
    refuse_polls(jobs, refusals)
    done = direct.run(crawl(deferrable), StateStore())
    assert done.ended == ("success", 1), done.error
    assert (refusals, len(jobs.started()), jobs.cancels()) == ([], 1, [])


@pytest.mark.rule("status-401")
@pytest.mark.parametrize("deferrable", MODES)
@pytest.mark.parametrize("of_results", [False, True], ids=["wait", "result"])
def test_a_retry_attaches_to_the_job_after_a_long_refusal(
    jobs: JobService, monkeypatch: pytest.MonkeyPatch, deferrable: bool, of_results: bool
) -> None:
    monkeypatch.setattr(answers, "OUTAGE_SECONDS", 0.5)
    jobs.ends_after = 1 if of_results else None
    refusals = [REFUSED] * 1000
    refuse_polls(jobs, refusals, of_results=of_results)

    def correct(number: int) -> None:
        # The second attempt does not even find the job.
        if number == 3:
            refusals.clear()
            jobs.ends_after = 1

    done = direct.run(crawl(deferrable, retries=2), StateStore(), before_try=correct)
    assert done.ended == ("success", 3), done.error
    assert (len(jobs.started()), jobs.cancels()) == (1, [])


@pytest.mark.rule("status-401")
@pytest.mark.parametrize("deferrable", MODES)
def test_the_last_attempt_leaves_the_job_running(
    jobs: JobService, monkeypatch: pytest.MonkeyPatch, deferrable: bool, log: Callable[[], str]
) -> None:
    monkeypatch.setattr(answers, "OUTAGE_SECONDS", 0.5)
    refuse_polls(jobs, [REFUSED] * 1000)
    done = direct.run(crawl(deferrable), StateStore())
    assert done.ended == ("failed", 1)
    assert 'check "API Key"' in str(done.error)
    assert jobs.cancels() == []
    assert "use WebDataJobSensor(task_id='result', webdata_conn_id='webdata_default', kind='crawl'" in log()
    assert f"job_id='{jobs.started()[0]}'" in log()


@pytest.mark.rule("status-401")
@pytest.mark.parametrize("deferrable", MODES)
def test_a_retry_waits_for_the_same_check(
    here: Any, monkeypatch: pytest.MonkeyPatch, deferrable: bool
) -> None:
    monkeypatch.setattr(answers, "OUTAGE_SECONDS", 0.5)
    here.control.set_page("https://example.com/", "<p>one euro</p>")
    targets = [{"type": "scrape", "urls": ["https://example.com/"]}]
    direct.run(WebDataCreateMonitorOperator(task_id="m", name="prices", schedule=NEVER, targets=targets))

    class Refused(WebDataRunMonitorOperator):
        """The service refuses the connection from when the first attempt begins to wait."""

        def _new_run(self, context: Any) -> Any:
            run = super()._new_run(context)
            real = run.wait_for_check

            def refused(*given: Any) -> Any:
                if context["ti"].try_number == 1:
                    here.control.add_fault("status", path="/v2/monitor.*", status=401, times=None)
                return real(*given)

            run.wait_for_check = refused
            return run

    run = Refused(
        task_id="t",
        monitor_name="prices",
        wait_for_completion=True,
        deferrable=deferrable,
        poll_interval=1,
        retries=2,
    )

    def correct(number: int) -> None:
        # The second attempt does not even find the monitor.
        if number == 3:
            here.control.clear_faults()

    done = direct.run(run, StateStore(), before_try=correct)
    assert done.ended == ("success", 3), done.error
    runs = [r for r in here.control.requests(method="POST") if r["path"].endswith("/run")]
    assert len(runs) == 1
