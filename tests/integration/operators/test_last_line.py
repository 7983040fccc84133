# SPDX-License-Identifier: Apache-2.0
"""The last line of a failing task, in the log of a real task runner: the failure, the connection, the next step."""

from __future__ import annotations

import re

import pytest

from airflow_provider_webdata.common.links import error_link
from airflow_provider_webdata.common.remedies import REMEDIES, advised
from airflow_provider_webdata.get_provider_info import get_provider_info
from tests.support.dag_runner import Airflow, Outcome, dag_runner
from tests.support.service import connection_text
from webdata_sandbox.server import SandboxServer

ENTRY = re.compile(r"^\d{4}-\d\d-\d\dT", re.MULTILINE)
CHAINED = ("The above exception was the direct cause", "During handling of the above exception")
TASKS = """
for name in ("wrong_key", "unreachable", "bad_connection", "no_credits"):
    WebDataSearchOperator(task_id=name, query="x", webdata_conn_id=name, rate_limit_timeout=0)
WebDataSearchOperator(task_id="bad_input", query="x", limit="{{ 1000 }}")
for mode in (True, False):
    WebDataCrawlOperator(
        task_id=f"timeout_{mode}", url="https://river.example/", limit=5,
        poll_interval=1, wait_timeout=0.5, deferrable=mode,
    )
WebDataRunMonitorOperator(task_id="no_monitor", monitor_name="none", replica_wait=0)
"""


@pytest.fixture(scope="module")
def done(airflow: Airflow) -> Outcome:
    """Run tasks that fail, each with its own connection where that matters."""
    with SandboxServer(page_seconds=600) as sandbox, SandboxServer(credits=0) as poor:
        connections = {
            "wrong_key": connection_text(sandbox.url, "key-of-another", retry_budget=0),
            "unreachable": connection_text("http://127.0.0.1:1", retry_budget=0),
            "bad_connection": connection_text(sandbox.url, timeout="soon"),
            "no_credits": connection_text(poor.url),
        }
        return dag_runner(airflow, sandbox)(
            TASKS,
            "from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator",
            environ={f"AIRFLOW_CONN_{name.upper()}": text for name, text in connections.items()},
        )


def traceback_of(done: Outcome, task: str) -> str:
    """Return what the log holds from the line that says that the task failed to the next entry."""
    log = done.log_of(task)
    assert done.state(task) == "failed", log
    _, _, behind = log.partition("Task failed with exception")
    assert behind, log
    found = ENTRY.search(behind)
    return (behind[: found.start()] if found else behind).rstrip()


def last_line(done: Outcome, task: str) -> str:
    shown = traceback_of(done, task)
    assert not [words for words in CHAINED if words in shown], shown
    assert "httpcore" not in shown
    *lines, last, link = shown.splitlines()
    assert [line for line in (last, link) if len(line) > 200] == []
    (code,) = re.findall(r"\((WD-\d{3})\)\.$", last)
    assert link == f"See {error_link(code)}"
    first = max(
        (n for n, line in enumerate(lines) if re.match(r"\w+(\.\w+)*(Error|Exception)?: ", line)), default=0
    )
    return " ".join([*lines[first:], last]).removesuffix(".")


def test_wrong_key(done: Outcome) -> None:
    line = last_line(done, "wrong_key")
    assert re.search(r"search: HTTP 401: .*\. Connection 'wrong_key': check \"API Key\" \(WD-401\)$", line)


def test_unreachable_host(done: Outcome) -> None:
    line = last_line(done, "unreachable")
    assert "TransportError: search: cannot reach http://127.0.0.1" in line
    assert line.endswith(
        """nothing was sent. Connection 'unreachable': check "Base URL" and "Proxy", and the network (WD-010)"""
    )


def test_a_connection_that_cannot_work(done: Outcome) -> None:
    """The message names the connection, the field, and a valid value by itself."""
    assert last_line(done, "bad_connection").endswith(
        "connection 'bad_connection': timeout must be a number (given: 'soon'); write a number such as 30. Correct the "
        "field of the connection, then click its test button (WD-001)"
    )


def test_bad_input(done: Outcome) -> None:
    """Has nothing to do with a connection."""
    shown = traceback_of(done, "bad_input")
    assert shown.splitlines()[-3].strip().startswith("- limit: ")
    assert last_line(done, "bad_input").endswith("Change the listed values; nothing was billed (WD-002)")
    assert not [words for words in (*CHAINED, "Connection") if words in shown]


@pytest.mark.parametrize("task", ["timeout_True", "timeout_False"])
def test_a_job_that_times_out(done: Outcome, task: str) -> None:
    line = last_line(done, task)
    assert "WaitTimeoutError: Timed out waiting for crawl " in line
    assert line.endswith(
        "Connection 'webdata_default': raise the timeout, or check the state of the job, check, or delivery (WD-030)"
    )


def test_a_monitor_that_is_missing(done: Outcome) -> None:
    line = last_line(done, "no_monitor")
    assert (
        "The monitor named 'none' does not exist. It may have been deleted. Connection 'webdata_default': "
        in line
    )


def test_no_credits(done: Outcome) -> None:
    assert last_line(done, "no_credits").endswith(
        "Connection 'no_credits': buy credits, or wait for the next billing period; then clear the task (WD-402)"
    )


def test_labels_are_those_of_the_form() -> None:
    (kind,) = get_provider_info()["connection-types"]
    labels = {
        *kind["ui-field-behaviour"]["relabeling"].values(),
        *(field["label"] for field in kind["conn-fields"].values()),
    }
    named = {label for text in REMEDIES.values() for label in re.findall('"([^"]*)"', text)}
    assert named
    assert named <= labels


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("search: HTTP 401: no (WD-401)", "search: HTTP 401: no. Connection 'c': check \"API Key\" (WD-401)"),
        (
            "limit: too much (WD-002)",
            "limit: too much. Change the listed values; nothing was billed (WD-002)",
        ),
        ("ValueError: odd", "ValueError: odd"),
        ("", ""),
    ],
)
def test_reported_by_a_trigger(text: str, said: str) -> None:
    """A trigger's event brings text."""
    assert " ".join(advised(text, "c").partition(".\nSee https://")[0].splitlines()) == said
