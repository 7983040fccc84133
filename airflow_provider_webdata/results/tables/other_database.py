"""Other databases: deletes by key and inserts in standard SQL, 1,000 rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import BigInteger, Boolean, Column, Float, MetaData, String, Table, Text
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateTable

from airflow_provider_webdata.results.tables.database import (
    Database,
    Existing,
    Loaded,
    Values,
    batches,
    without_nul,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_provider_webdata.results.columns import ColumnType
    from airflow_provider_webdata.results.tables.layout import Layout, TableColumn, TableName

_BATCH_ROWS = 1_000
# Quoted column names also ignore case.
_IGNORE_CASE = frozenset({"bigquery", "mariadb", "mssql", "mysql", "redshift", "sqlite"})
# Maximum for an index in MySQL at four bytes per character.
_KEY_CHARACTERS = 700


class OtherDatabase(Database):
    """A database known only by its hook's SQLAlchemy dialect.

    The keys of a file are in memory during the load.
    """

    types: ClassVar[Mapping[ColumnType, str]] = {}

    def __init__(self, connection: Any, hook: Any) -> None:
        super().__init__(connection)
        self._hook = hook
        self._dialect = hook.get_sqlalchemy_engine().dialect
        self.ignores_case = self._dialect.name in _IGNORE_CASE
        self.mark = hook.placeholder
        # Some dialects escape percent signs in names, as statements with parameters require.
        self._doubles = "%%" in self._dialect.identifier_preparer.quote_identifier("%")

    @property
    def name(self) -> str:
        return str(self._dialect.name)

    def quoted(self, name: str) -> str:
        if "\0" in name:
            return super().quoted(name)
        return self._without_values(self._dialect.identifier_preparer.quote(name))

    def begin(self, table: TableName) -> None:  # noqa: ARG002
        if self._hook.supports_autocommit:
            self._hook.set_autocommit(self.connection, False)

    def existing(self, table: TableName) -> dict[str, Existing]:
        """Return the columns by name, with empty types, because the accepted types are unknown."""
        try:
            cursor = self.execute(f"SELECT * FROM {self.path_of(table)} WHERE 1 = 0")
        except Exception:  # noqa: BLE001 - each driver has its own; other errors recur when the table is created
            self.rollback()
            return {}
        return {column[0]: Existing("", required=False) for column in cursor.description}

    def create_statement(self, layout: Layout) -> str:
        key = layout.key
        columns = [
            Column(
                column.name,
                self._type(column, len(key) if column.name in key else 0),
                primary_key=column.name in key,
                nullable=column.name not in key,
                autoincrement=False,
            )
            for column in layout.columns
        ]
        table = Table(layout.table.table, MetaData(), *columns, schema=layout.table.schema)
        return self._without_values(str(CreateTable(table).compile(dialect=self._dialect)))

    def definition(self, column: TableColumn) -> str:
        return f"{self.quoted(column.name)} {self._type(column, 0).compile(dialect=self._dialect)}"

    def load(
        self, layout: Layout, rows: Iterator[Values], removed: dict[str, None], *, replace: bool
    ) -> Loaded:
        table = self.path_of(layout.table)
        places = [layout.names.index(name) for name in layout.key]
        loaded, seen, is_first = Loaded(), set[Values](), True
        matches = (f"{self.in_bound(self.quoted(name))} = {self.mark}" for name in layout.key)
        delete = f"DELETE FROM {self.in_bound(table)} WHERE {' AND '.join(matches)}"
        insert = self.in_bound(f"INSERT INTO {table} ({self.listed(layout.names)})")
        insert += f" VALUES ({', '.join([self.mark] * len(layout.names))})"
        for batch in batches(map(without_nul, rows), _BATCH_ROWS):
            if replace and is_first:
                self.execute(f"DELETE FROM {table}")
            is_first = False
            loaded.rows += len(batch)
            if layout.key:
                by_key = {tuple(values[place] for place in places): values for values in batch}
                loaded.duplicates += len(batch) - len(by_key) + len(seen & by_key.keys())
                if not replace or seen & by_key.keys():
                    self.cursor().executemany(delete, [*by_key])
                seen.update(by_key)
                batch = [*by_key.values()]
            self.cursor().executemany(insert, batch)
        loaded.rows -= loaded.duplicates
        if removed and layout.removal_key is not None:
            loaded.deleted = self.delete_pages(table, self.quoted(layout.removal_key), [*removed])
            if layout.key == (layout.removal_key,):
                # The file has the page first, and its removal later.
                came_first = len(seen & {(url,) for url in removed})
                loaded.rows -= came_first
                loaded.deleted -= came_first
        return loaded

    def delete_pages(self, table: str, column: str, urls: Sequence[str]) -> int:
        deleted = 0
        for url in urls:
            cursor = self.execute(
                f"DELETE FROM {self.in_bound(f'{table} WHERE {column}')} = {self.mark}", (url,)
            )
            deleted += max(cursor.rowcount, 0)
        return deleted

    def _without_values(self, sql: str) -> str:
        return sql.replace("%%", "%") if self._doubles else sql

    def _type(self, column: TableColumn, of_key: int) -> Any:
        """Return a column's type. `of_key` is the number of columns in its key, or 0 if it is not in the key."""
        if column.type == "integer":
            return BigInteger()
        if column.type == "number":
            return Float(53)
        if column.type == "boolean":
            return Boolean()
        if of_key:
            # Indexes require a maximum length. MySQL's default collation considers /A and /a equal.
            short = String(_KEY_CHARACTERS // of_key)
            exact = mysql.VARCHAR(_KEY_CHARACTERS // of_key, collation="utf8mb4_bin")
            return short.with_variant(exact, "mysql", "mariadb")
        return Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
