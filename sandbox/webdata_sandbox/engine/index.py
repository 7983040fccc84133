# SPDX-License-Identifier: Apache-2.0
"""The search index of the sandbox's web."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from webdata_sandbox.reference.time_filter import TimeFilter, parse_tbs
from webdata_sandbox.reference.urls import in_domain, is_public

from .search_query import Clause, parse_query
from .words import WORD, fold, long_words, sentences, words

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from webdata_sandbox.state.clock import Clock
    from webdata_sandbox.state.quirks import Quirks

    from .page import Page, Picture
    from .web import Web


class _Entry:
    """The index entry of one page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.title = words(page.title)
        text = page.body_text
        self.counts = Counter(words(text))
        self.plain = " ".join(WORD.findall(f"{page.title} {text}".lower()))

    def score(self, wanted: Iterable[str]) -> float:
        return sum(5 * self.title.count(word) + min(self.counts[word], 10) for word in wanted)


@dataclass(frozen=True)
class Filters:
    """The filters of a search."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    safe: bool = False
    public_only: bool = False
    blocked: tuple[str, ...] = ()
    blocked_tlds: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()

    def admit(self, page: Page) -> bool:
        """Return whether the page may be a result."""
        if self.include and not any(in_domain(page.host, domain) for domain in self.include):
            return False
        if any(in_domain(page.host, domain) for domain in self.exclude):
            return False
        if (self.safe and page.is_adult) or (self.public_only and not is_public(page.url)):
            return False
        return self._trusted(page.host)

    def _trusted(self, host: str) -> bool:
        if any(_listed(host, entry) for entry in self.allowed):
            return True
        if any(_listed(host, entry) for entry in self.blocked):
            return False
        return not any(host.endswith("." + tld) for tld in self.blocked_tlds)


def _listed(host: str, entry: str) -> bool:
    return host.endswith(entry[1:].lower()) if entry.startswith("*.") else host == entry.lower()


class Index:
    """The search index. It updates itself when pages change."""

    def __init__(self, web: Web, clock: Clock, quirks: Quirks) -> None:
        self._web, self._clock, self._quirks = web, clock, quirks
        self._entries: dict[str, _Entry] = {}

    def web(self, query: str, filters: Filters, limit: int, **narrow: str | list[str] | None) -> list[Page]:
        """Return web results, filtered by ``tbs`` and ``categories``."""
        tbs, categories = narrow.get("tbs"), narrow.get("categories")
        window = parse_tbs(tbs) if isinstance(tbs, str) else TimeFilter()
        now = self._clock.datetime()
        hits = [
            (score, page)
            for score, page in self._matching(query, filters)
            if window.admits(page.published, now) and (not categories or category_of(page, list(categories)))
        ]
        return [page for _, page in self._ranked(hits, window.by_date)[:limit]]

    def news(self, query: str, filters: Filters, limit: int) -> list[Page]:
        """Return news results."""
        hits = [(score, page) for score, page in self._matching(query, filters) if page.is_news]
        return [page for _, page in self._ranked(hits, False)[:limit]]

    def images(self, query: str, filters: Filters, limit: int) -> list[tuple[Page, Picture]]:
        """Return image results, filtered by ``imagesize:`` and ``larger:``."""
        clauses = parse_query(query)
        wanted = {
            word
            for clause in clauses
            if clause.kind == "word" and not clause.negated
            for word in words(clause.value)
        }
        found = []
        for score, page in self._matching(query, filters):
            for order, picture in enumerate(page.pictures):
                if all(_fits(picture, clause) for clause in clauses):
                    bonus = 5 * len(wanted & set(words(picture.alt)))
                    found.append((-(score + bonus), page.url, order, page, picture))
        return [(page, picture) for *_, page, picture in sorted(found, key=lambda item: item[:3])[:limit]]

    def published_within(self, query: str, filters: Filters, limit: int, window: timedelta) -> list[Page]:
        """Return pages published within the window, for search targets of monitors."""
        earliest = self._clock.datetime() - window
        hits = [
            (score, page)
            for score, page in self._matching(query, filters)
            if page.published is not None and page.published >= earliest
        ]
        return [page for _, page in self._ranked(hits, False)[:limit]]

    def all(self) -> list[Page]:
        """Return all indexed pages."""
        return [page for page in self._web if page.status == 200]

    def hosts(self) -> list[str]:
        """Return the hosts of searchable pages, which do not include generated ones."""
        return sorted({page.host for page in self._web})

    def about(self, prompt: str, limit: int) -> list[str]:
        """Return the URLs of the pages that share long words with a prompt, best match first."""
        wanted = long_words(prompt)
        scored = (
            (len(wanted & set(words(f"{page.title} {page.body_text}"))), page.url) for page in self._web
        )
        found = sorted((score for score in scored if score[0]), key=lambda score: (-score[0], score[1]))
        return [url for _, url in found[:limit]]

    def _matching(self, query: str, filters: Filters) -> list[tuple[float, Page]]:
        clauses = parse_query(query)
        wanted = [word for c in clauses if c.kind == "word" and not c.negated for word in words(c.value)]
        hits: list[tuple[float, Page]] = []
        for page in self._web if clauses else ():
            if page.status != 200 or not filters.admit(page):
                continue
            entry = self._entry(page)
            if not all(
                self._holds(clause, entry) for clause in clauses if clause.kind != "word" or clause.negated
            ):
                continue
            score = entry.score(wanted)
            if score or not wanted:
                hits.append((score, page))
        return hits

    @staticmethod
    def _ranked(hits: list[tuple[float, Page]], by_date: bool) -> list[tuple[float, Page]]:
        ranked = sorted(hits, key=lambda hit: (-hit[0], hit[1].url))
        if by_date:
            ranked.sort(
                key=lambda hit: hit[1].published.timestamp() if hit[1].published else 0.0, reverse=True
            )
        return ranked

    def _entry(self, page: Page) -> _Entry:
        entry = self._entries.get(page.url)
        if entry is None or entry.page is not page:
            entry = self._entries[page.url] = _Entry(page)
        return entry

    def _holds(self, clause: Clause, entry: _Entry) -> bool:
        if clause.kind in ("imagesize", "larger"):
            return True
        return self._test(clause.kind, clause.value, entry) is not clause.negated

    def _test(self, kind: str, value: str, entry: _Entry) -> bool:
        page = entry.page
        if kind == "phrase":
            phrase = " ".join(WORD.findall(value.lower()))
            return f" {phrase} " in f" {entry.plain} "
        if kind == "site":
            domain, slash, path = value.lower().partition("/")
            return in_domain(page.host, domain) and urlsplit(page.url).path.lower().startswith(slash + path)
        if kind == "filetype":
            return urlsplit(page.url).path.lower().endswith("." + value.lower().lstrip("."))
        if kind == "inurl":
            return value.lower() in page.url.lower()
        if kind == "intitle":
            return set(words(value)) <= set(entry.title)
        if kind == "related":
            return self._related(page, value.lower())
        return bool(set(words(value)) & (entry.counts.keys() | set(entry.title)))

    def _related(self, page: Page, domain: str) -> bool:
        """Return whether the page's site links to the domain or vice versa."""
        if in_domain(page.host, domain):
            return False
        for other in self._web:
            hosts = {urlsplit(link).hostname or "" for link in other.links}
            if other.host == page.host and any(in_domain(host, domain) for host in hosts):
                return True
            if in_domain(other.host, domain) and page.host in hosts:
                return True
        return False


def _fits(picture: Picture, clause: Clause) -> bool:
    if clause.kind not in ("imagesize", "larger"):
        return True
    match = re.fullmatch(r"(\d+)x(\d+)", clause.value.lower())
    if match is None:
        return False
    width, height = int(match[1]), int(match[2])
    if clause.kind == "imagesize":
        fits = (picture.width, picture.height) == (width, height)
    else:
        fits = picture.width > width and picture.height > height
    return fits is not clause.negated


def category_of(page: Page, categories: list[str]) -> str | None:
    """Return the page's first category among the requested ones, or None."""
    is_in = {
        "codehost": page.is_code,
        "github": page.is_code,
        "developer": page.is_code,
        "research": page.is_research,
        "pdf": page.is_pdf,
        "gov": page.is_government,
    }
    return next((name for name in categories if is_in[name]), None)


def passages(page: Page, query: str, limit: int) -> list[tuple[str, float]]:
    """Return the page's best sentences for a query, each with the fraction of the query's words that it contains."""
    wanted = set(words(query))
    scored = [
        (len(wanted & set(words(text))) / max(1, len(wanted)), text) for text in sentences(page.body_text)
    ]
    ranked = sorted(scored, key=lambda item: -item[0])
    return [(text, round(score, 6)) for score, text in ranked[:limit]]


def highlight(page: Page, query: str, *, markdown: bool = False) -> str | None:
    """Return the sentence with the most words of the query, or None if no sentence has any."""
    wanted = {
        word
        for c in parse_query(query)
        if c.kind in ("word", "phrase") and not c.negated
        for word in words(c.value)
    }
    best, most = None, 0
    for sentence in sentences(page.body_text):
        hits = len(wanted & set(words(sentence)))
        if hits > most:
            best, most = sentence, hits
    if best is None or not markdown:
        return best
    return WORD.sub(lambda match: f"**{match[0]}**" if fold(match[0]) in wanted else match[0], best)
