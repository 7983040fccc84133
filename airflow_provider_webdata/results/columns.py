# SPDX-License-Identifier: Apache-2.0
"""The columns of tables: flat, with stable names, and without data loss.

Each documented field has a column, in snake_case. Nested data is JSON text. Fields without a column, and values that do
not match their column's type (a page may have three titles), are in the column `extra`, a JSON object with the
service's names. A column is null if the service sent null or omitted the field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from airflow_provider_webdata.common.surrogates import is_utf8
from airflow_provider_webdata.results.encoding import json_text

ColumnType = Literal["text", "integer", "number", "boolean", "json"]

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    :param name: its name, in snake_case.
    :param path: path of its value in an item: wire names, from the outside in.
    :param type: `text`; `integer` (64 bits); `number` (64 bits, binary); `boolean`; `json` (JSON text of any value).
    :param is_copy: True if another column also has the value; values of another type are null here.
    """

    name: str
    path: tuple[str, ...]
    type: ColumnType
    is_copy: bool = False


VERSION = "webdata_version"
"""Field and column with the version of an emission; in tables, the row with the greater version wins."""

REMOVED_AT = "webdata_removed_at"
"""Field and column with the time of the run for which a page counts as removed, ISO 8601; otherwise null."""

SOURCE = "webdata_source"
"""Field and column with the task that emits the page: DAG, task, and instance, separated by `/`."""

OF_A_RUN = ("change", "page", VERSION, REMOVED_AT, SOURCE)
"""The fields that a task with `changes` adds to an item."""

CHANGES = (
    Column("change", ("change",), "text"),
    Column("last_seen", ("lastSeen",), "text"),
    Column("page", ("page",), "text"),
    Column(VERSION, (VERSION,), "integer"),
    Column(REMOVED_AT, (REMOVED_AT,), "text"),
    Column(SOURCE, (SOURCE,), "text"),
)
"""The columns of a task with `changes`, after the others."""

EXTRA = Column("extra", (), "json")
"""Data that fits no other column, as one JSON object; null if empty."""


def _columns(type_: ColumnType, paths: str, **renamed: str) -> tuple[Column, ...]:
    """Return columns named after their paths, in snake_case, and renamed columns."""
    snake = {_HUMP.sub("_", path.rpartition(".")[2]).lower(): path for path in paths.split()}
    return tuple(Column(name, tuple(path.split(".")), type_) for name, path in {**snake, **renamed}.items())


_CONTENT = (
    *_columns("text", "markdown summary html rawHtml screenshot audio video answer"),
    *_columns("json", "highlights links images json changeTracking branding product menu attributes"),
    *_columns("json", "pages blocks actions keptMedia"),
    *_columns("text", "warning"),
)
_PAGE = (
    *_columns("text", "metadata.sourceURL metadata.language"),
    *_columns("integer", "metadata.statusCode"),
    *_columns("text", "metadata.contentType", page_error="metadata.error"),
    *_columns("text", "metadata.scrapeId metadata.sourceFile"),
    *_columns("integer", "metadata.numPages metadata.totalPages"),
    *_columns("text", "metadata.proxyUsed metadata.cacheState metadata.cachedAt"),
    *_columns("number", "", page_credits_used="metadata.creditsUsed"),
)
_FOUND_PAGE = _columns(
    "text", "", page_url="metadata.url", page_title="metadata.title", page_description="metadata.description"
)
FORMATS = frozenset(column.path[0] for column in _CONTENT) - {"warning"}
"""Fields of a page with its formats."""

CONTENT = frozenset(column.name for column in _CONTENT) - {"warning"}
"""Columns of a page's formats, which are null if the page did not return the format."""

OF_A_FOUND_PAGE = CONTENT | {column.name for column in (*_FOUND_PAGE, *_PAGE)} | {"warning"}
"""Columns of a search result that describe its scraped page."""

# The provider adds `query` and `source`, to distinguish the results of several searches or sources.
_FOUND = (*_columns("text", "query source"), *_columns("integer", "position"))

_WEB = _columns("text", "url title description category")
_NEWS = _columns("text", "url title snippet date imageUrl category")
_IMAGES = _columns("text", "url title imageUrl")
_SIZE = _columns("integer", "imageWidth imageHeight")


def _united(*groups: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(dict.fromkeys(column for group in groups for column in group))


OF_SOME_RESULTS = frozenset(column.name for column in (*_united(_WEB, _NEWS, _IMAGES), *_SIZE)) - {
    "url",
    "title",
}
"""Columns that only the results of some sources have."""


TABLES: Mapping[str, tuple[Column, ...]] = {
    "document": (
        *_columns("text", "metadata.url metadata.title metadata.description"),
        *_PAGE,
        *_CONTENT,
        EXTRA,
    ),
    "search_web": (*_FOUND, *_WEB, *_FOUND_PAGE, *_PAGE, *_CONTENT, EXTRA),
    "search_news": (*_FOUND, *_NEWS, *_FOUND_PAGE, *_PAGE, *_CONTENT, EXTRA),
    "search_images": (*_FOUND, *_IMAGES, *_SIZE, EXTRA),
    "search": (*_FOUND, *_united(_WEB, _NEWS, _IMAGES), *_SIZE, *_FOUND_PAGE, *_PAGE, *_CONTENT, EXTRA),
    "data_tool": (
        *_columns("text", "query source id provider capability name description"),
        *_columns("number", "creditsCost"),
        *_columns("boolean", "perRecord"),
        *_columns("json", "options response"),
        EXTRA,
    ),
    "link": (*_columns("text", "url title description"), EXTRA),
    "retrieval": (
        *_columns("text", "id url title text"),
        *_columns("json", "metadata"),
        *_columns("text", "digest"),
        EXTRA,
    ),
    "provider_record": (
        *_columns("integer", "call"),
        *_columns("text", "tool"),
        *_columns("json", "error"),
        EXTRA,
    ),
    "generic": (EXTRA,),
}
"""The columns by kind of item. New columns may be added after the service's; none is renamed or retyped."""


def columns_of(kind: str) -> tuple[Column, ...]:
    """Return the columns for items of a kind.

    :param kind: `document` (a scraped page), `search_web`, `search_news`, `search_images`, `search` (results of several
        sources together), `data_tool` (a tool of a data provider), `provider_record` (any record of a data provider),
        `link` (of a site map), `retrieval` (see `retrieval.flat_documents`), or `generic` (any item, all in `extra`).
    :raises ValueError: the kind is unknown.
    """
    if kind not in TABLES:
        raise ValueError(f"kind must be one of {', '.join(TABLES)} (given: {kind!r})")
    return TABLES[kind]


def kind_of_source(source: str) -> str:
    """Return the kind of the results of a search's source, or of a list in its response."""
    if source in ("alexandria", "tools"):
        return "data_tool"
    return kind if (kind := f"search_{source}") in TABLES else "search"


def kind_of_names(names: Sequence[str]) -> str:
    """Return the kind of items whose columns are the first columns of a table; `generic` if no kind matches."""
    for kind, columns in TABLES.items():
        if [*names[: len(columns)]] == [column.name for column in columns]:
            return kind
    return "generic"


def row_maker(columns: tuple[Column, ...]) -> Callable[[Any], dict[str, Any]]:
    """Return a function that converts items to table rows: a value for each column, or None.

    An item is a JSON object as the service sent it. Any other JSON value is stored in `extra` as a whole.

    :param columns: the table's columns; `extra` among them.
    """
    empty: dict[str, Any] = {column.name: None for column in columns}
    places: dict[str, Any] = {}
    copies = [column for column in columns if column.is_copy]
    for column in columns:
        if column.path and not column.is_copy:
            *outer, last = column.path
            inner = places
            for name in outer:
                inner = inner.setdefault(name, {})
            inner[last] = column

    def row_of(item: Any) -> dict[str, Any]:
        values = empty.copy()
        left = _move_fields(item, places, values) if isinstance(item, Mapping) else item
        values[EXTRA.name] = json_text(left) if left or not isinstance(item, Mapping) else None
        for column in copies:
            value = item
            for name in column.path:
                value = value.get(name) if isinstance(value, Mapping) else None
            values[column.name] = None if value is None else _fitting(value, column.type)
        return values

    return row_of


def type_of_values(values: Sequence[Any]) -> ColumnType:
    """Return the type of a column that holds all values without loss: JSON unless they all are of another type."""
    types: Sequence[ColumnType] = ("text", "boolean", "integer", "number")
    fitting = (type_ for type_ in types if all(_fitting(value, type_) is not None for value in values))
    return next(fitting, "json")


def _fitting(value: Any, type_: ColumnType) -> Any:
    """Return the value in its column's type, or None if the conversion would lose data."""
    if type_ == "json":
        return json_text(value)
    if type_ == "text":
        return value if isinstance(value, str) and is_utf8(value) else None
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if type_ == "integer":
        return value if isinstance(value, int) and value in _INT64 else None
    if isinstance(value, int):
        return float(value) if abs(value) <= 2**53 else None
    return value if isinstance(value, float) else None


def _move_fields(
    item: Mapping[str, Any], places: Mapping[str, Any], values: dict[str, Any]
) -> dict[str, Any]:
    """Move the fields of an item that have a column into `values`, and return the rest."""
    left: dict[str, Any] = {}
    for name, value in item.items():
        place = places.get(name)
        if isinstance(place, Column):
            if value is None:
                continue
            # Most values are ASCII text, for which this check is faster than a call.
            is_plain = place.type == "text" and isinstance(value, str) and value.isascii()
            fitting = value if is_plain else _fitting(value, place.type)
            if fitting is None:
                left[name] = value
            else:
                values[place.name] = fitting
        elif place is not None and value and isinstance(value, Mapping):
            if rest := _move_fields(value, place, values):
                left[name] = rest
        else:
            left[name] = value
    return left
