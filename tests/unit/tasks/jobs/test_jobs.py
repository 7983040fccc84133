"""What the operators of long jobs take, and the parts of them that need neither Airflow nor the service."""

from __future__ import annotations

import logging
import re
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from airflow.sdk import DAG
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api import models
from airflow_provider_webdata.inbox.wire import is_key
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.extract import WebDataExtractOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.states.jobs import (
    ALL_JOB_KINDS,
    JobView,
    ProgressLog,
    events_to_ask_for,
    first_few,
    last_events,
)
from airflow_provider_webdata.tasks.intent import Intent
from airflow_provider_webdata.tasks.jobs.identity import JobIdentity
from airflow_provider_webdata.tasks.jobs.job_operator import WebDataJobOperator
from airflow_provider_webdata.tasks.jobs.results import MOST_LISTED, PageErrors, texts

OPERATORS: list[tuple[type[WebDataJobOperator], dict[str, Any]]] = [
    (WebDataBatchScrapeOperator, {"urls": ["https://example.com/"]}),
    (WebDataCrawlOperator, {"url": "https://example.com/"}),
    (WebDataExtractOperator, {"prompt": "p"}),
    (WebDataAgentOperator, {"prompt": "p"}),
]
CLASSES = [operator for operator, _ in OPERATORS]


REFUSED = {
    "wait_by": ({"wait_by": "mail"}, "wait_by must be one of auto, webhook, polling"),
    "poll_interval": ({"poll_interval": 0.5}, "poll_interval must be a number of seconds, at least 1"),
    "safety_poll": ({"safety_poll": "1 h"}, "safety_poll must be a number of seconds"),
    "wait_timeout": ({"wait_timeout": 0}, "wait_timeout must be seconds"),
    "ratio": ({"max_error_ratio": 1.5}, "max_error_ratio: must be a number of at least 0 and at most 1"),
    "ratio that is no number": ({"max_error_ratio": float("nan")}, "max_error_ratio"),
    "output": ({"output": "/tmp/pages.csv"}, "jsonl"),
    "unknown": ({"wait_for_completon": True}, "wait_for_completon"),
}


@pytest.mark.parametrize(("more", "words"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize(("operator", "required"), OPERATORS)
def test_contradictions_fail_while_the_dag_is_read(
    operator: Any, required: Any, more: Any, words: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        operator(task_id="t", **required, **more)


@pytest.mark.rule("crawl-credit-check")
def test_a_crawl_has_a_limit() -> None:
    assert WebDataCrawlOperator(task_id="t", url="u").limit == 100
    with pytest.raises(ValueError, match="limit must be given"):
        WebDataCrawlOperator(task_id="t", url="u", limit=None)  # type: ignore[arg-type]


def test_dags_survive_serialization() -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    with DAG("d", schedule=None) as dag:
        for number, (operator, required) in enumerate(OPERATORS):
            operator(task_id=f"t{number}", **required, wait_timeout=timedelta(hours=1))
        WebDataBatchScrapeOperator.partial(task_id="m", formats=["links"]).expand(urls=[["a"], ["b"]])
        WebDataJobSensor(task_id="s", kind="crawl", job_id="{{ 1 }}")
    restored = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    assert set(restored.task_dict) == {"t0", "t1", "t2", "t3", "m", "s"}


# Events.


@pytest.mark.rule("webhook-events", "webhook-events-steps", "event-job-completed", "event-extract")
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
        "extract": models.ExtractRequest,
        "agent": models.AgentRequest,
    }[kind]
    body = (
        {"url": "https://e.example/"} if kind == "crawl" else {"urls": ["https://e.example/"], "prompt": "p"}
    )
    if kind == "batch_scrape":
        del body["prompt"]
    webhook = {"url": "https://in.example/", "events": asked}
    assert model.model_validate({**body, "webhook": webhook}).to_wire()["webhook"]["events"] == asked


# How a job stands.

STATES = [
    ("scraping", False, True, None),
    ("processing", False, True, None),
    ("a new one", False, True, None),
    (None, False, True, None),
    ("completed", True, True, "done"),
    ("failed", True, False, "failed"),
    ("cancelled", True, False, "failed"),
]


@pytest.mark.rule("job-scraping", "job-completed", "job-failed", "job-cancelled", "job-status")
@pytest.mark.rule("extract-status", "agent-status")
@pytest.mark.parametrize(("state", "over", "alive", "status"), STATES)
def test_states(state: str | None, over: bool, alive: bool, status: str | None) -> None:
    view = JobView("crawl", "j", state, error="why")
    assert (view.is_over, view.is_alive) == (over, alive)
    if status is not None:
        event = view.event("polling")
        assert event["status"] == status
        assert ("error" in event) == (status == "failed")


PROGRESS = [
    ({}, "no state given"),
    ({"status": "scraping", "completed": 0, "total": 3}, "scraping, 0 of 3 pages done"),
    ({"status": "scraping", "completed": 2}, "scraping, 2 of ? pages done"),
    ({"status": "processing", "credits_used": 1.5}, "processing, 1.5 credits used"),
    ({"status": "completed", "credits_used": -1}, "completed"),
]


@pytest.mark.rule("job-counts", "job-credits")
@pytest.mark.parametrize(("fields", "text"), PROGRESS)
def test_progress(fields: dict[str, Any], text: str) -> None:
    assert JobView.of("crawl", "j", SimpleNamespace(**fields)).progress() == text


def test_progress_is_logged_when_it_is_new_and_not_too_often(caplog: pytest.LogCaptureFixture) -> None:
    def logged(every: float) -> list[str]:
        caplog.clear()
        log = ProgressLog(logging.getLogger("p"), every)
        with caplog.at_level(logging.INFO, "p"):
            for done in (0, 0, 1, 2):
                log.update(JobView("crawl", "j", "scraping", done, 2))
            log.update(JobView("crawl", "j", "completed", 2, 2))
            log.update(JobView("crawl", "j", "completed", 2, 2))
        return [re.sub(r"Crawl j: (\w+), (\d).*", r"\1 \2", record.getMessage()) for record in caplog.records]

    assert logged(0.0) == ["scraping 0", "scraping 1", "scraping 2", "completed 2"]
    assert logged(3600.0) == ["scraping 0", "completed 2"], "the end is logged in any case"


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
    assert (found.count, found.succeeded) == (bad, kinds.count("good"))
    assert len(found.pages) == min(bad, MOST_LISTED)
    assert found.ratio == (bad / len(kinds) if bad else 0.0)


@pytest.mark.parametrize("document", [{}, {"metadata": None}, {"metadata": {"statusCode": "200"}}])
def test_a_document_that_says_little_is_good(document: dict[str, Any]) -> None:
    found = PageErrors()
    found.add_document(document)
    assert (found.count, found.succeeded) == (0, 1)


TEXTS = [
    (None, []),
    ("https://a.example/", ["https://a.example/"]),
    (["a", 1], ["a", "1"]),
    (("a",), ["a"]),
]


@pytest.mark.parametrize(("value", "expected"), TEXTS)
def test_texts(value: Any, expected: list[str]) -> None:
    assert texts(value) == expected


@pytest.mark.parametrize(
    ("count", "text"), [(0, ""), (2, "0, 1"), (10, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"), (12, "9 and 2 more")]
)
def test_first_few(count: int, text: str) -> None:
    assert first_few([str(number) for number in range(count)]).endswith(text)


# Identity.

RUN_START = datetime(2026, 3, 1, tzinfo=timezone.utc)


def identity(**more: Any) -> JobIdentity:
    fields = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, "max_tries": 2, "try_number": 1}
    start = more.pop("start", RUN_START)
    context: Any = {
        "ti": SimpleNamespace(**{**fields, **more}),
        "dag_run": SimpleNamespace(start_date=start),
    }
    return JobIdentity.of(context, Intent(context, "k"))


@pytest.mark.parametrize(
    "other",
    [
        {"dag_id": "e"},
        {"run_id": "s"},
        {"task_id": "u"},
        {"map_index": 0},
        {"max_tries": 3},
        {"start": RUN_START + timedelta(microseconds=1)},
    ],
)
def test_another_task_has_other_keys(other: dict[str, Any]) -> None:
    one, two = identity(), identity(**other)
    assert one.key("s", 0) != two.key("s", 0)
    assert one.idempotency_key(0) != two.idempotency_key(0)


@pytest.mark.rule("idempotency-key")
def test_every_attempt_has_the_same_keys() -> None:
    one, two = identity(), identity(try_number=2)
    assert one.key("s", 0) == two.key("s", 0)
    assert one.idempotency_key(1) == two.idempotency_key(1)


def test_keys_tell_secrets_and_generations_apart() -> None:
    one = identity()
    keys = {one.key(secret, generation) for secret in ("a", "b") for generation in range(3)}
    assert len(keys) == 6
    assert all(map(is_key, keys))
    assert len({UUID(one.idempotency_key(generation)) for generation in range(3)}) == 3


def test_outside_of_a_task_run_nothing_is_shared() -> None:
    context: Any = {}
    one, two = (JobIdentity.of(context, Intent(context, "k")) for _ in range(2))
    assert one.key("s", 0) != two.key("s", 0)
