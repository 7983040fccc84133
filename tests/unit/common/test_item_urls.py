# SPDX-License-Identifier: Apache-2.0
"""Results that stand for their URLs."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.common.item_urls import (
    may_be_unserved,
    site_failed,
    unfetched,
    urls_in,
    was_fetched,
)
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
        ({"statusCode": 594, "error": "Unknown Error"}, True, False),
        ({"statusCode": 590, "error": "Unknown Error"}, True, False),
        ({"statusCode": 530, "error": "Unknown Error"}, True, True),
        ({"statusCode": 600, "error": "Unknown Error"}, True, True),
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


PLAIN = "text/plain; charset=utf-8"


@pytest.mark.rule("metadata-no-host")
@each_row(
    "url,markdown,status,kind,may",
    [
        ("http://a.example/x", "Not Found", 404, PLAIN, True),
        ("http://a.example/x", "Not Found\n", 404, "text/plain", True),
        ("http://a.example/x", None, 404, PLAIN, True),
        ("https://a.example/x", "Not Found", 404, PLAIN, False),
        ("http://a.example/x", "Not found: /x", 404, PLAIN, False),
        ("http://a.example/x", "Not Found", 410, PLAIN, False),
        ("http://a.example/x", "Not Found", 404, "text/html", False),
        ("http://a.example/x", "Not Found", 404, None, False),
    ],
)
def test_whether_a_404_may_be_the_servers_own(url, markdown, status, kind, may):
    metadata = {"sourceURL": url, "statusCode": status, "error": "Not Found", "contentType": kind}
    page = {"metadata": metadata} if markdown is None else {"markdown": markdown, "metadata": metadata}
    assert may_be_unserved(page) is may
    assert was_fetched(metadata)
