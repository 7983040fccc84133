"""The layout of a load: table, columns, and key, decided from the names of a file's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_webdata.results.tables.errors import TableError

if TYPE_CHECKING:
    from airflow_provider_webdata.results.columns import Column, ColumnType

OF_A_RUN = ("change", "last_seen", "page")
"""What an item says of its run, and a table of the newest state has no use for; loaded where `columns` names it."""


@dataclass(frozen=True)
class TableName:
    """A table, and its schema where one is named."""

    schema: str | None
    table: str

    def __str__(self) -> str:
        """Return it as its author writes it."""
        return self.table if self.schema is None else f"{self.schema}.{self.table}"

    @property
    def parts(self) -> tuple[str, ...]:
        """Its names, from the outside in."""
        return (self.table,) if self.schema is None else (self.schema, self.table)


def table_name(given: str) -> TableName:
    """Return the table that `name` or `schema.name` names.

    :raises TableError: it names none.
    """
    *schema, table = given.split(".")
    if len(schema) > 1 or not all((*schema, table)) or "\0" in given:
        raise TableError(f"table must be 'name' or 'schema.name' (given: {given!r})")
    return TableName(schema[0] if schema else None, table)


@dataclass(frozen=True)
class TableColumn:
    """A column that is loaded.

    :param source: its name in the file.
    :param name: its name in the table.
    """

    source: str
    name: str
    type: ColumnType


@dataclass(frozen=True)
class Layout:
    """What is loaded where.

    :param key: names, in the table, of the columns that tell rows apart; none where the whole table is replaced.
    :param removal_key: name, in the table, of the column of the key by which rows of removed pages are deleted; None if
        the key has none that tombstones know.
    """

    table: TableName
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...]
    removal_key: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in the table."""
        return tuple(column.name for column in self.columns)


def url_column(names: Sequence[str]) -> str | None:
    """Return the column by which a page, link or search result is known over all runs.

    :param names: a file's columns.
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
) -> Layout:
    """Return what is loaded where.

    :param found: the file's columns.
    :param key: the file's columns that tell rows apart; None: what `url_column` says, or `id` of flat documents.
    :param chosen: the file's columns that are loaded, or their names in the table by those; None: all.
    :raises TableError: `key` or `chosen` names a missing column, or no column identifies a row.
    """
    types = {column.name: column.type for column in found}
    names = [name for name in types if name not in OF_A_RUN]
    if chosen is not None:
        renamed = dict(chosen) if isinstance(chosen, Mapping) else {name: name for name in chosen}
        # Files of items have them where the items do, which is not known before the last one.
        types = {**dict.fromkeys(OF_A_RUN, "text"), **types}
    else:
        renamed = {name: name for name in names}
    if unknown := [name for name in renamed if name not in types]:
        raise TableError(
            f"columns: the file has no column {unknown[0]!r}; it has {', '.join(names)}. Name one of these"
        )
    if len(set(renamed.values())) < len(renamed):
        raise TableError(f"columns: two columns have one name in the table ({', '.join(renamed.values())})")
    identity = url_column(names)
    default = "id" if {"id", "digest"} <= {*names} else identity
    if key is None:
        key = () if default is None or (replace and default not in renamed) else (default,)
    if not key and not replace:
        raise TableError(
            "key: these items have no column that tells them apart; name one, or say mode='replace', which makes "
            "the table hold what the file holds"
        )
    if missing := [name for name in key if name not in renamed]:
        raise TableError(
            f"key: the column {missing[0]!r} is not among those that are loaded ({', '.join(renamed)}); name one of "
            "these, add it to columns, or, if it is a property of your items, declare it by result_schema="
        )
    removal_key = next((name for name in (default, identity) if name in key), None)
    return Layout(
        table,
        tuple(TableColumn(source, name, types[source]) for source, name in renamed.items()),
        tuple(renamed[name] for name in key),
        None if removal_key is None else renamed[removal_key],
    )
