# SPDX-License-Identifier: Apache-2.0
"""The operators of long jobs: their arguments, and the parts that need neither Airflow nor the service."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api import models
from airflow_provider_webdata.base.job_operator import WebDataJobOperator
from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.runs.failures import too_many
from airflow_provider_webdata.runs.jobs.results import texts
from airflow_provider_webdata.runs.publishing.page_errors import MAX_LISTED, PageErrors
from airflow_provider_webdata.states.jobs import events_to_ask_for, last_events

OPERATORS: list[tuple[type[WebDataJobOperator], dict[str, Any]]] = [
    (WebDataBatchScrapeOperator, {"urls": ["https://example.com/"]}),
    (WebDataCrawlOperator, {"url": "https://example.com/"}),
    (WebDataAgentOperator, {"prompt": "p"}),
]


REFUSED = {
    "ratio": ({"max_error_ratio": 1.5}, "max_error_ratio: must be a number of at least 0 and at most 1"),
    "ratio that is no number": ({"max_error_ratio": float("nan")}, "max_error_ratio"),
    "save_to": ({"save_to": "/tmp/pages.xlsx"}, "jsonl"),
    "unknown": ({"wait_for_completon": True}, "wait_for_completon"),
}


def test_contradictions_fail_while_the_dag_is_read() -> None:
    """Each operator refuses each of them."""
    for operator, required in OPERATORS:
        for more, words in REFUSED.values():
            with pytest.raises((ValueError, TypeError), match=words):
                operator(task_id="t", **required, **more)


@pytest.mark.rule("crawl-credit-check")
def test_a_crawl_has_a_limit() -> None:
    assert WebDataCrawlOperator(task_id="t", url="u").limit == 100
    with pytest.raises(ValueError, match="limit is required"):
        WebDataCrawlOperator(task_id="t", url="u", limit=None)  # type: ignore[arg-type]


# Events.


@pytest.mark.rule("webhook-events", "webhook-events-steps", "event-job-completed")
@pytest.mark.rule("event-agent", "event-names")
@pytest.mark.parametrize("kind", ALL_JOB_KINDS)
def test_events_are_asked_for_without_and_heard_with_prefix(kind: Any) -> None:
    asked = events_to_ask_for(kind)
    assert "started" in asked, "it ties the job's id to the key before there is an answer"
    assert not {"page", "action"} & set(asked), "they carry whole documents"
    assert set(last_events(kind)) == {f"{kind}.{name}" for name in asked if name != "started"}
    model = {
        "crawl": models.CrawlRequest,
        "batch_scrape": models.BatchScrapeRequest,
        "agent": models.AgentRequest,
    }[kind]
    body = (
        {"url": "https://e.example/"} if kind == "crawl" else {"urls": ["https://e.example/"], "prompt": "p"}
    )
    if kind == "batch_scrape":
        del body["prompt"]
    webhook = {"url": "https://in.example/", "events": asked}
    assert model.model_validate({**body, "webhook": webhook}).to_wire()["webhook"]["events"] == asked


# Page errors.


@pytest.mark.rule("page-codes-jobs", "metadata-status", "crawl-external", "job-errors")
@given(st.lists(st.sampled_from(["good", "site", "error", "listed"]), max_size=300))
def test_page_errors_are_counted_and_the_first_are_listed(kinds: list[str]) -> None:
    found = PageErrors()
    documents: dict[str, Any] = {
        "good": {"metadata": {"statusCode": 200, "error": None}},
        "site": {"metadata": {"statusCode": 503, "url": "u"}},
        "error": {"metadata": {"statusCode": 200, "error": "broke off"}},
    }
    for kind in kinds:
        if kind == "listed":
            found.add_failed("u", "e", "c")
        else:
            found.add_document(documents[kind])
    bad = len(kinds) - kinds.count("good")
    assert (found.failed, found.succeeded) == (bad, kinds.count("good"))
    assert len(found.pages) == min(bad, MAX_LISTED)


@pytest.mark.parametrize(
    ("failed", "succeeded", "known", "most", "exceeds"),
    [
        (0, 0, 0, 0.0, False),
        (0, 0, 0, None, False),
        (1, 2, 0, 0.0, True),
        (29, 71, 0, 0.29, False),
        (30, 70, 0, 0.29, True),
        (1, 0, 0, 1.0, False),
        (1, 0, 0, 0.99, True),
        (1, 0, 0, None, True),
        (9, 1, 0, None, False),
        (1, 0, 1, None, False),
        (1, 0, 9, 0.1, False),
        (1, 0, 8, 0.1, True),
    ],
)
def test_too_many_failures(failed: int, succeeded: int, known: int, most: Any, exceeds: bool) -> None:
    """29 of 100 are a part of 0.29, though 0.29 * 100 is less than 29."""
    assert bool(too_many(failed, succeeded, known, most)) is exceeds


@pytest.mark.parametrize("document", [{}, {"metadata": None}, {"metadata": {"statusCode": "200"}}])
def test_a_document_that_says_little_is_good(document: dict[str, Any]) -> None:
    found = PageErrors()
    found.add_document(document)
    assert (found.failed, found.succeeded) == (0, 1)


TEXTS = [
    (None, []),
    ("https://a.example/", ["https://a.example/"]),
    (["a", 1], ["a", "1"]),
    (("a",), ["a"]),
]


@pytest.mark.parametrize(("value", "expected"), TEXTS)
def test_texts(value: Any, expected: list[str]) -> None:
    assert texts(value) == expected


# Identity.


def test_the_identity_of_an_iteration_can_be_stored() -> None:
    region = {"region_id": UUID(int=1), "region_index": 0}
    ti = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=-1, **region)
    assert json.loads(json_text(Attempt({"ti": ti}).instance)) == ["d", "r", "t", -1, str(UUID(int=1)), 0]
