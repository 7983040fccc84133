# SPDX-License-Identifier: Apache-2.0
"""Agents that call data providers, and the approvals that they request; driven by the public client."""

from __future__ import annotations

from typing import Any

import pytest
from firecrawl import Firecrawl
from firecrawl.v2.utils.error_handler import FirecrawlError

from webdata_sandbox.server import SandboxServer

from .step_job_calls import LEVELS, NOBODY

STRICT = {"urls": [LEVELS], "strict_constrain_to_urls": True}
PRICES = {
    "type": "object",
    "properties": {"prices": {"type": "array"}, "price": {"type": "number"}},
}
ASKING = {"toolkits": ["market-prices"], "requireApproval": True}


class Thread:
    """A thread of runs, each run to its end."""

    def __init__(self, sandbox: SandboxServer) -> None:
        self.client = Firecrawl(api_key=sandbox.api_key, api_url=sandbox.url)
        self._sandbox = sandbox
        self.id: str | None = None

    def run(self, prompt: str, **options: Any) -> Any:
        started = self.client.start_agent(
            options.pop("urls", None), prompt=prompt, thread_id=self.id, **options
        )
        self._sandbox.control.settle()
        found = self.client.get_agent_status(started.id)
        self.id = found.thread_id
        return found


@pytest.fixture
def thread(sandbox: SandboxServer) -> Thread:
    return Thread(sandbox)


@pytest.mark.rule("agent-calls")
def test_calls_without_a_question(api: Any, thread: Thread) -> None:
    """A day's free run is billed for its paid calls only."""
    before = api.balance()
    found = thread.run(
        "price", exchange={"maxCalls": 1, "toolkits": ["market-prices"]}, schema=PRICES, **STRICT
    )
    assert (found.status, found.pending_approval, found.credits_used) == ("completed", None, 5)
    assert (found.exchange.paid_calls, found.exchange.credits_used) == (1, 5)
    assert len(found.data["prices"]) == 5
    assert api.balance() == before - 5
    assert "prices" not in thread.run("price", exchange={"enabled": False}, **STRICT).data
    thread.id = None
    assert thread.run("price", **STRICT).exchange is None
    assert api.balance() == before - 5


@pytest.mark.rule("agent-approval")
def test_paid_calls_wait_for_their_approval(api: Any, thread: Thread) -> None:
    before = api.balance()
    found = thread.run("price", mode="chat", exchange=ASKING, schema=PRICES)
    asked = found.pending_approval
    assert (found.status, found.data, found.message) == ("completed", None, asked.reason)
    assert (asked.kind, asked.resolution, found.exchange.paid_calls) == ("calls", None, 0)
    history, live = asked.calls
    assert (history.capability, history.credits_estimate) == ("prices/history", 5)
    assert (live.capability, live.credits_estimate) == ("prices/live", None)

    answer = {"approvalId": asked.id, "callIds": [history.id]}
    found = thread.run("go on", exchange={"approve": answer})
    assert (list(found.data), found.pending_approval) == (["prices"], None)
    assert (found.exchange.require_approval, found.exchange.paid_calls) == (True, 1)
    assert api.balance() == before - 5
    for used in (asked.id, NOBODY):
        with pytest.raises(FirecrawlError) as caught:
            thread.run("again", exchange={"approve": {"approvalId": used}})
        assert (caught.value.status_code, caught.value.code) == (404, "approval_not_found")

    asked = thread.run("price").pending_approval
    assert thread.run("no", exchange={"decline": {"approvalId": asked.id}}).exchange.paid_calls == 0

    asked = thread.run("price").pending_approval
    found = thread.run("yes", exchange={"approve": {"approvalId": asked.id, "always": True}})
    assert found.exchange.paid_calls == 2
    found = thread.run("price")
    assert (found.pending_approval, found.exchange.paid_calls) == (None, 2)


@pytest.mark.rule("agent-calls", "agent-terms")
def test_terms_are_accepted_by_a_person(sandbox: SandboxServer, thread: Thread) -> None:
    skipped = thread.run("podcast", exchange={}, **STRICT)
    assert skipped.pending_approval is None
    [provider] = skipped.exchange.skipped_providers
    assert (provider.provider, provider.reason, provider.version) == (
        "episode-index",
        "terms_required",
        "1.0.0",
    )

    found = thread.run("podcast", exchange={"onTermsRequired": "ask"}, **STRICT)
    assert found.data, "the run answers with what it may use"
    asked, action = found.pending_approval, found.exchange.requires_action
    assert (asked.is_terms, asked.calls, [item.provider for item in asked.terms]) == (
        True,
        [],
        ["episode-index"],
    )
    assert (action.type, action.approval_id, action.providers[0].url) == (
        "accept_terms",
        asked.id,
        provider.terms_url,
    )
    # An approval accepts no terms.
    asked = thread.run("yes", exchange={"approve": {"approvalId": asked.id}}).pending_approval
    assert asked.is_terms
    accepted = thread.client.scrape(alexandria=action.providers[0].accept.model_dump())
    assert accepted.alexandria[0].data["accepted"] is True
    found = thread.run("yes", exchange={"approve": {"approvalId": asked.id}})
    assert (found.exchange.paid_calls, found.exchange.skipped_providers) == (1, None)
