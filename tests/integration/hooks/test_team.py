# SPDX-License-Identifier: Apache-2.0
"""Figures and activity of the team through both hooks, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.api import errors, models
from tests.integration.hooks.test_jobs import JOB, calls_of
from tests.support.fault_server import answer
from tests.support.waiting import settled

ITEM = {
    "id": JOB,
    "endpoint": "crawl",
    "api_version": "v2",
    "created_at": "now",
    "target": "https://a.example",
}


@pytest.mark.rule("team-credits", "team-credits-history", "team-tokens", "team-queue", "team-concurrency")
async def test_figures_of_the_team(serve: Any) -> None:
    period = {"startDate": "2026-08-01", "endDate": "2026-09-01", "apiKey": None}
    server, hook = serve(
        {"success": True, "data": {"remainingCredits": 5, "planCredits": 10}},
        {"success": True, "periods": [{**period, "totalCredits": 7}]},
        {"success": True, "periods": [{**period, "creditsUsed": 8}]},
        {"success": True, "data": {"remainingTokens": 75}},
        {"success": True, "periods": [{**period, "totalTokens": 9}]},
        {"success": True, "jobsInQueue": 3, "maxConcurrency": 5},
        {"success": True, "concurrency": 2, "maxConcurrency": 5},
    )
    assert (await settled(hook.credit_usage())).remaining_credits == 5
    assert [one.used for one in (await settled(hook.credit_history())).periods] == [7]
    assert [one.used for one in (await settled(hook.credit_history(by_api_key=True))).periods] == [8]
    assert (await settled(hook.token_usage())).remaining_tokens == 75
    assert [one.total_tokens for one in (await settled(hook.token_history(by_api_key=False))).periods] == [9]
    assert (await settled(hook.queue_status())).jobs_in_queue == 3
    running = await settled(hook.concurrency())
    assert (running.concurrency, running.max_concurrency) == (2, 5)
    assert [target for _, target in calls_of(server)] == [
        "/v2/team/credit-usage",
        "/v2/team/credit-usage/historical",
        "/v2/team/credit-usage/historical?byApiKey=true",
        "/v2/team/token-usage",
        "/v2/team/token-usage/historical?byApiKey=false",
        "/v2/team/queue-status",
        "/v2/concurrency-check",
    ]
    await settled(hook.close())


@pytest.mark.rule("threat-policy-answer", "threat-policy-fields", "threat-policy-entitlement")
async def test_threat_policy(serve: Any) -> None:
    """A PUT may be repeated: it leaves the same policy."""
    stored = {"mode": "zscaler", "blacklist": ["*.a.example"], "configured": True, "zscaler": {"cloud": "x"}}
    server, hook = serve(
        {"success": True, "data": stored},
        answer(502, "bad gateway"),
        {"success": True, "data": {"mode": "normal"}},
        answer(403, json.dumps({"success": False, "error": "not enabled"})),
    )
    policy = await settled(hook.threat_policy())
    assert (policy.mode, policy.blacklist, policy.configured) == ("zscaler", ["*.a.example"], True)
    assert policy.to_wire() == stored
    request = models.ThreatPolicyRequest(mode="normal", allow_request_overrides=False)
    assert (await settled(hook.replace_threat_policy(request, extra_body={"new": 1}))).mode == "normal"
    with pytest.raises(errors.InvalidRequestError, match="mode"):
        await settled(hook.replace_threat_policy(blacklist=[]))
    with pytest.raises(errors.EntitlementError, match="not enabled"):
        await settled(hook.replace_threat_policy(mode="off"))
    assert calls_of(server) == [
        (method, "/v2/team/threat-protection") for method in ("GET", "PUT", "PUT", "PUT")
    ]
    assert json.loads(server.requests[2].body) == {"mode": "normal", "allowRequestOverrides": False, "new": 1}
    await settled(hook.close())


@pytest.mark.rule("team-activity")
async def test_activity_page_by_page(serve: Any) -> None:
    """Newer calls push older ones onto the next page; each is returned once."""
    server, hook = serve(
        {"success": True, "data": [ITEM], "cursor": "c 1", "has_more": True},
        {"success": True, "data": [ITEM, {**ITEM, "id": "other"}], "cursor": "c2", "has_more": True},
        {"success": True, "data": [{**ITEM, "id": "third"}], "cursor": "c3", "has_more": False},
    )
    one = await settled(hook.activity(endpoint="crawl", limit=1))
    assert (one.data[0].id, one.cursor, one.has_more) == (JOB, "c 1", True)
    found = await settled(hook.activity(endpoint="crawl", limit=1, cursor=one.cursor))
    assert [item.id for item in found.data] == [JOB, "other"]
    assert [target for _, target in calls_of(server)] == [
        "/v2/team/activity?endpoint=crawl&limit=1",
        "/v2/team/activity?endpoint=crawl&limit=1&cursor=c+1",
    ]
    await settled(hook.close())

    server, hook = serve(
        {"data": [ITEM], "cursor": "c1", "has_more": True},
        {"data": [ITEM, {**ITEM, "id": "other"}], "cursor": "c2"},
        {"data": [{**ITEM, "id": "third"}], "cursor": None},
    )
    assert [item.id for item in await settled(hook.iter_activity(endpoint="crawl"))] == [
        JOB,
        "other",
        "third",
    ]
    assert [target for _, target in calls_of(server)] == [
        "/v2/team/activity?endpoint=crawl&limit=100",
        "/v2/team/activity?endpoint=crawl&limit=100&cursor=c1",
        "/v2/team/activity?endpoint=crawl&limit=100&cursor=c2",
    ]
    await settled(hook.close())


@pytest.mark.rule("team-activity")
@pytest.mark.parametrize(
    ("pages", "ends_well"),
    [
        ([{"data": [ITEM], "cursor": "c1", "has_more": False}], True),
        (
            [
                {"data": [ITEM], "cursor": "c1", "has_more": True},
                {"data": [], "cursor": "c1", "has_more": True},
            ],
            False,
        ),
        (
            [
                {"data": [ITEM], "cursor": "c1", "has_more": True},
                {"data": [], "cursor": "c2", "has_more": True},
            ],
            True,
        ),
    ],
    ids=["no more", "circle", "an empty page"],
)
async def test_activity_ends(serve: Any, pages: list[dict[str, Any]], ends_well: bool) -> None:
    server, hook = serve(*pages)
    if ends_well:
        assert len(await settled(hook.iter_activity())) == 1
    else:
        with pytest.raises(errors.InvalidResponseError, match="form a loop"):
            await settled(hook.iter_activity())
    assert len(server.requests) == len(pages)
    await settled(hook.close())
