# SPDX-License-Identifier: Apache-2.0
"""Texts of errors: validation problems in the words of a DAG, and one line without control characters."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.errors import InvalidRequestError, error_text
from airflow_provider_webdata.states.jobs import JobView

ROWS: list[tuple[dict[str, Any], list[str]]] = [
    ({"limit": 500}, ["limit", "100", "given: 500"]),
    (
        {"include_domains": ["https://a.example/x"]},
        ["include_domains[0]: ", "a.example"],
    ),
    (
        {"scrape_options": {"timeout": 10}},
        ["scrape_options.timeout: ", "1000", "given: 10"],
    ),
    ({"scrapeOptions": {"timeout": 10}}, ["scrape_options.timeout (sent as scrapeOptions): "]),
    ({"limt": 5}, ["limt", "did you mean 'limit'"]),
    ({"limit": {"a": 1}}, ["limit", "given: {'a': 1}"]),
    (
        {"scrape_options": "{'headers': {'Cookie': 'hush'}}"},
        ["scrape_options", "text of 31 characters, starting with '{'"],
    ),
    ({"scrape_options": {"actions": ["write hush"]}}, ["actions[0]"]),
    ({"query": "x" * 501}, ["query", "500", "…"]),
    ({"scrape_options": {"headers": {"Cookie": "hush\n"}}}, ["Cookie"]),
    ({"scrape_options": {"actions": [{"type": "write", "text": ["hush"]}]}}, ["actions[0].text"]),
    ({"scrape_options": {"actions": [{"type": "write", "text": 4711}]}}, ["actions[0].text"]),
]


@pytest.mark.parametrize(("fields", "words"), ROWS, ids=[str(fields)[:40] for fields, _ in ROWS])
def test_a_problem_in_a_dag_authors_words(fields: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ValidationError) as caught:
        models.SearchRequest.model_validate({"query": "q", **fields})
    text = str(InvalidRequestError.from_validation_error("search", caught.value, models.SearchRequest))
    assert "nothing was sent" in text
    for word in words:
        assert word in text
    assert "hush" not in text
    assert "4711" not in text


@pytest.mark.says("The message lists every invalid field with its rule and value")
def test_all_problems_are_reported_together() -> None:
    with pytest.raises(ValidationError) as caught:
        models.SearchRequest.model_validate({"limit": 0, "country": "usa"})
    error = InvalidRequestError.from_validation_error("search", caught.value, models.SearchRequest)
    assert len(error.problems) == 3
    assert "3 problems" in str(error)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, ""),
        ("no\x1b[1m", "no"),
        ({"message": "no", "code": "X"}, "X: no"),
        ({"error": {"message": "deep"}, "code": 7}, "7: deep"),
        ({"code": "X"}, "X"),
        ({"name": "TypeError"}, "{'name': 'TypeError'}"),
        (["a"], "['a']"),
    ],
)
def test_the_error_of_a_job_or_a_check(given: Any, text: str) -> None:
    assert error_text(given) == text
    outcome = JobView.of("crawl", "j-1", models.JobStatus(status="failed", error=given)).outcome("polling")
    assert outcome.message == f"crawl j-1 failed: {text or 'the service gives no reason'}"
