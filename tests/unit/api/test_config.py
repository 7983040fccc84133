# SPDX-License-Identifier: Apache-2.0
"""Settings of the client."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.api.config import ClientConfig
from airflow_provider_webdata.api.errors import ConfigurationError

KEY = "wd-key-1"


@pytest.mark.rule("base-address")
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://api.service.example", "https://api.service.example"),
        ("https://api.service.example/v2", "https://api.service.example"),
        (" https://api.service.example/v2/ ", "https://api.service.example"),
        ("http://127.0.0.1:8900/proxy/v2", "http://127.0.0.1:8900/proxy"),
        ("http://[::1]:8900", "http://[::1]:8900"),
    ],
)
def test_base_url(given: str, kept: str) -> None:
    assert ClientConfig(given, KEY).base_url == kept


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"base_url": ""}, "base URL"),
        ({"base_url": "api.service.example"}, "base URL"),
        ({"base_url": "https://"}, "base URL"),
        ({"base_url": "https://host:99999"}, "base URL"),
        ({"base_url": "https://host?x=1"}, "base URL"),
        ({"base_url": "https://[::1"}, "base URL"),
        ({"base_url": "https://ho st"}, "base URL"),
        ({"base_url": "https://user:pa55word@host"}, "base URL"),
        ({"api_key": ""}, "API key is empty"),
        ({"api_key": "pa55word with blank"}, "API key"),
        ({"api_key": "pa55word\n"}, "API key"),
        ({"api_key": "pa55word…"}, "API key"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("inf")}, "timeout"),
        ({"retry_budget": -1}, "retry_budget"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"max_response_bytes": 0}, "max_response_bytes"),
        ({"proxy": "socks9://user:pa55word@host"}, "proxy"),
        ({"headers": {"bad name": "x"}}, "bad name"),
        ({"headers": {"Authorization": "pa55word"}}, "Authorization"),
        ({"headers": {"x-team": "pa55word\r\nx: y"}}, "x-team"),
    ],
)
def test_what_cannot_work_is_refused_without_its_secret(settings: dict[str, Any], names: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ClientConfig(**{"base_url": "https://host", "api_key": KEY, **settings})
    assert names in str(caught.value)
    assert "pa55word" not in str(caught.value)


def test_no_secret_in_repr() -> None:
    config = ClientConfig(
        "https://host", "pa55word", proxy="http://u:pa55word@proxy", headers={"x-team": "pa55word"}
    )
    assert "pa55word" not in repr(config)
