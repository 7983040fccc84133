# SPDX-License-Identifier: Apache-2.0
"""URLs that identify pages, links, and search results across runs, and page failures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from airflow_provider_webdata.common.arguments import items_of

_SITE_ERROR = 400
_NOT_FOUND = 404
_GONE = (_NOT_FOUND, 410)
_NOT_FETCHED = range(590, 600)
"""Statuses of the proxy of a self-hosted server's browser service."""
_NO_HOST = "Not Found"
_LEAST_STATUS = 100
_LISTS = ("data", "web", "news", "images", "links", "results", "pages")
"""Keys of the lists of results in what a task returns."""


def url_of(item: Any) -> str | None:
    """Return the URL that identifies an item, or None.

    For a page, this is the requested URL (`metadata.sourceURL`), or else the URL after redirects (`metadata.url`). For
    a link, a search result, or a tombstone, it is `url`.
    """
    if not isinstance(item, Mapping):
        return None
    if isinstance(url := item.get("url"), str) and url:
        return url
    metadata = item.get("metadata")
    if isinstance(metadata, Mapping):
        for name in ("sourceURL", "url"):
            if isinstance(found := metadata.get(name), str) and found:
                return found
    return None


def site_failed(metadata: Mapping[str, Any]) -> bool:
    """Return whether a page has an error, or its site returned a status of 400 or above.

    :param metadata: metadata of the page.
    """
    status = _status(metadata)
    return bool(metadata.get("error")) or (status is not None and status >= _SITE_ERROR)


def is_cut(metadata: Mapping[str, Any]) -> bool:
    """Return whether a document has more pages than the service read. See sandbox/docs/service.md#metadata-pdf.

    :param metadata: metadata of the page.
    """
    read, total = metadata.get("numPages"), metadata.get("totalPages")
    return type(read) is int and type(total) is int and read < total


def is_gone(metadata: Mapping[str, Any]) -> bool:
    """Return whether a site responded that a page does not exist.

    :param metadata: metadata of the page.
    """
    return _status(metadata) in _GONE


def was_fetched(metadata: Mapping[str, Any]) -> bool:
    """Return whether a site responded, with any status. See sandbox/docs/service.md#metadata-not-fetched.

    :param metadata: metadata of the page.
    """
    status = _status(metadata)
    return not metadata.get("error") if status is None else status not in _NOT_FETCHED


def may_be_unserved(item: Mapping[str, Any]) -> bool:
    """Return whether a page may be a self-hosted server's 404 for a host that does not resolve.

    Some sites send the same. See sandbox/docs/service.md#metadata-no-host.
    """
    metadata, markdown = item.get("metadata"), item.get("markdown")
    return (
        isinstance(metadata, Mapping)
        and _status(metadata) == _NOT_FOUND
        and str(url_of(item)).startswith("http://")
        and str(metadata.get("contentType")).startswith("text/plain")
        and (markdown is None or str(markdown).strip() == _NO_HOST)
    )


def page_problem(metadata: Mapping[str, Any]) -> str:
    """Return the error of a page that failed, as text."""
    return str(metadata.get("error") or f"the site responded with status {metadata.get('statusCode')}")


def unfetched(items: Iterable[Any]) -> list[str]:
    """Return the URL and the error of each search result whose page was not fetched, as text."""
    pages = [(item, item.get("metadata")) for item in items if isinstance(item, Mapping)]
    return [
        f"{url_of(item)}: {page_problem(metadata)}"
        for item, metadata in pages
        if isinstance(metadata, Mapping) and not _has_page(metadata)
    ]


def _has_page(metadata: Mapping[str, Any]) -> bool:
    # A search reports the service's own failure as status 500 or 403 of a page without a URL.
    return was_fetched(metadata) and (not metadata.get("error") or url_of({"metadata": metadata}) is not None)


def _status(metadata: Mapping[str, Any]) -> int | None:
    status = metadata.get("statusCode")
    if isinstance(status, str) and status.isdecimal():
        # A page's own tag of this name.
        status = int(status[:4])
    return status if isinstance(status, int) and status >= _LEAST_STATUS else None


def urls_in(value: Any) -> Any:
    """Return the URL of one result, or the URLs of several; return other values unchanged.

    Blanks and line ends around a URL are removed.

    Removed pages (`change` is `removed`) are omitted. A mapping whose list of results is empty has no URLs.

    :param value: an item, a list of items, or the mapping that a task without `save_to` returned; lists may be nested.
    """
    if isinstance(value, Mapping):
        items = [*_items(value)]
        urls = [url_of(item) for item in items if item.get("change") != "removed"]
        if not items:
            # The run reads the file at `path`.
            is_empty = any(value.get(name) == [] for name in _LISTS)
            return [] if "path" not in value and is_empty else value
        return urls[0] if urls and items[0] is value else urls
    if isinstance(value, Collection) and not isinstance(value, (str, bytes)):
        return [
            url for one in map(urls_in, items_of(value)) for url in (one if isinstance(one, list) else [one])
        ]
    return value.strip() if isinstance(value, str) else value


def _items(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the mapping if it has a URL, or otherwise those in its lists."""
    if url_of(value) is not None:
        yield value
        return
    for part in value.values():
        for one in part if isinstance(part, list) else ():
            if isinstance(one, Mapping):
                yield from _items(one)
