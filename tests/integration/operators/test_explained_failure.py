"""The service's explanation of a job that failed, in the task's log and XComs, against the sandbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.cli.cli_parser import get_parser
from airflow.sdk.exceptions import AirflowTaskTimeout

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.options import Wait
from airflow_provider_webdata.sandbox.server import SandboxServer
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from tests.support import direct

ASK = "/v2/support/ask"
SITE = "https://river.example/"
NO_JOB = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"


@pytest.fixture
def asking(sandbox: SandboxServer, connect: Callable[..., None]) -> SandboxServer:
    """Return a sandbox whose crawls fail, and point the default connection to it: it asks on failure."""
    connect(sandbox, ask_on_failure=True, retry_budget=0)
    sandbox.control.add_fault("fail_crawl", times=None)
    sandbox.control.add_fault("fail_agent", times=None)
    return sandbox


def crawl(**arguments: Any) -> WebDataCrawlOperator:
    return WebDataCrawlOperator(
        task_id="crawl",
        url=SITE,
        limit=2,
        **{"wait": Wait(poll_interval=1), "deferrable": False, **arguments},
    )


def questions(sandbox: SandboxServer) -> list[dict[str, Any]]:
    return [request["body"] for request in sandbox.control.requests() if request["path"] == ASK]


@pytest.mark.rule("support-answer", "support-job")
@pytest.mark.parametrize("deferrable", [False, True])
def test_a_failed_job_explains_itself(
    asking: SandboxServer, log: Callable[[], str], deferrable: bool
) -> None:
    outcome = direct.run(crawl(deferrable=deferrable))
    job_id = outcome.xcom["job_id"]
    explanation = outcome.xcom["explanation"]
    assert explanation.startswith(f"The crawl job {job_id} failed: The job failed because")
    assert f"The service's explanation of job {job_id}: {explanation}" in log()
    [question] = questions(asking)
    assert question["jobId"] == job_id
    assert f"what must be changed? crawl {job_id} failed: The job failed because" in question["question"]
    assert outcome.state == "failed"
    assert "WD-031" in str(outcome.error)
    assert explanation not in str(outcome.error)


def test_the_steps_of_an_agent_come_first(asking: SandboxServer, log: Callable[[], str]) -> None:
    task = WebDataAgentOperator(
        task_id="agent", prompt="rivers", wait=Wait(poll_interval=1), deferrable=False
    )
    assert "explanation" in direct.run(task).xcom
    before, explained, _ = log().partition("The service's explanation")
    assert explained
    assert "agent run" in before


def test_a_job_of_another_task(asking: SandboxServer) -> None:
    job_id = direct.run(crawl(wait_for_completion=False)).value
    sensor = WebDataJobSensor(task_id="wait", kind="crawl", job_id=job_id, poke_interval=1, deferrable=True)
    outcome = direct.run(sensor)
    assert (outcome.state, "explanation" in outcome.xcom) == ("failed", True)


def test_nothing_is_sent_by_default(
    asking: SandboxServer, connect: Callable[..., None], log: Callable[[], str]
) -> None:
    connect(asking)
    outcome = direct.run(crawl())
    assert "explanation" not in outcome.xcom
    assert questions(asking) == []
    job_id = outcome.xcom["job_id"]
    reason, command, _ = log().partition(f"airflow webdata explain {job_id} --conn-id webdata_default")
    assert command
    assert f"crawl {job_id} failed: The job failed because" in reason


@pytest.mark.rule("support-statuses", "support-stuck")
@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "status", "status": 503, "body": {"error": "support_agent_unavailable"}},
        {"kind": "status", "status": 404},
        {"kind": "status", "status": 429, "headers": {"Retry-After": "3600"}},
        {"kind": "drop"},
        {"kind": "garbage"},
        {"kind": "html"},
    ],
    ids=lambda fault: f"{fault['kind']} {fault.get('status', '')}",
)
def test_a_question_without_an_answer_changes_nothing(
    asking: SandboxServer, log: Callable[[], str], fault: dict[str, Any]
) -> None:
    asking.control.add_fault(path=ASK, times=None, **fault)
    outcome = direct.run(crawl())
    assert (outcome.state, "explanation" in outcome.xcom) == ("failed", False)
    assert type(outcome.error).__name__ == "JobFailedError"
    assert log().count("The service did not explain why job") == 1


@pytest.mark.parametrize("error", [AirflowTaskTimeout("over"), RuntimeError("a bug")], ids=["timeout", "bug"])
def test_an_error_of_airflow_changes_nothing(
    asking: SandboxServer, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(WebDataHook, "ask", fail)
    assert type(direct.run(crawl()).error).__name__ == "JobFailedError"


def test_a_hostile_answer(asking: SandboxServer, log: Callable[[], str]) -> None:
    """It is a language model's, which pages may have talked to."""
    answer = f"\x1b[2J{asking.api_key}\r\nERROR - fake line\u202e{'x' * 5000}"
    asking.control.add_fault("status", path=ASK, status=200, body={"answer": answer})
    explanation = direct.run(crawl()).xcom["explanation"]
    assert explanation.startswith("*** ERROR - fake line")
    assert len(explanation) <= 2000
    assert explanation.isprintable()
    assert asking.api_key not in log()
    assert "\nERROR - fake line" not in log()


def test_no_secret_is_sent(asking: SandboxServer) -> None:
    """A job's error may repeat what the service was sent."""
    from airflow_provider_webdata.hooks.explanation import explanation

    with WebDataHook() as hook:
        explanation(hook, NO_JOB, f"Why {asking.api_key}?{'x' * 9000}")
    [question] = questions(asking)
    assert question["question"].startswith("Why ***?x")
    assert len(question["question"]) == 2000


def told(*arguments: str) -> None:
    args = get_parser().parse_args(["webdata", "explain", *arguments])
    args.func(args)


def test_the_command(asking: SandboxServer, capsys: pytest.CaptureFixture[str]) -> None:
    job_id = direct.run(crawl(wait_for_completion=False)).value
    told(job_id)
    assert f"\nThe crawl job {job_id} failed" in f"\n{capsys.readouterr().out}"
    told(NO_JOB, "--conn-id", "webdata_default", "--question", "Where is it?")
    assert "The service has no answer: No job" in capsys.readouterr().out
    assert questions(asking)[-1] == {"question": "Where is it?", "jobId": NO_JOB}


def test_the_command_without_an_answer(asking: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", '{"conn_type": "http"}')
    with pytest.raises(
        SystemExit, match=r"Connection 'other' is of type 'http'\. Set --conn-id to one of type webdata"
    ):
        told(NO_JOB, "--conn-id", "other")
    asking.control.add_fault("status", path=ASK, status=503)
    with pytest.raises(SystemExit, match="The service did not explain the job"):
        told(NO_JOB)
