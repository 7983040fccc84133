# SPDX-License-Identifier: Apache-2.0
"""The pages of a site that an incremental crawl requests, and those that it only notes as listed.

A map cuts the last slash and the query of a URL: its link `/p` may represent `/p/`, or `/p?id=1` and `/p?id=2`, while
`/p` itself is not found. So a link represents the pages with its path that earlier runs read or a sitemap has. A page
keeps the URL under which it is known, whichever sitemaps a run reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from airflow_provider_webdata.results.changes.items import is_shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from airflow_provider_webdata.results.changes.pages import Page

Reason = Literal["new", "stale", "dated", "open", "request"]
"""Why a page is requested, the first that applies: it is unknown or counts as removed, `refresh_after` has passed, its
sitemap dates it after it was read, no task downstream has it, or the request changed."""


class PlanFacts(NamedTuple):
    """What decides which known pages a run requests.

    :param moment: time of the run, in seconds since the epoch.
    :param refresh_after: maximum age of a page, in seconds.
    :param request: digest of what the run requests of a page, see `Page.request`.
    :param is_open: returns whether the run emits a page even if it is unchanged.
    """

    moment: int
    refresh_after: float
    request: str
    is_open: Callable[[Page], bool]


class Due(NamedTuple):
    """A page to request."""

    url: str
    reason: Reason


class _Entry(NamedTuple):
    url: str
    changed: float | None


def reason_to_read(page: Page, changed: float | None, facts: PlanFacts) -> Reason | None:
    """Return why a run requests a known page that the site lists; None if it does not.

    :param changed: its date in the sitemap, in seconds since the epoch.
    """
    if page.digest is None:
        return "new"
    if facts.moment - page.read >= facts.refresh_after:
        return "stale"
    if changed is not None and changed > page.read:
        return "dated"
    if facts.is_open(page):
        return "open"
    return "request" if page.request != facts.request else None


class SitePlan:
    """The pages that a site lists, divided by what a run does with them.

    :param links: URLs of the map.
    :param key: returns the key of a page.
    :ivar due: the pages to request, by key; complete once `listed` is exhausted.
    :ivar oldest: the oldest time at which a known page that the site lists was read, after `survey`.
    """

    def __init__(self, links: Iterable[str], key: Callable[[str], str]) -> None:
        self.due: dict[str, Due] = {}
        self.oldest: int | None = None
        self._key = key
        self._links: dict[str, str] = {}
        for url in links:
            self._links.setdefault(_spelling(key(url)), url)
        self._entries: dict[str, _Entry] = {}
        self._unknown = {*self._links}

    @property
    def has_unknown(self) -> bool:
        """Whether a link represents no page that a run has read or a sitemap has, after `survey`."""
        return bool(self._unknown)

    def survey(self, known: Iterable[Page]) -> None:
        """Note which links represent known pages."""
        for page in known:
            if page.digest is not None and (link := self._represented(_spelling(page.key))) is not None:
                self._unknown.discard(link)
                self.oldest = page.read if self.oldest is None else min(self.oldest, page.read)

    def add(self, url: str, changed: datetime | None) -> None:
        """Add a page of a sitemap, if a link represents it."""
        spelling = _spelling(self._key(url))
        if (link := self._represented(spelling)) is None:
            return
        self._unknown.discard(link)
        moment = None if changed is None else changed.timestamp()
        first = self._entries.get(spelling)
        if first is not None:
            url, moment = first.url, max(filter(None, (first.changed, moment)), default=None)
        self._entries[spelling] = _Entry(url, moment)

    def exclude(self, urls: Iterable[str]) -> None:
        """Remove links that are no pages."""
        for url in urls:
            spelling = _spelling(self._key(url))
            self._links.pop(spelling, None)
            self._unknown.discard(spelling)

    def listed(self, known: Iterable[Page], facts: PlanFacts) -> Iterator[str]:
        """Yield the keys of the known pages that are listed and need not be requested; add the others to `due`."""
        # Links with a known page, and pages of the sitemaps that are known: no more than these.
        done, same = set[str](), set[str]()
        for page in known:
            spelling = _spelling(page.key)
            link = self._represented(spelling)
            if page.digest is None or link is None:
                continue
            done.add(link)
            entry = self._entries.get(spelling)
            if entry is not None:
                same.add(spelling)
            reason = reason_to_read(page, None if entry is None else entry.changed, facts)
            if reason is None:
                yield page.key
            elif (url := self._url_of(page.key, spelling)) is not None:
                self.due[page.key] = Due(url, reason)
        for spelling, entry in self._entries.items():
            if (link := self._represented(spelling)) is not None and spelling not in same:
                done.add(link)
                self.due.setdefault(self._key(entry.url), Due(entry.url, "new"))
        for link, url in self._links.items():
            if link not in done:
                self.due.setdefault(self._key(url), Due(url, "new"))

    def _represented(self, spelling: str) -> str | None:
        """Return the link that represents a page, by its spelling."""
        if spelling in self._links:
            return spelling
        path = _path(spelling)
        return path if path in self._links else None

    def _url_of(self, key: str, spelling: str) -> str | None:
        entry = self._entries.get(spelling)
        for url in (None if entry is None else entry.url, self._links.get(spelling)):
            if url is not None and self._key(url) == key:
                return url
        return None if is_shortened(key) else key


def _spelling(key: str) -> str:
    """Return a key without the last slash of its path."""
    address, mark, route = key.partition("#")
    path, question, query = address.partition("?")
    return f"{path.removesuffix('/')}{question}{query}{mark}{route}"


def _path(spelling: str) -> str:
    """Return a key without its query."""
    address, mark, route = spelling.partition("#")
    return f"{address.partition('?')[0]}{mark}{route}"
