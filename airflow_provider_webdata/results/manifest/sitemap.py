"""When the pages of a site changed, as its sitemap says."""

from __future__ import annotations

import html
import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from airflow_provider_webdata.results.manifest.urls import canonical_url

if TYPE_CHECKING:
    from collections.abc import Iterator

# No XML parser: a browser may have wrapped the text, and a hostile one cannot expand entities here.
_URL = re.compile(r"<url\b[^>]*>(.*?)</url>", re.DOTALL)
_LOC = re.compile(r"<loc\b[^>]*>\s*(?:<!\[CDATA\[)?\s*([^\s<\]]+)")
_LASTMOD = re.compile(r"<lastmod\b[^>]*>\s*([^\s<]+)")


def last_changes(sitemap: str, *, ignore_query: bool = False) -> Iterator[tuple[str, datetime]]:
    """Yield the key of each page that a sitemap dates, and when it changed.

    :param sitemap: its text. An index of sitemaps dates no pages.
    :param ignore_query: see `urls.canonical_url`.
    """
    for found in _URL.finditer(sitemap):
        url, changed = _LOC.search(found[1]), _LASTMOD.search(found[1])
        if url is None or changed is None:
            continue
        try:
            # A date alone: the page may have changed as late as in its last minute.
            text = changed[1] if "T" in changed[1] else f"{changed[1]}T23:59:59"
            moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            continue
        key = canonical_url(html.unescape(url[1]), ignore_query=ignore_query)
        yield key, moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
