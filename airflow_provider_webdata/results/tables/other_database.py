"""Other databases: deletes by key and inserts in standard SQL, 1,000 rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.exceptions import AirflowException
from sqlalchemy import BigInteger, Boolean, Column, Float, MetaData, SmallInteger, String, Table, Text
from sqlalchemy.dialects import mssql, mysql, oracle
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateTable

from airflow_provider_webdata.common.links import docs_link
from airflow_provider_webdata.results.tables.database import (
    Database,
    Existing,
    Loaded,
    Values,
    batches,
    without_nul,
)
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.layout import LOAD_ID, LOADED_AT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_provider_webdata.results.columns import ColumnType
    from airflow_provider_webdata.results.tables.layout import Layout, TableColumn, TableName

_BATCH_ROWS = 1_000
# Databases without transactions of several statements, by the names of their dialects.
_NO_TRANSACTIONS = {
    "athena",
    "awsathena",
    "bigquery",
    "clickhouse",
    "clickhousedb",
    "databricks",
    "drill",
    "druid",
    "hive",
    "impala",
    "pinot",
    "presto",
    "spark",
    "trino",
}
_IGNORE_CASE = frozenset({"mariadb", "mssql", "mysql", "redshift", "sqlite"})
# Maximum for an index: in MySQL 3,072 bytes at four per character, in SQL Server 900 bytes at two.
_KEY_CHARACTERS = 700
_KEY_CHARACTERS_OF_SQL_SERVER = 450
_WAY_OUT = "Load the file with dlt, or with the database's own operator: " + docs_link(
    "cookbook/into_snowflake_or_bigquery.md"
)
# More than the ids of a DAG, a task, and a run have together.
_LOAD_ID_CHARACTERS = 1_000
# Default collations of MySQL and SQL Server consider /A and /a equal.
_MYSQL_EXACT = "utf8mb4_bin"
_SQL_SERVER_EXACT = "Latin1_General_100_BIN2"


class OtherDatabase(Database):
    """A database known only by its hook's SQLAlchemy dialect.

    The keys of a file are in memory during the load.
    """

    types: ClassVar[Mapping[ColumnType, str]] = {}

    def __init__(self, connection: Any, hook: Any) -> None:
        super().__init__(connection)
        self._hook = hook
        try:
            self._dialect = hook.get_sqlalchemy_engine().dialect
        except (AirflowException, ImportError, NotImplementedError, SQLAlchemyError) as error:
            raise TableError(
                f"conn_id: the database needs a dialect of SQLAlchemy ({type(error).__name__}: {error}). Install its "
                f"package on the workers. {_WAY_OUT}"
            ) from error
        if self.name in _NO_TRANSACTIONS:
            raise TableError(f"conn_id: {self.name} has no transactions, which a load needs. {_WAY_OUT}")
        self.ignores_case = self.name in _IGNORE_CASE
        self._is_numbered = self.name == "oracle"
        if self._is_numbered:
            self.mark = ":1"
        else:
            # ODBC: the hook has only the default of all hooks.
            self.mark = "?" if self._dialect.paramstyle == "qmark" else hook.placeholder
        # Some dialects escape percent signs in names, as statements with parameters require.
        self._doubles = "%%" in self._dialect.identifier_preparer.quote_identifier("%")

    @property
    def name(self) -> str:
        return str(self._dialect.name)

    def folded(self, name: str) -> str:
        # Oracle and Snowflake store names without quotes in upper case.
        return (
            self._dialect.denormalize_name(super().folded(name)) if self._normalizes else super().folded(name)
        )

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
        names = [column[0] for column in cursor.description]
        if self._normalizes:
            names = [str(self._dialect.normalize_name(name)) for name in names]
        return {name: Existing("", required=False) for name in names}

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

    def add_statement(self, table: TableName, column: TableColumn) -> str:
        statement = super().add_statement(table, column)
        if self.name in ("mssql", "oracle"):
            return statement.replace(" ADD COLUMN ", " ADD ", 1)
        return statement

    def load(
        self, layout: Layout, rows: Iterator[Values], removed: dict[str, None], *, replace: bool
    ) -> Loaded:
        table = self.path_of(layout.table)
        places = [layout.names.index(name) for name in layout.key]
        loaded, seen, is_first = Loaded(), set[Values](), True
        matches = (
            f"{self.in_bound(self.quoted(name))} = {mark}"
            for name, mark in zip(layout.key, self._marks(len(layout.key)), strict=True)
        )
        delete = f"DELETE FROM {self.in_bound(table)} WHERE {' AND '.join(matches)}"
        insert = self.in_bound(f"INSERT INTO {table} ({self.listed(layout.names)})")
        insert += f" VALUES ({', '.join(self._marks(len(layout.names)))})"
        for batch in batches(self._storable(layout, rows), _BATCH_ROWS):
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

    @property
    def _normalizes(self) -> bool:
        return bool(self._dialect.requires_name_normalize)

    def _marks(self, count: int) -> list[str]:
        return [f":{number + 1}" for number in range(count)] if self._is_numbered else [self.mark] * count

    def _storable(self, layout: Layout, rows: Iterator[Values]) -> Iterator[Values]:
        flags = [place for place, column in enumerate(layout.columns) if column.type == "boolean"]
        has_booleans = self._dialect.supports_native_boolean and self.name != "oracle"
        if has_booleans or not flags:
            return map(without_nul, rows)
        return (
            without_nul(tuple(int(value) if isinstance(value, bool) else value for value in values))
            for values in rows
        )

    def _without_values(self, sql: str) -> str:
        return sql.replace("%%", "%") if self._doubles else sql

    def _type(self, column: TableColumn, of_key: int) -> Any:
        """Return a column's type. `of_key` is the number of columns in its key, or 0 if it is not in the key."""
        if column.type == "integer":
            return BigInteger()
        if column.type == "number":
            return Float(53).with_variant(oracle.BINARY_DOUBLE(), "oracle")
        if column.type == "boolean":
            # Before version 23, Oracle has no booleans.
            return Boolean().with_variant(SmallInteger(), "oracle")
        if of_key:
            # Indexes require a maximum length.
            length, exact = _KEY_CHARACTERS // of_key, _KEY_CHARACTERS_OF_SQL_SERVER // of_key
            return (
                String(length)
                .with_variant(mysql.VARCHAR(length, collation=_MYSQL_EXACT), "mysql", "mariadb")
                .with_variant(mssql.NVARCHAR(exact, collation=_SQL_SERVER_EXACT), "mssql")
            )
        text = (
            Text()
            .with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
            # Redshift would store 256 bytes.
            .with_variant(String(65_535), "redshift")
        )
        if column.name in (LOAD_ID, LOADED_AT):
            # Long texts cannot be compared there.
            text = text.with_variant(oracle.VARCHAR2(_LOAD_ID_CHARACTERS), "oracle")
            return text.with_variant(mssql.NVARCHAR(_LOAD_ID_CHARACTERS), "mssql")
        return text.with_variant(mssql.NVARCHAR(), "mssql")
