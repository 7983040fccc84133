"""Findings of a monitor check for display: colored diff lines, and changed values side by side."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.api.models import PageDiff

if TYPE_CHECKING:
    from airflow_provider_webdata.api.models import MonitorCheckPage

MAX_LINES = 500
MAX_PICTURE = 2**20
"""Maximum characters of a screenshot's URL, which may be a `data:` URL."""
_KINDS = {"+": "added", "-": "removed", "@": "place"}
_CHANGE_KINDS = {"add": "added", "del": "removed"}


class Line(NamedTuple):
    """A line of a diff.

    :param kind: `added`, `removed`, `place` or `same`.
    :param text: the line with its sign.
    """

    kind: str
    text: str


class Value(NamedTuple):
    """A changed value.

    :param path: path in the extracted JSON.
    :param before: previous value as JSON.
    :param after: current value as JSON.
    """

    path: str
    before: str
    after: str


def lines_of(page: MonitorCheckPage) -> list[Line]:
    """Return at most `MAX_LINES` lines of a page's diff, and one that counts the others; empty without a diff."""
    diff = page.diff
    text = diff if isinstance(diff, str) else diff.text if isinstance(diff, PageDiff) else None
    if text:
        lines = [Line(_kind(line), line) for line in text.splitlines()]
    else:
        lines = list(_tree_lines(diff.json_)) if isinstance(diff, PageDiff) else []
    if len(lines) > MAX_LINES:
        return [*lines[:MAX_LINES], Line("place", f"… and {len(lines) - MAX_LINES} more lines")]
    return lines


def values_of(page: MonitorCheckPage) -> list[Value]:
    """Return the changed values of a check that compares JSON."""
    tree = page.diff.json_ if isinstance(page.diff, PageDiff) else None
    if not isinstance(tree, dict) or "files" in tree:
        return []
    return [
        Value(path, _shown(change.get("previous")), _shown(change.get("current")))
        for path, change in list(tree.items())[:MAX_LINES]
        if isinstance(change, dict)
    ]


def screenshot_of(page: MonitorCheckPage) -> str | None:
    """Return the page's screenshot as an http(s) or `data:` URL, or None."""
    snapshot = page.snapshot
    found = snapshot.get("screenshot") if isinstance(snapshot, dict) else None
    if not isinstance(found, str) or len(found) > MAX_PICTURE:
        return None
    return found if found.startswith(("https://", "http://", "data:image/")) else None


def _kind(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "place"
    return _KINDS.get(line[:1], "same")


def _tree_lines(tree: Any) -> list[Line]:
    found = []
    for file in _items(tree, "files"):
        for chunk in _items(file, "chunks"):
            found.append(Line("place", str(chunk.get("content", ""))))
            found += [
                Line(_CHANGE_KINDS.get(str(change.get("type")), "same"), str(change.get("content", "")))
                for change in _items(chunk, "changes")
            ]
    return found


def _items(value: Any, name: str) -> list[dict[str, Any]]:
    found = value.get(name) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
