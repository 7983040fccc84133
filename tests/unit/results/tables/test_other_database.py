"""The SQL for databases that no test runs, by their dialects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.exc import NoSuchModuleError

from airflow_provider_webdata.results.columns import Column
from airflow_provider_webdata.results.tables import load
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.layout import Layout, layout, table_name
from airflow_provider_webdata.results.tables.other_database import OtherDatabase

COLUMNS = [
    Column("url", ("url",), "text"),
    Column("title", ("title",), "text"),
    Column("price", ("price",), "number"),
    Column("in_stock", ("inStock",), "boolean"),
    Column("labelText", ("labelText",), "json"),
]


class Redshift(postgresql.dialect):
    name = "redshift"


class Odbc(mssql.dialect):
    def __init__(self) -> None:
        super().__init__(paramstyle="qmark")


class Snowflake(DefaultDialect):
    """As that of snowflake-sqlalchemy: names without quotes are stored in upper case."""

    name = "snowflake"
    requires_name_normalize = True


def pages(**arguments: Any) -> Layout:
    return layout(table_name("pages"), COLUMNS, ["url"], None, **{"replace": False, **arguments})


class Cursor:
    """Records statements; a table has the columns as the database stores their names."""

    def __init__(self, stored: list[str]) -> None:
        self.description = [(name, None) for name in stored]
        self.rowcount = 0
        self.statements: list[tuple[str, list[Any]]] = []

    def execute(self, sql: str, values: Any = ()) -> None:
        self.statements.append((sql, [values]))

    def executemany(self, sql: str, values: list[Any]) -> None:
        self.statements.append((sql, values))


def database(dialect: Any, stored: list[str] | None = None) -> tuple[OtherDatabase, Cursor]:
    cursor = Cursor(stored or [])
    hook = SimpleNamespace(get_sqlalchemy_engine=lambda: SimpleNamespace(dialect=dialect), placeholder="%s")
    return OtherDatabase(SimpleNamespace(cursor=lambda: cursor), hook), cursor


@pytest.mark.parametrize(
    ("dialect", "columns"),
    [
        (
            oracle.dialect,
            'url VARCHAR2(700 CHAR) NOT NULL, title CLOB, price BINARY_DOUBLE, in_stock SMALLINT, "labelText" CLOB',
        ),
        (
            mssql.dialect,
            "url NVARCHAR(450) COLLATE Latin1_General_100_BIN2 NOT NULL, title NVARCHAR(max) NULL, "
            "price FLOAT(53) NULL, in_stock BIT NULL, [labelText] NVARCHAR(max) NULL",
        ),
        (
            mysql.dialect,
            "url VARCHAR(700) COLLATE utf8mb4_bin NOT NULL, title LONGTEXT, price FLOAT(53), in_stock BOOL, "
            "`labelText` LONGTEXT",
        ),
        (
            Redshift,
            "url VARCHAR(700) NOT NULL, title VARCHAR(65535), price FLOAT(53), in_stock BOOLEAN, "
            '"labelText" VARCHAR(65535)',
        ),
    ],
)
def test_a_new_table_holds_any_text_and_number(dialect: Any, columns: str) -> None:
    """Text in any script, keys that differ in case alone, and numbers of 64 bits."""
    found, _ = database(dialect())
    assert " ".join(found.create_statement(pages()).split()) == (
        f"CREATE TABLE pages ( {columns}, PRIMARY KEY (url) )"
    )


def test_columns_of_an_append_can_be_compared() -> None:
    made = pages(stamps=["load_id", "loaded_at"])
    for dialect, type_ in ((oracle.dialect, "VARCHAR2(1000 CHAR)"), (mssql.dialect, "NVARCHAR(1000)")):
        found, _ = database(dialect())
        assert f"loaded_at {type_}" in found.create_statement(made)
        assert found.add_statement(made.table, made.columns[-1]) == f"ALTER TABLE pages ADD loaded_at {type_}"


@pytest.mark.parametrize("dialect", [oracle.dialect, Snowflake])
def test_a_table_with_names_in_upper_case_is_found_again(dialect: Any) -> None:
    """Names without quotes are stored so; names with quotes, as given."""
    stored = ["URL", "TITLE", "PRICE", "IN_STOCK", "labelText", "LOAD_ID", "LOADED_AT"]
    found, _ = database(dialect(), stored)
    existing = found.existing(table_name("pages"))
    assert {"load_id", "loaded_at"} <= existing.keys()
    assert load._fit(found, pages(), existing, add_columns=False) == []
    lacking, _ = database(dialect(), stored[:4])
    with pytest.raises(TableError, match="has no column 'labelText'"):
        load._fit(lacking, pages(), lacking.existing(table_name("pages")), add_columns=False)


@pytest.mark.parametrize(
    ("dialect", "marks", "flag"),
    [
        (oracle.dialect, [":1", ":2", ":3", ":4", ":5"], 1),
        (mssql.dialect, ["%s"] * 5, 1),
        (Odbc, ["?"] * 5, 1),
        (Snowflake, ["%s"] * 5, 1),
        (Redshift, ["%s"] * 5, True),
    ],
)
def test_values_are_marked_as_the_driver_expects(dialect: Any, marks: list[str], flag: Any) -> None:
    found, cursor = database(dialect())
    found.load(pages(), iter([("a", "b", 1.5, True, None)]), {}, replace=False)
    (delete, keys), (insert, rows) = cursor.statements
    assert delete == f"DELETE FROM pages WHERE url = {marks[0]}"
    assert insert.endswith(f" VALUES ({', '.join(marks)})")
    assert (keys, rows) == ([("a",)], [("a", "b", 1.5, flag, None)])
    assert type(rows[0][3]) is type(flag)


def test_a_database_that_cannot_be_loaded_is_refused_by_name() -> None:
    class BigQuery(DefaultDialect):
        name = "bigquery"

    with pytest.raises(
        TableError, match=r"conn_id: bigquery has no transactions[\s\S]*Load the file with dlt"
    ):
        database(BigQuery())

    def missing() -> None:
        raise NoSuchModuleError("Can't load plugin: sqlalchemy.dialects:snowflake")

    with pytest.raises(TableError, match=r"Can't load plugin: .*snowflake[\s\S]*Install its package"):
        OtherDatabase(SimpleNamespace(), SimpleNamespace(get_sqlalchemy_engine=missing))
