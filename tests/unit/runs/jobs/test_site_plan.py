# SPDX-License-Identifier: Apache-2.0
"""Which pages of a site an incremental crawl requests, under which URL."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable
from datetime import datetime, timezone
from functools import partial
from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace

from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.results.changes.items import key_of, page_key
from airflow_provider_webdata.results.changes.pages import Page
from airflow_provider_webdata.runs.jobs.plan_calls import Sitemaps
from airflow_provider_webdata.runs.jobs.site_plan import PlanFacts, Reason, SitePlan, reason_to_read

SITE = "https://a.example/"
DAY = 86_400
NOW = 100 * DAY
FACTS = PlanFacts(NOW, 7 * DAY, "request", lambda page: page.consumed != "here")


def page(key: str = f"{SITE}p", **more: Any) -> Page:
    fields = {
        "version": 1,
        "digest": "d",
        "request": "request",
        "seen": NOW,
        "read": NOW - DAY,
        "consumed": "here",
    }
    return Page(key, **{**fields, **more})


@pytest.mark.parametrize(
    ("more", "changed", "reason"),
    [
        ({}, None, None),
        ({}, NOW - DAY, None),
        ({}, NOW - DAY + 1, "dated"),
        ({"read": NOW - 7 * DAY + 1}, None, None),
        ({"read": NOW - 7 * DAY}, None, "stale"),
        # A clear or a backfill of an earlier day.
        ({"read": NOW + DAY}, None, None),
        ({"consumed": None}, None, "open"),
        ({"consumed": "elsewhere"}, None, "open"),
        ({"request": "another"}, None, "request"),
        ({"digest": None}, None, "new"),
        # The first reason counts: the changed request has no cost for a page that is read anyway.
        ({"request": "another", "read": 0}, NOW, "stale"),
        ({"request": "another", "consumed": None}, NOW, "dated"),
        ({"request": "another", "consumed": None}, None, "open"),
    ],
)
def test_why_a_known_page_is_requested(
    more: dict[str, Any], changed: int | None, reason: Reason | None
) -> None:
    assert reason_to_read(page(**more), changed, FACTS) == reason


def planned(
    links: Iterable[str],
    sitemap: Iterable[str | tuple[str, datetime]] = (),
    known: Iterable[Page] = (),
    *,
    ignore_query: bool = False,
    facts: PlanFacts = FACTS,
) -> tuple[list[str], dict[str, str], bool]:
    """Return the keys of the listed pages, the URLs to request with their reasons, and whether a link is unknown."""
    plan = SitePlan(links, partial(page_key, ignore_query=ignore_query))
    known = sorted(known, key=lambda one: one.key)
    plan.survey(known)
    for entry in sitemap:
        plan.add(*((entry, None) if isinstance(entry, str) else entry))
    unknown = plan.has_unknown
    listed = list(plan.listed(known, facts))
    assert not {*listed} & {*plan.due}
    return listed, {due.url: due.reason for due in plan.due.values()}, unknown


P = f"{SITE}p"
TODAY = datetime.fromtimestamp(NOW, timezone.utc)
LONG = f"{SITE}{'x' * 1_990}"


@pytest.mark.parametrize(
    ("links", "sitemap", "known", "listed", "due"),
    [
        ([P], [], [], [], {P: "new"}),
        ([P], [], [page()], [P], {}),
        ([f"{P}#top", P, f"{P}?utm_source=x"], [], [], [], {f"{P}#top": "new"}),
        # The sitemap's own form.
        ([P], [f"{P}/"], [], [], {f"{P}/": "new"}),
        ([P], [f"{P}?id=1", f"{P}?id=2"], [], [], {f"{P}?id=1": "new", f"{P}?id=2": "new"}),
        ([P], [f"{P}/?id=1"], [], [], {f"{P}/?id=1": "new"}),
        ([P], [f"{P}?utm_source=x"], [], [], {f"{P}?utm_source=x": "new"}),
        # A form that is known, although the sitemap has another one, or is not read tonight.
        ([P], [f"{P}/"], [page()], [P], {}),
        ([f"{P}/"], [P], [page()], [P], {}),
        ([P], [], [page(f"{P}/")], [f"{P}/"], {}),
        ([P], [], [page(f"{P}?id=1"), page(f"{P}?id=2")], [f"{P}?id=1", f"{P}?id=2"], {}),
        ([P], [f"{P}?id=3"], [page(f"{P}?id=1")], [f"{P}?id=1"], {f"{P}?id=3": "new"}),
        ([P], [], [page(f"{P}/", read=0)], [], {f"{P}/": "stale"}),
        ([P], [(f"{P}/", TODAY)], [page()], [], {P: "dated"}),
        ([P], [f"{P}/", (f"{P}/", TODAY), f"{P}/"], [page()], [], {P: "dated"}),
        # A page that counts as removed does not keep its form.
        ([P], [f"{P}/"], [page(digest=None)], [], {f"{P}/": "new"}),
        ([P], [], [page(f"{P}/", digest=None)], [], {P: "new"}),
        # A map that keeps queries.
        ([f"{P}?id=1", f"{P}?id=2"], [], [page(f"{P}?id=1")], [f"{P}?id=1"], {f"{P}?id=2": "new"}),
        ([f"{P}?id=1"], [f"{P}?id=2"], [], [], {f"{P}?id=1": "new"}),
        # Pages that the map does not list.
        ([P], [f"{SITE}q"], [page(f"{SITE}r"), page()], [P], {}),
        ([f"{SITE}"], [], [page(SITE)], [SITE], {}),
        # A key that is no URL.
        ([f"{LONG}yy"], [], [page(key_of(f"{LONG}yy"), read=0)], [], {f"{LONG}yy": "stale"}),
    ],
)  # fmt: skip
def test_the_form_of_a_page(
    links: list[str], sitemap: list[Any], known: list[Page], listed: list[str], due: dict[str, str]
) -> None:
    assert planned(links, sitemap, known)[:2] == (listed, due)


def test_ignored_queries_are_one_page() -> None:
    ignoring = partial(planned, ignore_query=True)
    assert ignoring([P], [f"{P}/?c=1", f"{P}/?c=2"])[1] == {f"{P}/?c=1": "new"}
    assert ignoring([P], [f"{P}/?c=2"], [page(f"{P}/")])[:2] == ([f"{P}/"], {})
    assert ignoring([P], [f"{P}/?c=2"], [page(f"{P}/", read=0)])[1] == {f"{P}/?c=2": "stale"}


def test_a_link_is_unknown_until_a_page_is_found_for_it() -> None:
    assert planned([P])[2]
    assert not planned([P], [f"{P}/?id=1"])[2]
    assert not planned([P], [], [page(f"{P}/")])[2]
    assert planned([P], [], [page(f"{P}/", digest=None)])[2]


FORMS = ("", "/", "?id=1", "/?id=1&b=2")


@pytest.mark.parametrize("pages", [of for n in (1, 2) for of in combinations(FORMS, n)])
def test_a_page_keeps_its_key_whichever_sitemaps_are_read(pages: tuple[str, ...]) -> None:
    """A site whose map cuts URLs; each night, some of its sitemaps are read, and pages become due."""
    for seed in range(20):
        drawn = random.Random(seed)
        site = {f"{SITE}{name}{form}" for name in "abc" for form in pages}
        links = sorted({url.partition("?")[0].removesuffix("/") for url in site})
        state: dict[str, Page] = {}
        for _ in range(12):
            sitemap = [url for url in sorted(site) if drawn.random() < 0.5]
            listed, due, _ = planned(links, sitemap, state.values())
            again = {url for url, reason in due.items() if reason != "new"}
            assert {*state} == {*listed} | again, "each known page is listed or requested"
            # Another form than the site's own is not found.
            state |= {page_key(url): page(page_key(url)) for url in due if url in site}
            assert len({*map(one_form, state)}) == len(state)
            for key in drawn.sample(sorted(state), len(state) // 3):
                state[key] = replace(state[key], read=0)
        _, due, _ = planned(links, sorted(site), state.values())
        assert {*map(one_form, site)} == {*map(one_form, [*state, *due])}, "no page is lost"


def one_form(url: str) -> str:
    return url.replace("/?", "?").removesuffix("/")


HOSTILE = "https://u:pa55word@a.example/\x9b2Jb?token=t0ken123"
LOG = logger("test")


class Calls:
    """The texts of sitemaps by name, in place of the service."""

    credits = 0.0

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.names: list[str] = []

    def sitemap(self, url: str) -> str:
        self.names.append(name := url.removeprefix(SITE).removesuffix(".xml"))
        return self.texts.get(name, "<urlset></urlset>")


def index(**dates: str | None) -> str:
    """Return the text of a sitemap index."""
    nested = (
        f"<sitemap><loc>{SITE}{name}</loc>{f'<lastmod>{date}</lastmod>' if date else ''}</sitemap>"
        for name, date in dates.items()
    )
    return f"<sitemapindex>{''.join(nested)}</sitemapindex>"


INDEX = index(old="2026-01-01", older="2025-01-01", undated=None, new="2026-02-01")
SINCE = datetime(2026, 1, 15, tzinfo=timezone.utc).timestamp()


@pytest.mark.parametrize(
    ("links", "since", "most", "names", "counts"),
    [
        # The newest first; an undated one may have changed just now.
        ([P], None, 10, ["sitemap", "undated", "new", "old", "older"], (5, 0)),
        ([P], None, 3, ["sitemap", "undated", "new"], (5, 2)),
        ([], SINCE, 10, ["sitemap", "undated", "new"], (3, 0)),
        ([], SINCE, 2, ["sitemap", "undated"], (3, 1)),
        # Unchanged ones are read while a link is unknown.
        ([P], SINCE, 10, ["sitemap", "undated", "new", "old", "older"], (5, 0)),
        ([f"{SITE}of_old"], SINCE, 10, ["sitemap", "undated", "new", "old"], (4, 0)),
        ([P], SINCE, 3, ["sitemap", "undated", "new"], (3, 0)),
        # Sitemaps are no pages, and so not unknown.
        ([f"{SITE}sitemap.xml", f"{SITE}old"], SINCE, 10, ["sitemap", "undated", "new"], (3, 0)),
    ],
)
def test_which_sitemaps_are_read(
    links: list[str], since: float | None, most: int, names: list[str], counts: tuple[int, int]
) -> None:
    calls: Any = Calls(sitemap=INDEX, old=f"<urlset><url><loc>{SITE}of_old/</loc></url></urlset>")
    sitemaps = Sitemaps(SITE, None, most, calls, LOG)
    sitemaps.read(SitePlan(links, page_key), since)
    assert calls.names == names
    assert (sitemaps.changed, sitemaps.not_read) == counts


def test_a_site_need_not_have_a_sitemap_unless_it_is_given() -> None:
    for given, counts in ((None, (1, 0)), (f"{SITE}map", (1, 1)), ("", (0, 0))):
        calls: Any = Calls(sitemap="<html>", map="<html>")
        sitemaps = Sitemaps(SITE, given, 10, calls, LOG)
        sitemaps.read(SitePlan([P], page_key), None)
        assert (sitemaps.changed, sitemaps.not_read) == counts


def test_urls_in_sitemaps_do_not_forge_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    nested = "".join(f"<sitemap><loc>{HOSTILE}{name}</loc></sitemap>" for name in "xy")
    calls: Any = Calls(
        sitemap=f"<sitemapindex>{nested}</sitemapindex>", **{HOSTILE + "x": "", HOSTILE + "y": ""}
    )
    with caplog.at_level(logging.INFO):
        Sitemaps(SITE, None, 2, calls, LOG).read(SitePlan([P], page_key), None)
    assert len(caplog.messages) == 3
    assert not [
        line for line in caplog.messages if "\x9b" in line or "pa55word" in line or "t0ken123" in line
    ]
