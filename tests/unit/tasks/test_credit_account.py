"""Credits that a task spent over its attempts, as numbers and as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.runs.credit_account import CreditAccount, by_format, in_words
from tests.support.direct import StateStore, TaskInstance, context_of

COSTS = (Path(__file__).parents[3] / "docs" / "costs.md").read_text(encoding="utf-8")


def account(store: StateStore, max_tries: int = 1) -> CreditAccount:
    context: Any = context_of(TaskInstance(max_tries=max_tries), store)
    return CreditAccount(context)


def test_a_call_with_a_name_is_counted_once() -> None:
    store = StateStore()
    assert account(store).enter("scrape/1", {"scrape": 5}, {"page": 1, "json": 4}, conn_id="market") == 5
    assert (
        account(store).enter("scrape/1", {"scrape": 7}, {"page": 3, "json": 4}, saved=7, conn_id="market")
        == 2
    )
    assert (
        account(store).enter("scrape/1", {"scrape": 7}, {"page": 3, "json": 4}, saved=7, conn_id="market")
        == 0
    )
    assert account(store).to_wire() == {
        "used": 7,
        "saved": 14,
        "unknown": 0,
        "byOperation": {"scrape": 7},
        "byFormat": {"page": 3, "json": 4},
        "byConnection": {"market": 7},
    }


def test_calls_without_a_name_are_added() -> None:
    store = StateStore()
    assert account(store).is_empty
    assert account(store).enter(None, {"search": 2}, {}, conn_id="market") == 2
    assert account(store).enter(None, {"search": 4}, {}, saved=1, conn_id="market") == 4
    assert account(store).enter(None, {}, {}, is_known=False, conn_id="market") == 0
    told = account(store).to_wire()
    assert (told["used"], told["saved"], told["unknown"], told["byOperation"]) == (6, 1, 1, {"search": 6})
    assert not account(store).is_empty


def test_the_limit_starts_anew_when_the_task_is_cleared() -> None:
    store = StateStore()
    account(store).enter("crawl/a", {"crawl": 10}, {}, conn_id="market")
    account(store, max_tries=3).enter("crawl/b", {"crawl": 4}, {}, conn_id="market")
    assert account(store, max_tries=3).since_cleared == 4
    # Told again, it is still of its own time.
    account(store, max_tries=3).enter("crawl/a", {"crawl": 11}, {}, conn_id="market")
    assert account(store, max_tries=3).since_cleared == 4
    assert account(store, max_tries=3).to_wire()["used"] == 15


SPLIT: list[tuple[float, int, dict[str, int], dict[str, float]]] = [
    (0, 0, {}, {}),
    (0, 3, {"json": 4}, {}),
    (1, 1, {}, {"page": 1}),
    (5, 1, {"json": 4}, {"page": 1, "json": 4}),
    (10, 2, {"json": 4}, {"page": 2, "json": 8}),
    # An enhanced proxy, or the pages of a PDF.
    (9, 1, {"json": 4}, {"page": 5, "json": 4}),
    # Billing lags.
    (6, 3, {"json": 4}, {"page": 3, "json": 3}),
    (3, 1, {"json": 4, "question": 4}, {"page": 1, "json": 2}),
]


@pytest.mark.parametrize(("used", "pages", "extras", "expected"), SPLIT)
def test_what_each_format_accounts_for(
    used: float, pages: int, extras: dict[str, int], expected: dict[str, float]
) -> None:
    assert by_format(used, pages, extras) == expected


@given(
    st.integers(0, 500),
    st.integers(0, 50),
    st.dictionaries(st.sampled_from(["json", "audio", "question"]), st.integers(1, 10)),
)
def test_the_formats_add_up(used: int, pages: int, extras: dict[str, int]) -> None:
    parts = by_format(used, pages, extras)
    assert sum(parts.values()) == used
    assert all(part > 0 for name, part in parts.items() if name != "page" or pages)


def test_in_words() -> None:
    told = {
        "used": 52,
        "saved": 0,
        "unknown": 0,
        "byOperation": {"search": 2, "scrape": 50},
        "byFormat": {"page": 10, "json": 40},
    }
    assert f"Credits of this task: {in_words(told)}\n" in COSTS
    nothing = {"used": 0, "saved": 2.5, "unknown": 0, "byOperation": {}, "byFormat": {}}
    assert in_words(nothing) == "0 used; 2.5 saved"
    assert in_words({**nothing, "unknown": 2}).startswith("0 used, plus 2 calls of unknown cost")
