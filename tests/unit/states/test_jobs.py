# SPDX-License-Identifier: Apache-2.0
"""The state of a job as text, as an event, and in the log."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS, JobKind, checked_kind
from airflow_provider_webdata.states import jobs
from airflow_provider_webdata.states.jobs import (
    JobView,
    ProgressLog,
    events_to_ask_for,
    first_few,
    last_events,
    name_of,
)
from airflow_provider_webdata.states.outcomes import JobOutcome


@pytest.mark.parametrize(
    ("kind", "name", "asked", "last"),
    [
        ("crawl", "crawl", ["started", "completed", "failed"], ("crawl.completed", "crawl.failed")),
        (
            "batch_scrape",
            "batch scrape",
            ["started", "completed", "failed"],
            ("batch_scrape.completed", "batch_scrape.failed"),
        ),
        (
            "agent",
            "agent run",
            ["started", "completed", "failed", "cancelled"],
            ("agent.completed", "agent.failed", "agent.cancelled"),
        ),
    ],
)
def test_kinds(kind: JobKind, name: str, asked: list[str], last: tuple[str, ...]) -> None:
    assert checked_kind(kind) == kind
    assert (name_of(kind), events_to_ask_for(kind), last_events(kind)) == (name, asked, last)


@pytest.mark.parametrize("given", ["batch", "extract", "", None, 3])
def test_unknown_kind(given: Any) -> None:
    words = f"kind must be one of {', '.join(ALL_JOB_KINDS)} (given: {given!r})"
    with pytest.raises(ArgumentError) as caught:
        checked_kind(given)
    assert str(caught.value).startswith(words)


def test_view_of_a_status() -> None:
    status = SimpleNamespace(
        status="failed", completed=3, total=9, credits_used=4.5, error={"message": "no"}, warning="slow"
    )
    assert JobView.of("crawl", "j", status) == JobView("crawl", "j", "failed", 3, 9, 4.5, "no", "slow")
    assert JobView.of("agent", "j", SimpleNamespace()) == JobView("agent", "j")


@pytest.mark.parametrize(
    ("used", "known"), [(-1, None), (0, 0), (2, 2), (2.5, 2.5), ("3", None), (None, None)]
)
def test_credits(used: Any, known: float | None) -> None:
    assert JobView.of("crawl", "j", SimpleNamespace(credits_used=used)).credits_used == known


@pytest.mark.rule("job-scraping", "job-completed", "job-failed", "job-cancelled", "job-status")
@pytest.mark.rule("agent-status")
@pytest.mark.parametrize(
    ("state", "is_over", "is_alive"),
    [
        ("scraping", False, True),
        ("completed", True, True),
        ("failed", True, False),
        ("cancelled", True, False),
        ("something new", False, True),
        (None, False, True),
    ],
)
def test_states(state: str | None, is_over: bool, is_alive: bool) -> None:
    view = JobView("crawl", "j", state)
    assert (view.is_over, view.is_alive) == (is_over, is_alive)


@pytest.mark.rule("job-counts", "job-credits")
@pytest.mark.parametrize(
    ("view", "words"),
    [
        (JobView("crawl", "j"), "no state given"),
        (JobView("crawl", "j", "scraping"), "scraping"),
        (JobView("crawl", "j", "scraping", 0, 7), "scraping, 0 of 7 pages done"),
        (JobView("crawl", "j", "scraping", 3), "scraping, 3 of ? pages done"),
        (JobView("crawl", "j", "scraping", None, 7, 2.0), "scraping, 2 credits used"),
        (JobView("crawl", "j", "completed", 7, 7, 7.5), "completed, 7 of 7 pages done, 7.5 credits used"),
    ],
)
def test_progress(view: JobView, words: str) -> None:
    assert view.progress() == words


@pytest.mark.parametrize(
    ("view", "status", "message"),
    [
        (JobView("crawl", "j", "completed"), "done", None),
        (JobView("crawl", "j", "failed", error="blocked"), "failed", "crawl j failed: blocked"),
        (
            JobView("batch_scrape", "j", "failed"),
            "failed",
            "batch scrape j failed: the service gives no reason",
        ),
        (JobView("agent", "j", "cancelled", error="x"), "failed", "agent run j was canceled"),
    ],
)
def test_outcomes(view: JobView, status: str, message: str | None) -> None:
    expected = {
        "status": status,
        "kind": view.kind,
        "job_id": "j",
        "job_status": view.state,
        "via": "webhook",
    }
    stored = view.outcome("webhook").serialize()
    assert stored == expected | ({"message": message} if message else {})
    assert JobOutcome.deserialize(stored) == view.outcome("webhook")


def test_news_is_logged_at_a_pace(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: now))
    caplog.set_level(logging.INFO)
    progress = ProgressLog(logging.getLogger("task"))

    def told(done: int, state: str = "scraping", after: float = 0.0) -> list[str]:
        nonlocal now
        now += after
        caplog.clear()
        progress.update(JobView("batch_scrape", "j", state, done, 9))
        return caplog.messages

    assert told(1) == ["Batch scrape j: scraping, 1 of 9 pages done"]
    assert told(2, after=9.9) == [], "not too often"
    assert told(2, after=0.1) == ["Batch scrape j: scraping, 2 of 9 pages done"]
    assert told(2, after=1000) == [], "nothing new"
    assert told(3) == ["Batch scrape j: scraping, 3 of 9 pages done"]
    assert told(9, "completed") == ["Batch scrape j: completed, 9 of 9 pages done"], "the end is always told"
    assert told(9, "completed") == []


def test_every_change_may_be_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    progress = ProgressLog(logging.getLogger("task"), every=0)
    for done in (1, 2, 3):
        progress.update(JobView("crawl", "j", "scraping", done))
    assert len(caplog.messages) == 3


@pytest.mark.parametrize(
    ("count", "most", "words"),
    [
        (0, 10, ""),
        (2, 10, "0, 1"),
        (10, 10, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"),
        (11, 10, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 1 more"),
        (5, 2, "0, 1 and 3 more"),
    ],
)
def test_first_few(count: int, most: int, words: str) -> None:
    items = [str(number) for number in range(count)]
    assert first_few(items, most) == words
    if most == 10:
        assert first_few(items) == words
