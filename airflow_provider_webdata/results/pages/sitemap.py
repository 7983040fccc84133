# SPDX-License-Identifier: Apache-2.0
"""The pages and modification dates in the sitemaps of a site."""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from datetime import datetime, time, timedelta, timezone
from typing import TYPE_CHECKING
from xml.parsers import expat

from airflow_provider_webdata.common.dates import moment

if TYPE_CHECKING:
    from collections.abc import Iterator

# Parsed with Expat, which is linear and keeps the entries before the first error. Text before the first tag, such
# as a browser's page around the source, is skipped, and with it the only place for entity declarations.
_BEGINNING = re.compile(r"<(?:\w{1,20}:)?(?:urlset|sitemapindex|url|sitemap)[\s/>]")
# In CDATA, an ampersand is itself.
_BARE_AMPERSAND = re.compile(r"(<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z))|&(?!#?\w{1,31};)", re.DOTALL)
_GZIP = "\x1f\x8b"
# Maximum size of a sitemap in the protocol.
_MAX_BYTES = 50 * 2**20
_MAX_URLS = 50_000
_MAX_TEXT = 10_000
_MIDNIGHT = time(0)
_LAST = datetime.max
# A time without a zone may be one of the westernmost zone.
_WESTERNMOST = timedelta(hours=12)


def is_sitemap(text: str) -> bool:
    """Return whether a page is a sitemap, possibly one without entries."""
    return _BEGINNING.search(text) is not None


def listed_pages(sitemap: str) -> Iterator[tuple[str, datetime | None]]:
    """Yield the URL of each page in a sitemap, and its modification time, if present.

    :param sitemap: the sitemap's text, see `text_of`. A sitemap index has no pages.
    """
    yield from _web_entries("url", sitemap)


def nested_sitemaps(sitemap: str) -> Iterator[tuple[str, datetime | None]]:
    """Yield the URL of each sitemap in a sitemap index, and its modification time, if present."""
    yield from _web_entries("sitemap", sitemap)


def text_of(raw: str) -> str:
    """Return the text of a sitemap, decompressed if necessary.

    :param raw: the service's text. A compressed sitemap that the service decoded as text is unreadable.
    """
    if not raw.startswith(_GZIP):
        return raw[:_MAX_BYTES]
    try:
        return zlib.decompressobj(31).decompress(raw.encode("latin-1"), _MAX_BYTES).decode(errors="replace")
    except (ValueError, zlib.error):
        return ""


def _web_entries(kind: str, sitemap: str) -> Iterator[tuple[str, datetime | None]]:
    for entry in _Parser(kind).parse(sitemap):
        url = entry.get("loc", "").split()
        if url and url[0].startswith(("http://", "https://")):
            moments = [found for text in entry.get("lastmod", "").split() if (found := _moment(text))]
            yield url[0], max(moments, default=None)


class _EnoughError(Exception):
    pass


class _Parser:
    """Collects the element texts of the entries of one kind."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._path: list[str] = []
        self._entries: list[dict[str, str]] = []

    def parse(self, sitemap: str) -> list[dict[str, str]]:
        """Return the entries up to the first error, 50,000 at most."""
        beginning = _BEGINNING.search(sitemap)
        if beginning is None:
            return []
        parser = expat.ParserCreate()
        # HTML entities are skipped instead of failing.
        parser.UseForeignDTD(True)
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.CharacterDataHandler = self._text
        parser.EndElementHandler = self._end
        source = _BARE_AMPERSAND.sub(lambda match: match[1] or "&amp;", sitemap[beginning.start() :])
        with suppress(expat.ExpatError, _EnoughError):
            parser.Parse("<sitemaps>")
            parser.Parse(source.encode(errors="replace"))
            parser.Parse("</sitemaps>", True)
        return self._entries

    def _start(self, name: str, _: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if self._path:
            self._path.append(name)
            if len(self._path) == 2 and name in self._entries[-1]:
                # An element that is repeated.
                self._text(" ")
        elif name == self._kind:
            if len(self._entries) == _MAX_URLS:
                raise _EnoughError
            self._entries.append({})
            self._path = [name]

    def _text(self, text: str) -> None:
        # Ignores elements of the page's images and videos.
        if len(self._path) == 2:
            entry, name = self._entries[-1], self._path[1]
            entry[name] = (entry.get(name, "") + text)[:_MAX_TEXT]

    def _end(self, _: str) -> None:
        if self._path:
            self._path.pop()


def _moment(text: str) -> datetime | None:
    """Return the latest time of the change that a date allows."""
    day, _, clock = text.partition("T")
    found = moment(text if clock else f"{day}T00:00:00", None)
    if found is None:
        return None
    if found.time() == _MIDNIGHT:
        # A date, or one that a program wrote as a time.
        found = found.replace(hour=23, minute=59, second=59)
    elif found.tzinfo is None:
        found = min(found, _LAST - _WESTERNMOST) + _WESTERNMOST
    return found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)
