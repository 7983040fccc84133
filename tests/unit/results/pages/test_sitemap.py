# SPDX-License-Identifier: Apache-2.0
"""What sitemaps say: which pages changed when, and where further sitemaps are."""

from __future__ import annotations

import gzip
from datetime import datetime, timezone

import pytest

from airflow_provider_webdata.results.pages.sitemap import (
    _Parser,
    listed_pages,
    nested_sitemaps,
    text_of,
)
from tests.support.tables import each_row

URL = "https://a.example/x"


def entry(kind: str, loc: str, lastmod: str | None = None) -> str:
    dated = "" if lastmod is None else f"<lastmod>{lastmod}</lastmod>"
    return f"<{kind}>\n<loc>{loc}</loc>{dated}</{kind}>"


@each_row(
    "text, moment",
    [
        ("2026-01-31", datetime(2026, 1, 31, 23, 59, 59)),
        ("2026-01-31T10:00:00Z", datetime(2026, 1, 31, 10)),
        ("2026-01-31T10:00:00", datetime(2026, 1, 31, 22)),
        ("9999-12-31T23:00:00", datetime(9999, 12, 31, 23, 59, 59, 999999)),
        ("2026-01-31T00:00:00Z", datetime(2026, 1, 31, 23, 59, 59)),
        ("2026-01-31T00:00:00-05:00", datetime(2026, 2, 1, 4, 59, 59)),
        ("2026-01-31T00:00:00", datetime(2026, 1, 31, 23, 59, 59)),
        ("2026-01-30</lastmod><lastmod>2026-01-31T10:00:00Z", datetime(2026, 1, 31, 10)),
        ("2026-01-31T12:00:00+02:00", datetime(2026, 1, 31, 10)),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_dates(text: str | None, moment: datetime | None) -> None:
    expected = None if moment is None else moment.replace(tzinfo=timezone.utc)
    assert list(listed_pages(entry("url", URL, text))) == [(URL, expected)]
    assert list(nested_sitemaps(entry("sitemap", URL, text))) == [(URL, expected)]


@each_row(
    "loc, url",
    [
        (URL, URL),
        (f" <![CDATA[ {URL} ]]> ", URL),
        (f"{URL}?a=1&amp;b=2", f"{URL}?a=1&b=2"),
        (f"{URL}?a=1&b=2", f"{URL}?a=1&b=2"),
        (f"<![CDATA[{URL}?a=1&b=2]]><!-- <![CDATA[ --> ", f"{URL}?a=1&b=2"),
        (f"{URL}</loc><loc>https://b.example/", URL),
        (f"{URL}/?utm_source=feed#top", f"{URL}/?utm_source=feed#top"),
    ],
)
def test_the_url_of_a_page_is_that_of_the_sitemap(loc: str, url: str) -> None:
    assert [found for found, _ in listed_pages(entry("url", loc, "2026-01-31"))] == [url]


def test_an_index_is_no_sitemap_and_the_other_way_round() -> None:
    index = f"<sitemapindex>{entry('sitemap', URL, '2026-01-31')}</sitemapindex>"
    assert list(listed_pages(index)) == []
    assert len(list(nested_sitemaps(index))) == 1
    assert list(nested_sitemaps(f"<urlset>{entry('url', URL, '2026-01-31')}</urlset>")) == []


@each_row("loc", ["file:///etc/passwd", "/sitemap-1.xml", "ftp://a.example/x"])
def test_only_what_the_web_has_is_followed(loc: str) -> None:
    assert list(nested_sitemaps(entry("sitemap", loc))) == []
    assert list(listed_pages(entry("url", loc))) == []


LONG = 2**18


@pytest.mark.slow
@each_row(
    "sitemap",
    [
        "<url>" * LONG,
        "<url><loc>" * LONG,
        "<sitemap " * LONG,
        "<urlset><url><loc>" + "<![CDATA[" * LONG,
        "<urlset><url><loc>" + "&" * LONG,
        "<urlset " + "a='" * LONG,
        "<urlset><!--" + "-" * LONG,
        "<" * LONG,
        "<urlset>" + " " * LONG,
    ],
)
def test_no_text_takes_long(sitemap: str) -> None:
    """A parser that searches for end tags again and again would take half an hour."""
    assert list(listed_pages(sitemap)) == []
    assert list(nested_sitemaps(sitemap)) == []


DATED = entry("url", URL, "2026-01-31")
DECLARED = '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;">]>'


@each_row(
    "sitemap",
    [
        f'<?xml version="1.0" encoding="ISO-8859-1"?><urlset xmlns="x">{DATED}</urlset>',
        f"{DECLARED}<urlset>{DATED}{entry('url', '&c;', '2026-01-31')}</urlset>",
        f"<html><body><div>This XML file has no style<br></div><urlset>{DATED}</urlset></div></body>",
        f"<urlset>{DATED}<url><loc>http://b.example/ \0",
        f"<urlset><title>a &nbsp; b</title>{DATED}</urlset>",
        f"<s:urlset>{DATED.replace('<', '<s:').replace('<s:/', '</s:')}</s:urlset>",
        f"<urlset>{DATED.replace('<loc>', '<image:image><image:loc>b</image:loc></image:image><loc>')}</urlset>",
        f"<urlset>{DATED}<url>{DATED}</url></urlset>",
        f"<urlset><!-- <url><loc>http://b.example</loc></url> -->{DATED}</urlset>",
        f"<urlset>{DATED}</urlset>{DECLARED}",
    ],
)
def test_what_surrounds_the_entries(sitemap: str) -> None:
    """What cannot be read ends the sitemap and no more; entities are not expanded."""
    assert [url for url, _ in listed_pages(sitemap)] == [URL]


@pytest.mark.slow
def test_limits() -> None:
    many = "<urlset>" + DATED * 50_001
    assert len(list(listed_pages(many))) == 50_000
    assert len(text_of(" " * (50 * 2**20 + 1))) == 50 * 2**20


TEXT = entry("url", URL, "2026-01-31")
PACKED = gzip.compress(TEXT.encode(), mtime=0)


@each_row(
    "raw, text",
    [
        (TEXT, TEXT),
        (PACKED.decode("latin-1"), TEXT),
        # Decoded as UTF-8, it has lost what it was.
        (PACKED.decode(errors="replace"), PACKED.decode(errors="replace")),
        ("\x1f\x8b\ufffd", ""),
        ("\x1f\x8b and no more", ""),
        ("", ""),
    ],
)
def test_a_compressed_sitemap(raw: str, text: str) -> None:
    assert text_of(raw) == text
    assert len(list(listed_pages(text_of(raw)))) == (text == TEXT)


@pytest.mark.slow
def test_a_sitemap_that_unpacks_without_end_is_cut() -> None:
    bomb = gzip.compress(b" " * (60 * 2**20), 9)
    assert len(text_of(bomb.decode("latin-1"))) == 50 * 2**20


def test_a_repeated_element_does_not_grow_without_bound() -> None:
    """A text that grows with each repetition takes quadratic time: many minutes for a sitemap of 50 MB."""
    entries = _Parser("url").parse(f"<urlset><url><loc>{URL}</loc>{'<loc/>' * 20_000}")
    assert [len(entry["loc"]) for entry in entries] == [10_000]
