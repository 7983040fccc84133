# SPDX-License-Identifier: Apache-2.0
"""The requested pages of a batch, and the requested formats of its pages, compared with what was returned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.results.pages.urls import canonical_url
from airflow_provider_webdata.results.pages.visible_text import TEXT_FORMATS, TEXTS_OF_FILES, is_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_FIELDS = {
    **{
        name: name
        for name in ("markdown", "summary", "html", "rawHtml", "links", "images", "screenshot", "json")
    },
    "question": "answer",
}
"""Field of a page by format, for formats that each page has; see sandbox/docs/service.md#formats-not-on-each-page."""

_OF_FILES = TEXTS_OF_FILES | {"json", "question"}
"""Formats that a file, such as a PDF, has too."""


class RequestedPages:
    """The pages of a batch that were requested, and neither returned nor reported as failed.

    A server may rewrite URLs, or return the page that several requested URLs lead to under one of them. So a page that
    has no requested URL, or one that another page has, may be any of those that seem to be missing.

    :param urls: the requested URLs.
    :param dropped: those that the service did not accept.
    """

    def __init__(self, urls: Iterable[str] = (), dropped: Iterable[str] = ()) -> None:
        without = {*map(canonical_url, dropped)}
        self._requested = [key for key in dict.fromkeys(map(canonical_url, urls)) if key not in without]
        self._left = {*self._requested}
        """Those that no document had."""
        self._reported: set[str] = set()
        self._others = 0

    def __len__(self) -> int:
        return len(self._requested)

    def add(self, *urls: Any) -> None:
        """Add a page that was returned.

        :param urls: its URLs, the requested one first; values that are not text are ignored.
        """
        keys = [canonical_url(url) for url in urls if isinstance(url, str)]
        found = next((key for key in keys if key in self._left), None)
        if found is None:
            self._others += 1
        else:
            self._left.remove(found)

    def add_reported(self, url: str | None) -> None:
        """Add a page that was reported as failed, perhaps beside its document."""
        if url is not None:
            self._reported.add(canonical_url(url))

    def add_unnamed(self, number: int) -> None:
        """Add pages whose URLs are unknown."""
        self._others += number

    def missing(self) -> tuple[int, list[str]]:
        """Return the number of missing pages, and the requested URLs that no page had, among which they are."""
        unnamed = self._left - self._reported
        left = [key for key in self._requested if key in unnamed]
        return max(0, len(left) - self._others), left


class CountedPages(RequestedPages):
    """The requested pages of a batch whose URLs another worker knew.

    :param number: number of the requested URLs.
    :param dropped: those that the service did not accept.
    """

    def __init__(self, number: int, dropped: Iterable[str] = ()) -> None:
        super().__init__()
        self._number = max(0, number - len({*map(canonical_url, dropped)}))
        self._returned: set[str] = set()

    def __len__(self) -> int:
        return self._number

    def add(self, *urls: Any) -> None:
        """Add a page that was returned; see `RequestedPages.add`."""
        super().add(*urls)
        self._returned.update(canonical_url(url) for url in urls if isinstance(url, str))

    def missing(self) -> tuple[int, list[str]]:
        """Return the number of missing pages; their URLs are unknown."""
        return max(0, self._number - self._others - len(self._reported - self._returned)), []


class RequestedFormats:
    """The requested formats, and those that a page had so far.

    :param body: the request in wire form.
    :param default: the formats of a request that names none.
    """

    def __init__(self, body: Mapping[str, Any], default: Iterable[str] = ("markdown",)) -> None:
        options = body.get("scrapeOptions", body)
        options = options if isinstance(options, Mapping) else {}
        given = options.get("formats")
        types = _types(default if given is None else given)
        self.names: tuple[str, ...] = tuple(dict.fromkeys(name for name in types if name in _FIELDS))
        """The requested formats that each page has."""
        parsers = options.get("parsers")
        self._of_files = _OF_FILES if parsers is None or "pdf" in _types(parsers) else frozenset()
        self._possible: set[str] = set()
        self._found: set[str] = set()

    def add(self, page: Mapping[str, Any]) -> None:
        """Add a page that was read."""
        if len(self._found) == len(self.names):
            return
        left = [name for name in self.names if name not in self._found]
        self._found.update(name for name in left if page.get(_FIELDS[name]) is not None)
        of_file = is_file(page.get("metadata"))
        self._possible.update(name for name in left if not of_file or name in self._of_files)

    def missing(self) -> list[str]:
        """Return the formats that no page has, although a page should."""
        return [name for name in self.names if name in self._possible - self._found]

    @property
    def lacks_all(self) -> bool:
        """Whether pages were read, and none has any of the formats that it should have."""
        return bool(self._possible) and not self._found


def text_formats(body: Mapping[str, Any], kind: str) -> Collection[str] | None:
    """Return the requested formats that are the text of a page; None if the request is unknown.

    :param body: the request in wire form; empty if it is unknown.
    :param kind: of the results; see `results.columns.columns_of`.
    """
    # Each search of a batch may have its own options.
    options = body.get("scrapeOptions", body if kind == "document" else None)
    if not body or not isinstance(options, Mapping):
        return None
    formats = options.get("formats")
    if formats is None:
        return ("markdown",)
    return [name for name in _types(formats) if name in TEXT_FORMATS]


def _types(given: Any) -> list[Any]:
    """Return the types of formats or parsers in wire form, which are names or objects."""
    items = given if isinstance(given, (list, tuple)) else ()
    return [item.get("type") if isinstance(item, Mapping) else item for item in items]
