# SPDX-License-Identifier: Apache-2.0
"""The cache of gates: a flood of unknown ids, and a source of secrets that fails."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterable

import pytest

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.inbox_server.http import connections
from airflow_provider_webdata.inbox_server.http.auth import Gate
from airflow_provider_webdata.inbox_server.http.connections import Connections
from airflow_provider_webdata.inbox_server.http.limits import BusyError

SECRET = b"webhook-secret-0123456789abcdef"


def opened(conn_id: str, secret: bytes = SECRET) -> Gate:
    return Gate(conn_id, (secret,), (), b"x-signature", open=True)


class Source:
    """Secrets by the connection's id, whatever its case; `failing` as a backend that is down."""

    def __init__(self, *with_deliveries: str) -> None:
        self.secrets = {"web": SECRET}
        self.failing = False
        self.asked: list[str] = []
        self.now = 0.0
        self._with_deliveries = with_deliveries
        self.connections = Connections(self.read, self.with_deliveries, lambda: self.now)

    def read(self, conn_id: str) -> Gate:
        self.asked.append(conn_id)
        if self.failing:
            raise StoreUnavailableError("the vault is sealed")
        secret = self.secrets.get(conn_id.lower())
        return Gate.closed(conn_id) if secret is None else opened(conn_id, secret)

    def with_deliveries(self) -> Iterable[str]:
        if self.failing:
            raise StoreUnavailableError("the database is down")
        return self._with_deliveries

    async def flood(self) -> None:
        """Ask for made-up ids until no more are looked up."""
        with contextlib.suppress(BusyError):
            for number in range(1000):
                await self.connections.gate(f"guess-{number}")
            raise AssertionError("every id is looked up")


async def test_a_connection_keeps_its_secrets_while_they_cannot_be_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = Source()
    assert await source.connections.gate("web") == opened("web")
    source.failing = True
    for hour in range(1, 50):
        source.now = hour * 3600
        assert await source.connections.gate("web") == opened("web")
    with pytest.raises(StoreUnavailableError):
        await source.connections.gate("never-read")
    source.failing, source.secrets = False, {"web": b"another"}
    source.now += connections.CACHE_SECONDS + 1
    assert await source.connections.gate("web") == opened("web", b"another")
    source.secrets = {}
    source.now += connections.CACHE_SECONDS + 1
    assert not (await source.connections.gate("web")).open
    lines = [record.getMessage() for record in caplog.records]
    assert 0 < len([line for line in lines if "'web'" in line and "the vault is sealed" in line]) < 50
    assert SECRET.decode() not in caplog.text


async def test_connections_with_deliveries_pass_a_flood() -> None:
    """After a restart nothing is known yet, and the strangers are there already."""
    source = Source("web")
    await source.flood()
    assert await source.connections.gate("web") == opened("web")
    fresh = Source()
    await fresh.flood()
    with pytest.raises(BusyError):
        await fresh.connections.gate("web")


async def test_the_database_is_asked_again_which_have_deliveries() -> None:
    source = Source("web")
    source.failing = True
    with pytest.raises(StoreUnavailableError):
        await source.connections.gate("web")
    source.failing = False
    source.now = connections.LOOKUP_TIMEOUT + 1
    await source.flood()
    assert await source.connections.gate("web") == opened("web")


async def test_slow_lookups_of_strangers_hold_up_nobody() -> None:
    released = threading.Event()

    def read(conn_id: str) -> Gate:
        if conn_id != "web":
            released.wait(60)
        return opened(conn_id)

    cache = Connections(read, lambda: ["web"])
    strangers = [asyncio.create_task(cache.gate(f"guess-{number}")) for number in range(10)]
    try:
        await asyncio.sleep(0.05)
        assert await cache.gate("web") == opened("web")
    finally:
        released.set()
        await asyncio.gather(*strangers, return_exceptions=True)


async def test_known_ids_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One connection whose id is found in any case has more spellings than there is memory."""
    monkeypatch.setattr(connections, "MAX_KNOWN", 20)
    monkeypatch.setattr(connections, "LOOKUPS_AT_ONCE", 1e6)
    source = Source("webdata_default")
    source.secrets["webdata_default"] = SECRET
    await source.connections.gate("webdata_default")
    spellings = [
        "".join(
            letter.upper() if number >> place & 1 else letter
            for place, letter in enumerate("webdata_default")
        )
        for number in range(200)
    ]
    for spelled in spellings:
        assert (await source.connections.gate(spelled)).open
    assert source.asked.count("webdata_default") == 1
    # The one with deliveries and the last 19 are known; each of the others must be read again.
    read = len(source.asked)
    for spelled in spellings[-19:]:
        await source.connections.gate(spelled)
    assert len(source.asked) == read
    await source.connections.gate(spellings[-20])
    assert len(source.asked) == read + 1
    await source.connections.gate("webdata_default")
    assert source.asked.count("webdata_default") == 1
