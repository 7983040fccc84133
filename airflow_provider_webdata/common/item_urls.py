"""The URL that identifies a page, a link, or a search result in all runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


def url_of(item: Any) -> str | None:
    """Return the URL that an item is known by, or None if it has none.

    For a page, the requested URL (`metadata.sourceURL`), else the one after redirects (`metadata.url`); for a link, a
    search result or a tombstone, its `url`.
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


def urls_in(value: Any) -> Any:
    """Return the URL of a result, or the URLs of several; any other value unchanged.

    :param value: an item, a list of items, or the mapping that a task without `output` returned; lists may be nested.
    """
    if isinstance(value, Mapping):
        if (url := url_of(value)) is not None:
            return url
        lists = [part for part in value.values() if isinstance(part, list) and any(map(url_of, part))]
        return urls_in(lists) if lists else value
    if isinstance(value, Collection) and not isinstance(value, (str, bytes)):
        return [url for one in map(urls_in, value) for url in (one if isinstance(one, list) else [one])]
    return value
