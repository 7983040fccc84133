"""The plan of an incremental crawl: pages that are new, old, or reported as changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_webdata.results.manifest.urls import canonical_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import timedelta

    from airflow_provider_webdata.results.manifest.entries import Entry


@dataclass(frozen=True)
class Plan:
    """A run's plan: the pages to read, and the pages to keep as they were known.

    :param read: URLs to read.
    :param known: keys of the pages that are left.
    :param credits: cost of making the plan.
    :param is_whole: whether the site was listed whole.
    """

    read: list[str]
    known: list[str]
    credits: float
    is_whole: bool


def planned(
    urls: Iterable[str],
    entries: Mapping[str, Entry],
    changed: Mapping[str, datetime],
    moment: datetime,
    refresh_after: timedelta,
    *,
    ignore_query: bool = False,
) -> tuple[list[str], list[str]]:
    """Return the URLs to read, each page once, and the keys of the pages to leave.

    :param urls: of the site.
    :param entries: the pages that are known, by key.
    :param changed: when pages changed, by key, as the sitemap says.
    :param moment: of this run.
    :param refresh_after: how long after it was read a page is read again.
    """
    read: dict[str, str] = {}
    known: dict[str, None] = {}
    for url in urls:
        key = canonical_url(url, ignore_query=ignore_query)
        entry = entries.get(key)
        if entry is not None and not entry.missing:
            seen = datetime.fromisoformat(entry.last_seen)
            dated = changed.get(key)
            if moment - seen < refresh_after and (dated is None or dated <= seen):
                known[key] = None
                continue
        read.setdefault(key, url)
    return list(read.values()), list(known)
