"""The layout of a load (table, columns, and key), derived from a file's column names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.url_secrets import without_secrets
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.returned import FAILED, PARTIAL, parts_of

if TYPE_CHECKING:
    from airflow_provider_webdata.results.columns import Column, ColumnType

OF_A_RUN = ("change", "last_seen", "page")
"""Fields about an item's run, which a table of the newest state does not need; loaded if `columns` names them."""

_IDENTITIES = frozenset({"source_url", "url", "id"})
_SHOWN_CHARACTERS = 120

LOAD_ID = "load_id"
"""Column that identifies a load that appends."""

LOADED_AT = "loaded_at"
"""Column with the time of a load that appends."""

STAMPS = ("run_id", LOAD_ID, LOADED_AT)
"""Columns that a load adds to the rows that it appends."""


@dataclass(frozen=True)
class TableName:
    """A table name with an optional schema."""

    schema: str | None
    table: str

    def __str__(self) -> str:
        """Return `name` or `schema.name`."""
        return self.table if self.schema is None else f"{self.schema}.{self.table}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The schema, if any, and the table."""
        return (self.table,) if self.schema is None else (self.schema, self.table)


def table_name(given: str) -> TableName:
    """Parse `name` or `schema.name`.

    :raises TableError: the text has another form.
    """
    *schema, table = given.split(".")
    if len(schema) > 1 or not all((*schema, table)) or "\0" in given:
        raise TableError(f"table must be 'name' or 'schema.name' (given: {given!r})")
    return TableName(schema[0] if schema else None, table)


@dataclass(frozen=True)
class TableColumn:
    """A column to load.

    :param source: name in the file.
    :param name: name in the table.
    """

    source: str
    name: str
    type: ColumnType


@dataclass(frozen=True)
class Layout:
    """The table, columns, and key of a load.

    :param key: table columns that identify a row; empty if the whole table is replaced.
    :param removal_key: table column, part of the key, by which rows of removed pages are deleted; None if tombstones
        contain no column of the key.
    :param stamps: the last columns, whose values are the same in all rows of a load that appends.
    :param formats: columns in which null does not replace a value.
    :param unreturned: for each mark of rows (`returned.PARTIAL`, `returned.FAILED`), the columns that such a row does
        not replace; empty if rows have no marks.
    """

    table: TableName
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...]
    removal_key: str | None
    stamps: tuple[str, ...] = ()
    formats: frozenset[str] = frozenset()
    unreturned: Mapping[int, frozenset[str]] = field(default_factory=dict)

    def key_of(self, values: tuple[Any, ...]) -> str:
        """Return a row's key as text, such as `url='https://a.example/'`; without a key, its URL or id, or empty."""
        names = [column.name for column in self.columns]
        known_by = self.key or [column.name for column in self.columns if column.source in _IDENTITIES][:1]
        return ", ".join(f"{name}={_shown(values[names.index(name)])}" for name in known_by)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in the table."""
        return tuple(column.name for column in self.columns)


def _shown(value: Any) -> str:
    if not isinstance(value, str):
        return repr(value)
    text = without_secrets(value)
    if len(text) <= _SHOWN_CHARACTERS:
        return repr(text)
    return f"{text[:_SHOWN_CHARACTERS] + '…'!r} ({len(value.encode()):,} bytes)"


def url_column(names: Sequence[str]) -> str | None:
    """Return the column that identifies a page, link, or search result across runs.

    :param names: columns of a file.
    """
    # The page of a search result is described in separate columns; the requested URL is the result's URL.
    if "source_url" in names and "page_url" not in names:
        return "source_url"
    return "url" if "url" in names else None


def layout(
    table: TableName,
    found: Sequence[Column],
    key: Sequence[str] | None,
    chosen: Sequence[str] | Mapping[str, str] | None,
    *,
    replace: bool,
    stamps: Sequence[str] = (),
) -> Layout:
    """Return the layout of a load.

    :param found: the file's columns.
    :param key: the file's columns that identify a row; None: the result of `url_column`, or `id` for flat documents.
    :param chosen: the file's columns to load, or a mapping of these to names in the table; None: all.
    :param stamps: columns that the load adds, of which `LOAD_ID` identifies it. Rows are then appended: their key, if
        any, is unique within the load.
    :raises TableError: `key` or `chosen` names a missing column, or no column identifies a row.
    """
    types = {column.name: column.type for column in found}
    names = [name for name in types if name not in OF_A_RUN]
    if chosen is not None:
        renamed = dict(chosen) if isinstance(chosen, Mapping) else {name: name for name in chosen}
        # Any item of a file may have these fields, which is unknown before the last item.
        types = {**dict.fromkeys(OF_A_RUN, "text"), **types}
    else:
        renamed = {name: name for name in names}
    if unknown := [name for name in renamed if name not in types]:
        raise TableError(f"columns: the file has no column {unknown[0]!r}. Choose from {', '.join(names)}")
    if len(set(renamed.values())) < len(renamed):
        raise TableError(
            f"columns: two columns have the same name in the table ({', '.join(renamed.values())})"
        )
    if not all(renamed.values()):
        raise TableError("columns: a column of the file has no name; name or omit it in columns")
    identity = url_column(names)
    default = "id" if {"id", "digest"} <= {*names} else identity
    if taken := [name for name in renamed.values() if name in stamps]:
        raise TableError(
            f"columns: mode='append' adds a column {taken[0]!r}; rename that of the file in columns"
        )
    if key is None and stamps:
        key = ()
    elif key is None:
        key = () if default is None or (replace and default not in renamed) else (default,)
    if not key and not replace and not stamps:
        raise TableError(
            "key: these items have no default key. Set key, or mode='replace', which replaces all rows of the table "
            "by those of the file, or mode='append'"
        )
    if missing := [name for name in key if name not in renamed]:
        raise TableError(
            f"key: the column {missing[0]!r} is not loaded. Choose from {', '.join(renamed)}, add the column to "
            "columns, or, if it is a property of your items, declare it in result_schema"
        )
    parts = parts_of(types) if key else None
    data = {source: name for source, name in renamed.items() if source not in key}

    def loaded(some: frozenset[str]) -> frozenset[str]:
        return frozenset(name for source, name in data.items() if source in some)

    unreturned = {} if parts is None else {PARTIAL: loaded(parts.together), FAILED: loaded(parts.page)}
    removal_key = next((name for name in (default, identity) if name in key and not stamps), None)
    return Layout(
        table,
        (
            *(TableColumn(source, name, types[source]) for source, name in renamed.items()),
            *(TableColumn(name, name, "text") for name in stamps),
        ),
        (*(renamed[name] for name in key), *((LOAD_ID,) if key and stamps else ())),
        None if removal_key is None else renamed[removal_key],
        tuple(stamps),
        frozenset() if parts is None else loaded(parts.formats),
        unreturned if any(unreturned.values()) else {},
    )
