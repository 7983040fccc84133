"""Reading outlasts what the service may take for the very request."""

from __future__ import annotations

import io
from typing import Any

import pytest

from airflow_provider_webdata.api import endpoints, exchange, models
from airflow_provider_webdata.api.config import ClientConfig
from airflow_provider_webdata.api.multipart import Upload

FILE = {"upload": Upload("parse", io.BytesIO(b"x"), "a.pdf", max_bytes=10)}


@pytest.mark.rule("scrape-timeout", "search-timeout", "parse-timeout", "code-timeout")
@pytest.mark.parametrize(
    "endpoint, path, body, extra, more, seconds",
    [
        (endpoints.PARSE, None, models.ParseOptions(timeout=1000), None, FILE, 1),
        (endpoints.PARSE, None, models.ParseOptions(timeout=300_000), None, FILE, 300),
        # Whether there is a default is not known: as long as the service may take at most.
        (endpoints.PARSE, None, models.ParseOptions(), None, FILE, 300),
        (endpoints.PARSE, None, None, {"timeout": 600_000}, FILE, 600),
        (endpoints.PARSE, None, None, None, FILE, 300),
        (endpoints.START_EXTRACT, None, models.ExtractRequest(urls=["a.example"]), None, {}, 60),
        (endpoints.START_EXTRACT, None, models.ExtractRequest(prompt="p"), None, {}, 120),
        (endpoints.START_AGENT, None, models.AgentRequest(prompt="p"), None, {}, 120),
        (endpoints.OPEN_SESSION, None, models.InteractRequest(ttl=3600), None, {}, 60),
        (endpoints.EXECUTE, {"session_id": "s"}, models.ExecuteRequest(code="1"), None, {}, 30),
        (endpoints.EXECUTE, {"session_id": "s"}, models.ExecuteRequest(code="1", timeout=300), None, {}, 300),
        (endpoints.EXECUTE, {"session_id": "s"}, models.ExecuteRequest(code="1"), {"timeout": 900}, {}, 900),
        # The scrape may have to be repeated first.
        (
            endpoints.INTERACT_SCRAPE,
            {"scrape_id": "s"},
            models.ScrapeInteractRequest(code="1"),
            None,
            {},
            330,
        ),
        (
            endpoints.INTERACT_SCRAPE,
            {"scrape_id": "s"},
            models.ScrapeInteractRequest(prompt="p", timeout=300),
            None,
            {},
            600,
        ),
    ],
)
def test_reading_outlasts_the_service(
    endpoint: Any, path: Any, body: Any, extra: Any, more: dict[str, Any], seconds: float
) -> None:
    config = ClientConfig("https://host", "wd-key-0123456789", timeout=0.5)
    timeout = exchange.prepare(config, endpoint, path, None, body, extra, **more).request["timeout"]
    assert timeout.read == seconds + exchange.MARGIN_SECONDS
    assert (timeout.connect, timeout.write, timeout.pool) == (0.5, 0.5, None)
