# SPDX-License-Identifier: Apache-2.0
"""Ids of connections from outside, before a secrets backend sees them."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.airflow_db import connections
from airflow_provider_webdata.airflow_db.connections import (
    common_spelling,
    conn_ids_in_environment,
    find_connection,
    is_conn_id,
)


class Backend:
    """Records what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get_connection(self, conn_id: str) -> None:
        self.asked.append(conn_id)


@pytest.mark.parametrize(
    ("conn_id", "valid"),
    [
        ("market", True),
        ("eu.market-2", True),
        ("teams/market", True),
        ("teams\\market", True),
        ("eu:market#2(old)!", True),
        ("m\u00e4rkte", True),
        ("../../variables/db_password", False),
        ("a/../../variables/db_password", False),
        ("a\\..\\b", False),
        ("/a", False),
        ("a/", False),
        ("..", False),
        ("...", False),
        ("", False),
        ("a b", False),
        ("a\n", False),
        ("a?b", False),
        ("x" * 251, False),
    ],
)
def test_ids(monkeypatch: pytest.MonkeyPatch, conn_id: str, valid: bool) -> None:
    backend = Backend()
    monkeypatch.setattr(connections, "ensure_secrets_loaded", lambda: [backend])
    assert find_connection(conn_id) is None
    assert backend.asked == ([conn_id] if valid else [])
    assert is_conn_id(conn_id) is valid


@pytest.mark.parametrize(
    "conn_id", ["ledger", "LEDGER", "Ledger", "\u017fales", "stra\u00dfe", "m\u00c4rkte", "\u0131d"]
)
def test_each_spelling_of_a_connection_in_the_environment_is_listed(
    monkeypatch: pytest.MonkeyPatch, conn_id: str
) -> None:
    """Permissions are decided by the listed one, so no spelling may find a connection that another one lists."""
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", "webdata://")
    assert find_connection(conn_id) is not None
    assert common_spelling(conn_id) in conn_ids_in_environment()
