# SPDX-License-Identifier: Apache-2.0
"""Each error code that sandbox/docs/service.md names has a class, whose verdict decides about retries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_provider_webdata.api import errors
from airflow_provider_webdata.api.errors import CODE_CLASSES

PAGE = Path(__file__).parents[3] / "sandbox" / "docs" / "service.md"
NO_ANSWER = {
    "ALLOW_LOCAL_WEBHOOKS": "a setting of a server",
    "CRAWL_DENIAL": "in a job's errors, where robots.txt forbids a page",
    "EXTERNAL_LINK": "in a job's errors, for a page that is not crawled",
}
"""Upper-case names that no failed call has as its code."""

OF_STATUS = {"threads_disabled"}
"""Codes of responses that may name a wait, whose verdict is that of their status."""

NEVER = {
    *("SCRAPE_UNSUPPORTED_FILE_ERROR", "SCRAPE_DNS_RESOLUTION_ERROR", "SCRAPE_SSL_ERROR"),
    *("SCRAPE_PDF_OCR_REQUIRED", "SCRAPE_VIDEO_UNSUPPORTED_URL", "SCRAPE_AUDIO_UNSUPPORTED_URL"),
    *("SCRAPE_BRANDING_NOT_SUPPORTED", "SCRAPE_ZDR_VIOLATION_ERROR"),
}
"""Codes with HTTP 500 that no retry changes."""


def documented() -> set[str]:
    text = PAGE.read_text(encoding="utf-8")
    found = {*re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", text)}
    section = text.partition("### Codes about a page")[2].partition("\n### ")[0]
    found |= {*re.findall(r"`([a-z]+(?:_[a-z]+)+)`", section)}
    return (
        (found | {*re.findall(r"[45][0-9]{2} `([a-z]+(?:_[a-z]+)+)`", text)}) - NO_ANSWER.keys() - OF_STATUS
    )


def test_each_documented_code_has_a_class_and_each_class_a_documented_code() -> None:
    assert documented() - CODE_CLASSES.keys() == set(), "add it to CODE_CLASSES"
    assert CODE_CLASSES.keys() - documented() == set(), "describe it in sandbox/docs/service.md"


def test_no_verdict_depends_on_the_status_of_a_page_code() -> None:
    for code, kind in CODE_CLASSES.items():
        if issubclass(kind, errors.PageError):
            assert {errors.error_class(status, code) for status in (200, 500, 503)} == {kind}


@pytest.mark.parametrize(
    "code", [code for code, kind in CODE_CLASSES.items() if issubclass(kind, errors.PageError)]
)
def test_what_no_retry_can_change_is_final(code: str) -> None:
    error = errors.error_class(500, code)("scrape", 500, "it broke", code=code)
    assert error.verdict == ("never" if code in NEVER else "unknown")
    assert ("each attempt fails the same way" in str(error)) == (code in NEVER)


def test_an_unknown_code_keeps_the_verdict_of_its_status() -> None:
    assert errors.error_class(500, "SCRAPE_NEW_ERROR") is errors.ServerError
    assert errors.error_class(400, "NEW") is errors.BadRequestError
    assert errors.error_class(503, "UNKNOWN_ERROR", names_wait=True) is errors.UnavailableError
