"""The compared content of an item, and its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.item_paths import at_path
from airflow_provider_webdata.results.pages.urls import without_tracking

Compare = Literal["content", "url", "changeTracking"]

MODES: tuple[Compare, ...] = ("content", "url", "changeTracking")

# Fields that differ between calls for an unchanged page.
_VOLATILE = frozenset(
    {
        "metadata",
        "warning",
        "changeTracking",
        "screenshot",
        "audio",
        "video",
        "actions",
        "keptMedia",
        "position",
    }
)


def compared(compare: str | Sequence[str] | None, kind: str) -> Compare | tuple[str, ...]:
    """Return the mode or the paths by which items are compared.

    :param compare: `content`, `url`, `changeTracking`, or paths in an item, such as `json.price`; None: pages and
        records by their content, links and search results by their URL.
    :param kind: kind of the items, see `results.columns.columns_of`.
    :raises OutputError: `compare` is none of these.
    """
    if compare is None:
        return "content" if kind in ("document", "provider_record") else "url"
    if isinstance(compare, str):
        for mode in MODES:
            if compare == mode:
                return mode
        compare = (compare,) if "." in compare else ()
    if not compare or not all(isinstance(path, str) and path.strip(". ") for path in compare):
        raise OutputError(
            f"compare must be one of {', '.join(MODES)}, or a list of paths in an item, such as ['json.price'] "
            f"(given: {compare!r})"
        )
    return tuple(compare)


def digest(item: Mapping[str, Any], by: Compare | tuple[str, ...]) -> str:
    """Return the digest of an item's content, ignoring whitespace.

    :param by: see `compared`. `url`: an empty digest.
    """
    if by == "url":
        return ""
    content = _content(item) if isinstance(by, str) else {path: at_path(item, path) for path in by}
    return hashlib.blake2b(json_text(_normal(content)).encode(), digest_size=16).hexdigest()


def _content(item: Mapping[str, Any]) -> Any:
    """Return the page's markdown, if any; otherwise all requested content."""
    if isinstance(text := item.get("markdown"), str):
        return text
    return {name: value for name, value in item.items() if name not in _VOLATILE}


def _normal(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(without_tracking(value).split())
    if isinstance(value, Mapping):
        return {str(name): _normal(value[name]) for name in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [_normal(part) for part in value]
    return value
