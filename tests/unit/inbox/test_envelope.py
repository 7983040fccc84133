# SPDX-License-Identifier: Apache-2.0
"""The envelope of a delivery is parsed leniently: odd values count as missing, and only invalid JSON is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.inbox.envelope import (
    Envelope,
    NotJSONError,
    same_event,
    split_event,
)
from tests.support.service import UNFETCHED

CHECK = {
    "success": True,
    "type": "monitor.check.completed",
    "id": "check-1",
    "webhookId": "event-1",
    "data": [{"monitorId": "monitor-1", "checkId": "check-1", "status": "completed"}],
}

READ = [
    pytest.param(
        CHECK,
        Envelope(
            "monitor.check.completed",
            "monitor",
            "check.completed",
            "check-1",
            "monitor-1",
            "event-1",
            True,
            facts=b'{"status":"completed","summary":null}',
        ),
        id="monitor check",
    ),
    pytest.param(
        {**CHECK, "data": CHECK["data"][0]},
        Envelope(
            "monitor.check.completed",
            "monitor",
            "check.completed",
            "check-1",
            "monitor-1",
            "event-1",
            True,
            facts=b'{"status":"completed","summary":null}',
        ),
        id="data as an object",
    ),
    pytest.param(
        {**CHECK, "id": None, "type": "check.completed", "success": "yes", "webhookId": 7},
        Envelope(
            "check.completed",
            None,
            "check.completed",
            "check-1",
            "monitor-1",
            facts=b'{"status":"completed","summary":null}',
        ),
        id="check id from the data, odd values dropped",
    ),
    pytest.param(
        {"success": False, "type": "crawl.page", "id": "job-1", "data": [], "error": "no"},
        Envelope("crawl.page", "crawl", "page", "job-1", None, None, False),
        id="failed page",
    ),
    pytest.param(
        {"success": True, "type": "batch_scrape.page", "id": "job-1", "data": [UNFETCHED]},
        Envelope(
            "batch_scrape.page",
            "batch_scrape",
            "page",
            "job-1",
            success=False,
            page_url="http://nohost.example.net/x",
        ),
        id="page that was not fetched",
    ),
    pytest.param(
        {
            "success": True,
            "type": "crawl.page",
            "data": [{"metadata": {"statusCode": 404, "error": "Not Found"}}],
        },
        Envelope("crawl.page", "crawl", "page", success=True),
        id="page that its site does not find",
    ),
    pytest.param(
        {"type": "batch_scrape.completed", "id": "job-1", "data": ["text"]},
        Envelope(
            "batch_scrape.completed",
            "batch_scrape",
            "completed",
            "job-1",
            facts=b'{"creditsUsed":null,"metadata":null}',
        ),
        id="data of texts",
    ),
    pytest.param(
        {
            **CHECK,
            "data": [{"checkId": "c", "status": "\0", "summary": {"changed": 1, "new": 10**400}}],
            "metadata": {"monitor": "Prices \U0001f468\u200d\U0001f469", "dag_id": "prices"},
        },
        Envelope(
            "monitor.check.completed",
            "monitor",
            "check.completed",
            "check-1",
            None,
            "event-1",
            True,
            monitor_name="Prices \U0001f468\u200d\U0001f469",
            dag_id="prices",
            facts=b'{"status":"\xef\xbf\xbd","summary":{"changed":1,"new":null}}',
        ),
        id="a name with a joined emoji, and facts that Airflow can store",
    ),
    pytest.param(
        {
            "success": True,
            "type": "monitor.page",
            "id": "check-1",
            "data": {"monitorId": "monitor-1", "status": "new", "isMeaningful": True},
        },
        Envelope("monitor.page", "monitor", "page", "check-1", "monitor-1", None, True, is_meaningful=True),
        id="page that was judged meaningful",
    ),
    pytest.param({"type": "brand.new"}, Envelope("brand.new", None, "brand.new"), id="unknown operation"),
    pytest.param({"type": "x" * 201, "id": "a\x00b", "webhookId": "\n"}, Envelope(), id="no texts to keep"),
    pytest.param([CHECK], Envelope(), id="array"),
    pytest.param("text", Envelope(), id="text"),
    pytest.param(None, Envelope(), id="null"),
    pytest.param({}, Envelope(), id="empty"),
]


@pytest.mark.rule("envelope-success", "envelope-type", "envelope-id", "envelope-webhook-id", "envelope-data")
@pytest.mark.rule("envelope-error")
@pytest.mark.parametrize(("payload", "envelope"), READ)
def test_read(payload, envelope):
    assert Envelope.read(json.dumps(payload).encode()) == envelope


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"{}{}", b'{"a":NaN}', b"\xff", b'"\xed\xa0\x80"', b"[" * 100_000, b"'a'", b"\xef\xbb\xbf{}"],
)
def test_no_json(body):
    with pytest.raises(NotJSONError):
        Envelope.read(body)


@pytest.mark.parametrize(
    ("data", "page_url"),
    [
        ({"url": "https://a.example/p"}, "https://a.example/p"),
        (
            [{"metadata": {"sourceURL": "https://a.example/s", "url": "https://a.example/u"}}],
            "https://a.example/s",
        ),
        ([{"metadata": {"url": "https://a.example/u"}}], "https://a.example/u"),
        ([{"metadata": {"sourceURL": "x" * 2049, "url": "https://a.example/u"}}], "https://a.example/u"),
        ([{"url": "x" * 2048}], "x" * 2048),
        ([{"url": 5, "metadata": []}], None),
        ([], None),
    ],
)
def test_the_page(data: Any, page_url: str | None) -> None:
    payload = {"type": "crawl.page", "data": data}
    assert Envelope.read(json.dumps(payload).encode()).page_url == page_url


@pytest.mark.rule("event-names")
@pytest.mark.parametrize(
    ("event", "parts"),
    [
        ("monitor.check.completed", ("monitor", "check.completed")),
        ("check.completed", (None, "check.completed")),
        ("completed", (None, "completed")),
        ("batch_scrape.page", ("batch_scrape", "page")),
        ("monitor", (None, "monitor")),
    ],
)
def test_split_event(event, parts):
    assert split_event(event) == parts


@pytest.mark.rule("event-names")
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("monitor.check.completed", "check.completed", True),
        ("monitor.check.completed", "monitor.check.completed", True),
        ("crawl.completed", "completed", True),
        ("crawl.completed", "batch_scrape.completed", False),
        ("crawl.completed", "crawl.page", False),
        ("check.completed", "completed", False),
    ],
)
def test_same_event(one, other, same):
    assert same_event(one, other) is same
    assert same_event(other, one) is same
