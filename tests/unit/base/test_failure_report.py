# SPDX-License-Identifier: Apache-2.0
"""The XCom `failure` of each failed attempt."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest
from airflow.sdk import BaseOperator, log
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

from airflow_provider_webdata import operators, sensors, transfers
from airflow_provider_webdata.api.errors import TransportError
from airflow_provider_webdata.base.failure_report import failure_report
from airflow_provider_webdata.base.service_task import ServiceTask
from airflow_provider_webdata.common.links import error_link
from airflow_provider_webdata.common.remedies import advised
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.runs.failures import CheckFailedError, JobFailedError
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.support.direct import TaskInstance, context_of, run
from tests.support.service import connection_text


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connection_text("http://127.0.0.1:9", retry_budget=0)
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection)


def test_every_failure_is_reported(dead: None) -> None:
    """Of the service, of an argument, of a template, and after a wait."""
    scrape: dict[str, Any] = {"task_id": "t", "url": "https://a.example/"}
    found = run(WebDataScrapeOperator(**scrape, rate_limit_timeout=0)).xcom["failure"]
    assert (found["code"], found["link"]) == ("WD-010", error_link("WD-010"))
    assert found["fix"].startswith("Connection 'webdata_default': check")
    assert "WD-010" not in found["message"] + found["fix"]
    assert "check" not in found["message"]
    nothing = run(WebDataScrapeOperator(task_id="t", url="{{ none }}")).xcom["failure"]
    assert nothing["code"] == "WD-003"
    template = run(WebDataScrapeOperator(task_id="t", url="{{ 1 / 0 }}")).xcom["failure"]
    assert template == {"message": "ZeroDivisionError: see the task's log"}
    # A load calls databases, but not the service.
    table: dict[str, Any] = {"task_id": "t", "table": "pages", "conn_id": "missing"}
    nothing = run(WebDataToTableOperator(path="{{ none }}", **table)).xcom["failure"]
    assert (nothing["code"], nothing["link"]) == ("WD-003", error_link("WD-003"))
    assert run(WebDataToTableOperator(path="{{ 1 / 0 }}", **table)).xcom["failure"] == template
    for task in (
        WebDataCrawlOperator(**scrape),
        WebDataJobSensor(task_id="t", kind="crawl", job_id="j", deferrable=True),
    ):
        ti = TaskInstance()
        with pytest.raises(Exception, match="did not start"):
            task.resume_execution("__fail__", {"error": "did not start"}, context_of(ti))
        assert "did not start" in ti.xcom["failure"]["message"]


def test_every_operator_and_sensor_reports_its_failures() -> None:
    missing = []
    for kind in (operators, sensors, transfers):
        for found in pkgutil.walk_packages(kind.__path__, f"{kind.__name__}."):
            module = importlib.import_module(found.name)
            missing += [
                name
                for name, one in vars(module).items()
                if isinstance(one, type) and issubclass(one, BaseOperator) and name.startswith("WebData")
                # The base class reports, or the operator itself does.
                if not issubclass(one, ServiceTask) and not hasattr(module, "reporting_failures")
            ]
    assert missing == []


def test_a_rescheduled_attempt_reports_nothing(dead: None) -> None:
    ti = TaskInstance()
    task = WebDataScrapeOperator(task_id="t", url="https://a.example/")
    with pytest.raises(AirflowRescheduleException):
        task.execute(context_of(ti))
    assert "failure" not in ti.xcom


def test_the_error_of_a_trigger_keeps_its_code() -> None:
    text = advised("the inbox refuses the reader (WD-041)", "webdata_default")
    report = failure_report(AirflowFailException(text), None)
    assert (report["code"], report["link"]) == ("WD-041", error_link("WD-041"))
    assert report["message"].startswith("the inbox refuses the reader. Connection 'webdata_default'")
    assert "WD-041" not in report["message"]


@pytest.mark.parametrize(
    ("error", "is_first"),
    [
        (JobFailedError("the site refused every request"), True),
        (AirflowFailException(advised("no delivery names the job (WD-071)", "webdata_default")), True),
        (TransportError("scrape", "the connection was lost", sent=True), True),
        (TransportError("scrape", "the connection was refused", sent=False), False),
        (CheckFailedError("the check failed"), False),
    ],
)
def test_what_must_be_inspected_before_a_clear(error: Exception, is_first: bool) -> None:
    """A clear may start another job, or repeat a billed call."""
    assert failure_report(error, None).get("inspect_first", False) is is_first


def test_the_text_of_an_unknown_error_is_not_reported() -> None:
    """It may quote a page."""
    assert failure_report(ValueError("<html>"), None) == {"message": "ValueError: see the task's log"}


def test_a_report_is_small_and_has_no_secrets() -> None:
    log.mask_secret("hunter2-hunter2")
    error = AirflowFailException("hunter2-hunter2 in https://me:swordfish@a.example/ \0" + "x" * 9000)
    [message] = failure_report(error, None).values()
    assert message.startswith("*** in https://")
    assert "swordfish" not in message
    assert "\0" not in message
    assert len(message) == 1000
