# SPDX-License-Identifier: Apache-2.0
"""Refused deliveries are counted by their reason, and requests that are none are not."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from airflow_provider_webdata.inbox.probe import new_probe
from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from airflow_provider_webdata.inbox_server.storage.tables import refusal
from tests.integration.inbox.http.served_inbox import SECRET, ServedInbox, event, fresh, signature
from tests.support.service import SIGNATURE_HEADER
from tests.support.waiting import wait_until

WRONG = {SECRET_HEADER: "not-the-webhook-secret"}
RIGHT = {SECRET_HEADER: SECRET}


def counted(served: ServedInbox, conn_id: str) -> dict[str, int]:
    found = served.inbox.store.refusals([conn_id])
    return {one.reason: one.number for one in found if not one.is_before_accepted}


@pytest.mark.parametrize(
    ("kind", "headers", "reason"),
    [
        ("secret", {}, "secret missing"),
        ("secret", WRONG, "secret wrong"),
        ("signed", {}, "signature missing"),
        ("signed", {SIGNATURE_HEADER: signature(b"another body")}, "signature wrong"),
        ("both", WRONG, "secret wrong"),
        ("both", RIGHT, "signature missing"),
        ("both", {**RIGHT, SIGNATURE_HEADER: signature(b"another body")}, "signature wrong"),
    ],
)
def test_each_reason(served: ServedInbox, kind: str, headers: dict[str, str], reason: str) -> None:
    conn_id = fresh(kind)
    for _ in range(3):
        assert served.deliver(conn_id, event(), headers).status_code == 401
    assert wait_until(lambda: counted(served, conn_id) == {reason: 3}), counted(served, conn_id)
    both = {**RIGHT, SIGNATURE_HEADER: signature(event())}
    assert served.deliver(conn_id, event(), both).status_code == 200
    assert counted(served, conn_id) == {}


def test_requests_that_are_no_deliveries(on_sqlite: ServedInbox) -> None:
    """Neither those of the doctor, nor any for missing connections, of which a stranger may name any number."""
    conn_id = fresh("secret")
    for body in (b"", new_probe()):
        assert on_sqlite.deliver(conn_id, body, WRONG).status_code == 401
    for number in range(20):
        assert on_sqlite.deliver(f"unknown-{number}", event(), WRONG).status_code == 401
        assert on_sqlite.deliver(fresh("open"), event(), WRONG).status_code == 401
    # Counts are stored in order.
    last = fresh("secret")
    on_sqlite.deliver(last, event(), WRONG)
    assert wait_until(lambda: counted(on_sqlite, last) == {"secret wrong": 1})
    with on_sqlite.engine.connect() as link:
        stored = {row.conn_id.lower() for row in link.execute(select(refusal))}
    assert conn_id not in stored
    assert not [one for one in stored if one.startswith(("unknown", "open"))]
