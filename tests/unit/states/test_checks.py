# SPDX-License-Identifier: Apache-2.0
"""The meaning of a check for a wait: every state with every choice, and the order of decisions."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api.models import MonitorCheck, MonitorCheckPage
from airflow_provider_webdata.states.check_queue import CheckQueue
from airflow_provider_webdata.states.checks import (
    CheckCriteria,
    Decision,
    finished_at,
    has_changes,
    is_change,
    is_meaningful_change,
    is_over,
    outcome_of,
)
from airflow_provider_webdata.states.outcomes import CheckOutcome

T0 = datetime(2026, 1, 1, tzinfo=timezone.utc)


def check(
    check_id: str = "c", status: str | None = "completed", end: float | None = 0, **more: Any
) -> MonitorCheck:
    finished_at = None if end is None else (T0 + timedelta(seconds=end)).isoformat()
    return MonitorCheck.model_validate({"id": check_id, "status": status, "finishedAt": finished_at, **more})


@pytest.mark.rule("check-running", "check-completed", "check-partial", "check-failed")
@pytest.mark.rule("check-skipped-overlap", "check-skipped-no-credits", "check-over")
@pytest.mark.parametrize(
    "status,end,over",
    [
        ("queued", None, False),
        ("running", None, False),
        (None, None, False),
        ("completed", None, True),
        ("partial", None, True),
        ("failed", None, True),
        ("skipped_overlap", None, True),
        ("skipped_no_credits", None, True),
        ("a-state-of-tomorrow", None, False),
        ("a-state-of-tomorrow", 0, True),
    ],
)
def test_which_states_are_the_end(status: str | None, end: float | None, over: bool) -> None:
    assert is_over(check(status=status, end=end)) is over


CHOICES = {"fail": "failed", "accept": "done", "wait": "wait"}
OF_A_CHOICE = {
    "on_failed": ["failed", "aborted_by_someone"],
    "on_partial": ["partial"],
    "on_skipped": ["skipped_overlap", "skipped_no_credits", "skipped_for_a_new_reason"],
}


@pytest.mark.rule("check-partial", "check-failed", "check-skipped-overlap", "check-skipped-no-credits")
def test_each_choice_decides_its_states_alone() -> None:
    for combination in itertools.product(CHOICES, repeat=3):
        choices: dict[str, Any] = dict(zip(OF_A_CHOICE, combination, strict=True))
        criteria = CheckCriteria(**choices, otherwise="skip")
        for name, states in OF_A_CHOICE.items():
            for state in states:
                error = "boom" if name == "on_failed" else None
                decision = criteria.decide(check(status=state, error=error))
                assert decision.outcome == CHOICES[choices[name]], (choices, state)
        assert {
            criteria.decide(check(status=state)).outcome for state in ("completed", "new_state", None)
        } == {"done"}


@pytest.mark.rule("check-summary", "check-page-status")
@pytest.mark.parametrize(
    "summary,changes,needs_pages",
    [
        (None, False, True),
        ({"changed": 0, "new": 0, "removed": 0, "same": 3}, False, False),
        ({"changed": 1, "new": 0, "removed": 0}, True, True),
        ({"changed": 0, "new": 1, "removed": 0}, True, True),
        ({"changed": 0, "new": 0, "removed": 1}, True, False),
        ({"changed": 1, "new": 1}, True, True),
        ({"changed": 0, "new": 0, "removed": 0, "error": 5}, False, False),
    ],
)
def test_changed_pages(summary: Any, changes: bool, needs_pages: bool) -> None:
    found = check(summary=summary)
    assert has_changes(found) is changes
    assert not CheckCriteria().needs_pages(found)
    for otherwise in ("wait", "skip"):
        changed = CheckCriteria(only_if_changed=True, otherwise=otherwise)  # type: ignore[arg-type]
        assert changed.decide(found).outcome == ("done" if changes else otherwise)
        meaningful = CheckCriteria(only_if_meaningful=True, otherwise=otherwise)  # type: ignore[arg-type]
        assert meaningful.needs_pages(found) is needs_pages
        for judged in (True, False, None):
            assert meaningful.decide(found, meaningful=judged).outcome == ("done" if judged else otherwise)


@pytest.mark.rule("metadata-not-fetched")
@pytest.mark.parametrize(
    ("page", "changed"),
    [
        ({"status": "changed", "statusCode": 200}, True),
        ({"status": "changed", "statusCode": 404, "error": "Not Found"}, True),
        ({"status": "changed", "statusCode": 599, "error": "Network Connect Timeout Error"}, False),
        ({"status": "removed", "error": "gone"}, True),
    ],
)
def test_a_page_that_was_not_fetched_has_not_changed(page: Any, changed: bool) -> None:
    found = MonitorCheckPage.model_validate({**page, "judgment": {"meaningful": True}})
    assert is_change(found) is is_meaningful_change(found) is changed


def test_pages_are_not_read_of_a_check_that_failed() -> None:
    assert not CheckCriteria(only_if_meaningful=True).needs_pages(check(status="failed", error="boom"))


@pytest.mark.parametrize("status", ["skipped_overlap", "failed"])
def test_an_accepted_check_needs_no_changes(status: str) -> None:
    wanted = CheckCriteria(on_skipped="accept", on_failed="accept", only_if_changed=True, otherwise="skip")
    assert wanted.decide(check(status=status, error="x")).outcome == "done"


@pytest.mark.rule("check-judgment")
@pytest.mark.parametrize(
    "judgment,meaningful", [(None, False), ({"meaningful": False}, False), ({"meaningful": True}, True)]
)
def test_meaningful_pages(judgment: Any, meaningful: bool) -> None:
    assert is_meaningful_change(MonitorCheckPage.model_validate({"judgment": judgment})) is meaningful


EVERY = CheckCriteria(on_failed="accept", on_partial="accept", on_skipped="accept")


def drained(queue: CheckQueue, *snapshots: list[MonitorCheck]) -> list[str]:
    """Return the ids of the checks that are decided on, in order, each snapshot after the one before."""
    ids = []
    for checks in snapshots:
        queue.add(checks)
        while queue.head is not None:
            ids.append(queue.head.id)
            queue.decide()
    return ids


@given(
    ends=st.lists(st.integers(-50, 50), max_size=12, unique=True),
    after=st.none() | st.integers(-50, 50),
    order=st.randoms(use_true_random=False),
)
def test_candidates_are_all_that_ended_later_oldest_first(
    ends: list[int], after: int | None, order: Any
) -> None:
    checks = [check(str(end), end=end) for end in ends] + [check("running", "running", None)]
    order.shuffle(checks)
    queue = CheckQueue(EVERY, None if after is None else T0 + timedelta(seconds=after))
    expected = sorted(end for end in ends if after is None or end > after)
    assert drained(queue, checks) == [str(end) for end in expected]


def test_checks_that_ended_in_the_same_moment() -> None:
    checks = [check("a", end=1), check("b", end=0), check("c", end=1)]
    assert drained(CheckQueue(EVERY, T0 - timedelta(seconds=1)), checks) == ["b", "a", "c"]
    assert drained(CheckQueue(EVERY, T0), checks) == ["a", "c"], "one that ended just then is known"


def test_the_queue_tells_the_criteria_what_was_judged() -> None:
    for judged, outcome in ((True, "done"), (False, "skip"), (None, "skip")):
        queue = CheckQueue(CheckCriteria(only_if_meaningful=True, otherwise="skip"), None)
        queue.add([check("a", end=1, summary={"changed": 1})])
        assert queue.needs_pages
        assert queue.decide(meaningful=judged).outcome == outcome


def test_how_long_a_late_check_counts() -> None:
    """Ten minutes before the one that ended last, and never again before that."""
    queue = CheckQueue(EVERY, None)
    assert drained(queue, [check("b", end=20 * MINUTE)], [check("late", end=15 * MINUTE)]) == ["b", "late"]
    assert queue.after == T0 + timedelta(minutes=10)
    assert queue.was_decided("b")
    assert drained(queue, [check("c", end=30 * MINUTE)]) == ["c"]
    assert queue.was_decided("b"), "it ended exactly so long before"
    assert not queue.was_decided("late")


@given(ends=st.lists(st.integers(-50, 50), min_size=1, max_size=12, unique=True), which=st.integers(0, 11))
def test_a_named_check_comes_first_and_then_what_ended_after_it(ends: list[int], which: int) -> None:
    named = ends[which % len(ends)]
    checks = [check(str(end), end=end) for end in ends]
    queue = CheckQueue(EVERY, T0 + timedelta(days=1), str(named))
    later = [str(end) for end in sorted(ends) if end > named]
    assert drained(queue, checks) == [str(named), *later]
    assert drained(CheckQueue(EVERY, None, "another"), checks) == []


MINUTE = 60


@pytest.mark.parametrize(
    "check_id,snapshots,decided",
    [
        (None, [{"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}], "abc"),
        (None, [{"b": 20 * MINUTE}, {"a": 11 * MINUTE, "b": 20 * MINUTE}], "ba"),
        (None, [{"b": 20 * MINUTE}, {"a": 9 * MINUTE, "b": 20 * MINUTE}], "b"),
        ("b", [{"b": 20 * MINUTE}, {"a": 19 * MINUTE, "b": 20 * MINUTE, "c": 21 * MINUTE}], "bc"),
        ("b", [{"a": 1, "c": 3}, {"a": 1, "b": 2, "c": 3}], "bc"),
    ],
    ids=["each once", "a late one", "too late", "none from before the named one", "waits for the named one"],
)
def test_each_check_is_decided_on_once(check_id: str | None, snapshots: list[Any], decided: str) -> None:
    queue = CheckQueue(EVERY, T0, check_id)
    found = [[check(name, end=end) for name, end in snapshot.items()] for snapshot in snapshots]
    assert drained(queue, *found) == list(decided)


@pytest.mark.parametrize(
    "fields,expected",
    [
        ({"finishedAt": "2026-01-01T00:00:02Z", "updatedAt": "2026-01-01T00:00:09Z"}, 2),
        ({"updatedAt": "2026-01-01T00:00:03Z"}, 3),
        ({"createdAt": "2026-01-01T00:00:04Z"}, 4),
        ({"finishedAt": "soon"}, None),
        ({"finishedAt": "0001-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:02Z"}, 2),
    ],
)
def test_when_a_check_ended(fields: Any, expected: int | None) -> None:
    found = finished_at(MonitorCheck.model_validate({"id": "c", "status": "completed", **fields}))
    assert found == (None if expected is None else T0 + timedelta(seconds=expected))


@pytest.mark.parametrize(
    "decision,message",
    [
        (Decision("done"), ""),
        (Decision("done", "it was skipped"), "it was skipped"),
        (Decision("skip", "no page"), "no page"),
        (Decision("failed", "it failed: boom"), "check c of monitor m: it failed: boom"),
    ],
)
def test_outcomes(decision: Decision, message: str) -> None:
    outcome = outcome_of(check(), decision, monitor_id="m", via="polling")
    assert outcome.message == message
    event = outcome.serialize()
    common = ("status", "check_id", "monitor_id", "check_status", "via")
    assert [event[name] for name in common] == [decision.outcome, "c", "m", "completed", "polling"]
    assert CheckOutcome.deserialize({**event, "field_of_a_newer_release": 1}) == outcome


@pytest.mark.parametrize(
    "given,word",
    [
        (
            {"on_failed": "ignore"},
            r"^on_failed must be one of fail, accept, wait \(given: 'ignore'\)\.\sCorrect the argument \(WD-003\)",
        ),
        ({"on_partial": "ignore"}, "^on_partial must be one of"),
        ({"on_skipped": "ignore"}, "^on_skipped must be one of"),
        ({"otherwise": "fail"}, r"^otherwise must be one of wait, skip \(given: 'fail'\)\.\s"),
        (
            {"only_if_new": True, "after_all": 1},
            "does not support after_all, only_if_new of CheckCriteria, only on_failed, on_partial, on_skipped, "
            "only_if_changed, only_if_meaningful, otherwise; install the release that deferred",
        ),
    ],
)
def test_bad_criteria_are_named(given: Any, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        CheckCriteria.deserialize(given)


def test_what_is_stored_of_criteria() -> None:
    """Only what differs from the defaults, which therefore never change."""
    assert CheckCriteria().serialize() == {}
    assert CheckCriteria.deserialize({}) == CheckCriteria("fail", "accept", "wait", False, False, "wait")
    given = {"on_failed": "wait", "only_if_changed": True, "otherwise": "skip"}
    assert CheckCriteria.deserialize(given).serialize() == given


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="after must have a time zone"):
        CheckQueue(EVERY, datetime(2026, 1, 1))


@pytest.mark.parametrize(
    ("criteria", "status", "error", "outcome", "reason"),
    [
        ({"on_skipped": "fail"}, "skipped_overlap", None, "failed", "it was skipped (skipped_overlap)"),
        ({"on_skipped": "accept"}, "skipped_no_credits", "x", "done", "it was skipped (skipped_no_credits)"),
        ({}, "skipped_overlap", "busy", "wait", "it was skipped (skipped_overlap): busy"),
        ({"on_partial": "fail"}, "partial", None, "failed", "some of its pages failed (partial)"),
        ({"on_partial": "wait"}, "partial", "two", "wait", "some of its pages failed (partial): two"),
        ({}, "partial", "two", "done", ""),
        ({}, "failed", "no credits", "failed", "it failed: no credits"),
        ({"on_failed": "wait"}, "failed", None, "wait", "it failed"),
        ({"on_failed": "accept"}, "failed", "x", "done", "it failed"),
        ({}, "a-state-of-tomorrow", "x", "failed", "it failed: x"),
        ({}, "a-state-of-tomorrow", None, "done", ""),
        ({}, None, "x", "failed", "it failed: x"),
        ({}, "completed", "x", "done", ""),
        ({"only_if_changed": True}, "completed", None, "wait", "no page is changed, new, or removed"),
        (
            {"only_if_changed": True, "otherwise": "skip"},
            "partial",
            None,
            "skip",
            "no page is changed, new, or removed",
        ),
        ({"only_if_meaningful": True}, "completed", None, "wait", "no change was judged meaningful"),
    ],
)
def test_the_reason_in_words(
    criteria: dict[str, Any], status: str | None, error: str | None, outcome: str, reason: str
) -> None:
    decision = CheckCriteria(**criteria).decide(check(status=status, error=error))
    assert (decision.outcome, decision.reason) == (outcome, reason)
