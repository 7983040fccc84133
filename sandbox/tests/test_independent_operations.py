# SPDX-License-Identifier: Apache-2.0
"""The client that others wrote for the public service drives parse, extract, agent and interact on the sandbox."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from firecrawl import AsyncFirecrawl, Firecrawl
from firecrawl.v2.types import AgentWebhookConfig, ParseOptions
from firecrawl.v2.utils.error_handler import BadRequestError, FirecrawlError, PaymentRequiredError
from pydantic import BaseModel

FILES = Path(__file__).parent / "files"
LEVELS, FLOODS = "https://weather.example/levels", "https://river.example/floods"

# Extract is in maintenance, and the client says so.
pytestmark = pytest.mark.filterwarnings("ignore:The extract endpoint:DeprecationWarning")


class Row(BaseModel):
    title: str
    url: str


class Rows(BaseModel):
    pages: list[Row]


@pytest.fixture
def client(sandbox) -> Firecrawl:
    return Firecrawl(api_key=sandbox.api_key, api_url=sandbox.url)


def test_parse(client) -> None:
    document = client.parse(str(FILES / "chromium.pdf"))
    assert "The gauge stood at 412 cm" in document.markdown
    assert document.metadata.num_pages == document.metadata.total_pages == 2
    assert document.metadata.credits_used == 2
    assert document.metadata.sourceFile == "chromium.pdf"


def test_parse_options(client) -> None:
    options = ParseOptions(
        formats=["html", "links"], only_main_content=False, include_tags=["p"], timeout=300_000
    )
    content = b'<h1>x</h1><p><a href="https://a.example/">y</a></p>'
    document = client.parse(content, options=options, filename="page.html")
    assert document.html == '<div><p><a href="https://a.example/">y</a></p></div>'
    assert document.links == ["https://a.example/"]
    assert document.markdown is None


def test_parse_refuses(client) -> None:
    with pytest.raises(BadRequestError, match="Unsupported file type"):
        client.parse(b"x", filename="page.txt")


def test_extract(client) -> None:
    found = client.extract(
        [LEVELS, FLOODS, "nonsense"],
        prompt="titles",
        schema=Rows.model_json_schema(),
        show_sources=True,
        poll_interval=1,
        timeout=30,
    )
    assert found.status == "completed"
    assert [row.url for row in Rows.model_validate(found.data).pages] == [LEVELS, FLOODS]
    assert found.sources == {"pages": [LEVELS, FLOODS]}
    assert found.tokens_used > 0
    assert found.credits_used > 0
    assert found.expires_at is not None


def test_extract_that_fails(sandbox, client) -> None:
    sandbox.control.add_fault("fail_extract")
    job = client.start_extract([LEVELS])
    sandbox.control.settle()
    found = client.get_extract_status(job.id)
    assert (found.success, found.status) == (False, "failed")
    assert "injected fault" in found.error


def test_agent(sandbox, client) -> None:
    webhook = AgentWebhookConfig(url="http://127.0.0.1:9/x", events=["action", "completed"])
    found = client.agent(
        [LEVELS],
        prompt="river levels",
        schema=Rows,
        strict_constrain_to_urls=True,
        max_credits=50,
        webhook=webhook,
        poll_interval=1,
    )
    assert found.status == "completed"
    assert [row.url for row in Rows.model_validate(found.data).pages] == [LEVELS]
    assert (found.model, found.credits_used) == ("spark-1-pro", 0)
    assert [item["event"] for item in sandbox.control.deliveries()] == ["agent.action", "agent.completed"]


def test_agent_that_reaches_its_limit(sandbox, client) -> None:
    job = client.start_agent([LEVELS], prompt="levels", max_credits=1)
    sandbox.control.settle()
    found = client.get_agent_status(job.id)
    assert (found.status, found.data) == ("failed", None)
    assert "limit of 1 credits" in found.error


def test_cancel_agent(sandbox, client) -> None:
    sandbox.control.configure(step_seconds=60)
    job = client.start_agent(None, prompt="river")
    assert client.get_agent_status(job.id).status == "processing"
    assert client.cancel_agent(job.id) is True
    sandbox.control.advance(60)
    assert [item["status"] for item in sandbox.control.jobs("agent")] == ["cancelled"]
    with pytest.raises(FirecrawlError, match="Agent already finished"):
        client.cancel_agent(job.id)


def test_session(sandbox, client) -> None:
    session = client.browser(ttl=60, activity_ttl=30, profile={"name": "shop"})
    assert session.success is True
    assert session.cdp_url.startswith("wss://")
    answer = client.browser_execute(session.id, f"agent-browser open {FLOODS}\nagent-browser get url")
    assert (answer.stdout, answer.exit_code, answer.killed) == (f"{FLOODS}\n", 0, False)
    failed = client.browser_execute(session.id, "no such thing", language="python")
    assert (failed.success, failed.exit_code) == (True, 1)
    assert failed.stderr
    assert [item.id for item in client.list_browsers(status="active").sessions] == [session.id]
    closed = client.delete_browser(session.id)
    assert (closed.success, closed.credits_billed) == (True, 2)
    assert closed.session_duration_ms >= 0
    assert client.list_browsers(status="active").sessions == []
    with pytest.raises(FirecrawlError, match="destroyed"):
        client.browser_execute(session.id, "exit 0")


def test_interaction_with_a_scrape(client) -> None:
    scrape = client.scrape(FLOODS, formats=["markdown"]).metadata.scrape_id
    first = client.interact(scrape, "console.log(page.url())")
    assert (first.success, first.stdout, first.exit_code) == (True, f"{FLOODS}\n", 0)
    assert first.cdp_url
    answer = client.interact(scrape, prompt="What happened after a week of rain?")
    assert "rain" in answer.output
    with pytest.raises(FirecrawlError, match="boom"):
        client.interact(scrape, 'throw new Error("boom")')
    stopped = client.stop_interaction(scrape)
    assert (stopped.success, stopped.credits_billed) == (True, 7)
    with pytest.raises(FirecrawlError, match="destroyed"):
        client.interact(scrape, "console.log(page.url())")


def test_credits(sandbox, client) -> None:
    sandbox.control.configure(credits=1, free_runs=0)
    for call in (
        lambda: client.browser(),
        lambda: client.start_agent(None, prompt="x"),
        lambda: client.start_extract([LEVELS]),
    ):
        with pytest.raises(PaymentRequiredError):
            call()


def test_async_client(sandbox) -> None:
    async def main() -> tuple[str, str, int]:
        client = AsyncFirecrawl(api_key=sandbox.api_key, api_url=sandbox.url)
        document = await client.parse(b"a,b\n1,2\n", filename="t.csv")
        found = await client.agent([LEVELS], prompt="levels", poll_interval=1)
        session = await client.browser(ttl=60)
        closed = await client.delete_browser(session.id)
        return document.markdown, found.status, closed.credits_billed

    markdown, status, credits = asyncio.run(main())
    assert markdown.startswith("| a | b |")
    assert (status, credits) == ("completed", 2)
