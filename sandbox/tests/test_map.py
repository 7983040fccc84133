# SPDX-License-Identifier: Apache-2.0
"""The addresses of a site."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.tables import each_row

HOST = "https://town.example"
OTHER = "https://blog.town.example"
PAGES = {
    f"{HOST}/": "Town",
    f"{HOST}/river": "River and bridge",
    f"{HOST}/market": "Market by the river",
    f"{HOST}/market?page=2": "Market, second page",
    f"{OTHER}/": "Town blog",
    "https://elsewhere.example/": "Elsewhere",
}
LISTED = f"{HOST}/only-in-the-sitemap"


@pytest.fixture(autouse=True)
def town(sandbox) -> None:
    for url, title in PAGES.items():
        sandbox.control.set_page(url, f"<p>{title}</p>", title=title, description=f"About {title}")
    sandbox.control.set_site("town.example", sitemap=[f"{HOST}/river", LISTED])


def mapped(api: Any, url: str = HOST, **body: Any) -> list[dict[str, str]]:
    response = api.http.post("/v2/map", json={"url": url, **body})
    assert response.status_code == 200, response.text
    assert response.json()["success"] is True
    return response.json()["links"]


def paths(api: Any, **body: Any) -> set[str]:
    return {link["url"].removeprefix(HOST) for link in mapped(api, **body)}


@pytest.mark.rule("map-links")
def test_links_have_titles_where_the_page_is_known(api) -> None:
    links = {link["url"]: link for link in mapped(api)}
    assert links[f"{HOST}/river"] == {
        "url": f"{HOST}/river",
        "title": "River and bridge",
        "description": "About River and bridge",
    }
    assert links[LISTED] == {"url": LISTED}


@pytest.mark.rule("map-unread")
def test_a_host_that_does_not_exist_has_no_links(api) -> None:
    assert mapped(api, "https://nowhere.example/") == []


@pytest.mark.rule("map-sitemap", "map-switches")
@each_row(
    "body, expected",
    [
        ({}, {"/", "/river", "/market", "/only-in-the-sitemap", f"{OTHER}/"}),
        ({"includeSubdomains": False}, {"/", "/river", "/market", "/only-in-the-sitemap"}),
        ({"sitemap": "skip"}, {"/", "/river", "/market", f"{OTHER}/"}),
        ({"sitemap": "only"}, {"/", "/river", "/only-in-the-sitemap"}),
        (
            {"ignoreQueryParameters": False, "includeSubdomains": False},
            {"/", "/river", "/market", "/market?page=2", "/only-in-the-sitemap"},
        ),
        ({"includePaths": ["^/m"]}, {"/market"}),
        ({"excludePaths": ["^/m", "only"], "includeSubdomains": False}, {"/", "/river"}),
        ({"limit": 1}, {"/"}),
    ],
)
def test_which_links(api, body: dict[str, Any], expected: set[str]) -> None:
    assert paths(api, **body) == expected


def test_each_once(api) -> None:
    urls = [link["url"] for link in mapped(api)]
    assert len(urls) == len(set(urls))


@pytest.mark.rule("map-search")
@each_row(
    "search, first", [("market river", f"{HOST}/market"), ("bridge", f"{HOST}/river"), ("blog", f"{OTHER}/")]
)
def test_search_orders_and_drops_nothing(api, search: str, first: str) -> None:
    links = mapped(api, search=search)
    assert links[0]["url"] == first
    assert {link["url"] for link in links} == {link["url"] for link in mapped(api)}


@pytest.mark.rule("map-limit")
def test_limit(sandbox, api) -> None:
    sandbox.control.set_site("many.example", pages=5500, sitemap=True)
    assert len(mapped(api, "https://many.example")) == 5000
    assert len(mapped(api, "https://many.example", limit=5499)) == 5499


@pytest.mark.rule("credits-map")
def test_one_credit_a_call(sandbox, api) -> None:
    mapped(api)
    mapped(api, limit=1)
    assert api.balance() == 99_998
    sandbox.control.configure(credits=0)
    assert api.http.post("/v2/map", json={"url": HOST}).status_code == 402


@pytest.mark.rule("status-408", "map-timeout")
def test_too_slow(sandbox, api) -> None:
    sandbox.control.configure(latency_ms=5)
    answer = api.http.post("/v2/map", json={"url": HOST, "timeout": 1})
    assert (answer.status_code, answer.json()["code"]) == (408, "MAP_TIMEOUT")
    assert api.balance() == 100_000
    assert mapped(api, timeout=1000)


@pytest.mark.rule("map-further")
@each_row("granted, status", [([], 403), (["threatProtection"], 200)])
def test_threat_protection(sandbox, api, granted: list[str], status: int) -> None:
    sandbox.control.configure(entitlements=granted)
    body = {"url": HOST, "threatProtection": {"mode": "normal"}}
    assert api.http.post("/v2/map", json=body).status_code == status


@pytest.mark.rule("rate-classes")
def test_its_rate_class(sandbox, api) -> None:
    sandbox.control.configure(rate_limits={"map": 1})
    codes = [api.http.post("/v2/map", json={"url": HOST}).status_code for _ in range(2)]
    assert codes == [200, 429]
    assert api.search().status_code == 200
