"""The last line of a failing task, in the log of a real task runner: what failed, with which connection, what to do."""

from __future__ import annotations

import re
from typing import Any

import pytest

from airflow_provider_webdata.get_provider_info import get_provider_info
from airflow_provider_webdata.hooks.remedies import REMEDIES, UNTRUSTED, advised
from tests.support.dag_runner import Outcome
from tests.support.service import connection_text

SEARCH = 'WebDataSearchOperator(task_id="t", query="x", webdata_conn_id="other")'
IMPORTS = "from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator"
ENTRY = re.compile(r"^\d{4}-\d\d-\d\dT", re.MULTILINE)
CHAINED = ("The above exception was the direct cause", "During handling of the above exception")


def traceback_of(done: Outcome) -> str:
    """Return what the log holds from the line that says that the task failed to the next entry."""
    assert done.state("t") == "failed", done.log[-3000:]
    _, _, behind = done.log.partition("Task failed with exception")
    assert behind, done.log[-3000:]
    found = ENTRY.search(behind)
    return (behind[: found.start()] if found else behind).rstrip()


def last_line(done: Outcome) -> str:
    shown = traceback_of(done)
    assert not [words for words in CHAINED if words in shown], shown
    assert "httpcore" not in shown
    return shown.splitlines()[-1]


@pytest.fixture
def other(run_dag: Any) -> Any:
    """Run a search with a connection of its own."""

    def run(host: str, key: str = "key-of-another", **extra: Any) -> Outcome:
        text = connection_text(host, key, retry_budget=0, **extra)
        done: Outcome = run_dag(SEARCH, environ={"AIRFLOW_CONN_OTHER": text})
        return done

    return run


def test_wrong_key(other: Any, sandbox: Any) -> None:
    line = last_line(other(sandbox.url))
    assert re.search(r"search: HTTP 401: .*\. Connection 'other': check \"API Key\" \(WD-401\)$", line)


def test_unreachable_host(other: Any) -> None:
    line = last_line(other("http://127.0.0.1:1"))
    assert "TransportError: search: cannot reach http://127.0.0.1" in line
    assert line.endswith(
        """nothing was sent. Connection 'other': check "Base URL" and "Proxy", and the network (WD-010)"""
    )


def test_a_connection_that_cannot_work(other: Any, sandbox: Any) -> None:
    """It says the connection, the field and what to write by itself."""
    line = last_line(other(sandbox.url, timeout="soon"))
    assert line.endswith(
        "connection 'other': timeout must be a number (given: 'soon'); write a number such as 30 (WD-001)"
    )


def test_bad_input(run_dag: Any) -> None:
    """Has nothing to do with a connection."""
    shown = traceback_of(run_dag('WebDataSearchOperator(task_id="t", query="x", limit="{{ 1000 }}")'))
    assert shown.splitlines()[-1].strip().startswith("- limit: ")
    assert not [words for words in (*CHAINED, "Connection") if words in shown]


@pytest.mark.parametrize("mode", ["deferrable=False", "deferrable=True"])
def test_a_job_that_times_out(run_dag: Any, sandbox: Any, mode: str) -> None:
    sandbox.control.configure(page_seconds=600)
    line = last_line(
        run_dag(
            'WebDataCrawlOperator(task_id="t", url="https://river.example/", limit=5, poll_interval=1, wait_timeout=1,'
            f" {mode})",
            IMPORTS,
        )
    )
    assert "WaitTimeoutError: Timed out waiting for crawl " in line
    assert line.endswith(
        "Connection 'webdata_default': give it more time, or look at what it waits for (WD-030)"
    )


def test_a_monitor_that_is_missing(run_dag: Any) -> None:
    line = last_line(run_dag('WebDataRunMonitorOperator(task_id="t", monitor_name="none", replica_wait=0)'))
    assert "There is no monitor named 'none'. Connection 'webdata_default': compare with" in line


def test_no_credits(run_dag: Any, sandbox: Any) -> None:
    sandbox.control.configure(credits=0)
    line = last_line(run_dag('WebDataSearchOperator(task_id="t", query="x")'))
    assert line.endswith(
        "Connection 'webdata_default': buy credits, or wait for the next billing period; then clear the task (WD-402)"
    )


def test_labels_are_those_of_the_form() -> None:
    (kind,) = get_provider_info()["connection-types"]
    labels = {
        *kind["ui-field-behaviour"]["relabeling"].values(),
        *(field["label"] for field in kind["conn-fields"].values()),
    }
    named = {label for text in (*REMEDIES.values(), UNTRUSTED) for label in re.findall('"([^"]*)"', text)}
    assert named
    assert named <= labels


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("search: HTTP 401: no (WD-401)", "search: HTTP 401: no. Connection 'c': check \"API Key\" (WD-401)"),
        (
            "search: a bad CERTIFICATE (WD-010)",
            f"search: a bad CERTIFICATE. Connection 'c': {UNTRUSTED} (WD-010)",
        ),
        ("the inbox is away (WD-040)", "the inbox is away. Connection 'c' (WD-040)"),
        ("limit: too much (WD-002)", "limit: too much (WD-002)"),
        ("ValueError: odd", "ValueError: odd"),
        ("", ""),
    ],
)
def test_told_by_a_trigger(text: str, said: str) -> None:
    """What a trigger's event brings is text."""
    assert advised(text, "c") == said
