"""A plan of the pages to scrape, from a site's map and the dates in its sitemaps."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from airflow_provider_webdata.api.errors import WebDataError, trimmed
from airflow_provider_webdata.api.prices import DEFAULT_LINKS, MAP_CREDITS
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.results.manifest.plan import Plan, planned
from airflow_provider_webdata.results.pages.sitemap import (
    is_sitemap,
    last_changes,
    nested_sitemaps,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from airflow_provider_webdata.results.manifest.entries import Entry

    # Scrapes a page; returns its source and the cost in credits.
    Scrape = Callable[[dict[str, Any]], tuple[str, float]]

_LAST = datetime.max.replace(tzinfo=timezone.utc)


@dataclass
class Site:
    """A site to crawl incrementally.

    :param options: further fields of the map request.
    :param sitemap_url: URL of the sitemap; None: `/sitemap.xml`; empty: no sitemap.
    :param max_sitemaps: maximum number of sitemaps to read.
    :param refresh_after: maximum age of a page, after which it is scraped again.
    :param ignore_query: True if URLs that differ only in their query are the same page.
    """

    url: str
    options: Mapping[str, Any]
    sitemap_url: str | None
    max_sitemaps: int
    refresh_after: timedelta
    ignore_query: bool

    @property
    def digest(self) -> str:
        """A digest of all fields."""
        return hashlib.sha256(json.dumps(vars(self), sort_keys=True, default=str).encode()).hexdigest()

    @property
    def request(self) -> dict[str, Any]:
        """The map request of the site."""
        return {"ignore_cache": True, **self.options, "url": self.url}

    def plan(
        self,
        links: Sequence[str],
        entries: Mapping[str, Entry],
        moment: datetime,
        scrape: Scrape,
        log: Any,
    ) -> Plan:
        """Return the pages to scrape. If some pages are known, this scrapes the sitemaps.

        :param links: the result of `request`.
        :param entries: the known pages, by key.
        :param moment: time of the run.
        """

        sitemaps = _Sitemaps(self, scrape, log)
        if entries and sitemaps.first:
            oldest = min(datetime.fromisoformat(entry.last_seen) for entry in entries.values())
            # A page that was last scraped before this time is scraped again, regardless of its date.
            sitemaps.read(max(oldest, moment - self.refresh_after))
        pages = [url for url in links if url not in sitemaps.named] or [self.url]
        read, known = planned(
            pages, entries, sitemaps.dates, moment, self.refresh_after, ignore_query=self.ignore_query
        )
        limit = self.options.get("limit", DEFAULT_LINKS)
        return Plan(
            read,
            known,
            MAP_CREDITS + sitemaps.credits,
            # The service maps a site whose sitemap it cannot read as one without links.
            is_whole=0 < len(links) < int(limit),
            sitemaps=sitemaps.changed,
            sitemaps_not_read=sitemaps.not_read,
            site=self.digest,
        )


class _Sitemaps:
    """The sitemaps of a site: the first, and all nested ones.

    :ivar dates: modification times of pages, by key.
    :ivar named: URLs of all known sitemaps, read or not.
    :ivar credits: cost of reading the sitemaps.
    :ivar changed: number of sitemaps that may have changed.
    :ivar not_read: number of these that were not read. The default `/sitemap.xml` does not count: a site
        need not have one.
    """

    def __init__(self, site: Site, scrape: Scrape, log: Any) -> None:
        given = site.sitemap_url
        self.first = urljoin(site.url, "/sitemap.xml") if given is None else given
        self.named = {self.first}
        self.dates: dict[str, datetime] = {}
        self.credits = 0.0
        self.changed = self.not_read = 0
        self._site, self._scrape, self._log = site, scrape, log

    def read(self, since: datetime) -> None:
        """Read the sitemaps that changed since a time, the most recently changed first."""

        # A sitemap without a date may have changed just now.
        waiting = {self.first: _LAST}
        count = 0
        while waiting and count < self._site.max_sitemaps:
            url = max(waiting, key=waiting.__getitem__)
            del waiting[url]
            text = self._text_of(url)
            count += 1
            is_named = url != self.first or self._site.sitemap_url is not None
            self.not_read += is_named and not is_sitemap(text)
            for key, changed in last_changes(text, ignore_query=self._site.ignore_query):
                self.dates[key] = max(changed, self.dates.get(key, changed))
            for nested, dated in nested_sitemaps(text):
                if nested not in self.named and (dated is None or dated > since):
                    waiting[nested] = dated or _LAST
                self.named.add(nested)
        self.changed = count + len(waiting)
        self.not_read += len(waiting)
        if count > 1 or waiting:
            self._log.info(
                "Read %d of %d sitemaps for %s credits", count, len(self.named), credits_text(self.credits)
            )
        if waiting:
            self._log.warning(
                "%d sitemaps that may have changed were not read, such as %s; raise max_sitemaps (%d)",
                len(waiting),
                trimmed(max(waiting, key=waiting.__getitem__)),
                self._site.max_sitemaps,
            )

    def _text_of(self, url: str) -> str:

        # If the URL is a PDF instead of a sitemap, pay for one page only.
        one_page = {"type": "pdf", "maxPages": 1}
        try:
            raw, cost = self._scrape(
                {"url": url, "formats": ["rawHtml"], "max_age": 0, "parsers": [one_page]}
            )
        except WebDataError as error:
            if error.verdict != "never":
                raise
            self._log.info(
                "The sitemap %s could not be read. Its pages are dated only by their last scrape: %s",
                trimmed(url),
                error.brief(),
            )
            return ""
        self.credits += cost
        text = text_of(raw)
        if not is_sitemap(text):
            self._log.info(
                "%s is not a sitemap, or is compressed, which the service does not support", trimmed(url)
            )
        return text
