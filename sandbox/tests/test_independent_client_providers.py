# SPDX-License-Identifier: Apache-2.0
"""The official client calls the sandbox's data providers."""

from __future__ import annotations

import asyncio

import pytest
from firecrawl import AsyncFirecrawl, Firecrawl
from firecrawl.v2.utils.error_handler import FirecrawlError, ProviderTermsRequiredError

from webdata_sandbox.server import SandboxServer

HISTORY = {"provider": "market-prices", "capability": "prices/history", "options": {"symbol": "URM"}}
EPISODES = {"provider": "episode-index", "capability": "episodes/search", "options": {"query": "river"}}


@pytest.fixture
def client(sandbox: SandboxServer) -> Firecrawl:
    return Firecrawl(api_key=sandbox.api_key, api_url=sandbox.url)


def test_calls_and_their_errors(client: Firecrawl) -> None:
    found = client.scrape(alexandria=[HISTORY, {**HISTORY, "options": {}}], request_id="run-1")
    assert found.scrape_id
    assert found.request_id == "run-1"
    assert found.credits_cost == 5
    prices, failed = found.alexandria
    assert prices.ok
    assert prices.records == 5
    assert prices.upstream_status == 200
    assert failed.error.code == "invalid_options"
    assert failed.error.status == 400


def test_a_repeat_and_another_payload(client: Firecrawl) -> None:
    first = client.scrape(alexandria=HISTORY, request_id="run-1")
    assert client.scrape(alexandria=HISTORY, request_id="run-1").scrape_id == first.scrape_id
    with pytest.raises(FirecrawlError) as caught:
        client.scrape(alexandria=EPISODES, request_id="run-1")
    assert caught.value.code == "duplicate_request"


def test_the_catalog(client: Firecrawl) -> None:
    page = client.find_tools(level="tools", limit=2)
    assert (page.level, page.total, len(page.items)) == ("tools", 5, 2)
    following = client.scrape(alexandria=page.next).alexandria[0]
    assert len(following.data["items"]) == 2
    with pytest.raises(FirecrawlError) as caught:
        client.find_tools(level="nothing")
    assert (caught.value.code, caught.value.status_code) == ("invalid_options", 400)


def test_terms(client: Firecrawl, sandbox: SandboxServer) -> None:
    with pytest.raises(ProviderTermsRequiredError) as caught:
        client.scrape(alexandria=EPISODES)
    action = caught.value.requires_action
    assert (action.type, action.terms, action.version) == ("accept_terms", "episode-index", "1.0.0")
    sandbox.control.accept_terms("episode-index")
    assert client.scrape(alexandria=EPISODES).alexandria[0].records == 1


def test_tools_in_a_search(client: Firecrawl) -> None:
    found = client.search("podcasts", sources=["alexandria"], tool_detail="full")
    assert found.tools[0].id == "episode-index/episodes/search"
    assert found.tools[0].credits_cost == 15
    assert found.tools[0].matched_by == ["semantic"]


def test_tools_of_a_page(client: Firecrawl) -> None:
    document = client.scrape("https://river.example/floods", domain_tools=True, tool_detail="summary")
    assert document.markdown
    assert document.tools[0].id == "episode-index/episodes/search"
    assert document.tools[0].next["capability"] == "find-tools"


def test_the_asynchronous_client(sandbox: SandboxServer) -> None:
    async def calls() -> None:
        client = AsyncFirecrawl(api_key=sandbox.api_key, api_url=sandbox.url)
        found = await client.scrape_alexandria(HISTORY)
        assert found.credits_cost == 5
        assert (await client.find_tools(providers=["market-prices"])).total == 2

    asyncio.run(calls())
