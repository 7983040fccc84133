"""Lists a site and its dates, to find out what of it is to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.results.manifest.entries import Entry
    from airflow_provider_webdata.results.manifest.plan import Plan

_SERVICE_LIMIT = 5000


@dataclass
class Site:
    """A site that is to be read in part.

    :param options: further fields of the request that lists it.
    :param sitemap_url: where its dates are; None: in the usual place; empty: nowhere.
    :param refresh_after: how long after it was read a page is read again.
    :param ignore_query: whether URLs that differ in their query only are one page.
    """

    url: str
    options: Mapping[str, Any]
    sitemap_url: str | None
    refresh_after: timedelta
    ignore_query: bool

    @property
    def request(self) -> dict[str, Any]:
        """What lists the site."""
        return {"ignore_cache": True, **self.options, "url": self.url}

    def plan(self, hook: WebDataHook, entries: Mapping[str, Entry], moment: datetime, log: Any) -> Plan:
        """Return what is to be read. Bills a credit for the list, and one for the dates where pages are known.

        :param entries: the pages that are known, by key.
        :param moment: of the run.
        """
        from airflow_provider_webdata.api.prices import MAP
        from airflow_provider_webdata.results.manifest.plan import Plan, planned

        links = [link.url for link in hook.map(self.request).links or () if link.url]
        pages = [url for url in links if url != self._sitemap] or [self.url]
        dates, cost = self._dates(hook, log) if entries else ({}, 0.0)
        read, known = planned(
            pages, entries, dates, moment, self.refresh_after, ignore_query=self.ignore_query
        )
        limit = self.options.get("limit", _SERVICE_LIMIT)
        return Plan(read, known, MAP + cost, is_whole=len(links) < int(limit))

    @property
    def _sitemap(self) -> str:
        return urljoin(self.url, "/sitemap.xml") if self.sitemap_url is None else self.sitemap_url

    def _dates(self, hook: WebDataHook, log: Any) -> tuple[dict[str, datetime], float]:
        """Return when pages changed, by key, and what that cost."""
        from airflow_provider_webdata.api.errors import WebDataError
        from airflow_provider_webdata.results.manifest.sitemap import last_changes

        url = self._sitemap
        if not url:
            return {}, 0.0
        try:
            document = hook.scrape({"url": url, "formats": ["rawHtml"], "max_age": 0}).data
        except WebDataError as error:
            if error.verdict != "never":
                raise
            log.info(
                "The sitemap %s could not be read, so that pages are dated by their reading alone: %s",
                url,
                error,
            )
            return {}, 0.0
        metadata = document.metadata
        cost = (metadata.credits_used if metadata else None) or 1.0
        return dict(last_changes(document.raw_html or "", ignore_query=self.ignore_query)), cost
