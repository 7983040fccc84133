# SPDX-License-Identifier: Apache-2.0
"""The public Python client's calls for recent features: data providers, approvals, support, and replays."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from firecrawl.v2.client import FirecrawlClient
from firecrawl.v2.utils.error_handler import FirecrawlError, ProviderTermsRequiredError

SITE = "https://river.example/"
HISTORY = {"provider": "market-prices", "capability": "prices/history", "options": {"symbol": "URM"}}
EPISODES = {"provider": "episode-index", "capability": "episodes/search", "options": {"query": "river"}}
PATIENCE = 60


def steps(url: str, key: str) -> list[dict[str, Any]]:
    """Run the client; return each step with its `name`, `ok`, and the error in `why`.

    :param url: base URL of the service.
    :param key: API key.
    """
    client = FirecrawlClient(api_key=key, api_url=url)
    # Calls without a method of the client use its transport.
    http = client.http_client
    done: list[dict[str, Any]] = []

    def step(name: str, call: Callable[[], Any], is_right: Callable[[Any], bool] = bool) -> Any:
        found, why = None, ""
        try:
            found = call()
            if not is_right(found):
                why = f"unexpected: {found!r}"[:300]
        except Exception as error:  # noqa: BLE001
            why = f"{type(error).__name__}: {error}"[:300]
        done.append({"name": name, "ok": not why, "why": why})
        return found

    def refusal(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except FirecrawlError as error:
            return error

    def ended(prompt: str, **options: Any) -> Any:
        run = client.start_agent(None, prompt=prompt, **options)
        deadline = time.monotonic() + PATIENCE
        while (found := client.get_agent_status(run.id)).status == "processing":
            if time.monotonic() > deadline:
                raise TimeoutError(f"agent run {run.id} did not end in {PATIENCE} s")
            time.sleep(0.1)
        return found

    def json_of(response: Any) -> Any:
        response.raise_for_status()
        return response.json()

    calls = [HISTORY, {**HISTORY, "options": {}}]
    first = step(
        "calls of data providers",
        lambda: client.scrape(alexandria=calls, request_id="python-1"),
        lambda found: (found.credits_cost, found.alexandria[1].error.status) == (5, 400),
    )
    step(
        "the same calls again",
        lambda: client.scrape(alexandria=calls, request_id="python-1"),
        lambda found: found.scrape_id == first.scrape_id,
    )
    step(
        "other calls with the same id",
        lambda: refusal(lambda: client.scrape(alexandria=HISTORY, request_id="python-1")),
        lambda found: found.code == "duplicate_request",
    )
    page = step(
        "tools of data providers",
        lambda: client.find_tools(level="tools", limit=2),
        lambda found: (len(found.items), found.total) == (2, 5),
    )
    step(
        "the next page of tools",
        lambda: client.scrape(alexandria=page.next),
        lambda found: len(found.alexandria[0].data["items"]) == 2,
    )
    step(
        "tools in a search",
        lambda: client.search("podcasts", sources=["alexandria"], tool_detail="full"),
        lambda found: found.tools[0].id == "episode-index/episodes/search",
    )
    step(
        "tools of a page",
        lambda: client.scrape(f"{SITE}floods", domain_tools=True, tool_detail="summary"),
        lambda found: found.tools[0].next["capability"] == "find-tools",
    )
    step(
        "terms that were not accepted",
        lambda: refusal(lambda: client.scrape(alexandria=EPISODES)),
        lambda found: (
            isinstance(found, ProviderTermsRequiredError) and found.requires_action.terms == "episode-index"
        ),
    )
    step(
        "developer search",
        lambda: client.developer_search("pipeline", k=2),
        lambda found: len(found.results) == 2,
    )

    asked = step(
        "an agent that requests approval",
        lambda: ended(
            "price", mode="chat", exchange={"requireApproval": True, "toolkits": ["market-prices"]}
        ),
        lambda found: (len(found.pending_approval.calls), found.exchange.paid_calls) == (2, 0),
    )

    def approve(prompt: str) -> Any:
        pending = asked.pending_approval
        answer = {"approvalId": pending.id, "callIds": [pending.calls[0].id]}
        return ended(prompt, thread_id=asked.thread_id, exchange={"approve": answer})

    step(
        "an approval",
        lambda: approve("go on"),
        lambda found: (found.exchange.paid_calls, found.exchange.credits_used) == (1, 5),
    )
    step(
        "an approval that was given before",
        lambda: refusal(lambda: approve("again")),
        lambda found: (found.status_code, found.code) == (404, "approval_not_found"),
    )
    gated = step(
        "an agent that requests approval of terms",
        lambda: ended("podcast", mode="chat", exchange={"onTermsRequired": "ask"}),
        lambda found: found.pending_approval.is_terms and len(found.exchange.requires_action.providers) == 1,
    )
    step(
        "a declined approval",
        lambda: ended(
            "no",
            thread_id=gated.thread_id,
            exchange={"decline": {"approvalId": gated.pending_approval.id}},
        ),
        lambda found: found.exchange.paid_calls == 0 and found.pending_approval is None,
    )

    about = {
        "endpoint": "alexandria",
        "rating": "bad",
        "requestedWebsite": {"url": SITE, "requestedFunctionality": "levels by hour"},
        "rationale": "a report",
    }
    step(
        "feedback on data providers",
        lambda: json_of(http.post("/v2/feedback", about)),
        lambda found: found["creditsRefunded"] == 1,
    )
    step("start a crawl", lambda: client.start_crawl(SITE, limit=1))
    session = step(
        "open a recorded browser", lambda: json_of(http.post("/v2/interact", {"recordSession": True}))["id"]
    )
    step("close a recorded browser", lambda: client.delete_browser(session), lambda found: found.success)
    replay = step(
        "a recording",
        lambda: json_of(http.get(f"/v2/interact/{session}/replay")),
        lambda found: found["pageCount"] == 1,
    )
    step(
        "a page of a recording",
        lambda: http.get(f"/v2/interact/{session}/replay/{replay['pages'][0]['pageId']}"),
        lambda found: found.text.startswith("#EXTM3U"),
    )
    return done
