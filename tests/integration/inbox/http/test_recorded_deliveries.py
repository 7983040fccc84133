# SPDX-License-Identifier: Apache-2.0
"""Deliveries as they were recorded: 20 signed by a self-hosted server, and 16 without a signature.

`data/recorded_deliveries.json` has each body verbatim, its headers, and the facts that the inbox must read from it:
a page with status 599 was not fetched, so its event is a failure.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.hooks.connection import DEFAULT_SIGNATURE_HEADER
from airflow_provider_webdata.inbox.envelope import Envelope
from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from airflow_provider_webdata.inbox_server.http.auth import Gate
from tests.integration.inbox.http.served_inbox import SECRET, ServedInbox
from tests.support.service import SIGNATURE_HEADER

RECORDED = json.loads((Path(__file__).parent / "data" / "recorded_deliveries.json").read_text())
DELIVERIES: list[dict[str, Any]] = RECORDED["deliveries"]
SIGNED = [delivery for delivery in DELIVERIES if SIGNATURE_HEADER in delivery["headers"]]


def gate_of(conn_id: str) -> Gate:
    signing = (RECORDED["signing_secret"].encode(),) if conn_id == "signed" else ()
    return Gate(conn_id, (SECRET.encode(),), signing, DEFAULT_SIGNATURE_HEADER.lower().encode(), open=True)


@pytest.mark.rule("delivery-signature", "envelope-type", "envelope-id", "event-job-page")
def test_recorded_deliveries(sqlite_engine: Any) -> None:
    """A connection with a signing secret accepts the signed ones only; one without reads all of them."""
    assert (len(DELIVERIES), len(SIGNED)) == (36, 20)
    with ServedInbox(sqlite_engine, gate_of) as served:
        for delivery in DELIVERIES:
            body, headers = delivery["body"].encode(), {**delivery["headers"], SECRET_HEADER: SECRET}
            expected = 200 if delivery in SIGNED else 401
            assert served.deliver("signed", body, headers).status_code == expected
            assert served.deliver("unsigned", body, headers).status_code == 200
            changed = body.replace(b'"success"', b'"Success"', 1)
            assert served.deliver("signed", changed, headers).status_code == 401
        assert [row.event for row in served.rows("signed")] == [delivery["event"] for delivery in SIGNED]
        stored = served.rows("unsigned")
    for delivery, row in zip(DELIVERIES, stored, strict=True):
        envelope = Envelope.read(row.body)
        found = {name: getattr(envelope, name) for name in ("event", "job_id", "success", "page_url")}
        assert found == {name: delivery[name] for name in found}
        assert (row.event, row.job_id) == (envelope.event, envelope.job_id)
