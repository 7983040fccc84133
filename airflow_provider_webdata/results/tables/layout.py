# SPDX-License-Identifier: Apache-2.0
"""The layout of a load (table, columns, and key), derived from a file's column names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.url_secrets import without_secrets
from airflow_provider_webdata.results.columns import REMOVED_AT, SOURCE, VERSION
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.returned import FAILED, PARTIAL, parts_of

if TYPE_CHECKING:
    from airflow_provider_webdata.results.columns import Column, ColumnType

PAGE = "page"
"""Column that identifies the rows of a file with versions."""

OF_VERSIONS = (VERSION, REMOVED_AT, SOURCE)
"""Columns that a table of a file with versions has besides `PAGE`, always under these names."""

_OF_A_RUN = frozenset({"change", "last_seen"})
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
    :param stamps: the last columns, whose values are the same in all rows of a load that appends.
    :param has_versions: whether the newest version of each row wins, and rows of removed pages are marked.
    :param formats: columns in which null does not replace a value.
    :param unreturned: for each mark of rows (`returned.PARTIAL`, `returned.FAILED`), the columns that such a row does
        not replace.
    :param signs: for each of these marks, the columns of a row that are all empty if it lacks those of `unreturned`.
    """

    table: TableName
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...]
    stamps: tuple[str, ...] = ()
    has_versions: bool = False
    formats: frozenset[str] = frozenset()
    unreturned: Mapping[int, frozenset[str]] = field(default_factory=dict)
    signs: Mapping[int, frozenset[str]] = field(default_factory=dict)

    @property
    def has_marks(self) -> bool:
        """Whether rows have a mark after their columns; see `returned`."""
        return self.has_versions or bool(self.unreturned)

    @property
    def data(self) -> tuple[str, ...]:
        """The columns that a row of a removed page does not have."""
        return tuple(name for name in self.names if name not in (*self.key, *OF_VERSIONS))

    def key_of(self, values: tuple[Any, ...]) -> str:
        """Return a row's key as text, such as `url='https://a.example/'`; without a key, its URL or id, or empty."""
        names = [column.name for column in self.columns]
        known_by = self.key or [column.name for column in self.columns if column.source in _IDENTITIES][:1]
        return ", ".join(f"{name}={shown(values[names.index(name)])}" for name in known_by)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in the table."""
        return tuple(column.name for column in self.columns)


def shown(value: Any) -> str:
    """Return a value for a message: text is cut, and without secrets."""
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

    A file has versions if it has the column `columns.VERSION`. Unless its rows are appended, they are identified by
    `PAGE`, and the columns of versions are loaded even if `chosen` does not name them.

    :param found: the file's columns.
    :param key: the file's columns that identify a row; None: the result of `url_column`, or `id` for flat documents.
    :param chosen: the file's columns to load, or a mapping of these to names in the table; None: all.
    :param stamps: columns that the load adds, of which `LOAD_ID` identifies it. Rows are then appended: their key, if
        any, is unique within the load.
    :raises TableError: `key` or `chosen` names a missing column, or no column identifies a row.
    """
    types = {column.name: column.type for column in found}
    has_versions = VERSION in types and not stamps
    omitted = frozenset[str]() if VERSION not in types else _OF_A_RUN
    names = [name for name in types if name not in (omitted | {*OF_VERSIONS} if stamps else omitted)]
    renamed = (
        dict(chosen)
        if isinstance(chosen, Mapping)
        else {name: name for name in (names if chosen is None else chosen)}
    )
    if unknown := [name for name in renamed if name not in types]:
        raise TableError(f"columns: the file has no column {unknown[0]!r}. Choose from {', '.join(names)}")
    if has_versions:
        if fixed := [name for name in OF_VERSIONS if renamed.get(name, name) != name]:
            raise TableError(f"columns: {fixed[0]!r} cannot be renamed; loads find it by its name")
        renamed = {**renamed, **{name: name for name in (PAGE, *OF_VERSIONS) if name not in renamed}}
    if len(set(renamed.values())) < len(renamed):
        raise TableError(
            f"columns: two columns have the same name in the table ({', '.join(renamed.values())})"
        )
    if not all(renamed.values()):
        raise TableError("columns: a column of the file has no name; name or omit it in columns")
    if taken := [name for name in renamed.values() if name in stamps]:
        raise TableError(
            f"columns: mode='append' adds a column {taken[0]!r}; rename that of the file in columns"
        )
    key = _key_of(key, names, renamed, has_versions=has_versions, replace=replace, appends=bool(stamps))
    parts = parts_of(types) if key else None
    data = {source: name for source, name in renamed.items() if source not in (*key, *OF_VERSIONS)}

    def loaded(some: frozenset[str]) -> frozenset[str]:
        return frozenset(name for source, name in data.items() if source in some)

    unreturned, signs = dict[int, frozenset[str]](), dict[int, frozenset[str]]()
    if parts is not None and (loaded(parts.together) or loaded(parts.page)):
        unreturned = {PARTIAL: loaded(parts.together), FAILED: loaded(parts.page)}
        signs = {
            PARTIAL: loaded(frozenset({parts.sign})) or unreturned[PARTIAL],
            FAILED: loaded(parts.of_failed),
        }
    return Layout(
        table,
        (
            *(TableColumn(source, name, types[source]) for source, name in renamed.items()),
            *(TableColumn(name, name, "text") for name in stamps),
        ),
        (*(renamed[name] for name in key), *((LOAD_ID,) if key and stamps else ())),
        tuple(stamps),
        has_versions,
        frozenset() if parts is None else loaded(parts.formats),
        unreturned,
        signs,
    )


def _key_of(
    given: Sequence[str] | None,
    names: Sequence[str],
    renamed: Mapping[str, str],
    *,
    has_versions: bool,
    replace: bool,
    appends: bool,
) -> Sequence[str]:
    """Return the file's columns that identify a row; none if the table is replaced, or rows are appended."""
    if has_versions:
        if given is not None and [*given] != [PAGE]:
            raise TableError(
                f"key: rows of a task with changes are identified by {PAGE!r}, which is the same in all runs; omit key"
            )
        return (PAGE,)
    if given is None:
        default = "id" if {"id", "digest"} <= {*names} else url_column(names)
        has_default = default in renamed or not (replace or default is None)
        given = (str(default),) if has_default and not appends else ()
    if not given and not replace and not appends:
        raise TableError(
            "key: these items have no default key. Set key, or mode='replace', which replaces all rows of the table "
            "by those of the file, or mode='append'"
        )
    if missing := [name for name in given if name not in renamed]:
        raise TableError(
            f"key: the column {missing[0]!r} is not loaded. Choose from {', '.join(renamed)}, add the column to "
            "columns, or, if it is a property of your items, declare it in result_schema"
        )
    return given
