"""Results that stand for their URLs."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.common.item_urls import site_failed, unfetched, urls_in, was_fetched
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


@pytest.mark.rule("metadata-not-fetched", "metadata-status")
@each_row(
    "metadata,failed,fetched",
    [
        ({}, False, True),
        ({"statusCode": 200}, False, True),
        ({"statusCode": 200, "error": "broke off"}, True, True),
        ({"statusCode": 404, "error": "Not Found"}, True, True),
        ({"statusCode": "404", "error": "Not Found"}, True, True),
        ({"statusCode": 999}, True, True),
        ({"statusCode": 599, "error": "Network Connect Timeout Error"}, True, False),
        ({"statusCode": 599}, True, False),
        ({"error": "DNS resolution failed for hostname: nohost.example.net"}, True, False),
        ({"statusCode": 0, "error": "failed"}, True, False),
        ({"statusCode": ["599"], "error": None}, False, True),
    ],
)
def test_whether_a_page_failed_and_was_fetched(metadata, failed, fetched):
    """An error beside a site's own status only names that status."""
    assert (site_failed(metadata), was_fetched(metadata)) == (failed, fetched)
    assert unfetched([{"url": A, "metadata": {"sourceURL": A, **metadata}}, {"url": B}, None]) == (
        [] if fetched else [f"{A}: {metadata.get('error') or 'the site responded with status 599'}"]
    )
