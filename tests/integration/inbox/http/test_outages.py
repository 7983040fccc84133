# SPDX-License-Identifier: Apache-2.0
"""A database that is locked, down, or without tables: 503 with Retry-After, and no 2xx without storing."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterator

import httpx
import pytest
from sqlalchemy import Engine

from airflow_provider_webdata.airflow_db import database
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.inbox_server.http.auth import Gate
from airflow_provider_webdata.inbox_server.storage.tables import metadata
from tests.integration.inbox.http.conftest import engine_of
from tests.integration.inbox.http.served_inbox import ALL_SECRETS, ServedInbox, bearer, gate_of
from tests.integration.inbox.http.served_inbox import event as body
from tests.support.postgres import Postgres
from tests.support.waiting import PATIENCE


def assert_not_now(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert set(answer.json()) == {"error"}


def assert_all_say_not_now(served: ServedInbox) -> None:
    """Try every route that needs the database."""
    conn_id = "secret"
    assert_not_now(served.deliver(conn_id, body(webhookId="lost"), key="k"))
    assert_not_now(served.read(conn_id))
    assert_not_now(served.read(conn_id, after="end", wait=5))
    assert_not_now(served.http.get(f"/webdata/deliveries/{conn_id}/1", headers=bearer(conn_id)))
    assert_not_now(
        served.http.post(f"/webdata/deliveries/{conn_id}/search", headers=bearer(conn_id), json={})
    )
    assert_not_now(served.http.get("/webdata/inbox-health"))


def deliver_until_stored(served: ServedInbox, content: bytes) -> httpx.Response:
    """Repeat a delivery as the service does, only sooner."""
    while True:
        answer = served.deliver("secret", content, key="k")
        if answer.status_code == 200:
            return answer
        assert_not_now(answer)


@contextlib.contextmanager
def locked(engine: Engine) -> Iterator[None]:
    link = sqlite3.connect(str(engine.url.database), isolation_level=None, timeout=PATIENCE)
    link.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        link.execute("ROLLBACK")
        link.close()


def test_a_locked_database(
    sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database, "FILE_LOCK_SECONDS", 0.1)
    with ServedInbox(sqlite_engine) as served:
        served.deliver("secret", body(webhookId="before"), key="k")
        with locked(sqlite_engine):
            for _ in range(2):
                assert_not_now(served.deliver("secret", body(webhookId="lost"), key="k"))
            assert_not_now(served.deliver("secret", b'"' + b"x" * 500_000 + b'"'))
        assert deliver_until_stored(served, body(webhookId="lost")).json() == {"status": "stored"}
        assert served.deliver("secret", body(webhookId="before"), key="k").json() == {"status": "duplicate"}
        assert len(served.rows("secret")) == 2
    assert "Failed to store a delivery" in caplog.text
    assert not [secret for secret in ALL_SECRETS if secret in caplog.text]


def test_no_tables_yet(sqlite_engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    metadata.drop_all(sqlite_engine)
    with ServedInbox(sqlite_engine) as served:
        assert_all_say_not_now(served)
        metadata.create_all(sqlite_engine)
        assert deliver_until_stored(served, body(webhookId="lost")).json() == {"status": "stored"}
    assert "airflow db migrate" in caplog.text


def test_a_crash_of_the_database(stoppable_postgres: Postgres, caplog: pytest.LogCaptureFixture) -> None:
    """No acknowledged delivery is lost, and no refused one is stored."""
    engine = engine_of(stoppable_postgres.create_database("inbox_outage"))
    with ServedInbox(engine) as served:
        assert served.deliver("secret", body(webhookId="before"), key="k").status_code == 200
        stoppable_postgres.stop(crash=True)
        with caplog.at_level(logging.DEBUG):
            assert_all_say_not_now(served)
        stoppable_postgres.start()
        assert deliver_until_stored(served, body(webhookId="lost")).json() == {"status": "stored"}
        assert served.deliver("secret", body(webhookId="before"), key="k").json() == {"status": "duplicate"}
        assert len(served.rows("secret")) == 2
        assert len(served.read("secret").json()["deliveries"]) == 2
    engine.dispose()
    assert not [secret for secret in ALL_SECRETS if secret in caplog.text]
    assert stoppable_postgres.url().split("@")[0] not in caplog.text


def test_connections_that_cannot_be_read(sqlite_engine: Engine) -> None:
    """The connection may exist: the service might consider a 401 final."""
    down = True

    def gate(conn_id: str) -> Gate:
        if down:
            raise StoreUnavailableError("the database does not answer")
        return gate_of(conn_id)

    with ServedInbox(sqlite_engine, gate) as served:
        assert_not_now(served.deliver("secret", body(), key="k"))
        assert_not_now(served.deliver("secret", body(), {}, key="k"))
        assert_not_now(served.read("secret"))
        down = False
        assert served.deliver("secret", body(), key="k").status_code == 200


def test_an_unexpected_failure(sqlite_engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """The log names it, and the response asks for a retry."""

    def gate(conn_id: str) -> Gate:
        raise LookupError("a secrets backend that fails")

    with ServedInbox(sqlite_engine, gate) as served:
        assert_not_now(served.deliver("secret", body(), key="k"))
    assert "a secrets backend that fails" in caplog.text
