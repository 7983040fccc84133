"""Results that stand for their URLs."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata.common.item_urls import urls_in
from tests.support.tables import each_row

A, B = "https://a.example/", "https://b.example/"
PAGE = {"markdown": "# A", "metadata": {"sourceURL": A, "url": B}}
REMOVED = {"change": "removed", "page": B, "url": B, "lastSeen": "2026-01-01T00:00:00+00:00"}
SEARCH = {"id": "i", "web": [{"url": A}], "news": [{"url": B}], "warning": None}


@each_row(
    "value,expected",
    [
        (A, A),
        (None, None),
        ([A, B], [A, B]),
        ({"url": B, "title": "B"}, B),
        (PAGE, A),
        (SEARCH, [A, B]),
        ({"data": [PAGE, {"url": B}], "invalidURLs": ["x"], "errors": {"pages": [{"url": B}]}}, [A, B]),
        ([SEARCH, {"links": [{"url": B}]}, A], [A, B, B, A]),
        ({"results": [{"query": "q", "web": [{"url": A}]}, {"query": "r", "web": []}, SEARCH]}, [A, A, B]),
        ({"data": [PAGE, REMOVED]}, [A]),
        ([REMOVED, {"url": B}, {"data": [REMOVED]}], [B]),
        ({"path": "pages.jsonl", "count": 2}, {"path": "pages.jsonl", "count": 2}),
        ([], []),
        ({"count": 0, "results": []}, []),
        ({"id": "c", "pages": []}, []),
        ([{"path": "a.jsonl"}, {"path": "b.jsonl"}], [{"path": "a.jsonl"}, {"path": "b.jsonl"}]),
    ],
)
def test_the_urls_of_results(value: Any, expected: Any) -> None:
    assert urls_in(value) == expected
