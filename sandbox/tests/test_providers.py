# SPDX-License-Identifier: Apache-2.0
"""Calls of data providers, their catalog, and their terms."""

from __future__ import annotations

from typing import Any

import pytest

HISTORY = {"provider": "market-prices", "capability": "prices/history", "options": {"symbol": "URM"}}
SEARCH = {"provider": "company-register", "capability": "companies/search", "options": {"query": "river"}}
EPISODES = {"provider": "episode-index", "capability": "episodes/search", "options": {"query": "river"}}


def send(api: Any, *calls: Any, request_id: str | None = None, **body: Any) -> Any:
    headers = {} if request_id is None else {"x-request-id": request_id}
    return api.http.post("/v2/scrape", json={"alexandria": [*calls], **body}, headers=headers)


def results(api: Any, *calls: Any) -> list[dict[str, Any]]:
    response = send(api, *calls)
    assert response.status_code == 200, response.text
    return response.json()["data"]["alexandria"]


def catalog(api: Any, **options: Any) -> dict[str, Any]:
    (found,) = results(api, {"provider": "firecrawl", "capability": "find-tools", "options": options})
    return found["data"]


def credits_of(sandbox: Any) -> int:
    return sandbox.control.state()["credits"]


@pytest.mark.rule("provider-answer", "provider-price", "provider-records", "credits-providers")
def test_prices_by_call_and_by_record(sandbox, api) -> None:
    before = credits_of(sandbox)
    answer = send(api, HISTORY, SEARCH).json()
    prices, companies = answer["data"]["alexandria"]
    assert answer["scrape_id"]
    assert (prices["creditsCost"], prices["records"], len(prices["data"]["prices"])) == (5, 5, 5)
    assert (companies["creditsCost"], companies["records"]) == (2, 2)
    assert answer["data"]["creditsCost"] == 7
    assert credits_of(sandbox) == before - 7


@pytest.mark.rule("provider-call-error")
@pytest.mark.parametrize(
    ("call", "code"),
    [
        ({**HISTORY, "options": {"symbol": "NONE"}}, "not_found"),
        ({**HISTORY, "options": {}}, "invalid_options"),
        ({**HISTORY, "options": {"symbol": 1}}, "invalid_options"),
        ({**HISTORY, "options": {"symbol": "URM", "days": 99}}, "invalid_options"),
        ({**HISTORY, "options": {"symbol": "URM", "from": "x"}}, "invalid_options"),
        ({**HISTORY, "capability": "prices/none"}, "unknown_capability"),
    ],
)
def test_an_error_of_one_call_does_not_fail_the_others(api, call, code) -> None:
    failed, company = results(
        api,
        call,
        {"provider": "company-register", "capability": "companies/get", "options": {"number": "SC-1001"}},
    )
    assert failed["error"]["code"] == code
    assert "creditsCost" not in failed
    assert company["data"]["name"] == "Upper River Mills Ltd"


def test_a_fault_lets_one_call_fail(sandbox, api) -> None:
    sandbox.control.add_fault("fail_provider", path="market-prices/")
    failed, companies = results(api, HISTORY, SEARCH)
    assert failed["error"]["status"] == 503
    assert companies["records"] == 2
    assert "error" not in results(api, HISTORY)[0]


@pytest.mark.rule("provider-request-id")
def test_the_same_id_bills_once(sandbox, api) -> None:
    before = credits_of(sandbox)
    first, again = send(api, HISTORY, request_id="run:1"), send(api, HISTORY, request_id="run:1")
    assert again.json() == first.json()
    assert credits_of(sandbox) == before - 5
    other = send(api, SEARCH, request_id="run:1")
    assert (other.status_code, other.json()["code"]) == (409, "duplicate_request")
    assert send(api, HISTORY, request_id="run 1").status_code == 400
    send(api, HISTORY, request_id="run:2")
    assert credits_of(sandbox) == before - 10


@pytest.mark.rule("provider-calls", "provider-timeout")
@pytest.mark.parametrize(
    "body",
    [
        {"url": "https://river.example/"},
        {"formats": ["markdown"]},
        {"timeout": 0},
        {"alexandria": []},
        {"alexandria": [HISTORY] * 11},
        {"alexandria": [{"provider": "market-prices"}]},
        {"alexandria": [{**HISTORY, "url": "x"}]},
    ],
)
def test_bodies_that_are_refused(sandbox, api, body) -> None:
    before = credits_of(sandbox)
    response = api.http.post("/v2/scrape", json={"alexandria": [HISTORY], **body})
    assert response.status_code == 400
    assert credits_of(sandbox) == before


def test_a_single_call_needs_no_list(api) -> None:
    response = api.http.post("/v2/scrape", json={"alexandria": HISTORY, "timeout": 1000, "integration": None})
    assert response.json()["data"]["creditsCost"] == 5


@pytest.mark.rule("provider-call-error")
def test_an_unknown_provider_refuses_the_request(sandbox, api) -> None:
    before = credits_of(sandbox)
    response = send(api, HISTORY, {"provider": "nobody", "capability": "a"})
    assert (response.status_code, response.json()["code"]) == (404, "unknown_provider")
    assert credits_of(sandbox) == before


def test_the_balance_must_hold_the_most_that_the_calls_may_cost(sandbox, api) -> None:
    sandbox.control.configure(credits=4)
    assert send(api, HISTORY).status_code == 402


@pytest.mark.rule("provider-terms")
def test_terms_come_first(sandbox, api) -> None:
    before = credits_of(sandbox)
    refused = send(api, HISTORY, EPISODES, request_id="run:1")
    body = refused.json()
    assert (refused.status_code, body["code"]) == (403, "THIRD_PARTY_DATA_TERMS_REQUIRED")
    assert body["requiresAction"] == {
        "type": "accept_terms",
        "terms": "episode-index",
        "version": "1.0.0",
        "url": "https://service.example/app/data-providers/episode-index",
    }
    assert credits_of(sandbox) == before
    sandbox.control.accept_terms("episode-index")
    assert send(api, HISTORY, EPISODES, request_id="run:1").json()["data"]["creditsCost"] == 20


@pytest.mark.rule("provider-terms")
def test_terms_are_accepted_by_calls(api) -> None:
    def own(name: str, **options: Any) -> Any:
        return results(api, {"provider": "firecrawl", "capability": name, "options": options})[0]

    shown = own("terms/show", provider="episode-index")["data"]
    assert shown["accepted"] is False
    reviewed = {"provider": "episode-index", "version": shown["version"], "digest": shown["digest"]}
    assert own("terms/accept", **reviewed)["error"]["code"] == "invalid_options"
    assert own("terms/accept", **reviewed, confirmed=True)["data"]["accepted"] is True
    assert results(api, EPISODES)[0]["records"] == 1
    assert own("terms/show", provider="nobody")["error"]["status"] == 404


@pytest.mark.rule("find-tools-call", "find-tools-page", "find-tools-contract")
def test_the_catalog(sandbox, api) -> None:
    before = credits_of(sandbox)
    page = catalog(api)
    assert page["level"] == "providers"
    assert [item["id"] for item in page["items"]] == ["company-register", "market-prices", "episode-index"]
    tools = results(api, page["items"][0]["next"])[0]["data"]
    assert [tool["id"] for tool in tools["items"]] == [
        "company-register/companies/search",
        "company-register/companies/get",
    ]
    assert "options" not in tools["items"][0]
    (tool,) = results(api, tools["items"][0]["next"])[0]["data"]["items"]
    assert (tool["creditsCost"], tool["perRecord"], tool["response"]["key"]) == (1, True, "companies")
    assert {"name": "employees", "type": "integer"}.items() <= tool["response"]["fields"][4].items()
    assert tool["options"][0]["required"] is True
    assert credits_of(sandbox) == before


@pytest.mark.rule("find-tools-call", "find-tools-page")
def test_pages_of_the_catalog(api) -> None:
    page = catalog(api, level="tools", limit=2)
    found = [tool["id"] for tool in page["items"]]
    while page["next"]:
        page = results(api, page["next"])[0]["data"]
        found += [tool["id"] for tool in page["items"]]
    assert len(found) == len(set(found)) == page["total"] == 5


@pytest.mark.rule("find-tools-call")
@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({"query": "podcasts"}, ["episode-index/episodes/search"]),
        ({"urls": ["https://river.example/floods"]}, ["episode-index/episodes/search"]),
        ({"groups": ["market-prices/prices"]}, ["market-prices/prices/history", "market-prices/prices/live"]),
        ({"capabilities": ["companies/get"]}, ["company-register/companies/get"]),
        ({"level": "groups", "providers": ["market-prices"]}, ["market-prices/prices"]),
        ({"level": "categories"}, ["companies", "finance", "media"]),
        ({"categories": ["media"]}, ["episode-index"]),
    ],
)
def test_filters_of_the_catalog(api, options, ids) -> None:
    assert [item["id"] for item in catalog(api, **options)["items"]] == ids


def test_options_of_the_catalog_are_checked(api) -> None:
    (found,) = results(
        api, {"provider": "firecrawl", "capability": "find-tools", "options": {"level": "nothing"}}
    )
    assert found["error"]["code"] == "invalid_options"


@pytest.mark.rule("search-sources", "search-tools", "search-tool-detail", "credits-providers")
def test_a_search_finds_tools_for_free(sandbox, api) -> None:
    before = credits_of(sandbox)
    answer = api.search("podcasts", sources=["alexandria"], toolDetail="full").json()
    (tool,) = answer["data"]["tools"]
    assert (tool["id"], tool["matchedBy"]) == ("episode-index/episodes/search", ["semantic"])
    assert tool["options"]
    assert answer["creditsUsed"] == 0
    assert credits_of(sandbox) == before
    (tool,) = api.search("podcasts", sources=["alexandria"], toolDetail="compact").json()["data"]["tools"]
    assert tool.keys() == {"provider", "capability", "description"}


@pytest.mark.rule("search-domain-tools")
def test_a_search_finds_tools_of_its_results_sites(api) -> None:
    data = api.search("salmon", includeDomains=["river.example"], domainTools=True).json()["data"]
    assert data["web"]
    (tool,) = data["tools"]
    assert tool["matchedBy"] == ["domain"]
    assert set(tool["matchedUrls"]) == {item["url"] for item in data["web"]}
    assert "next" in tool


@pytest.mark.rule("scrape-domain-tools")
def test_a_scrape_finds_tools_of_its_site(sandbox, api) -> None:
    before = credits_of(sandbox)
    body = {"url": "https://river.example/floods", "domainTools": True, "toolDetail": "full"}
    (tool,) = api.http.post("/v2/scrape", json=body).json()["data"]["tools"]
    assert (tool["id"], tool["matchedBy"]) == ("episode-index/episodes/search", ["domain"])
    assert tool["options"]
    assert credits_of(sandbox) == before - 1
    again = api.http.post("/v2/scrape", json={"url": body["url"]}).json()["data"]
    assert "tools" not in again


def website(url: str = "https://river.example/", **body: Any) -> dict[str, Any]:
    given = {"url": url, "requestedFunctionality": "levels by hour"}
    return {
        "endpoint": "alexandria",
        "rating": "bad",
        "requestedWebsite": given,
        "rationale": "nothing has them",
        **body,
    }


def test_feedback_refunds_by_website(sandbox, api) -> None:
    before = credits_of(sandbox)
    told = [api.http.post("/v2/feedback", json=website()).json() for _ in range(12)]
    assert [answer["creditsRefunded"] for answer in told] == [1] * 10 + [0] * 2
    other = api.http.post("/v2/feedback", json=website("https://weather.example/")).json()
    assert (other["creditsRefunded"], other["creditsRefundedToday"]) == (1, 11)
    assert credits_of(sandbox) == before + 11
    asks = {"name": "levels", "provider": "gauges", "issue": "new_capability_request", "why": "missing"}
    refused = api.http.post("/v2/feedback", json=website(capabilityFeedback=[asks]))
    assert refused.json()["feedbackErrorCode"] == "INVALID_BODY"
