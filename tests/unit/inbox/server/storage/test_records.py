# SPDX-License-Identifier: Apache-2.0
"""The identity of deliveries."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.inbox_server.storage.records import NewDelivery

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
PAGE = {"type": "crawl.page", "id": "job-1", "data": [{"url": "a"}]}


def made(body: Any, conn_id: str = "conn", key: str | None = "key") -> NewDelivery:
    return NewDelivery.from_body(conn_id, key, json.dumps(body).encode(), NOW)


@pytest.mark.rule("delivery-replay", "envelope-webhook-id")
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        # The same event again.
        (made(PAGE), made(PAGE), True),
        (made({**PAGE, "webhookId": "w"}), made({**PAGE, "webhookId": "w"}), True),
        (
            made({**PAGE, "webhookId": "w"}),
            made({**PAGE, "webhookId": "w", "attempt": 2}),
            True,
        ),
        # All page events of a job share job and type.
        (made(PAGE), made({**PAGE, "data": [{"url": "b"}]}), False),
        (made({**PAGE, "webhookId": "v"}), made({**PAGE, "webhookId": "w"}), False),
        # One id for everything would not make everything one.
        (
            made({**PAGE, "webhookId": "w"}),
            made({**PAGE, "type": "crawl.completed", "webhookId": "w"}),
            False,
        ),
        (made(PAGE), made(PAGE, key=None), False),
        (made(PAGE), made(PAGE, key="other"), False),
        (made(PAGE), made(PAGE, conn_id="other"), False),
        # An id that is none counts for nothing.
        (made({**PAGE, "webhookId": ""}), made({**PAGE, "webhookId": "", "n": 1}), False),
        (made({**PAGE, "webhookId": 5}), made({**PAGE, "webhookId": 5, "n": 1}), False),
        # Where one part ends and the next begins.
        (made(PAGE, conn_id="ab", key="c"), made(PAGE, conn_id="a", key="bc"), False),
        (made([1]), made([1]), True),
        (made(None), made(False), False),
    ],
)
def test_identity(one: NewDelivery, other: NewDelivery, same: bool) -> None:
    assert (one.dedupe == other.dedupe) is same
    assert re.fullmatch("[0-9a-f]{64}", one.dedupe)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
DELIVERIES = st.tuples(st.text(max_size=3), st.none() | st.text(max_size=3), ANY_JSON)


@pytest.mark.rule("envelope-webhook-id")
@given(DELIVERIES, DELIVERIES)
def test_identity_is_the_same_for_the_same_only(one: Any, other: Any) -> None:
    def dedupe(delivery: Any) -> str:
        conn_id, key, body = delivery
        return made(body, conn_id, key).dedupe

    def essence(delivery: Any) -> tuple[str, str, str]:
        conn_id, key, body = delivery
        return conn_id, key or "", json.dumps(body)

    assert (dedupe(one) == dedupe(other)) is (essence(one) == essence(other))


def test_the_envelope_is_read() -> None:
    body = {
        "type": "monitor.check.completed",
        "id": "check-1",
        "success": False,
        "data": {"monitorId": "m-1"},
    }
    found = made(body)
    read = found.envelope
    assert (read.event, read.operation, read.name) == (
        "monitor.check.completed",
        "monitor",
        "check.completed",
    )
    assert (read.job_id, read.monitor_id, read.success) == ("check-1", "m-1", False)
    assert (found.conn_id, found.key, found.received_at) == ("conn", "key", NOW)
    assert json.loads(found.body) == body


def test_a_body_is_not_shown() -> None:
    assert "visible" not in repr(made({"note": "visible"}))
