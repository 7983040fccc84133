# SPDX-License-Identifier: Apache-2.0
"""The client that others wrote for the public service drives scrape, batch, crawl, map and team on the sandbox."""

from __future__ import annotations

import asyncio

import pytest
from firecrawl import AsyncFirecrawl, Firecrawl
from firecrawl.v2.types import PaginationConfig, ScrapeOptions, WebhookConfig
from firecrawl.v2.utils.error_handler import FirecrawlError, PaymentRequiredError

from webdata_sandbox.server import SandboxServer

SITE = "https://river.example"
URLS = [f"{SITE}/{name}" for name in ("floods", "bridges", "salmon")]
HOOK = "http://127.0.0.1:9/nobody-listens"


@pytest.fixture
def client(sandbox: SandboxServer) -> Firecrawl:
    return Firecrawl(api_key=sandbox.api_key, api_url=sandbox.url)


def test_scrape(client) -> None:
    document = client.scrape(URLS[0], formats=["markdown", "links", "html"], only_main_content=True)
    assert "412 cm" in document.markdown
    assert document.links
    assert "<h1>" in document.html
    assert (document.metadata.status_code, document.metadata.source_url) == (200, URLS[0])
    assert document.metadata.scrape_id


@pytest.mark.rule("document-screenshot")
def test_scrape_of_a_screenshot(sandbox, client) -> None:
    sandbox.control.set_media(URLS[0], "screenshot", b"picture")
    assert client.scrape(URLS[0], formats=["screenshot"]).screenshot.startswith(f"{sandbox.url}/media/")


@pytest.mark.rule("large-documents-again")
def test_scrape_waits_for_a_large_document(sandbox, client) -> None:
    sandbox.control.configure(pdf_seconds=62)
    document = client.scrape("https://weather.example/reports/annual.pdf", timeout=60_000)
    assert document.metadata.num_pages
    statuses = [request["status"] for request in sandbox.control.requests("/v2/scrape", "POST")]
    assert statuses == [408, 200]


def test_batch_scrape(sandbox, client) -> None:
    job = client.batch_scrape(URLS, formats=["markdown"], ignore_invalid_urls=True, poll_interval=0)
    assert (job.status, job.completed, job.total, job.credits_used) == ("completed", 3, 3, 3)
    assert [document.metadata.source_url for document in job.data] == URLS


def test_batch_scrape_by_hand(sandbox, client) -> None:
    sandbox.control.configure(page_seconds=1000)
    sandbox.control.set_page(URLS[0], "<p>x</p>", error="SCRAPE_SITE_ERROR")
    started = client.start_batch_scrape(
        [*URLS, "https://intranet/wiki"],
        ignore_invalid_urls=True,
        webhook=WebhookConfig(url=HOOK, events=["completed"]),
        max_concurrency=1,
    )
    assert started.invalid_urls == ["https://intranet/wiki"]
    sandbox.control.advance(2100)
    config = PaginationConfig(auto_paginate=False)
    running = client.get_batch_scrape_status(started.id, pagination_config=config)
    assert (running.status, running.completed) == ("scraping", 1)
    assert running.next
    assert [error.url for error in client.get_batch_scrape_errors(started.id).errors] == [URLS[0]]
    assert client.cancel_batch_scrape(started.id) is True
    assert client.get_batch_scrape_status(started.id).status == "cancelled"
    with pytest.raises(FirecrawlError):
        client.get_batch_scrape_status("0b0e3e1c-7d8a-4a53-9f7e-2f1f9a3b7c11")


def test_crawl(client) -> None:
    options = ScrapeOptions(formats=["markdown", "links"])
    job = client.crawl(SITE, limit=3, scrape_options=options, poll_interval=0)
    assert (job.status, job.completed, len(job.data)) == ("completed", 3, 3)
    assert all(document.markdown and document.links is not None for document in job.data)


def test_crawl_follows_its_pages(sandbox, client) -> None:
    sandbox.control.set_site("big.example", pages=250)
    for quirks in ([], ["next-wrong-host"], ["next-null"]):
        sandbox.control.set_quirks(quirks)
        job = client.crawl("https://big.example", limit=300, poll_interval=0)
        sandbox.control.set_quirks([])
        assert len({document.metadata.source_url for document in job.data}) == 251


def test_crawl_by_hand(sandbox, client) -> None:
    sandbox.control.configure(page_seconds=1000)
    started = client.start_crawl(
        SITE, limit=5, include_paths=["^/$", "o"], max_discovery_depth=2, sitemap="skip", webhook=HOOK
    )
    assert [crawl.id for crawl in client.get_active_crawls().crawls] == [started.id]
    sandbox.control.advance(1100)
    assert client.get_crawl_status(started.id).status == "scraping"
    sandbox.control.advance(6000)
    assert client.get_active_crawls().crawls == []
    ended = client.get_crawl_status(started.id)
    assert ended.status == "completed"
    assert ended.completed == ended.total == len(ended.data)
    assert client.get_crawl_errors(started.id).errors == []
    assert client.cancel_crawl(started.id) is False  # 409: it had ended
    assert client.crawl_params_preview(SITE, "only /floods, 5 pages").include_paths == ["/floods"]


@pytest.mark.rule("job-failed")
def test_a_failed_crawl(sandbox, client) -> None:
    sandbox.control.add_fault("fail_crawl")
    with pytest.raises(FirecrawlError, match="injected fault"):
        client.crawl(SITE, limit=3, poll_interval=0)


def test_map(client) -> None:
    found = client.map(SITE, search="flood", limit=3)
    assert [link.url for link in found.links][:2] == [f"{SITE}/archive", f"{SITE}/floods"]
    assert all(link.title for link in found.links)


def test_team(sandbox, client) -> None:
    client.scrape(URLS[0])
    credits, tokens = client.get_credit_usage(), client.get_token_usage()
    assert (credits.remaining_credits, credits.plan_credits) == (99_999, 100_000)
    assert (tokens.remaining_tokens, tokens.plan_tokens) == (99_999 * 15, 100_000 * 15)
    sandbox.control.set_quirks(["history-credits-used"])
    assert client.v2.get_credit_usage_historical().periods[0].creditsUsed == 1
    assert client.v2.get_token_usage_historical().periods[0].tokensUsed == 0
    sandbox.control.set_quirks([])
    sandbox.control.configure(page_seconds=1000)
    client.start_batch_scrape(URLS, ignore_invalid_urls=True)
    queue = client.get_queue_status()
    assert (queue.jobs_in_queue, queue.active_jobs_in_queue, queue.waiting_jobs_in_queue) == (3, 1, 2)
    assert client.get_concurrency().max_concurrency == queue.max_concurrency == 1


def test_no_credits(sandbox, client) -> None:
    sandbox.control.configure(credits=0)
    for call in (
        lambda: client.scrape(URLS[0]),
        lambda: client.map(SITE),
        lambda: client.start_crawl(SITE, limit=1),
        lambda: client.start_batch_scrape(URLS),
    ):
        with pytest.raises(PaymentRequiredError):
            call()


def test_async_client(sandbox) -> None:
    async def main() -> list[object]:
        client = AsyncFirecrawl(api_key=sandbox.api_key, api_url=sandbox.url)
        document = await client.scrape(URLS[0])
        crawled = await client.crawl(url=SITE, limit=2, poll_interval=0)
        batch = await client.batch_scrape(URLS, poll_interval=0)
        mapped = await client.map(SITE)
        queue = await client.get_queue_status()
        return [
            document.metadata.status_code,
            crawled.status,
            batch.completed,
            len(mapped.links) > 5,
            queue.jobs_in_queue,
        ]

    assert asyncio.run(main()) == [200, "completed", 3, True, 0]
