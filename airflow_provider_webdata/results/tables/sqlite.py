# SPDX-License-Identifier: Apache-2.0
"""SQLite: loads rows into a temporary table with `executemany`, and upserts from there with `ON CONFLICT`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from airflow_provider_webdata.results.tables.database import Database, Existing, Values
from airflow_provider_webdata.results.tables.layout import TableName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from airflow_provider_webdata.results.columns import ColumnType
    from airflow_provider_webdata.results.tables.layout import Layout, TableColumn

# Other types convert text that looks like a number, which loses the original text.
_TEXTS = ("TEXT", "CLOB", "VARCHAR", "CHARACTER", "NVARCHAR", "JSONTEXT", "BLOB", "")


class SQLite(Database):
    """SQLite, by the module `sqlite3`."""

    types: ClassVar[Mapping[ColumnType, str]] = {
        "text": "TEXT",
        "json": "TEXT",
        "integer": "INTEGER",
        "number": "REAL",
        "boolean": "BOOLEAN",
    }
    accepted: ClassVar[Mapping[ColumnType, Collection[str]]] = {
        "text": _TEXTS,
        "json": _TEXTS,
        "integer": ("INTEGER", "INT", "BIGINT", "BLOB", ""),
        "number": ("REAL", "DOUBLE", "DOUBLE PRECISION", "FLOAT", "BLOB", ""),
        "boolean": ("BOOLEAN", "BOOL", "INTEGER", "INT", "BLOB", ""),
    }
    # A column of this name would hide the number of a row.
    reserved = frozenset({"_rowid_"})
    ignores_case = True
    row_number = "_rowid_"
    drops_not_null = False

    def begin(self, table: TableName) -> None:  # noqa: ARG002
        # Python would begin a transaction implicitly, but not before CREATE TABLE. IMMEDIATE excludes other writers.
        self.connection.isolation_level = None
        self.execute("BEGIN IMMEDIATE")

    def existing(self, table: TableName) -> dict[str, Existing]:
        found = self.execute(
            'SELECT name, upper(type), "notnull" AND dflt_value IS NULL, pk OR EXISTS ('
            "SELECT 1 FROM pragma_index_list(?1, ?2) AS i, pragma_index_info(i.name, ?2) AS part "
            "WHERE part.name = t.name) FROM pragma_table_info(?1, ?2) AS t",
            (table.table, table.schema or "main"),
        ).fetchall()
        return {
            name: Existing(type_, bool(required), bool(is_key)) for name, type_, required, is_key in found
        }

    def mending(
        self,
        table: TableName,
        missing: Sequence[TableColumn],
        retyped: Sequence[TableColumn],
        nullable: Sequence[str],
    ) -> list[str]:
        # SQLite changes no column: another one takes its values.
        path = self.path_of(table)
        found = super().mending(table, missing, [], nullable)
        for column in retyped:
            name, former = self.quoted(column.name), self.quoted(f"{column.name}_former")
            found += [
                f"ALTER TABLE {path} RENAME COLUMN {name} TO {former}",
                f"ALTER TABLE {path} ADD COLUMN {self.definition(column)}",
                f"UPDATE {path} SET {name} = {former}",
                f"ALTER TABLE {path} DROP COLUMN {former}",
            ]
        return found

    def unique_index_statement(self, layout: Layout) -> str:
        # The schema precedes the index's name, not the table's.
        schema, table = layout.table.schema, layout.table.table
        index = self.path_of(TableName(schema, f"{table}_webdata_key"))
        return f"CREATE UNIQUE INDEX {index} ON {self.quoted(table)} ({self.listed(layout.key)})"

    def fill_stage(self, layout: Layout, rows: Iterator[Values]) -> int:
        marks = ", ".join("?" * len(layout.columns))
        cursor = self.connection.executemany(f"INSERT INTO {self.stage} VALUES ({marks})", rows)
        count: int = cursor.rowcount
        return max(count, 0)
