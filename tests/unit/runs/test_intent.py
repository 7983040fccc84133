"""The record of earlier attempts."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.hooks.ledger import Ledger
from airflow_provider_webdata.runs.intent import Intent
from airflow_provider_webdata.runs.jobs.identity import JobIdentity
from tests.support.direct import StateStore

RUN_START = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)


def context(try_number=1, max_tries=2, retries=2, store=None, reschedules=0):
    ti = SimpleNamespace(
        try_number=try_number,
        max_tries=max_tries,
        dag_id="d",
        task_id="t",
        task=SimpleNamespace(retries=retries),
    )
    made = {"ti": ti, "dag_run": SimpleNamespace(start_date=RUN_START), "task_reschedule_count": reschedules}
    return made if store is None else {**made, "task_state_store": store}


def test_first_attempt_with_a_store():
    store = StateStore()
    intent = Intent(context(store=store), "k")
    assert not intent.began
    assert not intent.is_own("x", RUN_START.isoformat())
    intent.begin({"b", "a"})
    assert store.get("k")["known"] == ["a", "b"]


def test_crash_before_the_id_was_stored():
    """What was not there before is the attempt's own."""
    store = StateStore()
    Intent(context(store=store), "k").begin({"old"})
    later = Intent(context(try_number=2, store=store), "k")
    assert later.began
    assert later.exists
    assert later.started_id is None
    assert later.is_own("new", None)
    assert not later.is_own("old", RUN_START.isoformat())


def test_crash_after_the_id_was_stored():
    store = StateStore()
    first = Intent(context(store=store), "k")
    first.begin(())
    first.started("mine")
    later = Intent(context(try_number=2, store=store), "k")
    assert later.started_id == "mine"
    assert later.is_own("mine", None)
    assert not later.is_own("another that is new", None)


def test_forgotten():
    store = StateStore()
    first = Intent(context(store=store), "k")
    first.begin(())
    first.forget()
    assert store.values == {}
    assert not Intent(context(try_number=2, store=store), "k").began


def test_cleared_task_starts_anew():
    """Clearing raises max_tries, so that the record is of another start."""
    store = StateStore()
    Intent(context(store=store), "k").begin(())
    assert Intent(context(try_number=2, max_tries=2, store=store), "k").began
    assert not Intent(context(try_number=2, max_tries=3, store=store), "k").began


WITHOUT_STORE = [
    # try number, max tries, retries, reschedules, began
    (1, 2, 2, 0, False),
    (2, 2, 2, 0, True),
    (1, 0, 0, 0, False),
    (1, 0, 0, 1, True),
    (2, 3, 2, 0, False),  # cleared after the first attempt
    (3, 3, 2, 0, True),
]


@pytest.mark.parametrize(("number", "most", "retries", "reschedules", "began"), WITHOUT_STORE)
def test_began_without_a_store(number, most, retries, reschedules, began):
    """Airflow 3.2: an earlier attempt may have begun it."""
    assert Intent(context(number, most, retries, reschedules=reschedules), "k").began is began


CREATED = [
    (RUN_START + timedelta(seconds=1), True),
    (RUN_START - timedelta(minutes=1), True),  # the clocks differ
    (RUN_START - timedelta(minutes=5), False),
]


@pytest.mark.parametrize(("created", "own"), CREATED)
def test_own_without_a_store(created, own):
    """Airflow 3.2: what was created since the DAG run began, in the form of Python or of JavaScript."""
    for text in (created.isoformat(), created.strftime("%Y-%m-%dT%H:%M:%S.123Z")):
        assert Intent(context(try_number=2), "k").is_own("x", text) is own


@pytest.mark.parametrize("text", [None, "", "yesterday", "2026-13-45"])
def test_unreadable_date_is_not_own(text):
    assert Intent(context(try_number=2), "k").is_own("x", text) is False


def test_nothing_is_known():
    """Outside of a task run."""
    intent = Intent({}, "k")
    assert not intent.began
    intent.begin(())
    intent.started("x")
    assert intent.started_id == "x"


# A task that is cleared after its retries were lowered, so that `max_tries` stays the same.


@pytest.mark.parametrize(("before", "after"), [(1, 0), (3, 2)])
def test_a_cleared_task_starts_over_though_its_retries_were_lowered(before, after):
    store = StateStore()
    first = context(max_tries=before, retries=before, store=store)
    Intent(first, "k").started("mine")
    Attempt(first).end()
    cleared = context(try_number=2, max_tries=1 + after, retries=after, store=store)
    assert not Intent(cleared, "k").began
    assert Intent(cleared, "k").started_id is None
    one, two = (Attempt(context(max_tries=before, retries=before, store=store)), Attempt(cleared))
    assert JobIdentity.of(one) != JobIdentity.of(two)
    Intent(cleared, "k").started("another")
    two.end()
    # Airflow failed to store its result: its retry belongs to the same round.
    retry = context(try_number=3, max_tries=1 + after, retries=after, store=store)
    assert Intent(retry, "k").started_id == "another"


def test_a_retry_whose_result_airflow_could_not_store_continues():
    store = StateStore()
    first = context(store=store)
    Intent(first, "k").started("mine")
    Attempt(first).end()
    assert Intent(context(try_number=2, store=store), "k").started_id == "mine"


def test_a_killed_attempt_is_continued_though_retries_were_lowered(caplog):
    """Nothing shows whether the task was cleared: it is not billed twice, and the log says so."""
    store = StateStore()
    Intent(context(max_tries=1, retries=1, store=store), "k").started("mine")
    later = Intent(context(try_number=2, max_tries=1, retries=0, store=store), "k")
    assert later.started_id == "mine"
    assert "This counts as a retry" in caplog.text


def test_a_cleared_task_without_a_store_has_another_identity():
    one, two = (JobIdentity.of(Attempt(context(number, 1, retries))) for number, retries in ((1, 1), (2, 0)))
    assert one != two


def test_credits_before_a_task_was_cleared_do_not_count_against_its_limit():
    store = StateStore()
    first = context(max_tries=1, retries=1, store=store)
    Ledger(first).settle("", 5, "scrape", call="1")
    Attempt(first).end()
    cleared = Ledger(context(try_number=2, max_tries=1, retries=0, store=store))
    cleared.settle("", 2, "scrape", call="2")
    assert (cleared.spent, cleared.to_wire()["used"]) == (2, 7)
