"""A database that is locked, down or without tables: 503 and Retry-After, and never a 2xx for what is not stored."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from sqlalchemy import Engine

from airflow_provider_webdata.inbox.server.http.auth import Gate
from airflow_provider_webdata.inbox.server.storage import database
from airflow_provider_webdata.inbox.server.storage.errors import StoreUnavailableError
from airflow_provider_webdata.inbox.server.storage.tables import metadata
from tests.integration.inbox.http.conftest import engine_of
from tests.integration.inbox.http.served_inbox import ALL_SECRETS, ServedInbox, bearer, event, gate_of
from tests.support.postgres import Postgres


def assert_not_now(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert set(answer.json()) == {"error"}


def assert_all_say_not_now(served: ServedInbox) -> None:
    """Every route that needs the database."""
    conn_id = "secret"
    assert_not_now(served.deliver(conn_id, event(webhookId="lost"), key="k"))
    assert_not_now(served.read(conn_id))
    assert_not_now(served.read(conn_id, after="end", wait=5))
    assert_not_now(served.http.get(f"/webdata/deliveries/{conn_id}/1", headers=bearer(conn_id)))
    assert_not_now(
        served.http.post(f"/webdata/deliveries/{conn_id}/search", headers=bearer(conn_id), json={})
    )
    assert_not_now(served.http.get("/webdata/inbox-health"))


def deliver_until_stored(served: ServedInbox, body: bytes) -> httpx.Response:
    """As the service does, only sooner."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        answer = served.deliver("secret", body, key="k")
        if answer.status_code == 200:
            return answer
        assert_not_now(answer)
    raise AssertionError("it was never stored")


@contextlib.contextmanager
def locked(engine: Engine) -> Iterator[None]:
    link = sqlite3.connect(str(engine.url.database), isolation_level=None, timeout=20)
    link.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        link.execute("ROLLBACK")
        link.close()


def test_a_locked_database(
    sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database, "FILE_LOCK_SECONDS", 1)
    with ServedInbox(sqlite_engine) as served:
        served.deliver("secret", event(webhookId="before"), key="k")
        with locked(sqlite_engine):
            for _ in range(2):
                assert_not_now(served.deliver("secret", event(webhookId="lost"), key="k"))
            assert_not_now(served.deliver("secret", b'"' + b"x" * 500_000 + b'"'))
        assert deliver_until_stored(served, event(webhookId="lost")).json() == {"status": "stored"}
        assert served.deliver("secret", event(webhookId="before"), key="k").json() == {"status": "duplicate"}
        assert len(served.rows("secret")) == 2
    assert "was not stored" in caplog.text
    assert not [secret for secret in ALL_SECRETS if secret in caplog.text]


def test_a_short_lock_is_waited_for(sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliveries that meet another writer wait their turn."""
    monkeypatch.setattr(database, "FILE_LOCK_SECONDS", 30)
    with ServedInbox(sqlite_engine) as served, ThreadPoolExecutor(5) as pool:
        with locked(sqlite_engine):
            waiting = [
                pool.submit(served.deliver, "secret", event(webhookId=f"w-{number}")) for number in range(5)
            ]
            while not served.inbox.writer._thread:
                time.sleep(0.005)
        assert [one.result(20).json() for one in waiting] == [{"status": "stored"}] * 5
        assert len(served.rows("secret")) == 5


def test_no_tables_yet(sqlite_engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    metadata.drop_all(sqlite_engine)
    with ServedInbox(sqlite_engine) as served:
        assert_all_say_not_now(served)
        metadata.create_all(sqlite_engine)
        assert deliver_until_stored(served, event(webhookId="lost")).json() == {"status": "stored"}
    assert "airflow db migrate" in caplog.text


def test_a_database_that_goes_and_comes(caplog: pytest.LogCaptureFixture) -> None:
    """PostgreSQL crashes between deliveries: nothing acknowledged is lost, nothing refused is stored."""
    with Postgres() as server:
        engine = engine_of(server.create_database("inbox"))
        with ServedInbox(engine) as served:
            assert served.deliver("secret", event(webhookId="before"), key="k").status_code == 200
            server.stop(crash=True)
            with caplog.at_level(logging.DEBUG):
                assert_all_say_not_now(served)
            server.start()
            assert deliver_until_stored(served, event(webhookId="lost")).json() == {"status": "stored"}
            assert served.deliver("secret", event(webhookId="before"), key="k").json() == {
                "status": "duplicate"
            }
            assert len(served.rows("secret")) == 2
            assert len(served.read("secret").json()["deliveries"]) == 2
        engine.dispose()
    assert not [secret for secret in ALL_SECRETS if secret in caplog.text]
    assert server.url().split("@")[0] not in caplog.text


def test_connections_that_cannot_be_read(sqlite_engine: Engine) -> None:
    """It is not known whether the connection is there: no 401, which the service might take for final."""
    down = True

    def gate(conn_id: str) -> Gate:
        if down:
            raise StoreUnavailableError("the database does not answer")
        return gate_of(conn_id)

    with ServedInbox(sqlite_engine, gate) as served:
        assert_not_now(served.deliver("secret", event(), key="k"))
        assert_not_now(served.deliver("secret", event(), {}, key="k"))
        assert_not_now(served.read("secret"))
        down = False
        assert served.deliver("secret", event(), key="k").status_code == 200


def test_a_failure_nobody_thought_of(sqlite_engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """The log says what it was; the answer asks to come again."""

    def gate(conn_id: str) -> Gate:
        raise LookupError("a secrets backend that fails")

    with ServedInbox(sqlite_engine, gate) as served:
        assert_not_now(served.deliver("secret", event(), key="k"))
    assert "a secrets backend that fails" in caplog.text
