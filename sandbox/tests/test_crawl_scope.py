# SPDX-License-Identifier: Apache-2.0
"""Which pages a crawl takes, how it is started, and what is said of those that run."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from tests.support.tables import each_row
from webdata_sandbox.control import ControlError

SITE = "https://town.example"
PAGES: dict[str, list[str]] = {
    "/": ["/guide", "/shop?sort=up", "/shop?sort=down", "https://river.example/floods"],
    "/guide": ["/guide/a", "/guide/index.html", "/news", "https://kids.town.example/play", "/"],
    "/guide/a": ["/guide/a/b"],
    "/guide/a/b": [],
    "/guide/index.html": [],
    "/news": ["https://river.example/"],
    "/shop?sort=up": [],
    "/shop?sort=down": [],
    "/hidden": [],
}


@pytest.fixture(autouse=True)
def town(sandbox: Any) -> None:
    build_town(sandbox)


def rebuild_town(sandbox: Any, **_: object) -> None:
    sandbox.control.reset()
    build_town(sandbox)


def build_town(sandbox: Any) -> None:
    for path, links in PAGES.items():
        sandbox.control.set_page(SITE + path, "".join(f'<a href="{link}">{link}</a> ' for link in links))
    sandbox.control.set_page("https://kids.town.example/play", "<p>Play.</p>")


def crawl(api: Any, **body: Any) -> dict[str, Any]:
    """Run a crawl; return its last status and, as `urls`, its pages without the site."""
    started = api.http.post("/v2/crawl", json={"url": SITE, "limit": 50, **body})
    assert started.status_code == 200, started.text
    api.sandbox.control.settle()
    status = api.http.get(f"/v2/crawl/{started.json()['id']}").json()
    assert status["status"] == "completed"
    status["urls"] = [page["metadata"]["sourceURL"].removeprefix(SITE) for page in status["data"]]
    status.update(api.http.get(f"/v2/crawl/{started.json()['id']}/errors").json())
    return dict(status)


LEVEL_0 = ["/"]
LEVEL_1 = [*LEVEL_0, "/guide", "/shop?sort=up", "/shop?sort=down"]
LEVEL_2 = [*LEVEL_1, "/guide/a", "/news"]
ALL = [*LEVEL_2, "/guide/a/b"]


@pytest.mark.rule("crawl-paths", "crawl-depth", "crawl-similar", "crawl-limit", "crawl-scope")
@each_row(
    "options, expected",
    [
        ({}, ALL),
        ({"maxDiscoveryDepth": 0}, LEVEL_0),
        ({"maxDiscoveryDepth": 1}, LEVEL_1),
        ({"maxDiscoveryDepth": 2}, LEVEL_2),
        ({"limit": 1}, LEVEL_0),
        ({"limit": 3}, LEVEL_1[:3]),
        # The start address is tested too.
        ({"includePaths": ["^/guide"]}, []),
        ({"includePaths": ["^/guide", "^/$"]}, ["/", "/guide", "/guide/a", "/guide/a/b"]),
        ({"excludePaths": ["^/guide"]}, ["/", "/shop?sort=up", "/shop?sort=down"]),
        ({"excludePaths": ["/a$"]}, [*LEVEL_1, "/news"]),
        ({"includePaths": ["^/$", "/a"], "excludePaths": ["/b"]}, ["/"]),
        ({"excludePaths": ["sort"]}, ALL),
        ({"excludePaths": ["sort"], "regexOnFullURL": True}, [u for u in ALL if "sort" not in u]),
        ({"ignoreQueryParameters": True}, [u for u in ALL if u != "/shop?sort=down"]),
        (
            {"deduplicateSimilarURLs": False},
            [*LEVEL_1, "/guide/a", "/guide/index.html", "/news", "/guide/a/b"],
        ),
        ({"url": f"{SITE}/guide"}, ["/guide", "/guide/a", "/guide/a/b"]),
        (
            {"url": f"{SITE}/guide", "crawlEntireDomain": True},
            ["/guide", "/guide/a", "/news", "/", "/guide/a/b", "/shop?sort=up", "/shop?sort=down"],
        ),
        ({"allowSubdomains": True}, [*LEVEL_2, "https://kids.town.example/play", "/guide/a/b"]),
        ({"url": "town.example", "limit": 1}, ["http://town.example"]),
    ],
)
def test_scope(api, options: dict[str, Any], expected: list[str]) -> None:
    found = crawl(api, **options)["urls"]
    assert sorted(url.removeprefix("http://town.example") or "/" for url in found) == sorted(
        url.removeprefix("http://town.example") or "/" for url in expected
    )


@pytest.mark.rule("page-codes-jobs", "crawl-external")
def test_external_links_are_one_hop_and_their_front_pages_are_errors(api) -> None:
    found = crawl(api, allowExternalLinks=True)
    assert {url for url in found["urls"] if url.startswith("https://")} == {
        "https://river.example/floods",
        "https://kids.town.example/play",
    }
    assert [(error["url"], error["code"]) for error in found["errors"]] == [
        ("https://river.example/", "EXTERNAL_LINK")
    ]


@pytest.mark.rule("crawl-sitemap")
@each_row(
    "sitemap, depth, expected",
    [
        ("skip", None, ALL),
        ("include", None, [*ALL, "/hidden"]),
        ("include", 0, ["/", "/hidden"]),
        ("only", None, ["/", "/hidden"]),
        (None, 0, ["/", "/hidden"]),
    ],
)
def test_sitemap(sandbox, api, sitemap: str | None, depth: int | None, expected: list[str]) -> None:
    sandbox.control.set_site("town.example", sitemap=[f"{SITE}/hidden", f"{SITE}/"])
    given = {"sitemap": sitemap, "maxDiscoveryDepth": depth}
    found = crawl(api, **{name: value for name, value in given.items() if value is not None})
    assert sorted(found["urls"]) == sorted(expected)


ROBOTS = "User-agent: *\nDisallow: /guide/a\nDisallow: /news\n\nUser-agent: Friend\nDisallow: /shop\n"


@pytest.mark.rule("crawl-robots", "job-warning", "job-errors")
def test_robots(sandbox, api) -> None:
    sandbox.control.set_site("town.example", robots=ROBOTS)
    found = crawl(api)
    assert sorted(found["urls"]) == sorted(LEVEL_1)
    assert sorted(found["robotsBlocked"]) == [f"{SITE}/guide/a", f"{SITE}/news"]
    assert found["warning"].startswith("2 pages")


@pytest.mark.rule("status-403", "crawl-robots")
@each_row(
    "options, expected",
    [
        ({"ignoreRobotsTxt": True}, ALL),
        ({"robotsUserAgent": "Friend"}, [url for url in ALL if "shop" not in url]),
    ],
    before=rebuild_town,
)
def test_robots_options_need_an_entitlement(
    sandbox, api, options: dict[str, Any], expected: list[str]
) -> None:
    sandbox.control.set_site("town.example", robots=ROBOTS)
    assert api.http.post("/v2/crawl", json={"url": SITE, **options}).status_code == 403
    sandbox.control.configure(entitlements=["robots"])
    assert sorted(crawl(api, **options)["urls"]) == sorted(expected)


@pytest.mark.rule("job-warning")
@each_row("options, warned", [({"maxDiscoveryDepth": 0}, True), ({}, False), ({"limit": 1}, False)])
def test_a_crawl_that_finds_one_page_is_warned_of(api, options: dict[str, Any], warned: bool) -> None:
    assert ("warning" in crawl(api, **options)) is warned


@pytest.mark.rule("crawl-delay")
def test_delay_is_between_pages_one_at_a_time(sandbox, api) -> None:
    sandbox.control.configure(concurrency=5)
    started = api.http.post("/v2/crawl", json={"url": SITE, "delay": 10, "limit": 50}).json()["id"]
    done = []
    for _ in range(4):
        sandbox.control.advance(10.5)
        done.append(api.http.get(f"/v2/crawl/{started}").json()["completed"])
    assert done == [1, 2, 3, 4]


@pytest.mark.rule("crawl-scrape-options")
def test_scrape_options_hold_for_each_page(api) -> None:
    found = crawl(api, limit=2, scrapeOptions={"formats": ["links", "html"]})
    assert [page.keys() for page in found["data"]] == [{"links", "html", "metadata"}] * 2
    assert [page.keys() for page in crawl(api, limit=2)["data"]] == [{"markdown", "metadata"}] * 2


@pytest.mark.rule("metadata-scrape-id", "scrape-result")
def test_each_page_can_be_asked_for_by_its_scrape(api) -> None:
    for page in crawl(api)["data"]:
        answer = api.http.get(f"/v2/scrape/{page['metadata']['scrapeId']}").json()
        assert answer == {"success": True, "data": page}


@pytest.mark.rule("crawl-active")
def test_active(sandbox, api) -> None:
    sandbox.control.configure(page_seconds=1000)
    ids = [
        api.http.post(
            "/v2/crawl", json={"url": SITE, "limit": limit, "scrapeOptions": {"mobile": True}}
        ).json()["id"]
        for limit in (1, 3)
    ]
    for path in ("/v2/crawl/active", "/v2/crawl/ongoing"):
        shown = api.http.get(path).json()
        assert shown["success"] is True
        assert [item["id"] for item in shown["crawls"]] == ids
    (first, second) = shown["crawls"]
    assert first.keys() == {"id", "teamId", "url", "options", "created_at"}
    assert (second["url"], second["options"]["limit"]) == (SITE, 3)
    assert second["options"]["scrapeOptions"]["mobile"] is True
    sandbox.control.advance(1100)
    assert [item["id"] for item in api.http.get("/v2/crawl/active").json()["crawls"]] == ids[1:]
    api.http.delete(f"/v2/crawl/{ids[1]}")
    assert api.http.get("/v2/crawl/active").json()["crawls"] == []


class TestIdempotency:
    @pytest.mark.rule("idempotency-key", "idempotency-key-used")
    def test_a_key_works_once(self, api) -> None:
        key = str(uuid.uuid4())
        answers = [
            api.http.post("/v2/crawl", json={"url": SITE, "limit": 1}, headers={"x-idempotency-key": key})
            for _ in range(2)
        ]
        assert [answer.status_code for answer in answers] == [200, 409]
        assert answers[1].json() == {"success": False, "error": "Idempotency key already used"}
        assert len(api.sandbox.control.jobs("crawl")) == 1

    @pytest.mark.rule("idempotency-key")
    def test_what_is_no_uuid_is_as_good_as_used(self, api) -> None:
        answer = api.http.post("/v2/crawl", json={"url": SITE}, headers={"x-idempotency-key": "mine"})
        assert answer.status_code == 409

    def test_without_a_key_two_calls_are_two_crawls(self, api) -> None:
        ids = {api.http.post("/v2/crawl", json={"url": SITE, "limit": 1}).json()["id"] for _ in range(2)}
        assert len(ids) == 2


PROMPTS = [
    ("only /guide and /news", {"includePaths": ["/guide", "/news"]}),
    ("everything except /guide", {"excludePaths": ["/guide"]}),
    ("at most 20 pages, 2 levels deep", {"limit": 20, "maxDiscoveryDepth": 2}),
    ("the whole site with subdomains", {"allowSubdomains": True, "crawlEntireDomain": True}),
    ("the best of https://town.example/guide", None),
]


@pytest.mark.rule("crawl-prompt", "crawl-answer", "crawl-preview")
@each_row("prompt, expected", PROMPTS, before=rebuild_town)
def test_prompts(sandbox, api, prompt: str, expected: dict[str, Any] | None) -> None:
    preview = api.http.post("/v2/crawl/params-preview", json={"url": SITE, "prompt": prompt})
    started = api.http.post("/v2/crawl", json={"url": SITE, "prompt": prompt})
    if expected is None:
        assert (preview.status_code, started.status_code) == (400, 400)
        return
    assert preview.json() == {"success": True, "data": {"url": SITE, **expected}}
    assert started.json()["promptGeneratedOptions"] == expected
    final = started.json()["finalCrawlerOptions"]
    assert expected.items() <= final.items()
    assert final["sitemap"] == "include"
    assert len(sandbox.control.jobs("crawl")) == 1


@pytest.mark.rule("crawl-preview-delay")
def test_a_delay_is_previewed_in_milliseconds(api) -> None:
    body = {"url": SITE, "prompt": "5 seconds apart"}
    assert api.http.post("/v2/crawl/params-preview", json=body).json()["data"]["delay"] == 5000
    assert api.http.post("/v2/crawl", json=body).json()["finalCrawlerOptions"]["delay"] == 5


@pytest.mark.rule("crawl-prompt")
def test_what_is_given_wins_over_the_prompt(api) -> None:
    body = {"url": SITE, "prompt": "20 pages of /news", "limit": 5}
    final = api.http.post("/v2/crawl", json=body).json()["finalCrawlerOptions"]
    assert (final["limit"], final["includePaths"]) == (5, ["/news"])


@pytest.mark.rule("crawl-prompt", "crawl-paths")
@each_row(
    "body, status",
    [
        ({"zeroDataRetention": True}, 403),
        ({"scrapeOptions": {"threatProtection": {"mode": "normal"}}}, 403),
        ({"scrapeOptions": {"formats": ["branding"]}}, 400),
        ({"nonsense": 1}, 400),
        ({"includePaths": ["("]}, 400),
    ],
)
def test_what_is_refused_starts_nothing(sandbox, api, body: dict[str, Any], status: int) -> None:
    assert api.http.post("/v2/crawl", json={"url": SITE, **body}).status_code == status
    assert sandbox.control.jobs("crawl") == []


@pytest.mark.rule("credits-zero-data-retention", "crawl-zero-data-retention")
def test_zero_data_retention_costs_a_credit_a_page(sandbox, api) -> None:
    sandbox.control.configure(entitlements=["zeroDataRetention"])
    assert crawl(api, limit=3, zeroDataRetention=True)["creditsUsed"] == 6


@pytest.mark.rule("crawl-credit-check")
@each_row(
    "balance, limit, status",
    [(1, 5, 200), (0, 5, 402), (1, None, 200), (0, None, 402)],
    before=rebuild_town,
)
def test_a_crawl_needs_one_credit(sandbox, api, balance: int, limit: int | None, status: int) -> None:
    sandbox.control.configure(credits=balance)
    body = {"url": SITE, **({"limit": limit} if limit else {})}
    assert api.http.post("/v2/crawl", json=body).status_code == status


@pytest.mark.rule("next-host")
@each_row(
    "quirk, expected",
    [
        ("next-wrong-host", "http://internal.invalid:8080{path}?skip=1&limit=1"),
        (None, "{origin}{path}?skip=1&limit=1"),
    ],
)
def test_host_of_the_next_page(sandbox, api, quirk: str | None, expected: str) -> None:
    path = f"/v2/crawl/{api.http.post('/v2/crawl', json={'url': SITE, 'limit': 3}).json()['id']}"
    sandbox.control.settle()
    sandbox.control.set_quirks([quirk] if quirk else [])
    found = api.http.get(f"{path}?limit=1").json()["next"]
    sandbox.control.set_quirks([])
    assert found == expected.format(origin=sandbox.url, path=path)


@pytest.mark.rule("success-flag")
@each_row("quirk, expected", [("next-null", {"next": None}), ("no-success", {})])
def test_what_an_answer_lacks(sandbox, api, quirk: str, expected: dict[str, Any]) -> None:
    path = f"/v2/crawl/{api.http.post('/v2/crawl', json={'url': SITE, 'limit': 3}).json()['id']}"
    sandbox.control.settle()
    plain = api.http.get(path).json()
    sandbox.control.set_quirks([quirk])
    odd = api.http.get(path).json()
    sandbox.control.set_quirks([])
    assert plain["success"] is True
    assert "next" not in plain
    assert odd == {**{k: v for k, v in plain.items() if quirk == "next-null" or k != "success"}, **expected}


class TestGeneratedSites:
    def test_every_page_is_found_once(self, sandbox, api) -> None:
        sandbox.control.set_site("big.example", pages=333, fanout=7)
        started = api.http.post("/v2/crawl", json={"url": "https://big.example", "limit": 1000}).json()["id"]
        sandbox.control.settle()
        urls = []
        following: str | None = f"/v2/crawl/{started}?limit=1000"
        while following:
            answer = api.http.get(following).json()
            urls.extend(page["metadata"]["url"] for page in answer["data"])
            following = answer.get("next")
        assert sorted(urls) == sorted(
            ["https://big.example/", *(f"https://big.example/p/{n}" for n in range(1, 334))]
        )

    def test_pages_that_fail_hide_none(self, sandbox, api) -> None:
        sandbox.control.set_site("big.example", pages=60, fanout=3, fail_every=2)
        started = api.http.post("/v2/crawl", json={"url": "https://big.example", "limit": 100}).json()["id"]
        sandbox.control.settle()
        errors = api.http.get(f"/v2/crawl/{started}/errors").json()["errors"]
        assert len(errors) == 30
        assert api.http.get(f"/v2/crawl/{started}").json()["completed"] == 31

    def test_a_document_is_the_same_each_time(self, sandbox, api) -> None:
        sandbox.control.set_site("big.example", pages=5, size=500)
        answers = [
            api.http.post(
                "/v2/scrape", json={"url": "https://big.example/p/3", "formats": ["markdown", "links"]}
            )
            for _ in range(2)
        ]
        first, second = (answer.json()["data"] for answer in answers)
        assert first["markdown"] == second["markdown"]
        assert first["markdown"].startswith("# Station 3\n")
        assert 500 <= len(first["markdown"]) < 700

    def test_its_text_is_kept_nowhere(self, sandbox, api) -> None:
        sandbox.control.set_site("big.example", pages=5)
        started = api.http.post("/v2/crawl", json={"url": "https://big.example", "limit": 6}).json()["id"]
        sandbox.control.settle()
        assert "Station" not in json.dumps(sandbox.control.jobs("crawl"))
        sandbox.control.set_site("big.example", pages=5, size=1)
        markdown = [page["markdown"] for page in api.http.get(f"/v2/crawl/{started}").json()["data"]]
        assert max(map(len, markdown)) < 200  # made when asked for: of the size the site has now

    @each_row("path", ["/p/0", "/p/6", "/p/03", "/p/x", "/q/1", "/p/1?x=1"])
    def test_what_it_has_not_is_not_found(self, sandbox, api, path: str) -> None:
        sandbox.control.set_site("big.example", pages=5)
        answer = api.http.post("/v2/scrape", json={"url": f"https://big.example{path}"}).json()
        assert answer["data"]["metadata"]["statusCode"] == 404

    def test_settings_are_checked(self, sandbox) -> None:
        for wrong in ({"pages": -1}, {"pages": 2_000_000}, {"pages": 1, "fanout": 0}, {"nonsense": 1}):
            with pytest.raises(ControlError, match="400"):
                sandbox.control.set_site("big.example", **wrong)
