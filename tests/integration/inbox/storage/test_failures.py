# SPDX-License-Identifier: Apache-2.0
"""Failures of the database: errors that reveal nothing, and recovery once the cause is gone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event, text

from airflow_provider_webdata.airflow_db.errors import ContendedError, RefusedError, StoreUnavailableError
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import metadata
from tests.support.postgres import Postgres
from tests.support.tables import each_row

from .conftest import Database, NewOne

CONN = "webdata_default"
BODY = b'{"type": "content-of-a-body"}'


@dataclass(frozen=True)
class Trouble:
    """A kind of failure, which lasts while `on` is entered."""

    name: str
    on: Callable[[Database], Iterator[None]]
    says: str
    error: type[Exception] = StoreUnavailableError
    reading_fails: bool = True


@contextmanager
def held(database: Database, *statements: str) -> Iterator[None]:
    with database.engine().connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
        try:
            yield
        finally:
            connection.rollback()


def no_tables(database: Database) -> Iterator[None]:
    engine = database.engine()
    metadata.drop_all(engine)
    yield
    metadata.create_all(engine)


def old_table(database: Database) -> Iterator[None]:
    alter = "ALTER TABLE webdata_inbox_delivery RENAME COLUMN {} TO {}"
    engine = database.engine()
    with engine.begin() as connection:
        connection.execute(text(alter.format("monitor_id", "x")))
    yield
    with engine.begin() as connection:
        connection.execute(text(alter.format("x", "monitor_id")))


def locked_file(database: Database) -> Iterator[None]:
    with held(database, "BEGIN IMMEDIATE"):
        yield


def locked_table(database: Database) -> Iterator[None]:
    with held(database, "LOCK TABLE webdata_inbox_delivery IN ACCESS EXCLUSIVE MODE"):
        yield


def no_connection(database: Database) -> Iterator[None]:
    with database.engine().connect() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar()
    admin = create_engine(database.url.rsplit("/", 1)[0] + "/postgres", isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
        connection.execute(
            text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        )
        try:
            yield
        finally:
            connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true"))
    admin.dispose()


TROUBLES = [
    Trouble("sqlite", no_tables, "Run `airflow db migrate`"),
    Trouble("postgresql", no_tables, "Run `airflow db migrate`"),
    Trouble("sqlite", old_table, "Run `airflow db migrate`"),
    Trouble("postgresql", old_table, "Run `airflow db migrate`"),
    # In WAL mode, which Airflow sets, readers continue.
    Trouble("sqlite", locked_file, "locked by another transaction", reading_fails=False),
    Trouble("postgresql", locked_table, "locked by another transaction", ContendedError),
    Trouble("postgresql", no_connection, "cannot be reached"),
]


CASES = [
    *((trouble, True) for trouble in TROUBLES),
    # Only a lost connection depends on whether the pool tests it first.
    (TROUBLES[-1], False),
]


@pytest.mark.usefixtures("short_lock_waits")
@pytest.mark.parametrize(
    ("trouble", "pre_ping"),
    CASES,
    ids=[f"{one.name}-{one.on.__name__}{'' if ping else '-no_ping'}" for one, ping in CASES],
)
def test_a_failure_begins_and_ends(
    request: pytest.FixtureRequest, new: NewOne, trouble: Trouble, pre_ping: bool
) -> None:
    database: Database = request.getfixturevalue(
        "sqlite_database" if trouble.name == "sqlite" else "postgres_database"
    )
    engine = database.engine(pool_pre_ping=pre_ping)
    store = DeliveryStore(engine)
    secret_parts = [part for part in (engine.url.password, engine.url.host, engine.url.username) if part]
    one = new(body=BODY, key="key-of-a-wait")
    store.add([new()])
    with contextmanager(trouble.on)(database):
        calls: list[Callable[[], object]] = [lambda: store.add([one])]
        if trouble.reading_fails:
            calls += [lambda: store.read(CONN, DeliveryFilter(), 0, 10), lambda: store.get(CONN, 1)]
        else:
            assert store.read(CONN, DeliveryFilter(), 0, 10).deliveries
        for call in calls:
            with pytest.raises(trouble.error, match=trouble.says) as caught:
                call()
            shown = repr(caught.value) + str(caught.value)
            assert caught.value.__cause__ is None
            assert caught.value.__suppress_context__
            for part in [*secret_parts, "content-of-a-body", "key-of-a-wait", "INSERT", "SELECT"]:
                assert part not in shown
            assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    assert store.add([one]) == [True]
    assert "key-of-a-wait" in [d.key for d in store.read(CONN, DeliveryFilter(), 0, 10).deliveries]


@pytest.mark.parametrize("pre_ping", [True, False])
def test_a_crashed_server(
    stoppable_postgres: Postgres, postgres_database: Database, new: NewOne, pre_ping: bool
) -> None:
    store = postgres_database.store(pool_pre_ping=pre_ping)
    before, after = new("before"), new("after")
    assert store.add([before]) == [True]
    stoppable_postgres.stop(crash=True)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            store.add([after])
    stoppable_postgres.start()
    assert store.add([before, after]) == [False, True]


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_a_connection_lost_before_its_first_statement(
    postgres_database: Database, new: NewOne, driver: str
) -> None:
    engine = postgres_database.engine(postgres_database.url.replace("psycopg2", driver))
    store = DeliveryStore(engine)
    store.add([new("before")])

    # The pool has just tested it.
    @event.listens_for(engine, "checkout")
    def lose(connection: Any, *_: object) -> None:
        connection.close()

    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        store.has_news(0)
    event.remove(engine, "checkout", lose)
    assert store.has_news(0)


def test_an_exhausted_pool(sqlite_database: Database, new: NewOne) -> None:
    engine = sqlite_database.engine(pool_size=1, max_overflow=0, pool_timeout=0.05)
    store = DeliveryStore(engine)
    with (
        engine.connect(),
        pytest.raises(StoreUnavailableError, match="all connections of Airflow's database pool"),
    ):
        store.add([new()])
    assert store.add([new()]) == [True]


def test_a_read_only_database(database: Database, new: NewOne) -> None:
    url, options = database.url, {"options": "-c default_transaction_read_only=on"}
    if database.kind == "sqlite":
        url, options = f"sqlite:///file:{url.removeprefix('sqlite:///')}?mode=ro&uri=true", {}
    # Without Airflow's settings for SQLite, which it could not apply.
    engine = create_engine(url, connect_args=options)
    with pytest.raises(StoreUnavailableError, match="read-only"):
        DeliveryStore(engine).add([new()])
    engine.dispose()


def test_a_role_without_permissions(postgres_database: Database, new: NewOne) -> None:
    with postgres_database.engine().begin() as connection:
        for statement in (
            "DROP ROLE IF EXISTS reader",
            "CREATE ROLE reader",
            "GRANT USAGE ON SCHEMA public TO reader",
        ):
            connection.exec_driver_sql(statement)
    engine = create_engine(postgres_database.url, connect_args={"options": "-c role=reader"})
    store = DeliveryStore(engine)
    for action in (store.end, lambda: store.add([new()])):
        with pytest.raises(StoreUnavailableError, match="role lacks a permission for the inbox's tables"):
            action()
    engine.dispose()


def test_a_full_disk(sqlite_database: Database, new: NewOne) -> None:
    engine = sqlite_database.engine()
    with engine.connect() as connection:
        # The limit belongs to the connection, which the pool hands out again.
        connection.exec_driver_sql("PRAGMA max_page_count = 20")
    store = DeliveryStore(engine)
    with pytest.raises(StoreUnavailableError, match="has run out of"):
        store.add([new(body=b"x" * 200_000)])
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 100000")
    assert store.add([new(body=b"x" * 200_000)]) == [True]


@each_row("event", ["a\x00b", "\ud800", "x" * 201])
def test_content_that_the_database_rejects(postgres_database: Database, new: NewOne, event: str) -> None:
    store = postgres_database.store()
    before = postgres_database.job_ids()
    with pytest.raises(RefusedError, match="rejects the content") as caught:
        store.add([new("neighbor"), new(event=event)])
    assert event not in str(caught.value)
    assert postgres_database.job_ids() == before
    assert store.add([new("neighbor")]) == [True]


def test_the_limits_end_with_the_transaction(database: Database, new: NewOne) -> None:
    """Airflow uses the same connections."""
    engine = database.engine(
        pool_size=1,
        max_overflow=0,
        **({"connect_args": {"timeout": 17}} if database.kind == "sqlite" else {}),
    )
    asked = {
        "sqlite": ["PRAGMA busy_timeout"],
        "postgresql": [
            "SHOW lock_timeout",
            "SHOW statement_timeout",
            "SHOW idle_in_transaction_session_timeout",
        ],
    }[database.kind]

    def limits() -> list[object]:
        with engine.connect() as connection:
            return [connection.exec_driver_sql(query).scalar() for query in asked]

    before = limits()
    assert before[0] in (17000, "0")
    store = DeliveryStore(engine)
    store.add([new()])
    store.read(CONN, DeliveryFilter(), 0, 10)
    with pytest.raises(RefusedError):
        store.add([new(event="\ud800")])
    assert limits() == before


def test_a_file_that_is_no_database(tmp_path: Path, new: NewOne) -> None:
    path = tmp_path / "text.db"
    path.write_text("this is no database" * 100)
    with pytest.raises(
        StoreUnavailableError, match=r"the database (failed|cannot be reached) \(DatabaseError\)"
    ):
        DeliveryStore(create_engine(f"sqlite:///{path}")).add([new()])
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(path).execute("SELECT * FROM sqlite_master")
