# SPDX-License-Identifier: Apache-2.0
"""DuckDB: loads Arrow tables into a temporary table, and upserts from there with `ON CONFLICT`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.results.tables.database import Database, Existing, Values, batches
from airflow_provider_webdata.results.tables.errors import is_rejection

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from airflow_provider_webdata.results.columns import ColumnType
    from airflow_provider_webdata.results.tables.layout import Layout, TableName

_TEXTS = ("VARCHAR",)


class DuckDB(Database):
    """DuckDB, by the module `duckdb`. Without pyarrow, rows are inserted one by one."""

    types: ClassVar[Mapping[ColumnType, str]] = {
        "text": "VARCHAR",
        "json": "VARCHAR",
        "integer": "BIGINT",
        "number": "DOUBLE",
        "boolean": "BOOLEAN",
    }
    accepted: ClassVar[Mapping[ColumnType, Collection[str]]] = {
        "text": _TEXTS,
        "json": ("JSON", *_TEXTS),
        "integer": ("BIGINT", "HUGEINT", "INTEGER"),
        "number": ("DOUBLE",),
        "boolean": ("BOOLEAN",),
    }
    # A column of this name would hide the number of a row.
    reserved = frozenset({"rowid"})
    ignores_case = True
    row_number = "rowid"
    has_savepoints = False

    def begin(self, table: TableName) -> None:  # noqa: ARG002
        # DuckDB lets only one process write to a file at a time.
        self.execute("BEGIN TRANSACTION")

    def cursor(self) -> Any:
        # A separate cursor would be another transaction.
        return self.connection

    def existing(self, table: TableName) -> dict[str, Existing]:
        found = self.execute(
            "SELECT column_name, data_type, is_nullable = 'NO' AND column_default IS NULL, EXISTS ("
            "SELECT 1 FROM duckdb_constraints() AS c WHERE c.constraint_type IN ('PRIMARY KEY', 'UNIQUE') "
            "AND (c.database_name, c.schema_name, c.table_name) = (table_catalog, table_schema, columns.table_name) "
            "AND list_contains(c.constraint_column_names, column_name)) "
            "FROM information_schema.columns AS columns WHERE lower(table_name) = lower(?) "
            "AND lower(table_schema) = lower(coalesce(?, current_schema())) "
            "AND table_catalog = current_database()",
            (table.table, table.schema),
        ).fetchall()
        return {name: Existing(*column) for name, *column in found}

    def step_after(self, error: BaseException, table: TableName) -> str:  # noqa: ARG002
        if not is_rejection(error):
            return ""
        return (
            "DuckDB does not name the row: load the file into a new table, and query that for the rows that the "
            "message describes. Correct the table or the file, then clear the task"
        )

    def fill_stage(self, layout: Layout, rows: Iterator[Values]) -> int:
        try:
            import pyarrow as pa
        except ImportError:
            pa = None
        count = 0
        for batch in batches(rows):
            count += len(batch)
            if pa is None:
                marks = ", ".join("?" * len(layout.columns))
                self.connection.executemany(f"INSERT INTO {self.stage} VALUES ({marks})", batch)
            else:
                self._insert_arrow(layout, batch, pa)
        return count

    def _insert_arrow(self, layout: Layout, batch: list[Values], pa: Any) -> None:
        from airflow_provider_webdata.results.files.parquet import arrow_type

        arrays = [
            pa.array([values[place] for values in batch], type=arrow_type(column.type))
            for place, column in enumerate(layout.columns)
        ]
        name = f"{self.stage}_arrow"
        self.connection.register(name, pa.table(arrays, names=[f"c{place}" for place in range(len(arrays))]))
        try:
            self.execute(f"INSERT INTO {self.stage} SELECT * FROM {name}")
        finally:
            self.connection.unregister(name)
