"""The outcomes of searches as they are kept."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api.models import SearchRequest
from airflow_provider_webdata.runs.searches.batch_queries import BatchQuery
from airflow_provider_webdata.runs.searches.records import (
    ambiguous_record,
    answer_record,
    answered,
    by_search,
    items_of,
    with_items,
)

ITEMS = st.dictionaries(st.sampled_from(["url", "title", "query", "source"]), st.text(max_size=3), max_size=3)
ANSWERS = st.lists(
    st.fixed_dictionaries(
        {"data": st.dictionaries(st.sampled_from(["web", "news"]), st.lists(ITEMS, max_size=3), max_size=2)}
    ),
    max_size=4,
)


def record(number: int, answer: dict[str, Any]) -> dict[str, Any]:
    return answer_record(
        BatchQuery(f"k{number}", "q", SearchRequest(query=f"words {number}")), {"id": str(number), **answer}
    )


@given(ANSWERS, st.sampled_from([{}, {"country": "FR", "title": "x"}]))
def test_items_go_back_to_their_searches(answers: list[dict[str, Any]], labels: dict[str, str]) -> None:
    records = [{**record(number, answer), "labels": labels} for number, answer in enumerate(answers)]
    items = list(items_of(records))
    assert {item["query"] for item in items} <= {f"words {number}" for number in range(len(answers))}
    again = iter(items)
    assert [with_items(kept, again) for kept in records] == records
    for kept, shown in zip(records, by_search(records, items), strict=True):
        assert shown == {
            **{name: kept[name] for name in ("query", "id", "creditsUsed", "warning")},
            **labels,
            **kept["results"],
        }


def test_what_an_answer_keeps() -> None:
    """Lists that hold something; an item that is no object is kept as one."""
    kept = record(0, {"creditsUsed": 2, "data": {"web": ["text", {"url": "u"}], "news": [], "images": None}})
    assert kept["results"] == {"web": [{"value": "text"}, {"url": "u"}]}
    assert kept["creditsUsed"] == 2
    assert kept["warning"] is None


def test_one_that_may_have_been_billed_has_no_results() -> None:
    kept = ambiguous_record(BatchQuery("k", "q", SearchRequest(query="q")), "lost", 2.0)
    assert list(answered([kept])) == []
    assert list(items_of([kept])) == []
    assert with_items(kept, iter([])) is kept


RECORDS = st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=30)


@given(RECORDS)
def test_each_answered_search_comes_once(made: list[tuple[str, bool]]) -> None:
    """Whatever was kept twice, or was ambiguous before it was answered."""
    records = [
        {"key": key, **({"ambiguous": "lost"} if ambiguous else {"results": {}, "n": number})}
        for number, (key, ambiguous) in enumerate(made)
    ]
    found = list(answered(records))
    keys = [item["key"] for item in found]
    assert len(keys) == len(set(keys))
    assert set(keys) == {key for key, ambiguous in made if not ambiguous}
    assert json.dumps(found)
