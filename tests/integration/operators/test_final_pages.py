# SPDX-License-Identifier: Apache-2.0
"""Pages that fail in each attempt end the task; others are left to its retries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from tests.support import direct
from tests.support.direct import StateStore

PAGE = "https://shop.example/plans"


def run(url: str, **arguments: Any) -> direct.Outcome:
    return direct.run(WebDataScrapeOperator(task_id="t", url=url, retries=3, **arguments), StateStore())


@pytest.mark.rule("page-codes-final")
@pytest.mark.parametrize(
    ("code", "attempts"),
    [
        ("SCRAPE_UNSUPPORTED_FILE_ERROR", 1),
        ("SCRAPE_SSL_ERROR", 1),
        ("SCRAPE_PDF_OCR_REQUIRED", 1),
        ("SCRAPE_SITE_ERROR", 4),
        ("SCRAPE_ACTION_ERROR", 4),
        ("SCRAPE_DOCUMENT_ANTIBOT_ERROR", 4),
        ("SCRAPE_TIMEOUT", 4),
        ("SCRAPE_NEWER_ERROR", 4),
    ],
)
def test_only_what_may_change_is_repeated(here: Any, code: str, attempts: int) -> None:
    here.control.set_page(PAGE, "<p>x</p>", error=code)
    outcome = run(PAGE)
    assert outcome.ended == ("failed", attempts)
    assert len(here.control.requests("/v2/scrape")) == attempts
    assert ("each attempt fails the same way" in str(outcome.error)) == (attempts == 1)
    assert "before you repeat" not in str(outcome.error)


@pytest.mark.rule("page-codes-final", "ok-but-failed-scrape")
@pytest.mark.parametrize("quirk", [(), ("dns-ok",)], ids=["500", "200"])
def test_a_host_that_does_not_exist_is_billed_once(here: Any, quirk: Any) -> None:
    here.control.configure(credits=100)
    here.control.set_quirks(quirk)
    outcome = run("https://no-such-host.example/")
    assert outcome.ended == ("failed", 1)
    assert "SCRAPE_DNS_RESOLUTION_ERROR" in str(outcome.error)
    assert "The call is billed 1 credit" in str(outcome.error)
    assert here.control.state()["credits"] == 99
    assert outcome.xcom["credits"]["used"] == 1


def test_a_damaged_document(here: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"no PDF")
    task = WebDataParseOperator(task_id="t", file=str(file), retries=3)
    outcome = direct.run(task, StateStore())
    assert outcome.ended == ("failed", 1)
    assert "SCRAPE_UNSUPPORTED_FILE_ERROR" in str(outcome.error)


def test_a_batch_is_not_repeated_for_a_search_that_cannot_succeed(here: Any, tmp_path: Any) -> None:
    body = {"success": False, "code": "SCRAPE_ZDR_VIOLATION_ERROR", "error": "no"}
    here.control.add_fault("status", path="/v2/search", status=500, body=body, times=1)
    task = WebDataBatchSearchOperator(task_id="t", queries=["a"], retries=3, save_to=f"{tmp_path}/a.jsonl")
    assert direct.run(task, StateStore()).ended == ("failed", 1)
    assert len(here.control.requests("/v2/search")) == 1
