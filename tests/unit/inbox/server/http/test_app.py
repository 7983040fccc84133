"""Which route a path means, wherever the application is mounted, and what is said when it cannot work."""

from __future__ import annotations

import json

import pytest

from airflow_provider_webdata.inbox.server.http.app import _path_parts
from airflow_provider_webdata.plugin import WebDataPlugin

PATHS = [
    ("/webdata/inbox/web", ["inbox", "web"]),
    ("/webdata/inbox/web/key", ["inbox", "web", "key"]),
    ("/airflow/webdata/inbox/web/key", ["inbox", "web", "key"]),
    ("/webdata/webdata/inbox/web", ["inbox", "web"]),
    ("/webdata/inbox/webdata/inbox", ["inbox", "webdata", "inbox"]),
    ("/webdata/inbox/team%20a%2Fweb/key", ["inbox", "team a/web", "key"]),
    ("/webdata/inbox/%C3%A4", ["inbox", "ä"]),
    ("/webdata/inbox/%FF", None),
    ("/webdata/deliveries/web/search", ["deliveries", "web", "search"]),
    ("/webdata/inbox-health", ["inbox-health"]),
    ("/webdata", None),
    ("/webdata/", None),
    ("/inbox/web", None),
    ("/", None),
]


@pytest.mark.parametrize(("path", "parts"), PATHS)
def test_route_of_a_path(path, parts):
    assert _path_parts({"raw_path": path.encode(), "path": "unused"}) == parts


async def test_without_a_raw_path():
    assert _path_parts({"path": "/webdata/inbox/web"}) == ["inbox", "web"]


@pytest.mark.parametrize(
    ("option", "given", "rule"),
    [
        ("inbox_max_body_mb", "-1", "must be a number above 0"),
        ("inbox_max_body_mb", "16 MB", "must be a number above 0"),
        ("inbox_max_body_mb", "1e308", "must be a number above 0"),
        ("inbox_retention_days", "a month", "must be a number, 0 or more"),
        ("inbox_retention_days", "nan", "must be a number, 0 or more"),
    ],
)
async def test_options_that_cannot_be_used(monkeypatch, caplog, option, given, rule):
    """The sender is asked to come again; the reason is in the log, once."""
    monkeypatch.setenv(f"AIRFLOW__WEBDATA__{option.upper()}", given)
    (app,) = [mounted["app"] for mounted in WebDataPlugin.fastapi_apps if mounted["url_prefix"] == "/webdata"]
    application = type(app)(app.module, app.factory)
    for _ in range(2):
        sent = []

        async def send(message, sent=sent):
            sent.append(message)

        await application({"type": "http", "method": "POST", "path": "/webdata/inbox/web"}, None, send)
        start, body = sent
        assert start["status"] == 503
        assert dict(start["headers"])[b"retry-after"] == b"60"
        assert json.loads(body["body"]) == {"error": "the inbox is not set up, see its log"}
    assert caplog.text.count(f"[webdata] {option} {rule} (given: {given!r})") == 1
