# SPDX-License-Identifier: Apache-2.0
"""The client reads for longer than the service may work on the request."""

from __future__ import annotations

import io
from typing import Any

import pytest

from airflow_provider_webdata.api import endpoints, exchange
from airflow_provider_webdata.api.config import ClientConfig
from airflow_provider_webdata.api.multipart import Upload

MARKDOWN = {"formats": ["markdown"]}
# Endpoint, body, extra body, and the seconds that the service may take.
TIMES: list[tuple[Any, dict[str, Any] | None, dict[str, Any] | None, float]] = [
    (endpoints.SEARCH, {"query": "x"}, None, 60),
    (endpoints.SEARCH, {"query": "x", "timeout": 1_000}, None, 1),
    (endpoints.SEARCH, {"query": "x", "timeout": 90_000, "scrapeOptions": {"mobile": True}}, None, 90),
    (endpoints.SEARCH, {"query": "x", "timeout": 90_000, "scrapeOptions": MARKDOWN}, None, 390),
    (endpoints.SEARCH, {"query": "x", "scrapeOptions": {**MARKDOWN, "timeout": 300_000}}, None, 360),
    (endpoints.SEARCH, {"query": "x", "scrapeOptions": {**MARKDOWN, "timeout": 30_000}}, None, 180),
    (endpoints.SCRAPE, {"url": "a.example", "timeout": 60_000}, None, 100),
    (endpoints.SCRAPE, {"url": "a.example", "timeout": 30_000}, None, 200),
    (endpoints.SCRAPE, {"url": "a.example"}, None, 300),
    (endpoints.MAP, {"url": "a.example", "timeout": 1_000}, None, 1),
    (endpoints.PARSE, {"timeout": 300_000}, None, 500),
    # The default is not documented.
    (endpoints.PARSE, {}, None, 300),
    (endpoints.PARSE, None, {"timeout": 600_000}, 1000),
    (endpoints.RUN_PROVIDER, {"calls": [{"provider": "p", "capability": "c"}]}, None, 120),
    (endpoints.RUN_PROVIDER, {"calls": [{"provider": "p", "capability": "c"}], "timeout": 1_000}, None, 1),
    (
        endpoints.RUN_PROVIDER,
        {"calls": [{"provider": "p", "capability": "c"}], "timeout": 300_000},
        None,
        120,
    ),
    (endpoints.START_AGENT, {"prompt": "p"}, None, 120),
    (endpoints.OPEN_SESSION, {"ttl": 3600}, None, 60),
    (endpoints.EXECUTE, {"code": "1"}, None, 30),
    (endpoints.EXECUTE, {"code": "1", "timeout": 300}, {"timeout": 900}, 900),
    # The scrape may have to be repeated first.
    (endpoints.INTERACT_WITH_SCRAPE, {"code": "1"}, None, 330),
    (endpoints.INTERACT_WITH_SCRAPE, {"prompt": "p", "timeout": 300}, None, 600),
]


@pytest.mark.rule("scrape-timeout", "scrape-time", "search-timeout", "parse-timeout", "code-timeout")
@pytest.mark.rule("provider-timeout")
@pytest.mark.parametrize(("endpoint", "fields", "extra", "seconds"), TIMES)
def test_reading_outlasts_the_service(endpoint: Any, fields: Any, extra: Any, seconds: float) -> None:
    body = None if fields is None else endpoint.request().model_validate(fields)
    upload = Upload("parse", io.BytesIO(b"x"), "a.pdf", max_bytes=10) if endpoint is endpoints.PARSE else None
    config = ClientConfig("https://host", "wd-key-0123456789", declared="hosted", timeout=0.5)
    path = {"session_id": "s", "scrape_id": "s"}
    prepared = exchange.prepare(config, endpoint, path, None, body, extra, upload)
    timeout = prepared.request["timeout"]
    assert timeout.read == seconds + exchange.MARGIN_SECONDS
    assert (timeout.connect, timeout.write, timeout.pool) == (0.5, 0.5, None)
    assert prepared.seconds == 0.5 + timeout.read


@pytest.mark.parametrize("body", [None, {"url": "a.example", "timeout": 1000}], ids=["none", "less"])
def test_the_connections_timeout_is_the_least(body: dict[str, Any] | None) -> None:
    config = ClientConfig("https://host", "wd-key-0123456789", declared="hosted", timeout=30)
    endpoint = endpoints.LIST_MONITORS if body is None else endpoints.SCRAPE
    prepared = exchange.prepare(config, endpoint, None, None, None, body)
    assert prepared.request["timeout"].read == 30
    assert prepared.seconds == 60
