"""The plan of an incremental crawl: the new, stale, and changed pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_webdata.results.manifest.entries import MAYBE_CHANGED, MAYBE_NEW
from airflow_provider_webdata.results.pages.urls import canonical_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import timedelta

    from airflow_provider_webdata.results.manifest.entries import Entry


@dataclass(frozen=True)
class Plan:
    """A run's plan: the pages to scrape, and the known pages to skip.

    :param read: URLs to scrape.
    :param known: keys of the skipped pages.
    :param credits: cost of creating the plan.
    :param is_whole: True if the map listed the whole site.
    :param sitemaps: number of sitemaps that may have changed.
    :param sitemaps_not_read: number of these that were not read.
    :param has_no_links: True if the map was empty.
    :param site: digest of the task's arguments, see `Site.digest`.
    """

    read: list[str]
    known: list[str]
    credits: float
    is_whole: bool
    sitemaps: int = 0
    sitemaps_not_read: int = 0
    has_no_links: bool = False
    site: str = ""


def planned(
    urls: Iterable[str],
    entries: Mapping[str, Entry],
    changed: Mapping[str, datetime],
    moment: datetime,
    refresh_after: timedelta,
    *,
    ignore_query: bool = False,
) -> tuple[list[str], list[str]]:
    """Return the URLs to scrape, each page once, and the keys of the pages to skip.

    :param urls: URLs of the site.
    :param entries: the known pages, by key.
    :param changed: modification times of pages from the sitemap, by key.
    :param moment: time of this run.
    :param refresh_after: maximum age of a page, after which it is scraped again.
    """
    read: dict[str, str] = {}
    known: dict[str, None] = {}
    for url in urls:
        key = canonical_url(url, ignore_query=ignore_query)
        entry = entries.get(key)
        if entry is not None and not entry.missing and entry.digest not in (MAYBE_NEW, MAYBE_CHANGED):
            seen = datetime.fromisoformat(entry.last_seen)
            dated = changed.get(key)
            if moment - seen < refresh_after and (dated is None or dated <= seen):
                known[key] = None
                continue
        read.setdefault(key, url)
    return list(read.values()), list(known)
