# SPDX-License-Identifier: Apache-2.0
"""The compared content of an item, and its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from airflow_provider_webdata.results.columns import FORMATS
from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.item_paths import at_path
from airflow_provider_webdata.results.pages.urls import without_tracking

Compare = Literal["content", "url"]

MODES: tuple[Compare, ...] = ("content", "url")

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


def compared_by(compare: str | Sequence[str] | None, kind: str) -> Compare | tuple[str, ...]:
    """Return the mode or the paths by which items are compared.

    :param compare: `content`, `url`, or paths in an item, such as `json.price`; None: pages and records by their
        content, links and search results by their URL.
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


def digest(item: Mapping[str, Any], by: Compare | tuple[str, ...], kind: str) -> str:
    """Return the digest of an item's content, ignoring whitespace.

    :param by: see `compared_by`. `content`: all formats of a page, or all fields of another item. `url`: an empty
        digest.
    :param kind: kind of the items.
    """
    if by == "url":
        return ""
    content: Any
    if isinstance(by, str):
        # Servers add other fields to pages, which may differ between calls.
        names = FORMATS & item.keys() if kind == "document" else item.keys()
        content = {name: item[name] for name in names - _VOLATILE}
    else:
        content = {path: at_path(item, path) for path in by}
    return hashlib.blake2b(json_text(_normal(content)).encode(), digest_size=16).hexdigest()


def _normal(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(without_tracking(value).split())
    if isinstance(value, Mapping):
        return {str(name): _normal(value[name]) for name in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [_normal(part) for part in value]
    return value
