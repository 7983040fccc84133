# SPDX-License-Identifier: Apache-2.0
"""Credits that are reserved before calls and settled after them, as numbers and as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.hooks.ledger import Ledger, in_words
from tests.support.direct import StateStore, TaskInstance, context_of

COSTS = (Path(__file__).parents[3] / "docs" / "costs.md").read_text(encoding="utf-8")


def ledger(store: StateStore | None, limit: float | None = 10, *, max_tries: int = 3, **more: Any) -> Ledger:
    """The ledger of another attempt."""
    return Ledger(context_of(TaskInstance(max_tries=max_tries), store), "market", limit, **more)


def test_a_call_without_a_limit_is_stored_before_it_is_sent() -> None:
    """A call of a killed attempt may have been billed."""
    store = StateStore()
    made = ledger(store, None)
    assert made.reserve("a", 1e9)
    assert ledger(store).to_wire()["unknown"] == 1
    made.settle("a", 0, "scrape")
    assert made.reserve("b", 1e9)
    made.settle("b", None, "scrape")
    assert (made.spent, ledger(store).to_wire()["unknown"]) == (0, 1)


def test_ledgers_of_an_attempt_share_its_entries() -> None:
    store = StateStore()
    context = context_of(TaskInstance(max_tries=3), store)
    one, other = Ledger(context, "a", 5, "toolset/a"), Ledger(context, "b", 5, "toolset/b")
    one.reserve("1", 4)
    other.reserve("1", 3)
    one.settle("1", 2, "search")
    other.settle("1", 3, "scrape")
    assert (one.left, other.left) == (3, 2)
    assert one.to_wire()["by_connection"] == {"a": 2, "b": 3}
    assert one.to_wire() == ledger(store).to_wire()


def test_a_call_that_cannot_be_recorded_is_not_reserved() -> None:
    class Broken(StateStore):
        def set(self, key: str, value: Any, **_: Any) -> None:
            raise OSError("no database")

    made = ledger(Broken())
    with pytest.raises(OSError, match="no database"):
        made.reserve("a", 9)
    assert made.left == 10
    # A call that is billed does not fail because of its record.
    made.settle("a", 2, "scrape")
    assert made.spent == 2


def test_a_server_that_does_not_bill_costs_nothing() -> None:
    made = ledger(None, 0, bills=lambda: False)
    assert made.reserve("a", 9)
    made.settle("a", 9, "scrape", call="a", saved=9)
    assert made.reserve("b", 9)
    made.settle("b", None, "scrape")
    told = made.to_wire()
    assert (told["used"], told["unknown"], told["saved"], told["by_connection"]) == (0, 0, 0, {"market": 0})


def test_a_call_with_an_id_is_counted_once() -> None:
    store = StateStore()
    ledger(store).settle("", 5, "scrape", call="1", formats={"page": 1, "json": 4})
    for _ in range(2):
        ledger(store).settle("", 7, "scrape", call="1", formats={"page": 3, "json": 4}, saved=7)
    assert ledger(store).to_wire() == {
        "used": 7,
        "saved": 14,
        "unknown": 0,
        "by_operation": {"scrape": 7},
        "by_format": {"page": 3, "json": 4},
        "by_connection": {"market": 7},
    }


def test_a_known_cost_stays_when_a_later_attempt_cannot_read_it() -> None:
    """Its result may have expired, or the job may be read from a replica that lags."""
    store = StateStore()
    assert ledger(store).reserve("crawl", 10)
    ledger(store).settle("crawl", 6, "crawl", call="job")
    for used in (None, 4):
        ledger(store).settle("crawl", used, "crawl", call="job")
    assert ledger(store).left == 4
    assert ledger(store).to_wire()["jobs"] == {"crawl/job": 6}


def test_a_job_that_continues_keeps_its_reservation() -> None:
    store = StateStore()
    assert ledger(store).reserve("crawl", 8)
    ledger(store).settle("crawl", 3, "crawl", call="abandoned", is_final=False)
    told = ledger(store)
    assert (told.spent, told.to_wire()["used"], told.to_wire()["unknown"]) == (8, 3, 1)
    assert not told.reserve("crawl", 3)
    told.settle("crawl", 5, "crawl", call="abandoned")
    assert (told.spent, told.to_wire()["unknown"]) == (5, 0)


def test_an_id_that_the_database_cannot_store_does_not_block_later_calls() -> None:
    store = StateStore()
    made = ledger(store)
    made.settle("", 1, "interact", call="\ud800\0")
    assert made.reserve("a", 9)
    assert ledger(store).spent == 10


def test_calls_without_an_id_are_added() -> None:
    store = StateStore()
    assert ledger(store).is_empty
    ledger(store).settle("", 2, "search")
    ledger(store).settle("", 4, "search", scraping=1, saved=1)
    ledger(store).settle("", None, "search", unknown=2, reserved=5)
    told = ledger(store).to_wire()
    assert (told["used"], told["saved"], told["unknown"]) == (6, 1, 2)
    assert told["by_operation"] == {"search": 5, "scrape": 1}
    assert ledger(store).spent == 11
    assert not ledger(store).is_empty


def test_a_call_that_cost_nothing_or_an_unknown_amount_names_its_connection() -> None:
    store = StateStore()
    ledger(store, None).settle("saved", 0, "crawl", saved=50)
    assert ledger(store).to_wire()["by_connection"] == {"market": 0}
    for made in (ledger(store := StateStore()), ledger(store)):
        # The first attempt is killed.
        made.reserve("a", 4)
    assert ledger(store).to_wire()["by_connection"] == {"market": 0}


def test_in_words() -> None:
    told = {
        "used": 52,
        "saved": 0,
        "unknown": 0,
        "by_operation": {"search": 2, "scrape": 50},
        "by_format": {"page": 10, "json": 40},
    }
    assert f"Credits of this task: {in_words(told)}\n" in COSTS
    nothing = {"used": 0, "saved": 2.5, "unknown": 0, "by_operation": {}, "by_format": {}}
    assert in_words(nothing) == "0 used; 2.5 saved"
    assert in_words({**nothing, "unknown": 2}).startswith("0 used, plus 2 calls of unknown cost")
