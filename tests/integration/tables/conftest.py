# SPDX-License-Identifier: Apache-2.0
"""Real databases, each reached by a hook of common-sql."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import psycopg2
import pytest
from airflow.providers.common.sql.hooks.sql import DbApiHook
from airflow.providers.postgres.hooks.postgres import PostgresHook
from airflow.providers.sqlite.hooks.sqlite import SqliteHook
from airflow.sdk import Connection

from airflow_provider_webdata.results.columns import columns_of
from airflow_provider_webdata.results.files.output import OutputFile
from tests.support.postgres import Postgres


class DuckDBHook(DbApiHook):
    """What a hook for DuckDB is, whoever wrote it."""

    conn_name_attr = "duckdb_conn_id"

    def get_conn(self) -> Any:
        return duckdb.connect(self.connection.host)


class OlderPostgresHook(PostgresHook):
    """As it connects where psycopg 3 is not installed."""

    def get_conn(self) -> Any:
        given = self.connection
        return psycopg2.connect(
            host=given.host,
            port=given.port,
            user=given.login,
            password=given.password,
            dbname=given.schema,
            **given.extra_dejson,
        )


HOOKS: dict[str, Any] = {
    "postgresql": PostgresHook,
    "postgresql, psycopg2": OlderPostgresHook,
    "sqlite": SqliteHook,
    "duckdb": DuckDBHook,
}
# One hook for each database.
DATABASES = ["postgresql", "sqlite", "duckdb"]


@dataclass
class Target:
    """A database that is loaded, and how a test looks into it by itself."""

    name: str
    connect: Callable[[], Any]
    conn_id: str = "warehouse"

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        connection = self.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(sql)
            found = [tuple(row) for row in cursor.fetchall()] if cursor.description else []
            connection.commit()
            return found
        finally:
            connection.close()

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return columns of a table, in the order of the first."""
        listed = ", ".join(f'"{name}"' for name in columns)
        return sorted(self.query(f'SELECT {listed} FROM "{table}"'))

    def text(self, column: str, type_: str) -> str:
        """Return a column in SQL; JSON as text, since psycopg2 would parse it."""
        return (
            f'"{column}"::text' if self.name.startswith("postgresql") and type_ == "json" else f'"{column}"'
        )

    @property
    def keeps_nul(self) -> bool:
        return self.name in ("sqlite", "duckdb")


@pytest.fixture(scope="session")
def postgres_url(postgres: Postgres) -> str:
    return postgres.create_database("warehouse").replace("+psycopg2", "")


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    """An empty database under the connection `warehouse`; which one is the test's parameter."""
    name: str = request.param
    hook = HOOKS[name]
    if issubclass(hook, PostgresHook):
        url: str = request.getfixturevalue("postgres_url")
        parts = urlsplit(url)
        schema = f"s{uuid.uuid4().hex}"
        options = f"-c search_path={schema}"
        fields: dict[str, Any] = {
            "conn_type": "postgres",
            "host": parts.hostname,
            "port": parts.port,
            "login": parts.username,
            "password": parts.password,
            "schema": parts.path[1:],
            "extra": {"options": options},
        }
        target = Target(name, lambda: psycopg2.connect(url, options=options))
        target.query(f"CREATE SCHEMA {schema}")
    else:
        file = str(tmp_path / "warehouse.db")
        fields = {"conn_type": "duckdb" if name == "duckdb" else "sqlite", "host": file}
        target = Target(name, lambda: duckdb.connect(file) if name == "duckdb" else sqlite3.connect(file))
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps(fields))
    if hook not in (PostgresHook, SqliteHook):
        monkeypatch.setattr(
            Connection, "get_hook", lambda self, **_: hook(**{hook.conn_name_attr: self.conn_id})
        )
    return target


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """Write items as operators do, and return the file's path."""

    def write(items: list[Any], name: str = "items.jsonl", kind: str = "document") -> str:
        path = str(tmp_path / name)
        with OutputFile(path, columns_of(kind)) as file:
            file.write(items)
        return path

    return write
