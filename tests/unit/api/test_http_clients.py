# SPDX-License-Identifier: Apache-2.0
"""Proxies from the environment."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import airflow_provider_webdata
from airflow_provider_webdata.api.client import AsyncWebDataClient, ClientConfig, WebDataClient
from airflow_provider_webdata.api.endpoints import ENDPOINTS
from airflow_provider_webdata.api.errors import ConfigurationError, EnvironmentVariableError
from airflow_provider_webdata.common import http_clients
from airflow_provider_webdata.common.tls import UnusableVariableError
from airflow_provider_webdata.inbox.reader.client import AsyncInboxReader, InboxReader
from airflow_provider_webdata.inbox.reader.protocol import InboxAddress
from airflow_provider_webdata.results.media.fetch import MediaFetcher, MediaSettings
from tests.support.fault_server import API_KEY, FaultServer, answer

USAGE = '{"success": true, "data": {"remainingCredits": 5}}'


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme in ("http", "https", "all", "no"):
        for name in (f"{scheme}_proxy", f"{scheme}_PROXY".upper()):
            monkeypatch.delenv(name, raising=False)


@pytest.fixture
def proxy() -> Any:
    server = FaultServer([answer(body=USAGE)])
    yield server
    server.close()


def config(url: str = "http://service.test") -> ClientConfig:
    return ClientConfig(url, API_KEY, retry_budget=0)


UNREADABLE = [
    ("ALL_PROXY", "socks://user:hush-word@10.0.0.1:1080"),
    ("HTTP_PROXY", "http://user:hush#word@10.0.0.1"),
    ("http_proxy", "http://user:12#hush@10.0.0.1"),
    ("HTTPS_PROXY", "http://us/er:hush-word@10.0.0.1"),
    ("HTTPS_PROXY", "http://[hush"),
]


@pytest.mark.parametrize(("name", "value"), UNREADABLE)
def test_an_unreadable_proxy_is_named_without_its_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """The value can contain a password."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as failure:
        WebDataClient(config())
    assert f"variable {name} must be a URL" in str(failure.value)
    assert "hush" not in str(failure.value)


VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30) | st.builds(
    "{}://user:hush-word@{}".format,
    st.sampled_from(["http", "https", "socks5", "socks", ""]),
    st.sampled_from(["proxy.test:3128", "[::1]:80", "[fd07::/64]", "proxy.test:x", "", "a b", "#"]),
)


@given(
    proxy=VALUES,
    bypassed=st.lists(VALUES | st.sampled_from(["fd07::/64", "[::1]", "*", ".test"]), max_size=3),
)
def test_any_environment_makes_a_client_or_a_clear_error(proxy: str, bypassed: list[str]) -> None:
    environ = {"ALL_PROXY": proxy, "NO_PROXY": ",".join(bypassed)}
    problem = ""
    with patch.dict(os.environ, environ):
        try:
            WebDataClient(config()).close()
        except ConfigurationError as error:
            problem = str(error)
    assert re.search(r"variable (ALL|NO)_PROXY |^$", problem)
    assert "hush" not in problem


ADDRESS = InboxAddress("http://airflow.test/webdata", "webdata_default", "secret")

CLIENTS: list[Callable[[], Any]] = [
    lambda: InboxReader(ADDRESS),
    lambda: AsyncInboxReader(ADDRESS),
    lambda: MediaFetcher(MediaSettings()),
]


@pytest.mark.parametrize("make", CLIENTS, ids=["inbox", "async inbox", "media"])
def test_every_client_reads_the_environment_alike(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any]
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks://10.0.0.1")
    with pytest.raises((EnvironmentVariableError, UnusableVariableError)):
        make()


async def test_the_asynchronous_client_too(monkeypatch: pytest.MonkeyPatch, proxy: FaultServer) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    client = AsyncWebDataClient(config())
    await client.call(ENDPOINTS["credit_usage"])
    await client.aclose()
    assert [request.target for request in proxy.requests] == ["http://service.test/v2/team/credit-usage"]
    monkeypatch.setenv("ALL_PROXY", "socks://10.0.0.1")
    with pytest.raises(ConfigurationError):
        await AsyncWebDataClient(config()).call(ENDPOINTS["credit_usage"])


def test_ipv6_networks_in_no_proxy_are_ignored_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, proxy: FaultServer
) -> None:
    http_clients._bypassed.cache_clear()
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("NO_PROXY", "fd07::/64, [::1], intern.test, 10.0.0.0/8, 127.0.0.1")
    direct = FaultServer([answer(body=USAGE)])
    with caplog.at_level(logging.WARNING):
        for url in ("http://service.test", direct.url):
            with WebDataClient(config(url)) as client:
                client.call(ENDPOINTS["credit_usage"])
    direct.close()
    assert (len(proxy.requests), len(direct.requests)) == (1, 1)
    warnings = [record.getMessage() for record in caplog.records if "NO_PROXY" in record.getMessage()]
    assert len(warnings) == 1
    assert "1 of 5 entries" in warnings[0]
    assert warnings[0].endswith("fd07::/64")
    assert "all://[::1]" in http_clients.environment_proxies()


def test_no_other_module_builds_a_client() -> None:
    package = Path(airflow_provider_webdata.__file__).parent
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"httpx\.(Async)?Client\(", path.read_text())
    }
    assert found == {"common/http_clients.py"}
