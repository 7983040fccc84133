"""The URL that identifies a page, a link, or a search result in all runs."""

from __future__ import annotations

from collections.abc import Mapping
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
