# SPDX-License-Identifier: Apache-2.0
"""Requested pages and formats, compared with what a server returned."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.common.item_urls import is_cut
from airflow_provider_webdata.results.pages.requested import CountedPages, RequestedFormats, RequestedPages
from tests.support.tables import each_row

A, B, C = (f"https://a.example/{name}" for name in "abc")


@each_row(
    "requested,dropped,found,number,among",
    [
        ([A, B], [], [(A,), (B,)], 0, []),
        ([A, B], [], [(A,)], 1, [B]),
        ([A, B], [], [], 2, [A, B]),
        # Spellings of one page.
        (["https://A.example:443/a?utm_source=x", A, B], [], [(A,), (f"{B}#top",)], 0, []),
        ([A, "htp://b"], ["htp://b"], [(A,)], 0, []),
        # After a redirect.
        ([A], [], [(None, A)], 0, []),
        ([A, B], [], [(A, B)], 1, [B]),
        # A server that reports other URLs.
        ([A, B], [], [(f"{A}/",), (B,)], 0, [A]),
        ([A, B], [], [(f"{A}/",)], 1, [A, B]),
        # URLs that lead to one page.
        ([A, B], [], [(f"{A}/",), (f"{A}/",)], 0, [A, B]),
        ([A, B, C], [], [(A,), (A,)], 1, [B, C]),
        ([A, B], [], [(A,), (["x"], 7)], 0, [B]),
        ([], [], [(A,), ()], 0, []),
    ],
)
def test_pages_that_are_missing(requested, dropped, found, number, among):
    pages = RequestedPages(requested, dropped)
    for urls in found:
        pages.add(*urls)
    assert pages.missing() == (number, among)


@each_row(
    "number,dropped,found,reported,unnamed,missing",
    [
        (2, [], [(A,), (B,)], [], 0, 0),
        (2, [], [(A,)], [], 0, 1),
        (2, [], [(A,)], [B], 0, 0),
        # One that failed may be both reported and returned.
        (2, [], [(A,)], [A, A], 0, 1),
        (3, [B, B], [(A,)], [], 0, 1),
        (1, [B], [], [], 0, 0),
        # Two URLs that lead to one page, and one that the server rewrote.
        (3, [], [(A,), (A,), (f"{C}/",)], [], 0, 0),
        (3, [], [(A,)], [], 1, 1),
        (1, [], [(A,), (B,)], [], 0, 0),
    ],
)
def test_pages_that_are_missing_of_a_number(number, dropped, found, reported, unnamed, missing):
    pages = CountedPages(number, dropped)
    for urls in found:
        pages.add(*urls)
    for url in reported:
        pages.add_reported(url)
    pages.add_unnamed(unnamed)
    assert pages.missing() == (missing, [])


@given(
    st.lists(st.booleans(), min_size=1, max_size=20),
    st.lists(st.integers(0, 19), max_size=40),
    st.integers(0, 5),
)
def test_no_more_pages_are_missing_than_were_not_returned(
    returned: list[bool], again: list[int], rewritten: int
) -> None:
    urls = [f"{A}/{number}" for number in range(len(returned))]
    pages = RequestedPages([*urls, *urls])
    is_there = [*returned]
    for number, url in enumerate(urls):
        if returned[number]:
            pages.add(url)
    for number in again:
        if number < len(urls) and returned[number]:
            pages.add(urls[number])
    for number in range(min(rewritten, is_there.count(False))):
        pages.add(f"{A}/{number}/index.html")
    number, among = pages.missing()
    repeated = sum(number < len(urls) and returned[number] for number in again)
    assert number == max(0, is_there.count(False) - rewritten - repeated)
    assert not set(among) & {url for url, there in zip(urls, is_there, strict=True) if there}


def page(*names: str, **metadata: Any) -> dict[str, Any]:
    return {**dict.fromkeys(names, ""), "metadata": metadata}


PDF = {"contentType": "application/pdf", "numPages": 3}


@pytest.mark.rule("formats-not-on-each-page")
@each_row(
    "body,pages,missing",
    [
        ({"url": A}, [page("markdown")], []),
        ({"url": A}, [page("html")], ["markdown"]),
        ({"url": A}, [], []),
        ({"formats": ["html", {"type": "links"}]}, [page("markdown")], ["html", "links"]),
        ({"formats": ["html", "links"]}, [page("html"), page()], ["links"]),
        ({"formats": ["html", "links"]}, [page("html"), page("links")], []),
        ({"url": A, "scrapeOptions": {"formats": ["html"]}}, [page("markdown")], ["html"]),
        ({"url": A, "scrapeOptions": {}}, [page()], ["markdown"]),
        ({"formats": [{"type": "question", "question": "?"}]}, [page("answer")], []),
        ({"formats": [{"type": "question", "question": "?"}]}, [page("question")], ["question"]),
        ({"formats": ["json"]}, [{"json": None, "metadata": {}}], ["json"]),
        # A page may lack them.
        ({"formats": ["product", "menu", "audio", "video", "branding", "changeTracking"]}, [page()], []),
        ({"formats": [{"type": "highlights", "query": "?"}, "rawBase64"]}, [page()], []),
        # A file has text only.
        ({"formats": ["markdown", "html", "screenshot"]}, [page("markdown", **PDF)], []),
        ({"formats": ["markdown", "html"]}, [page("html", **PDF)], ["markdown"]),
        ({"formats": ["html"]}, [page(**PDF), page(contentType="text/html; charset=utf-8")], ["html"]),
        ({"parsers": []}, [page("rawBase64", **PDF)], []),
        ({"parsers": [{"type": "pdf"}]}, [page(**PDF)], ["markdown"]),
    ],
)
def test_formats_that_no_page_has(body, pages, missing):
    formats = RequestedFormats(body)
    for one in pages:
        formats.add(one)
    assert formats.missing() == missing
    assert not formats.lacks_all or missing


@each_row(
    "formats,pages,lacks",
    [
        (["html", "links"], [page()], True),
        (["html", "links"], [page(), page("links")], False),
        (["markdown", "html"], [page(**PDF)], True),
        (["html"], [page(**PDF)], False),
        (["html"], [], False),
        (["product"], [page()], False),
    ],
)
def test_whether_pages_lack_all_formats(formats, pages, lacks):
    found = RequestedFormats({"formats": formats})
    for one in pages:
        found.add(one)
    assert found.lacks_all is lacks


def test_a_search_requests_no_format_by_default():
    formats = RequestedFormats({"query": "a", "scrapeOptions": {}}, ())
    formats.add({"url": A, "title": "A"})
    assert (formats.names, formats.missing()) == ((), [])


@pytest.mark.rule("metadata-pdf")
@each_row(
    "metadata,cut",
    [
        ({}, False),
        ({"numPages": 3, "totalPages": 3}, False),
        ({"numPages": 3, "totalPages": 4}, True),
        ({"numPages": 3}, False),
        # Meta tags of a page.
        ({"numPages": "3", "totalPages": "4"}, False),
        ({"numPages": True, "totalPages": 4}, False),
    ],
)
def test_a_cut_document(metadata, cut):
    assert is_cut(metadata) is cut
