"""When the pages of a site changed, as its sitemaps say."""

from __future__ import annotations

import html
import re
import zlib
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from airflow_provider_webdata.results.manifest.urls import canonical_url

if TYPE_CHECKING:
    from collections.abc import Iterator

# No XML parser: a browser may have wrapped the text, and a hostile one cannot expand entities here.
_URL = re.compile(r"<url\b[^>]*>(.*?)</url>", re.DOTALL)
_SITEMAP = re.compile(r"<sitemap\b[^>]*>(.*?)</sitemap>", re.DOTALL)
_LOC = re.compile(r"<loc\b[^>]*>\s*(?:<!\[CDATA\[)?\s*([^\s<\]]+)")
_LASTMOD = re.compile(r"<lastmod\b[^>]*>\s*([^\s<]+)")
_GZIP = "\x1f\x8b"
# The most that a sitemap may have, by its protocol.
_MOST_BYTES = 50 * 2**20


def last_changes(sitemap: str, *, ignore_query: bool = False) -> Iterator[tuple[str, datetime]]:
    """Yield the key of each page that a sitemap dates, and when it changed.

    :param sitemap: its text, see `text_of`. An index of sitemaps dates no pages.
    :param ignore_query: see `urls.canonical_url`.
    """
    for url, changed in _entries(_URL, sitemap):
        if changed is not None:
            yield canonical_url(url, ignore_query=ignore_query), changed


def nested_sitemaps(sitemap: str) -> Iterator[tuple[str, datetime | None]]:
    """Yield the URL of each sitemap that an index of sitemaps lists, and when it changed, if the index says so."""
    for url, changed in _entries(_SITEMAP, sitemap):
        if url.startswith(("http://", "https://")):
            yield url, changed


def text_of(raw: str) -> str:
    """Return the text of a sitemap, also of one that came as it is compressed.

    :param raw: as the service sent it. Of a compressed one that it decoded as text, nothing can be read.
    """
    if not raw.startswith(_GZIP):
        return raw
    try:
        return zlib.decompressobj(31).decompress(raw.encode("latin-1"), _MOST_BYTES).decode(errors="replace")
    except (ValueError, zlib.error):
        return ""


def _entries(entry: re.Pattern[str], sitemap: str) -> Iterator[tuple[str, datetime | None]]:
    for found in entry.finditer(sitemap):
        if (url := _LOC.search(found[1])) is not None:
            changed = _LASTMOD.search(found[1])
            yield html.unescape(url[1]), None if changed is None else _moment(changed[1])


def _moment(text: str) -> datetime | None:
    try:
        # A date alone: the page may have changed as late as in its last minute.
        moment = datetime.fromisoformat((text if "T" in text else f"{text}T23:59:59").replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
