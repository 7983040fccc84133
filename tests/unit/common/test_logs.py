# SPDX-License-Identifier: Apache-2.0
"""The logger cleans what it is given, and nothing else."""

from __future__ import annotations

import copy
import logging
import pickle
from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_webdata.common.clean_text import MAX_TEXT, own_lines
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.logs import logger, task_logger

NAME = "airflow_provider_webdata.some_module"
log = logger(NAME)

HOSTILE = "a\n2026-01-01 INFO forged\x1b[31m\u202e https://user:hush@a.example/?token=hush"
CLEAN = "a 2026-01-01 INFO forged https://user:***@a.example/?token=***"

# The bracket is no part of a token.
PAGE = f"Page({CLEAN}"


class Page:
    def __str__(self) -> str:
        return HOSTILE

    def __repr__(self) -> str:
        return f"Page({HOSTILE})"


@pytest.mark.parametrize(
    ("form", "value", "line"),
    [
        ("%s", HOSTILE, CLEAN),
        ("%r", HOSTILE, repr(CLEAN)),
        ("%s", ValueError(HOSTILE), CLEAN),
        ("%s", Page(), CLEAN),
        ("%r", Page(), PAGE),
        (
            "%s",
            [HOSTILE],
            "['a\\n2026-01-01 INFO forged\\x1b[31m\\u202e https://user:***@a.example/?token=***']",
        ),
        ("%s", {"page": Page()}, f"{{'page': {PAGE}"),
        ("%.1f", 2.25, "2.2"),
        ("%d", True, "1"),
        ("%s", None, "None"),
        ("%s", Decimal("0.10"), "0.10"),
        ("%s", own_lines([HOSTILE, "b"]), f"\n  {CLEAN}\n  b"),
    ],
)
def test_arguments_are_cleaned(caplog: Any, form: str, value: Any, line: str) -> None:
    log.warning("Two lines\nof ours, https://a:b@c/: " + form, value)
    assert caplog.messages == [f"Two lines\nof ours, https://a:b@c/: {line}"]


def test_an_error_keeps_its_lines(caplog: Any) -> None:
    error = ArgumentError(f"url: {HOSTILE}")
    log.warning("%s", error)
    [message] = caplog.messages
    assert message.splitlines()[0].startswith(f"url: {CLEAN}")
    assert message == str(error)


def test_a_long_text_keeps_both_ends(caplog: Any) -> None:
    log.warning("%s", f"begin {'x' * 10**6} end")
    [message] = caplog.messages
    assert len(message) == MAX_TEXT
    assert message.startswith("begin x")
    assert message.endswith("x end")


def test_a_line_that_is_not_emitted_costs_nothing(caplog: Any) -> None:
    class Costly:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    with caplog.at_level(logging.INFO, NAME):
        log.debug("%s", Costly())
    assert caplog.records == []


def test_the_call_site_and_the_traceback_are_those_of_the_caller(caplog: Any) -> None:
    try:
        raise ValueError("https://a:kept@b/")
    except ValueError:
        log.exception("Failed: %s", HOSTILE)

    def helper() -> None:
        log.info("%s", "deeper", stacklevel=2)

    with caplog.at_level(logging.INFO, NAME):
        helper()
    first, second = caplog.records
    assert (first.name, first.filename, first.funcName) == (
        NAME,
        "test_logs.py",
        "test_the_call_site_and_the_traceback_are_those_of_the_caller",
    )
    assert first.exc_text is None or "https://a:kept@b/" in first.exc_text
    assert first.exc_info[1].args == ("https://a:kept@b/",)
    assert second.funcName == first.funcName


def test_the_named_logger_decides(caplog: Any) -> None:
    """Airflow and its users configure loggers by their names, also after this package was imported."""
    named = logging.getLogger(NAME)
    assert not log.isEnabledFor(logging.DEBUG)
    with caplog.at_level(logging.DEBUG, NAME):
        log.debug("shown")
        named.addFilter(refuse := lambda record: record.getMessage() != "refused")
        log.debug("refused")
        named.removeFilter(refuse)
        named.disabled = True
        log.debug("disabled")
        named.disabled = False
    log.debug("below the level")
    assert caplog.messages == ["shown"]


def test_a_logger_can_be_copied() -> None:
    assert pickle.loads(pickle.dumps(log)).name == copy.deepcopy(log).name == NAME


def test_the_logger_of_a_task_has_the_name_of_airflows() -> None:
    from airflow.sdk import DAG

    from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator

    with DAG("d", schedule=None):
        task = WebDataScrapeOperator(task_id="t", url="https://a.example/")
        named = WebDataScrapeOperator(task_id="n", url="https://a.example/", logger_name="mine")
    module = "airflow_provider_webdata.operators.scrape"
    assert task_logger(task).name == f"airflow.task.operators.{module}.WebDataScrapeOperator"
    assert task_logger(named).name == "airflow.task.operators.mine"
