# SPDX-License-Identifier: Apache-2.0
"""Results of checks, by kind of target."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.tables import each_row

from .conftest import reset_sandbox
from .monitor_calls import LEVELS, news, search_target, statuses, summary


class TestScrapeTarget:
    @pytest.mark.rule("check-page-status")
    def test_new_same_changed(self, sandbox, api) -> None:
        monitor = api.create()["id"]
        first, second = api.run(monitor), api.run(monitor)
        sandbox.control.set_page(LEVELS, "<h1>River levels</h1><p>Bridge: 455 cm</p>")
        third = api.run(monitor)
        assert [statuses(check)[LEVELS] for check in (first, second, third)] == ["new", "same", "changed"]
        assert [check["summary"] for check in (first, second, third)] == [
            summary(new=1),
            summary(same=1),
            summary(changed=1),
        ]
        old, new = second["pages"][0], third["pages"][0]
        assert new["previousScrapeId"] == old["currentScrapeId"] != new["currentScrapeId"]
        assert first["pages"][0]["previousScrapeId"] is None
        assert old["diff"] is None

    @pytest.mark.rule("check-diff", "check-diff-modes")
    def test_diff(self, sandbox, api) -> None:
        url = "https://notes.example/list"
        sandbox.control.set_page(url, markdown="# List\n\n- one\n- two\n- three")
        monitor = api.create(targets=[{"type": "scrape", "urls": [url]}])["id"]
        api.run(monitor)
        sandbox.control.set_page(url, markdown="# List\n\n- one\n- 2\n- three")
        page = api.run(monitor)["pages"][0]
        assert page["diff"]["text"].split("\n")[2:] == [
            "@@ -1,5 +1,5 @@",
            " # List",
            " ",
            " - one",
            "-- two",
            "+- 2",
            " - three",
        ]
        (file,) = page["diff"]["json"]["files"]
        (chunk,) = file["chunks"]
        assert [(c["type"], c.get("ln"), c.get("ln1"), c.get("ln2")) for c in chunk["changes"]] == [
            ("normal", None, 1, 1),
            ("normal", None, 2, 2),
            ("normal", None, 3, 3),
            ("del", 4, None, None),
            ("add", 4, None, None),
            ("normal", None, 5, 5),
        ]
        assert page["snapshot"] is None
        assert page["judgment"] is None

    @each_row(
        "before, after, line",
        [("a", "a\n\n--- b", "+--- b"), ("a\n\n++ c", "a", "-++ c")],
        before=reset_sandbox,
    )
    def test_diff_of_lines_that_look_like_a_diff(
        self, sandbox, api, before: str, after: str, line: str
    ) -> None:
        url = "https://notes.example/odd"
        sandbox.control.set_page(url, markdown=before)
        monitor = api.create(targets=[{"type": "scrape", "urls": [url]}])["id"]
        api.run(monitor)
        sandbox.control.set_page(url, markdown=after)
        changes = api.run(monitor)["pages"][0]["diff"]["json"]["files"][0]["chunks"][0]["changes"]
        assert line in [change["content"] for change in changes]

    @pytest.mark.rule("check-partial", "check-page-status")
    @each_row(
        "setup, status, code, check_status",
        [
            (lambda c, url: c.set_page(url, "<p>gone wrong</p>", status=500), "changed", 500, "completed"),
            (lambda c, url: c.delete_page(url), "changed", 404, "completed"),
            (lambda c, url: c.set_page(url, "<p>x</p>", error="SCRAPE_SSL_ERROR"), "error", None, "partial"),
        ],
        before=reset_sandbox,
    )
    def test_pages_that_go_wrong(
        self, sandbox, api, setup, status: str, code: int | None, check_status: str
    ) -> None:
        monitor = api.create(targets=[{"type": "scrape", "urls": [LEVELS, "https://river.example/floods"]}])[
            "id"
        ]
        api.run(monitor)
        setup(sandbox.control, LEVELS)
        check = api.run(monitor)
        page = check["pages"][0]
        assert (page["status"], page["statusCode"], check["status"]) == (status, code, check_status)
        assert check["pages"][1]["status"] == "same"
        assert (page["error"] is not None) is (status == "error")

    def test_a_host_that_does_not_exist(self, api) -> None:
        check = api.run(api.create(targets=[{"type": "scrape", "urls": ["https://nowhere.example"]}])["id"])
        assert check["pages"][0]["error"].startswith("SCRAPE_DNS_RESOLUTION_ERROR")
        assert (check["status"], check["actualCredits"]) == ("partial", 1)

    @pytest.mark.rule("target-options-unchecked")
    @each_row(
        "options",
        [
            {"formats": ["nonsense"]},
            {"typo": 1},
            {"timeout": 5},
            {"formats": ["screenshot"]},
            {"onlyCleanContent": True},
        ],
    )
    def test_wrong_options_show_when_a_check_runs(self, api, options: dict[str, Any]) -> None:
        monitor = api.create(targets=[{"type": "scrape", "urls": [LEVELS], "scrapeOptions": options}])
        check = api.run(monitor["id"])
        assert (check["status"], check["pages"][0]["status"]) == ("partial", "error")

    @pytest.mark.rule("scrape-max-age", "target-scrape-options")
    def test_pages_are_fresh_whatever_the_cache_holds(self, sandbox, api) -> None:
        api.search("inurl:levels", scrapeOptions={"formats": ["markdown"]})
        sandbox.control.set_page(LEVELS, "<p>Bridge: 1 cm</p>")
        monitor = api.create()["id"]
        api.run(monitor)
        sandbox.control.set_page(LEVELS, "<p>Bridge: 2 cm</p>")
        assert "-Bridge: 1 cm\n+Bridge: 2 cm" in api.run(monitor)["pages"][0]["diff"]["text"]

    @pytest.mark.rule("target-ids")
    @each_row("kept, status", [(True, "same"), (False, "new")], before=reset_sandbox)
    def test_history_goes_with_the_id_of_the_target(self, api, kept: bool, status: str) -> None:
        monitor = api.create()
        api.run(monitor["id"])
        (target,) = monitor["targets"]
        sent = target if kept else {name: value for name, value in target.items() if name != "id"}
        patched = api.patch(monitor["id"], targets=[sent]).json()["data"]
        assert (patched["targets"][0]["id"] == target["id"]) is kept
        assert statuses(api.run(monitor["id"]))[LEVELS] == status

    @pytest.mark.rule("monitor-judge", "check-judgment", "check-cost-judge")
    @each_row(
        "text, meaningful",
        [("The flood mark was passed.", True), ("Painted the gauge.", False)],
        before=reset_sandbox,
    )
    def test_judgment(self, sandbox, api, text: str, meaningful: bool) -> None:
        monitor = api.create(goal="Tell me of a flood")["id"]
        api.run(monitor)
        sandbox.control.set_page(LEVELS, f"<p>{text}</p>")
        check = api.run(monitor)
        judgment = check["pages"][0]["judgment"]
        assert judgment["meaningful"] is meaningful
        assert bool(judgment["meaningfulChanges"]) is meaningful
        assert "no language model" in judgment["reason"]
        assert check["actualCredits"] == 2

    @pytest.mark.rule("check-diff-modes", "check-json-mode")
    @each_row(
        "modes, price, around, status, text",
        [
            (["json"], 15, "x", "changed", False),
            (["json"], 12, "y", "same", False),
            (["json", "git-diff"], 12, "y", "changed", True),
            (["json", "git-diff"], 15, "x", "changed", True),
            (["json", "git-diff"], 12, "x", "same", False),
        ],
        before=reset_sandbox,
    )
    def test_json_mode(
        self, sandbox, api, modes: list[str], price: int, around: str, status: str, text: bool
    ) -> None:
        def page(price: int, around: str) -> str:
            data = f'{{"plans": [{{"name": "Small", "price": {price}}}]}}'
            return f'<script type="application/ld+json">{data}</script><p>Small: {price}</p><p>{around}</p>'

        url = "https://shop.example/offers"
        sandbox.control.set_page(url, page(12, "x"))
        options = {"formats": [{"type": "changeTracking", "modes": modes, "prompt": "prices"}]}
        monitor = api.create(targets=[{"type": "scrape", "urls": [url], "scrapeOptions": options}])["id"]
        api.run(monitor)
        sandbox.control.set_page(url, page(price, around))
        check = api.run(monitor)
        found = check["pages"][0]
        assert found["status"] == status
        assert found["snapshot"] == {"json": {"plans": [{"name": "Small", "price": price}]}}
        if status == "changed":
            expected = {"plans[0].price": {"previous": 12, "current": 15}} if price == 15 else {}
            assert found["diff"]["json"] == expected
            assert ("text" in found["diff"]) is text
        assert check["actualCredits"] == 5

    @pytest.mark.rule("target-json", "check-cost-pages")
    def test_a_check_bills_the_json_format_and_returns_no_data(self, sandbox, api) -> None:
        url = "https://shop.example/offers"
        sandbox.control.set_page(url, '<script type="application/ld+json">{"price": 12}</script>')
        target = {"type": "scrape", "urls": [url], "scrapeOptions": {"formats": [{"type": "json"}]}}
        check = api.run(api.create(targets=[target])["id"])
        assert check["actualCredits"] == 5
        assert not check["pages"][0].get("snapshot")

    def test_json_mode_is_judged_by_its_fields(self, sandbox, api) -> None:
        url = "https://shop.example/offers"
        page = '<script type="application/ld+json">{{"price": {}}}</script>'
        sandbox.control.set_page(url, page.format(12))
        options = {"formats": [{"type": "changeTracking", "modes": ["json"]}]}
        target = {"type": "scrape", "urls": [url], "scrapeOptions": options}
        monitor = api.create(targets=[target], goal="the price")["id"]
        api.run(monitor)
        sandbox.control.set_page(url, page.format(15))
        changes = api.run(monitor)["pages"][0]["judgment"]["meaningfulChanges"]
        assert [(change["before"], change["after"]) for change in changes] == [
            ("price: 12", None),
            (None, "price: 15"),
        ]

    @each_row("data", ["", '<script type="application/ld+json">{broken</script>'], before=reset_sandbox)
    def test_json_mode_without_data_on_the_page(self, sandbox, api, data: str) -> None:
        sandbox.control.set_page(LEVELS, data + "<p>412</p>", title="Levels", description="Now")
        options = {"formats": [{"type": "changeTracking", "modes": ["json"]}]}
        check = api.run(
            api.create(targets=[{"type": "scrape", "urls": [LEVELS], "scrapeOptions": options}])["id"]
        )
        known = {"url": LEVELS, "title": "Levels", "description": "Now"}
        assert check["pages"][0]["snapshot"] == {"json": known}

    def test_json_mode_by_a_schema_or_a_canned_answer(self, sandbox, api) -> None:
        data = '<script type="application/ld+json">{"level": 412, "gauge": "mill"}</script>'
        sandbox.control.set_page(LEVELS, data)
        schema = {"type": "object", "properties": {"level": {"type": "number"}, "trend": {"type": "string"}}}
        options = {"formats": [{"type": "changeTracking", "modes": ["json"], "schema": schema}]}
        monitor = api.create(targets=[{"type": "scrape", "urls": [LEVELS], "scrapeOptions": options}])["id"]
        # Only what the page states: a sample value would be news that nobody marked as made up.
        assert api.run(monitor)["pages"][0]["snapshot"] == {"json": {"level": 412}}
        sandbox.control.set_page(LEVELS, json={"level": 450, "trend": "rising"})
        found = api.run(monitor)["pages"][0]
        assert found["status"] == "changed"
        assert found["diff"]["json"]["level"] == {"previous": 412, "current": 450}


class TestCrawlTarget:
    HOST = "https://tree.example"

    def grow(self, sandbox, *paths: str) -> None:
        links = "".join(f'<a href="/{path}">{path}</a>' for path in paths)
        sandbox.control.set_page(self.HOST, f'<p>root</p>{links}<a href="https://river.example/">away</a>')
        for path in paths:
            sandbox.control.set_page(f"{self.HOST}/{path}", f'<p>{path}</p><a href="/{path}/leaf">leaf</a>')
            sandbox.control.set_page(f"{self.HOST}/{path}/leaf", "<p>leaf</p>")

    @pytest.mark.rule("target-crawl-options", "check-cost-pages")
    @each_row(
        "options, found",
        [
            ({}, ["/", "/a", "/b", "/a/leaf", "/b/leaf"]),
            ({"limit": 3}, ["/", "/a", "/b"]),
            ({"maxDiscoveryDepth": 1}, ["/", "/a", "/b"]),
            ({"maxDepth": 0}, ["/"]),
            ({"includePaths": ["^/a"]}, ["/", "/a", "/a/leaf"]),
            ({"excludePaths": ["leaf$"]}, ["/", "/a", "/b"]),
            (
                {"includePaths": ["^https?://"], "regexOnFullURL": True},
                ["/", "/a", "/b", "/a/leaf", "/b/leaf"],
            ),
        ],
    )
    def test_discovery(self, sandbox, api, options: dict[str, Any], found: list[str]) -> None:
        self.grow(sandbox, "a", "b")
        target = {"type": "crawl", "url": self.HOST, "crawlOptions": options}
        check = api.run(api.create(targets=[target])["id"])
        assert [page["url"] for page in check["pages"]] == [self.HOST + path for path in found]
        assert check["actualCredits"] == len(found)

    @pytest.mark.rule("check-page-status", "check-cost-pages")
    def test_new_and_removed(self, sandbox, api) -> None:
        self.grow(sandbox, "a", "b")
        monitor = api.create(targets=[{"type": "crawl", "url": self.HOST, "crawlOptions": {"limit": 50}}])[
            "id"
        ]
        api.run(monitor)
        self.grow(sandbox, "a", "c")
        check = api.run(monitor)
        assert statuses(check) == {
            f"{self.HOST}/": "changed",
            f"{self.HOST}/a": "same",
            f"{self.HOST}/a/leaf": "same",
            f"{self.HOST}/c": "new",
            f"{self.HOST}/c/leaf": "new",
            f"{self.HOST}/b": "removed",
            f"{self.HOST}/b/leaf": "removed",
        }
        assert check["actualCredits"] == 5
        assert "removed" not in statuses(api.run(monitor)).values()

    @pytest.mark.rule("target-options-unchecked")
    @each_row("options", [{"limit": "many"}, {"includePaths": ["("]}, {"maxDepth": "deep"}])
    def test_wrong_options_fail_the_check(self, sandbox, api, options: dict[str, Any]) -> None:
        self.grow(sandbox, "a")
        monitor = api.create(targets=[{"type": "crawl", "url": self.HOST, "crawlOptions": options}])["id"]
        check = api.run(monitor)
        assert check["status"] == "failed"
        assert check["error"]
        assert api.get(monitor)["currentCheckId"] is None


class TestSearchTarget:
    @pytest.mark.rule("check-search-status")
    def test_alert_then_already_seen(self, sandbox, api) -> None:
        url = news(sandbox, 1)
        monitor = api.create(targets=[search_target()], goal="a zeppelin")["id"]
        first, second = api.run(monitor), api.run(monitor)
        assert [c["pages"][0]["metadata"]["searchStatus"] for c in (first, second)] == [
            "alert",
            "already_seen",
        ]
        assert [statuses(c)[url] for c in (first, second)] == ["new", "same"]
        assert (first["actualCredits"], second["actualCredits"]) == (3, 2)
        assert first["targetResults"][0]["matches"] == 1

    @pytest.mark.rule("monitor-verdicts", "check-search-status")
    def test_ignored_until_the_goal_changes(self, sandbox, api) -> None:
        news(sandbox, 1)
        monitor = api.create(targets=[search_target()], goal="volcanoes")["id"]
        assert api.run(monitor)["pages"][0]["metadata"]["searchStatus"] == "ignored"
        api.patch(monitor, goal="landing of a zeppelin", judgeEnabled=True)
        assert api.run(monitor)["pages"][0]["metadata"]["searchStatus"] == "alert"
        assert api.run(monitor)["pages"][0]["metadata"]["searchStatus"] == "already_seen"

    def test_one_alert_for_a_page_whatever_the_goal(self, sandbox, api) -> None:
        news(sandbox, 1)
        monitor = api.create(targets=[search_target()], goal="a zeppelin")["id"]
        api.run(monitor)
        api.patch(monitor, goal="some report", judgeEnabled=True)
        assert api.run(monitor)["pages"][0]["metadata"]["searchStatus"] == "already_seen"

    @pytest.mark.rule("target-search-window")
    @each_row(
        "age, window, found",
        [
            (0, "5m", 1),
            (301, "5m", 0),
            (301, "15m", 1),
            (3601, "1h", 0),
            (3601, "6h", 1),
            (86_401, "24h", 0),
            (86_401, "7d", 1),
        ],
        before=reset_sandbox,
    )
    def test_window(self, sandbox, api, age: int, window: str, found: int) -> None:
        news(sandbox, 1)
        sandbox.control.advance(age)
        monitor = api.create(targets=[search_target(searchWindow=window)], judgeEnabled=False)["id"]
        assert len(api.run(monitor)["pages"]) == found

    @pytest.mark.rule("target-max-results", "target-domains", "check-cost-search")
    @each_row(
        "fields, pages, credits",
        [
            ({}, 10, 4),
            ({"queries": ["zeppelin", "report"]}, 10, 4),
            ({"queries": ["zeppelin", "report"], "maxResults": 20}, 12, 8),
            ({"maxResults": 3}, 3, 2),
            ({"includeDomains": ["other.example"]}, 0, 0),
            ({"excludeDomains": ["sky.example"]}, 0, 0),
        ],
        before=reset_sandbox,
    )
    def test_merging_domains_and_cost(
        self, sandbox, api, fields: dict[str, Any], pages: int, credits: int
    ) -> None:
        for number in range(12):
            news(sandbox, number)
        target = search_target(**fields)
        check = api.run(api.create(targets=[target], judgeEnabled=False)["id"])
        cost = {10: 2 * len(target["queries"])}.get(pages, credits)
        assert (len(check["pages"]), check["actualCredits"]) == (pages, cost)
        assert all(page["judgment"] is None for page in check["pages"])
