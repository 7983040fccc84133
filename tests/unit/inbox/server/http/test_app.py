# SPDX-License-Identifier: Apache-2.0
"""Routes of paths, wherever the application is mounted, and the answer when an option is invalid."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from airflow_provider_webdata.inbox_server.http.app import InboxApplication
from airflow_provider_webdata.inbox_server.http.auth import Gate
from airflow_provider_webdata.plugin import WebDataPlugin

PATHS = [
    ("/webdata/inbox/web", ("web", None)),
    ("/webdata/inbox/web/key", ("web", "key")),
    ("/airflow/webdata/inbox/web/key", ("web", "key")),
    ("/webdata/webdata/inbox/web", ("web", None)),
    ("/webdata/inbox/webdata/inbox", ("webdata", "inbox")),
    ("/webdata/inbox/team%20a%2Fweb/key", ("team a/web", "key")),
    ("/webdata/inbox/%C3%A4", ("ä", None)),
    ("/webdata/inbox/%FF", None),
    ("/webdata/inbox/web/key/more", None),
    ("/webdata/inbox/web/no%20key", None),
    ("/webdata/nothing/web", None),
    ("/webdata", None),
    ("/inbox/web", None),
    ("/", None),
]


async def stored(**scope):
    """Deliver to a path and return the connection and the key that the delivery is stored with."""
    found = []

    async def submit(delivery):
        found.append((delivery.conn_id, delivery.key))
        return True

    async def receive():
        return {"type": "http.request", "body": b"{}"}

    async def send(message):
        if message["type"] == "http.response.start":
            assert message["status"] == (200 if found else 404)

    inbox = SimpleNamespace(
        store=SimpleNamespace(conn_ids=list),
        writer=SimpleNamespace(submit=submit),
        feed=None,
        refusals=None,
    )
    app = InboxApplication(inbox, lambda conn_id: Gate(conn_id, (b"secret",), (), b"x-signature", open=True))
    headers = [(SECRET_HEADER.lower().encode(), b"secret"), (b"content-length", b"2")]
    await app({"type": "http", "method": "POST", "headers": headers, **scope}, receive, send)
    return found[0] if found else None


@pytest.mark.parametrize(("path", "place"), PATHS)
async def test_route_of_a_path(path, place):
    assert await stored(raw_path=path.encode(), path="unused") == place
    if "%" not in path:
        # A server need not pass the raw path.
        assert await stored(path=path) == place


@pytest.mark.parametrize(
    ("option", "given", "rule"),
    [
        ("inbox_max_body_mb", "-1", "must be a number above 0"),
        ("inbox_max_body_mb", "16 MB", "must be a number above 0"),
        ("inbox_max_body_mb", "1e308", "must be a number above 0"),
        ("inbox_retention_days", "a month", "must be a number, 0 or more"),
        ("inbox_retention_days", "nan", "must be a number, 0 or more"),
        ("inbox_create_tables", "perhaps", "must be True or False"),
    ],
)
async def test_options_that_cannot_be_used(monkeypatch, caplog, option, given, rule):
    """The sender is asked to come again; the reason is in the log, once."""
    monkeypatch.setenv("AIRFLOW__WEBDATA__INBOX", "True")
    monkeypatch.setenv(f"AIRFLOW__WEBDATA__{option.upper()}", given)
    apps = WebDataPlugin().fastapi_apps
    (app,) = [mounted["app"] for mounted in apps if mounted["url_prefix"] == "/webdata"]
    application = type(app)(app.module, app.factory)
    for _ in range(2):
        sent = []

        async def send(message, sent=sent):
            sent.append(message)

        await application({"type": "http", "method": "POST", "path": "/webdata/inbox/web"}, None, send)
        start, body = sent
        assert start["status"] == 503
        assert dict(start["headers"])[b"retry-after"] == b"60"
        assert json.loads(body["body"]) == {"error": "the inbox is not configured, see its log"}
    assert caplog.text.count(f"[webdata] {option} {rule} (given: {given!r})") == 1
