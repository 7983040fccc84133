"""Plans which pages of a site to read, from its list and the dates in its sitemaps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.api.prices import DEFAULT_LINKS, MAP_CREDITS
from airflow_provider_webdata.results.manifest.plan import Plan, planned
from airflow_provider_webdata.results.manifest.sitemap import last_changes, nested_sitemaps, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from airflow_provider_webdata.results.manifest.entries import Entry

    # Reads a page by a request, and returns its source and what that cost.
    Scrape = Callable[[dict[str, Any]], tuple[str, float]]

_LAST = datetime.max.replace(tzinfo=timezone.utc)


@dataclass
class Site:
    """A site to read in part.

    :param options: further fields of the request that lists it.
    :param sitemap_url: where its dates are; None: in the usual place; empty: nowhere.
    :param max_sitemaps: how many sitemaps are read at most.
    :param refresh_after: how long after it was read a page is read again.
    :param ignore_query: whether URLs that differ in their query only are one page.
    """

    url: str
    options: Mapping[str, Any]
    sitemap_url: str | None
    max_sitemaps: int
    refresh_after: timedelta
    ignore_query: bool

    @property
    def request(self) -> dict[str, Any]:
        """What lists the site."""
        return {"ignore_cache": True, **self.options, "url": self.url}

    def plan(
        self,
        links: Sequence[str],
        entries: Mapping[str, Entry],
        moment: datetime,
        scrape: Scrape,
        log: Any,
    ) -> Plan:
        """Return the pages to read. If some pages are known, this scrapes the sitemaps.

        :param links: the result of `request`.
        :param entries: the pages that are known, by key.
        :param moment: of the run.
        """

        sitemaps = _Sitemaps(self, scrape, log)
        if entries and sitemaps.first:
            oldest = min(datetime.fromisoformat(entry.last_seen) for entry in entries.values())
            # A page that was read before this time is read again, regardless of its date.
            sitemaps.read(max(oldest, moment - self.refresh_after))
        pages = [url for url in links if url not in sitemaps.named] or [self.url]
        read, known = planned(
            pages, entries, sitemaps.dates, moment, self.refresh_after, ignore_query=self.ignore_query
        )
        limit = self.options.get("limit", DEFAULT_LINKS)
        return Plan(read, known, MAP_CREDITS + sitemaps.credits, is_whole=len(links) < int(limit))


class _Sitemaps:
    """The sitemaps of a site: the first, and those that it or one of them lists.

    :ivar dates: when pages changed, by key.
    :ivar named: URLs of the sitemaps that are known, read or not.
    :ivar credits: what reading them cost.
    """

    def __init__(self, site: Site, scrape: Scrape, log: Any) -> None:
        given = site.sitemap_url
        self.first = urljoin(site.url, "/sitemap.xml") if given is None else given
        self.named = {self.first}
        self.dates: dict[str, datetime] = {}
        self.credits = 0.0
        self._site, self._scrape, self._log = site, scrape, log

    def read(self, since: datetime) -> None:
        """Read them, those that changed last first, but none that has not changed since."""

        # What is not dated may have changed just now.
        waiting = {self.first: _LAST}
        count = 0
        while waiting and count < self._site.max_sitemaps:
            url = max(waiting, key=waiting.__getitem__)
            del waiting[url]
            text = self._text_of(url)
            count += 1
            for key, changed in last_changes(text, ignore_query=self._site.ignore_query):
                self.dates[key] = max(changed, self.dates.get(key, changed))
            for nested, dated in nested_sitemaps(text):
                if nested not in self.named and (dated is None or dated > since):
                    waiting[nested] = dated or _LAST
                self.named.add(nested)
        if count > 1 or waiting:
            self._log.info("Read %d of %d sitemaps for %g credits", count, len(self.named), self.credits)
        if waiting:
            self._log.warning(
                "%d sitemaps were not read that may have news, such as %s: their pages are dated by their reading "
                "alone; raise max_sitemaps (%d)",
                len(waiting),
                max(waiting, key=waiting.__getitem__),
                self._site.max_sitemaps,
            )

    def _text_of(self, url: str) -> str:

        # What is no sitemap but a PDF is not to cost what its pages do.
        one_page = {"type": "pdf", "maxPages": 1}
        try:
            raw, cost = self._scrape(
                {"url": url, "formats": ["rawHtml"], "max_age": 0, "parsers": [one_page]}
            )
        except WebDataError as error:
            if error.verdict != "never":
                raise
            self._log.info(
                "The sitemap %s could not be read, so that its pages are dated by their reading alone: %s",
                url,
                error,
            )
            return ""
        self.credits += cost
        text = text_of(raw)
        if raw and "<loc" not in text:
            self._log.info("%s is no sitemap, or a compressed one that the service does not unpack", url)
        return text
