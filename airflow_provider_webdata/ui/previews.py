# SPDX-License-Identifier: Apache-2.0
"""The first rows of a task's results and their schema, from its return value or the XCom `preview`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.results.pages.preview import ROWS, preview_row

if TYPE_CHECKING:
    from collections.abc import Iterable

COLUMNS = 5
_SAMPLED = 50
_FIRST = ("url", "name", "title", "position", "status", "statusCode", "description", "markdown", "text")

_IDS = ("Id", "ID", "_id")
_SOURCES = ("web", "news", "images")
"""Result lists of a search, shown as one table."""
_LISTS = ("data", *_SOURCES, "links", "results", "pages", "items", "steps")
_TYPES = {
    str: "text",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "list",
    dict: "object",
    type(None): "null",
}
_EMPTY: tuple[Any, ...] = (None, "", [], {})
"""Values that have no cell text. Lists and objects are empty in a preview."""


class Preview(NamedTuple):
    """The first rows of results.

    :param columns: names of the columns.
    :param rows: cell texts of these rows.
    :param schema: types of the columns in a preview, by name.
    :param total: total number of rows.
    """

    columns: list[str]
    rows: list[list[str]]
    schema: dict[str, str]
    total: float


def preview(value: Any) -> Preview | None:
    """Return the first rows of a return value, or None if it has no rows."""
    items = _items(value)
    if not items:
        return None
    rows = [preview_row(item) for item in items[:_SAMPLED]]
    counts = Counter(name for row in rows for name, value in row.items() if value not in _EMPTY)
    place = {name: number for number, name in enumerate(_FIRST)}
    # Ids mean nothing to readers.
    named = [name for name in counts if name != "id" and not name.endswith(_IDS)] or list(counts)
    columns = sorted(named, key=lambda name: (place.get(name, len(place)), -counts[name]))[:COLUMNS]
    cells = [["" if row.get(name) in _EMPTY else str(row[name]) for name in columns] for row in rows]
    names = dict.fromkeys(name for row in rows for name in row)
    schema = {name: _type(row[name] for row in rows if name in row) for name in names}
    return Preview(columns, cells[:ROWS], schema, len(items))


def total(value: Any) -> int | None:
    """Return the number of rows in a return value, or None if it has no list of rows."""
    items = _items(value)
    is_empty = value == [] or (isinstance(value, dict) and any(value.get(name) == [] for name in _LISTS))
    return len(items) if items or is_empty else None


def _type(values: Iterable[Any]) -> str:
    """Return the JSON types of a column's values. Text that is a date or a time has the type `time`."""
    found = {
        "time" if isinstance(value, str) and value[4:5] == "-" and moment(value) else _TYPES[type(value)]
        for value in values
    }
    for narrow, wide in (("integer", "number"), ("time", "text")):
        found -= {narrow} if wide in found else set()
    nullable = ["nullable"] if "null" in found and len(found) > 1 else []
    return ", ".join([" or ".join(sorted(found - {"null"} or found)), *nullable])


def _items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return []
    if isinstance(value.get("metadata"), dict):
        # One document.
        return [value]
    if found := [item for name in _SOURCES for item in _items(value.get(name))]:
        return found
    for name in _LISTS:
        part = value.get(name)
        if part and (found := _items(part)):
            return found
        if part and isinstance(part, dict):
            # A single result, such as an agent's answer.
            return [part]
    return []
