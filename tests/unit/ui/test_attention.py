# SPDX-License-Identifier: Apache-2.0
"""What needs attention: one row for each cause, with its extent and the next step."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_webdata.airflow_db.tasks import TaskName
from airflow_provider_webdata.inbox_server.storage.refusals import RefusedDeliveries
from airflow_provider_webdata.ui.attention import (
    Cause,
    TroubledSummary,
    causes_of,
    late_wait,
    refused_concerns,
    task_concern,
)
from airflow_provider_webdata.ui.next_steps import argument_line
from airflow_provider_webdata.ui.tasks import Failure, TaskSummary, WaitingTask

NOW = datetime(2026, 11, 30, tzinfo=timezone.utc)
CRAWL = "WebDataCrawlOperator"


def failed(dag_id: str, task_id: str = "crawl", **failure: Any) -> TaskSummary:
    """Return a failed task that spent 4 credits."""
    return TaskSummary(
        TaskName(dag_id, "run", task_id),
        "failed",
        CRAWL,
        ended=NOW,
        conn_id="webdata_default",
        pushed={"failure": failure, "credits": {"used": 4}},
    )


def of_site(dag_id: str, status: int | None, *urls: str, task_id: str = "crawl") -> TaskSummary:
    """Return a task whose first failed pages are these."""
    reasons = [{"url": url, "error": None, "code": None, "status": status} for url in urls]
    return failed(dag_id, task_id, message="2 of 9 pages failed", code="WD-033", fix="Fix", reasons=reasons)


def causes(*tasks: TaskSummary) -> list[Cause]:
    found = [task_concern(TroubledSummary(task, False)) for task in tasks]
    return causes_of(one for one in found if one is not None)


def test_tasks_of_one_status_and_host_are_one_cause() -> None:
    docs = "https://docs.example/a", "https://docs.example/b"
    found = causes(
        of_site("shop", 403, *docs),
        of_site("shop", 403, *docs, task_id="other"),
        of_site("news", 403, docs[0]),
        of_site("news", 429, *docs),
        of_site("news", 403, docs[0], "https://blog.example/"),
        of_site("news", None, docs[0]),
    )
    assert [(one.newest.reason, one.extent) for one in found] == [
        ("HTTP 403 at docs.example", "3 tasks, 2 DAGs, 12 credits spent"),
        ("HTTP 429 at docs.example", "4 credits spent"),
        ("HTTP 403 at several sites", "4 credits spent"),
        ("Pages failed at docs.example", "4 credits spent"),
    ]
    assert found[0].newest.detail == "2 of 9 pages failed"


def test_what_tasks_share_is_their_cause() -> None:
    """A connection, a site, or a reason without a code; else, each task has its own."""
    job = "07ff41d3-0000-4000-8000-000000000001"
    refused = "Crawl {} failed: The site refused every request: HTTP 403"
    found = causes(
        *(failed(dag_id, message=f"{dag_id}: the key is invalid", code="WD-401") for dag_id in "abc"),
        *(failed(dag_id, message="No reason was recorded") for dag_id in "ab"),
        *(failed(dag_id, message="may exceed credit_limit", code="WD-034") for dag_id in "ab"),
        *(
            replace(
                failed(dag_id, message=refused.format(job[:-1] + dag_id), code="WD-031"),
                arguments={"url": "https://docs.example/"},
            )
            for dag_id in "ab"
        ),
    )
    assert [
        (one.newest.reason.partition(": ")[2] or one.newest.reason, len(one.affected)) for one in found
    ] == [
        ("the key is invalid", 3),
        ("No reason was recorded", 2),
        ("may exceed credit_limit", 1),
        ("may exceed credit_limit", 1),
        ("HTTP 403 at docs.example", 2),
    ]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("WD-022", "scrape: HTTP 404, SCRAPE_NO_CACHED_DATA: no cached page."),
        ("WD-028", "scrape: HTTP 500, SCRAPE_DNS_RESOLUTION_ERROR: the host does not resolve."),
    ],
)
def test_the_status_of_the_services_response_is_none_of_the_site(code: str, message: str) -> None:
    task = replace(failed("shop", message=message, code=code), arguments={"url": "https://docs.example/"})
    assert [one.newest.reason for one in causes(task)] == [message]


def test_recovered_tasks_do_not_count_with_those_that_need_a_person() -> None:
    tasks = [of_site(dag_id, 403, "https://docs.example/") for dag_id in ("shop", "news")]
    found = causes_of(
        concern
        for has_recovered, task in zip((True, False), tasks, strict=True)
        if (concern := task_concern(TroubledSummary(task, has_recovered))) is not None
    )
    assert [(one.newest.has_recovered, one.where) for one in found] == [
        (False, "news.crawl"),
        (True, "shop.crawl"),
    ]


@pytest.mark.parametrize("reasons", ["text", [1], [{"url": "https://[", "status": "403"}], [{"url": 1}]])
def test_reasons_of_any_task(reasons: Any) -> None:
    """Any task may push an XCom of that name."""
    task = failed("shop", message="failed", code="WD-033", reasons=reasons)
    assert [one.newest.reason for one in causes(task)] == ["failed"]


def test_a_task_is_cleared_only_if_nothing_must_be_done_before() -> None:
    ready, held = causes(
        failed("shop", message="failed", code="WD-500", fix="Try again later."),
        failed("shop", message="lost", code="WD-036", fix="Find the job.", inspect_first=True),
    )
    assert (ready.cleared_at, held.cleared_at) == ("/dags/shop/runs/run/tasks/crawl", "")


@pytest.mark.parametrize(
    ("code", "accepted_with", "arguments", "line"),
    [
        ("WD-033", {"max_error_ratio": 0.13}, {}, "max_error_ratio=0.13"),
        ("WD-033", {"max_error_ratio": 0.98}, {}, ""),
        ("WD-034", {"credit_limit": 1234567.5}, {}, "credit_limit=1234567.5"),
        ("WD-067", {"max_credits_per_month": 720}, {}, "max_credits_per_month=720"),
        ("WD-068", {}, {"max_credits": 200}, "max_credits=400"),
        ("WD-068", {}, {"max_credits": "{{ params.most }}"}, ""),
        ("WD-408", {}, {"timeout": 200_000}, "timeout=300000"),
        ("WD-408", {}, {"timeout": 300_000}, ""),
        # The default differs between operations, and some have no such argument.
        ("WD-408", {}, {"timeout": None}, ""),
        ("WD-408", {}, {"url": "https://docs.example/"}, ""),
        # Seconds, of which 300 is the most.
        ("WD-408", {}, {"timeout": 200}, ""),
        ("WD-401", {}, {}, ""),
        # Any task may push an XCom of that name.
        ("", {"credit_limit": "4; rm", "max_error_ratio": float("nan"), "other": 4}, {}, ""),
    ],
)
def test_the_argument_to_change(
    code: str, accepted_with: dict[str, Any], arguments: dict[str, Any], line: str
) -> None:
    assert argument_line(Failure("failed", code=code, accepted_with=accepted_with), arguments) == line


def test_a_refused_delivery() -> None:
    refused = RefusedDeliveries("market", "secret wrong", "203.0.113.9", 1, NOW, NOW, False)
    assert [
        one.reason for number in (1, 2) for one in refused_concerns([refused._replace(number=number)])
    ] == [
        "1 delivery with a wrong webhook secret was refused",
        "2 deliveries with a wrong webhook secret were refused",
    ]


def test_the_step_for_a_late_wait_says_what_a_clear_may_bill() -> None:
    wait = WaitingTask(TaskName("shop", "run", "crawl"), "market", "crawl", "by webhook", NOW, NOW, {})
    assert "bill" in late_wait(wait).step


def test_the_newest_cause_is_first() -> None:
    old = of_site("shop", 403, "https://docs.example/")
    new = replace(of_site("news", 500, "https://blog.example/"), ended=NOW + timedelta(hours=1))
    assert [one.newest.reason for one in causes(old, new)] == [
        "HTTP 500 at blog.example",
        "HTTP 403 at docs.example",
    ]
