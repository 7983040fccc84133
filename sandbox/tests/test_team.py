# SPDX-License-Identifier: Apache-2.0
"""What a team asks about itself: credits, tokens, its queue, what it did of late."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.support.tables import each_row
from webdata_sandbox.reference.timestamps import from_iso

from .conftest import reset_sandbox
from .page_job_calls import batch, crawl, site

ACTIVITY = "/v2/team/activity"
PERIOD = 30 * 86_400


def periods(api: Any, what: str, **query: Any) -> list[dict[str, Any]]:
    body = api.http.get(f"/v2/team/{what}/historical", params=query).json()
    assert set(body) == {"success", "periods"}
    return body["periods"]


@pytest.mark.rule("team-credits")
def test_credit_usage(api) -> None:
    api.search(limit=20)
    usage = api.http.get("/v2/team/credit-usage").json()["data"]
    assert (usage["remainingCredits"], usage["planCredits"]) == (99_996, 100_000)
    span = from_iso(usage["billingPeriodEnd"]) - from_iso(usage["billingPeriodStart"])
    assert span.total_seconds() == PERIOD


@pytest.mark.rule("team-credits-history")
@each_row(
    "quirk, name, query, key",
    [
        (None, "totalCredits", {}, False),
        (None, "totalCredits", {"byApiKey": "false"}, False),
        (None, "totalCredits", {"byApiKey": "true"}, True),
        ("history-credits-used", "creditsUsed", {}, False),
    ],
    before=reset_sandbox,
)
def test_credit_history(sandbox, api, quirk, name: str, query: dict[str, str], key: bool) -> None:
    sandbox.control.set_quirks([quirk] if quirk else [])
    api.search(limit=20)
    (period,) = periods(api, "credit-usage", **query)
    assert set(period) == {"startDate", "endDate", "apiKey", name}
    assert period[name] == 4
    assert (period["apiKey"] is not None) is key
    assert from_iso(period["startDate"]) < from_iso(period["endDate"])


def test_history_is_not_the_balance(sandbox, api) -> None:
    """Setting the balance is not spending."""
    api.search(limit=10)
    sandbox.control.configure(credits=5)
    assert periods(api, "credit-usage")[0]["totalCredits"] == 2


@pytest.mark.rule("team-tokens")
def test_tokens(sandbox, api) -> None:
    usage = api.http.get("/v2/team/token-usage").json()["data"]
    assert usage["remainingTokens"] == usage["planTokens"] == 15 * 100_000
    assert periods(api, "token-usage")[0]["totalTokens"] == 0
    body = {"urls": ["https://river.example/floods"], "prompt": "title"}
    job = api.http.post("/v2/extract", json=body).json()["id"]
    sandbox.control.settle()
    used = api.http.get(f"/v2/extract/{job}").json()["tokensUsed"]
    assert periods(api, "token-usage")[0]["totalTokens"] == used > 0
    assert api.http.get("/v2/team/token-usage").json()["data"]["remainingTokens"] < usage["remainingTokens"]


class TestQueue:
    def poll(self, api: Any) -> dict[str, Any]:
        return api.http.get("/v2/team/queue-status").json()

    @pytest.mark.rule("team-queue")
    def test_nothing_to_do(self, api) -> None:
        assert self.poll(api) == {
            "success": True,
            "jobsInQueue": 0,
            "activeJobsInQueue": 0,
            "waitingJobsInQueue": 0,
            "maxConcurrency": 1,
            "mostRecentSuccess": None,
        }

    @pytest.mark.rule("team-queue")
    def test_jobs(self, sandbox, api) -> None:
        sandbox.control.configure(concurrency=3, page_seconds=1000)
        urls = site(api, 7)
        job = batch(api, urls)
        sandbox.control.settle()
        queue = self.poll(api)
        counts = [queue[name] for name in ("jobsInQueue", "activeJobsInQueue", "waitingJobsInQueue")]
        assert counts == [8, 3, 5]
        assert queue["maxConcurrency"] == 3
        assert queue["mostRecentSuccess"] is None
        sandbox.control.advance(1500)
        assert self.poll(api)["jobsInQueue"] == 5
        sandbox.control.advance(6000)
        queue = self.poll(api)
        assert queue["jobsInQueue"] == 0
        assert queue["mostRecentSuccess"] == job.poll()["completedAt"]

    @pytest.mark.rule("team-queue", "team-concurrency")
    def test_concurrency_is_the_teams(self, sandbox, api) -> None:
        sandbox.control.configure(concurrency=3, page_seconds=1000)
        urls = site(api, 7)
        for _ in range(2):
            batch(api, urls)
        sandbox.control.settle()
        queue = self.poll(api)
        assert (queue["jobsInQueue"], queue["activeJobsInQueue"]) == (16, 3)
        check = api.http.get("/v2/concurrency-check").json()
        assert check == {"success": True, "concurrency": 3, "maxConcurrency": 3}

    def test_a_cancelled_job_is_out(self, sandbox, api) -> None:
        sandbox.control.configure(page_seconds=1000)
        batch(api, site(api, 7)).cancel()
        assert (self.poll(api)["jobsInQueue"], self.poll(api)["mostRecentSuccess"]) == (0, None)


class TestActivity:
    def all(self, api: Any, **query: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            body = api.http.get(ACTIVITY, params={**query, **({"cursor": cursor} if cursor else {})}).json()
            assert body["success"] is True
            found.extend(body["data"])
            cursor = body["cursor"]
            assert (cursor is not None) is body["has_more"]
            if cursor is None:
                return found

    @pytest.mark.rule("team-activity")
    def test_what_was_started(self, sandbox, api) -> None:
        url = "https://river.example/floods"
        api.search("river")
        scraped = api.http.post("/v2/scrape", json={"url": url}).json()["data"]["metadata"]["scrapeId"]
        crawled = crawl(api, url, limit=1).id
        batched = batch(api, [url, "https://river.example/"]).id
        api.http.post("/v2/map", json={"url": url})
        extracted = api.http.post("/v2/extract", json={"urls": [url], "prompt": "x"}).json()["id"]
        agent = api.http.post("/v2/agent", json={"prompt": "how high"}).json()["id"]
        found = self.all(api)
        expected = ["agent", "extract", "map", "batch_scrape", "crawl", "scrape", "search"]
        assert [item["endpoint"] for item in found] == expected
        ids = {item["endpoint"]: item["id"] for item in found}
        assert (ids["crawl"], ids["batch_scrape"], ids["scrape"]) == (crawled, batched, scraped)
        assert (ids["extract"], ids["agent"]) == (extracted, agent)
        targets = {item["endpoint"]: item["target"] for item in found}
        assert (targets["search"], targets["crawl"], targets["batch_scrape"]) == ("river", url, url)
        assert all(
            set(item) == {"id", "endpoint", "api_version", "created_at", "target"}
            and item["api_version"] == "v2"
            for item in found
        )

    def test_what_failed_was_not_started(self, sandbox, api) -> None:
        api.http.post("/v2/crawl", json={"url": "nonsense"})
        sandbox.control.configure(credits=0)
        api.http.post("/v2/crawl", json={"url": "https://river.example"})
        assert self.all(api) == []

    @pytest.mark.rule("team-activity")
    def test_monitors_do_not_appear(self, api) -> None:
        api.run(api.create()["id"])
        assert self.all(api) == []

    @pytest.mark.rule("team-activity")
    @each_row("limit", [1, 2, 7, 100], before=reset_sandbox)
    def test_pages(self, api, limit: int) -> None:
        for number in range(7):
            api.search(f"river {number}")
        found = [item["target"] for item in self.all(api, limit=limit)]
        assert found == [f"river {number}" for number in range(6, -1, -1)]

    def test_pages_while_more_is_started(self, api) -> None:
        for number in range(4):
            api.search(f"river {number}")
        first = api.http.get(ACTIVITY, params={"limit": 2}).json()
        api.search("river 4")
        second = api.http.get(ACTIVITY, params={"limit": 2, "cursor": first["cursor"]}).json()
        targets = [item["target"] for item in first["data"] + second["data"]]
        assert targets == ["river 3", "river 2", "river 1", "river 0"]

    def test_fifty_by_default(self, api) -> None:
        for _ in range(51):
            api.search("river", limit=1)
        body = api.http.get(ACTIVITY).json()
        assert (len(body["data"]), body["has_more"]) == (50, True)

    def test_filter(self, api) -> None:
        api.search("river")
        api.http.post("/v2/map", json={"url": "https://river.example"})
        assert [item["endpoint"] for item in self.all(api, endpoint="map")] == ["map"]
        assert self.all(api, endpoint="deep_research") == []

    @pytest.mark.rule("team-activity")
    def test_the_last_day_only(self, sandbox, api) -> None:
        api.search("river")
        sandbox.control.advance(86_400 - 60)
        assert len(self.all(api)) == 1
        sandbox.control.advance(120)
        assert self.all(api) == []

    @pytest.mark.rule("team-activity")
    @each_row(
        "query",
        [
            {"limit": 0},
            {"limit": 101},
            {"limit": "x"},
            {"limit": "9" * 5000},
            {"endpoint": "monitor"},
            {"cursor": "nonsense"},
            {"cursor": "%%%"},
            {"cursor": base64.b64encode(b"-5").decode()},
        ],
    )
    def test_what_is_refused(self, api, query: dict[str, Any]) -> None:
        answer = api.http.get(ACTIVITY, params=query)
        assert (answer.status_code, answer.json()["success"]) == (400, False)


@each_row(
    "path",
    [
        "credit-usage",
        "credit-usage/historical",
        "token-usage",
        "token-usage/historical",
        "queue-status",
        "activity",
    ],
    before=reset_sandbox,
)
def test_they_cost_nothing_and_share_a_rate_class(sandbox, api, path: str) -> None:
    assert api.http.get(f"/v2/team/{path}").json()["success"] is True
    assert api.balance() == 100_000
    sandbox.control.configure(rate_limits={"account": 1})
    codes = [api.http.get(f"/v2/team/{path}").status_code for _ in range(2)]
    assert codes == [200, 429]


POLICY = "/v2/team/threat-protection"


@pytest.mark.rule("threat-policy-answer", "threat-policy-replaced")
def test_threat_policy_is_replaced_as_a_whole(sandbox, api) -> None:
    sandbox.control.configure(entitlements=["threatProtection"])
    first = api.http.get(POLICY).json()["data"]
    assert (first["mode"], first["riskScoreThreshold"], first["configured"]) == ("off", 75, False)
    sent = {
        "mode": "normal",
        "riskScoreThreshold": 50,
        "blacklist": ["*.a.example"],
        "allowRequestOverrides": False,
    }
    told = api.http.put(POLICY, json=sent).json()["data"]
    assert {name: told[name] for name in sent} == sent
    assert told["configured"] is True
    assert from_iso(told["updatedAt"])
    api.http.put(POLICY, json={"mode": "normal"})
    again = api.http.get(POLICY).json()["data"]
    assert (again["riskScoreThreshold"], again["blacklist"], again["allowRequestOverrides"]) == (75, [], True)


@pytest.mark.rule("threat-policy-fields", "threat-policy-overrides", "threat-policy-entitlement")
def test_threat_policies_that_are_refused(sandbox, api) -> None:
    assert api.http.get(POLICY).status_code == api.http.put(POLICY, json={"mode": "off"}).status_code == 403
    sandbox.control.configure(entitlements=["threatProtection"])
    for body in (
        {},
        {"mode": "loud"},
        {"mode": "off", "riskScoreThreshold": 101},
        {"mode": "off", "blacklist": ["https://a.example"]},
        {"mode": "off", "allowRequestOverrides": "no"},
        {"mode": "off", "nonsense": 1},
    ):
        assert api.http.put(POLICY, json=body).status_code == 400, body
