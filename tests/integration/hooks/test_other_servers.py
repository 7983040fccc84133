# SPDX-License-Identifier: Apache-2.0
"""Other implementations of the API are recognized by a call that bills nothing. See docs/servers.md#what-was-tried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_webdata.hooks.webdata import WebDataHook
from tests.support.other_servers import (
    Crw,
    FirecrawlCompat,
    FirecrawlLb,
    Groktocrawl,
    NodeByte,
    OtherServer,
    each_of,
)
from webdata_sandbox.server import SandboxServer

RECOGNIZED = (Groktocrawl, FirecrawlLb, FirecrawlCompat, Crw)
TRIED = (
    "GET /v2/team/credit-usage: 404; GET /v2/concurrency-check: 404; GET /v2/team/queue-status: 404; "
    "POST /v2/scrape: 404"
)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[type, OtherServer]]:
    with SandboxServer() as upstream, each_of(upstream.url, upstream.api_key) as running:
        yield {type(one): one for one in running}


@pytest.mark.parametrize("kind", RECOGNIZED, ids=lambda kind: kind.__name__)
def test_the_api_is_recognized(servers: Any, connect: Any, kind: type[OtherServer]) -> None:
    """Whether the server bills is not shown, so its user says it."""
    server = servers[kind]
    connect(server.url, server=kind.kind)
    assert WebDataHook().test_connection() == (True, "The server responds. It does not report credits.")
    connect(server.url, server=None)
    works, message = WebDataHook().test_connection()
    assert works
    assert message.endswith(
        'Nothing shows whether it bills calls. Set "Server" to self-hosted if it bills no calls, else to gateway.'
    )


def test_the_key_is_checked_where_it_is_checked(servers: Any, connect: Any) -> None:
    server = servers[Groktocrawl]
    server.accepts = "right"
    try:
        connect(server.url, "wrong", server="self-hosted")
        works, message = WebDataHook().test_connection()
        assert not works
        assert "Invalid or missing API key" in message
        connect(server.url, "right", server="self-hosted")
        assert WebDataHook().test_connection()[0]
    finally:
        server.accepts = None


def test_a_server_that_shows_nothing_is_believed_if_declared(servers: Any, connect: Any) -> None:
    server = servers[NodeByte]
    connect(server.url, server=None)
    works, message = WebDataHook().test_connection()
    assert not works
    assert message.startswith("The host responds, but nothing shows that it has this API: ")
    assert f"(tried {TRIED}). " in " ".join(message.split())
    assert '"Server" (--server)' in message
    assert "--skip-test" in message
    connect(server.url, server="self-hosted")
    works, message = WebDataHook().test_connection()
    assert works
    assert message.startswith("Warning: The host responds, but nothing shows that it has this API: ")
    assert "--skip-test" not in message


def test_nothing_is_billed(connect: Any) -> None:
    with SandboxServer() as upstream, FirecrawlLb(upstream.url, upstream.api_key) as server:
        before = upstream.control.state()["credits"]
        connect(server.url, server="gateway")
        assert WebDataHook().test_connection()[0]
        assert upstream.control.state()["credits"] == before
