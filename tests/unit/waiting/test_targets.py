# SPDX-License-Identifier: Apache-2.0
"""Targets: what they subscribe to, how often they poll, and what ends their wait."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_provider_webdata.api.models import MonitorCheck
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.hooks.connection import settings_of
from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.states.check_queue import CheckQueue
from airflow_provider_webdata.states.checks import CheckCriteria
from airflow_provider_webdata.states.jobs import JobView
from airflow_provider_webdata.waiting.check_target import CLOCK_TOLERANCE, CheckTarget
from airflow_provider_webdata.waiting.job_target import JobTarget
from airflow_provider_webdata.waiting.subscriptions import Subscription
from airflow_provider_webdata.waiting.target import Judge, Judgment, Look
from tests.support.service import connection_text

T0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
INBOX = {"webhook_url": "https://airflow.example", "webhook_secret": "a-secret-that-is-long"}
LOG = logging.getLogger(__name__)
POLL = "polling the service every 30 s"
SAFETY = "by webhook, and polling the service every 300 s in case a delivery is lost"
CHECK_SAFETY = SAFETY.replace("300", "1500")


def settings(receives: bool) -> Any:
    extra = INBOX if receives else {}
    return settings_of(Connection.from_json(connection_text("http://x", **extra), conn_id="c"))


def delivery(number: int = 1, **fields: Any) -> Delivery:
    given = {"received_at": T0.isoformat(), "event": "crawl.completed", "job_id": "j", **fields}
    return Delivery(id=number, position=number, size=1, **given)


@pytest.mark.rule("event-none-for-failure")
@pytest.mark.parametrize(
    ("listens", "receives", "reports", "how", "interval"),
    [
        (True, False, None, POLL, 30.0),
        (True, True, False, POLL, 30.0),
        (False, True, True, POLL, 30.0),
        (True, True, True, SAFETY, 300.0),
        (True, True, None, f"by webhook if the job reports to this Airflow, and {POLL}", 30.0),
    ],
    ids=["no-inbox", "no-webhook", "worker", "reports", "maybe"],
)
def test_how_the_end_of_a_job_is_detected(
    listens: bool, receives: bool, reports: bool | None, how: str, interval: float
) -> None:
    target = JobTarget("crawl", "j", 30.0, LOG, reports=reports)
    text, subscriptions = target.begin(settings(receives), listens=listens)
    assert (text, target.interval(None, inbox_answers=True)) == (how, interval)  # type: ignore[arg-type]
    assert target.interval(None, inbox_answers=False) == 30.0  # type: ignore[arg-type]
    assert bool(subscriptions) == (how != POLL)
    for subscription in subscriptions:
        ends = {"crawl.completed": True, "crawl.failed": True, "crawl.page": False, "crawl.started": False}
        for event, fits in ends.items():
            assert subscription.fits(delivery(event=event), None) is fits, event
        assert not subscription.fits(delivery(job_id="another"), None)
        assert not subscription.fits(delivery(event="batch_scrape.completed"), None)


@pytest.mark.parametrize(
    ("listens", "how", "intervals"),
    [
        (False, POLL, (30.0, 30.0)),
        (True, f"{CHECK_SAFETY} if the monitor reports to this Airflow, else {POLL}", (1500.0, 30.0)),
    ],
)
def test_how_the_end_of_a_check_is_detected(listens: bool, how: str, intervals: tuple[float, float]) -> None:
    target = CheckTarget("m", CheckQueue(CheckCriteria(), T0), 30.0, LOG)
    text, subscriptions = target.begin(settings(receives=True), listens=listens)
    reporting, silent = (SimpleNamespace(reports_to=lambda _, it=it: it) for it in (True, False))
    for inbox_answers, expected in ((True, intervals), (False, (30.0, 30.0))):
        found = tuple(target.interval(it, inbox_answers=inbox_answers) for it in (reporting, silent))  # type: ignore[arg-type]
        assert (text, found) == (how, expected)
    assert len(subscriptions) == listens
    for subscription in subscriptions:
        # The inbox's clock may be behind.
        assert (subscription.monitor_id, subscription.since) == ("m", T0 - CLOCK_TOLERANCE)


@pytest.mark.rule("delivery-order")
def test_deliveries_count_for_a_service_whose_clock_is_ahead() -> None:
    """The wait begins after a check that ended, by the service's clock, in the future."""
    now = datetime.now(timezone.utc)
    target = CheckTarget("m", CheckQueue(CheckCriteria(), now + timedelta(hours=1)), 30.0, LOG)
    _, subscriptions = target.begin(settings(receives=True), listens=True)
    assert [subscription.since < now for subscription in subscriptions] == [True]


def test_a_delivery_of_a_job_is_a_hint(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    target = JobTarget("crawl", "j", 30.0, LOG)
    assert target.receive(delivery()) == Look("j")
    assert target.receive(delivery(2)) is None, "one poll suffices"
    target.receive(JobView("crawl", "j", "scraping"))
    assert target.decide() is None, "the service decides, not the delivery"
    target.receive(JobView("crawl", "j", "failed"))
    outcome = target.outcome(target.decide())  # type: ignore[arg-type]
    assert (outcome.status, outcome.via, outcome.job_id) == ("failed", "webhook", "j")
    assert "Crawl j: scraping" in caplog.text
    assert "Crawl j: failed" in caplog.text


@pytest.mark.parametrize(("used", "limit", "over"), [(5.5, 5.0, 5.5), (5.0, 5.0, None), (None, 0.0, None)])
def test_a_job_over_its_credit_limit(used: float | None, limit: float, over: float | None) -> None:
    target = JobTarget("crawl", "j", 30.0, LOG, credit_limit=limit)
    target.receive(JobView("crawl", "j", "scraping", credits_used=used))
    view = target.decide()
    assert (view is None) == (over is None)
    if view is not None:
        outcome = target.outcome(view)
        assert (outcome.status, outcome.job_status, outcome.over_limit) == ("done", "scraping", over)


def check(name: str, seconds: float, **more: Any) -> MonitorCheck:
    ended = (T0 + timedelta(seconds=seconds)).isoformat()
    return MonitorCheck.model_validate({"id": name, "status": "completed", "finishedAt": ended, **more})


@pytest.mark.rule("delivery-replay", "check-judgment")
def test_a_check_is_decided_once_and_judged_first() -> None:
    criteria = CheckCriteria(only_if_meaningful=True)
    target = CheckTarget("m", CheckQueue(criteria, T0), 30.0, LOG)
    assert target.receive(delivery(job_id="a")) == Look("a")
    assert target.receive(delivery(2, job_id="a")) is None
    target.receive([check("a", 1, summary={"changed": 1}), check("b", 2, summary={"changed": 1})])
    assert target.decide() == Judge("a")
    target.receive(Judgment("a", is_meaningful=False))
    assert target.decide() == Judge("b")
    assert target.receive(delivery(3, job_id="a")) is None, "a late repetition of a decided check"
    assert target.remarks() == ["last skipped: check a, no change was judged meaningful"]
    target.receive(Judgment("b", is_meaningful=True))
    outcome = target.outcome(target.decide())  # type: ignore[arg-type]
    assert (outcome.status, outcome.check_id, outcome.monitor_id, outcome.via) == (
        "done",
        "b",
        "m",
        "polling",
    )


FITTING: dict[str, dict[str, Any]] = {
    "key": {"key": "k"},
    "event with its operation": {"key": "k", "events": ("crawl.completed",)},
    "event without its operation": {"key": "k", "events": ("completed",)},
    "one of several events": {"events": ("agent.failed", "crawl.completed")},
    "monitor": {"monitor_id": "m"},
    "all arguments": {"key": "k", "job_id": "j", "monitor_id": "m", "events": ("completed",)},
    "anything": {},
    "later": {"since": T0 - timedelta(seconds=1)},
}
NOT_FITTING: dict[str, dict[str, Any]] = {
    "another key": {"key": "k2"},
    "another event": {"key": "k", "events": ("crawl.page",)},
    "the same name of another operation": {"key": "k", "events": ("batch_scrape.completed",)},
    "another job": {"key": "k", "job_id": "j2"},
    "another monitor": {"key": "k", "monitor_id": "m2"},
    "too early": {"key": "k", "since": T0},
}


@pytest.mark.rule("event-names")
def test_the_deliveries_of_a_subscription() -> None:
    sent = delivery(key="k", monitor_id="m")
    for cases, fits in ((FITTING, True), (NOT_FITTING, False)):
        for case, given in cases.items():
            assert Subscription(**given).fits(sent, moment(sent.received_at)) is fits, case
    for value in ("", "x" * 201, "a\nb"):
        with pytest.raises(ValueError, match="job_id must be 1 to"):
            Subscription(job_id=value)


def test_deliveries_that_come_long_after_their_checks_do_not_add_up() -> None:
    target = CheckTarget("m", CheckQueue(CheckCriteria(), T0), 30.0, LOG)
    for number in range(300):
        # As a monitor that runs every 15 minutes, and whose deliveries arrive with the last attempt.
        end = T0 + timedelta(minutes=15 * (number + 1))
        target.receive([MonitorCheck(id=f"c{number}", status="completed", finished_at=end.isoformat())])
        assert target.decide()
        target.receive(delivery(number, job_id=f"c{number - 1}", event="monitor.check.completed"))
    assert len(target._hints or ()) <= 100
