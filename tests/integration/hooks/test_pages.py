# SPDX-License-Identifier: Apache-2.0
"""Scrape and map through both hooks, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.api import errors, models
from tests.integration.hooks.conftest import one_hook
from tests.integration.hooks.test_jobs import JOB, calls_of
from tests.support.fault_server import answer
from tests.support.service import UNFETCHED
from tests.support.waiting import settled


@pytest.mark.rule("metadata-scrape-id", "scrape-answer", "scrape-result")
async def test_a_scrape_and_its_stored_result(serve: Any) -> None:
    page = {"success": True, "data": {"markdown": "# a", "metadata": {"statusCode": 404, "scrapeId": JOB}}}
    server, hook = serve(page)
    request = models.ScrapeRequest(url="https://a.example", formats=["markdown"], max_age=0)
    found = await settled(hook.scrape(request, extra_body={"new": True}))
    assert (found.data.markdown, found.data.metadata.status_code) == ("# a", 404)
    assert (await settled(hook.get_scrape(found.data.metadata.scrape_id))).to_wire() == page
    assert calls_of(server) == [("POST", "/v2/scrape"), ("GET", f"/v2/scrape/{JOB}")]
    assert json.loads(server.requests[0].body) == {
        "formats": ["markdown"],
        "maxAge": 0,
        "url": "https://a.example",
        "new": True,
    }
    await settled(hook.close())


@pytest.mark.rule("metadata-not-fetched")
async def test_a_page_that_was_not_fetched_is_an_error(serve: Any) -> None:
    _, hook = serve({"success": True, "data": UNFETCHED})
    for call in (lambda: hook.scrape(url="http://nohost.example.net/x"), lambda: hook.get_scrape(JOB)):
        with pytest.raises(
            errors.PageError,
            match=r"nohost\.example\.net/x could not be fetched: Network Connect Timeout Error \(status 599\)",
        ) as caught:
            await settled(call())
        assert (caught.value.status, caught.value.verdict, caught.value.help_code) == (
            200,
            "unknown",
            "WD-020",
        )
    await settled(hook.close())


@pytest.mark.rule("large-documents-answer")
@one_hook
async def test_a_document_that_takes_long(serve: Any) -> None:
    details = {"state": "processing_continues", "documentPages": 900, "retryAfterSeconds": 300}
    body = {"success": False, "code": "SCRAPE_TIMEOUT", "error": "slow", "details": details}
    server, hook = serve(answer(408, json.dumps(body)))
    with pytest.raises(errors.ProcessingContinuesError) as caught:
        await settled(hook.scrape(url="https://a.example/large.pdf"))
    assert (caught.value.pages, caught.value.retry_after) == (900, 300.0)
    assert len(server.requests) == 1
    await settled(hook.close())


@pytest.mark.rule("map-links")
async def test_map(serve: Any) -> None:
    server, hook = serve({"success": True, "links": ["https://a.example", {"url": "https://a.example/b"}]})
    found = await settled(hook.map(url="https://a.example", limit="5", extra_body={"new": 1}))
    assert [link.url for link in found.links] == ["https://a.example", "https://a.example/b"]
    assert calls_of(server) == [("POST", "/v2/map")]
    assert json.loads(server.requests[0].body) == {"url": "https://a.example", "limit": 5, "new": 1}
    await settled(hook.close())


async def test_an_invalid_request_names_field_and_rule(serve: Any) -> None:
    server, hook = serve({})
    for call, words in (
        (lambda: hook.scrape(url="https://a.example", timeout=5), "timeout"),
        (lambda: hook.map(url="https://a.example", limit=0), "limit"),
        (lambda: hook.start_crawl({"url": "https://a.example", "maxDepth": 2}), "max_discovery_depth"),
        (lambda: hook.start_batch_scrape(urls=[]), "urls"),
        (lambda: hook.crawl_params(url="https://a.example"), "prompt"),
        (lambda: hook.get_scrape(""), "scrape_id"),
    ):
        with pytest.raises(errors.InvalidRequestError, match=words):
            await settled(call())
    assert server.requests == []
