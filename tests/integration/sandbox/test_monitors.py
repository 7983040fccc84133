"""Monitors: their life, what the service fills in, and what checks find."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

LEVELS = "https://weather.example/levels"
SUMMARY = {"totalPages": 0, "same": 0, "changed": 0, "new": 0, "removed": 0, "error": 0}


def summary(**counts: int) -> dict[str, int]:
    return {**SUMMARY, **counts, "totalPages": sum(counts.values())}


def statuses(check: dict[str, Any]) -> dict[str, str]:
    return {page["url"]: page["status"] for page in check["pages"]}


def search_target(**fields: Any) -> dict[str, Any]:
    return {"type": "search", "queries": ["zeppelin"], **fields}


def news(sandbox, number: int, text: str = "A zeppelin landed.") -> str:
    url = f"https://sky.example/{number}"
    sandbox.control.set_page(
        url, f"<p>{text}</p>", title=f"Report {number}", published=sandbox.control.state()["now"]
    )
    return url


class TestCreate:
    @pytest.mark.rule("success-status", "monitor-status", "monitor-record")
    def test_what_comes_back(self, api) -> None:
        monitor = api.create(name="gauge")
        assert uuid.UUID(monitor["id"])
        assert uuid.UUID(monitor["targets"][0].pop("id"))
        assert datetime.fromisoformat(monitor["nextRunAt"].replace("Z", "+00:00")).minute == 0
        for name in ("id", "createdAt", "updatedAt", "nextRunAt"):
            assert monitor.pop(name)
        assert monitor == {
            "name": "gauge",
            "status": "active",
            "schedule": {"cron": "0 * * * *", "timezone": "UTC"},
            "targets": [{"type": "scrape", "urls": [LEVELS], "scrapeOptions": {}}],
            "goal": None,
            "judgeEnabled": False,
            "notification": {"email": {"enabled": False, "includeDiffs": False, "recipients": []}},
            "webhook": None,
            "retentionDays": 30,
            "estimatedCreditsPerMonth": 720,
            "currentCheckId": None,
            "lastCheckSummary": None,
            "lastRunAt": None,
        }

    @pytest.mark.rule("monitor-retention", "monitor-normalised")
    @pytest.mark.parametrize(
        ("given", "stored"),
        [
            (
                {"schedule": {"text": "every 30 minutes"}},
                {"schedule": {"cron": "*/30 * * * *", "timezone": "UTC"}},
            ),
            (
                {"schedule": {"text": "hourly", "timezone": "Asia/Tokyo"}},
                {"schedule": {"cron": "0 * * * *", "timezone": "Asia/Tokyo"}},
            ),
            ({"goal": "  floods "}, {"goal": "floods", "judgeEnabled": True}),
            ({"goal": "floods", "judgeEnabled": False}, {"goal": "floods", "judgeEnabled": False}),
            ({"goal": "   "}, {"goal": None, "judgeEnabled": False}),
            ({"retentionDays": 7}, {"retentionDays": 7}),
            (
                {"notification": {"email": {"enabled": True}}},
                {"notification": {"email": {"enabled": True, "includeDiffs": False, "recipients": []}}},
            ),
            ({"webhook": "https://a.example/x"}, {"webhook": {"url": "https://a.example/x"}}),
        ],
    )
    def test_filled_in(self, api, given: dict[str, Any], stored: dict[str, Any]) -> None:
        monitor = api.create(**given)
        assert {name: monitor[name] for name in stored} == stored

    @pytest.mark.rule("monitor-normalised")
    @pytest.mark.parametrize(
        ("given", "stored"),
        [
            (
                {"type": "scrape", "urls": ["river.example/x"]},
                {"urls": ["http://river.example/x"], "scrapeOptions": {}},
            ),
            ({"type": "scrape", "url": LEVELS}, {"urls": [LEVELS], "scrapeOptions": {}}),
            (
                {"type": "crawl", "url": "river.example"},
                {"url": "http://river.example", "crawlOptions": {}, "scrapeOptions": {}},
            ),
            (search_target(), {"queries": ["zeppelin"], "searchWindow": "24h", "maxResults": 10}),
            (
                search_target(includeDomains=[" SKY.example "], scrapeOptions={"formats": []}),
                {
                    "queries": ["zeppelin"],
                    "searchWindow": "24h",
                    "maxResults": 10,
                    "includeDomains": ["sky.example"],
                },
            ),
        ],
    )
    def test_targets_are_normalised(self, api, given: dict[str, Any], stored: dict[str, Any]) -> None:
        target = api.create(targets=[given], goal="landing")["targets"][0]
        assert uuid.UUID(target.pop("id"))
        assert target == {"type": given["type"], **stored}

    @pytest.mark.rule("target-crawl-limit", "monitor-estimate")
    @pytest.mark.parametrize(
        ("fields", "credits"),
        [
            ({}, 720),
            ({"goal": "x"}, 1440),
            ({"schedule": {"cron": "0 6 * * *"}}, 30),
            (
                {
                    "schedule": {"cron": "0 6 * * *"},
                    "targets": [{"type": "scrape", "urls": ["https://a.example", "https://b.example"]}],
                },
                60,
            ),
            (
                {
                    "schedule": {"cron": "0 6 * * *"},
                    "targets": [{"type": "crawl", "url": "https://a.example"}],
                },
                300_000,
            ),
            (
                {
                    "schedule": {"cron": "0 6 * * *"},
                    "targets": [{"type": "crawl", "url": "https://a.example", "crawlOptions": {"limit": 5}}],
                },
                150,
            ),
            (
                {
                    "schedule": {"cron": "0 6 * * *"},
                    "targets": [search_target(queries=["a", "b"], maxResults=11)],
                    "judgeEnabled": False,
                },
                240,
            ),
            (
                {"schedule": {"cron": "0 6 * * *"}, "targets": [search_target(maxResults=10)], "goal": "g"},
                360,
            ),
        ],
    )
    def test_estimate(self, api, fields: dict[str, Any], credits: int) -> None:
        assert api.create(**fields)["estimatedCreditsPerMonth"] == credits

    @pytest.mark.rule("monitor-notification")
    def test_recipients_await_confirmation(self, api) -> None:
        monitor = api.create(notification={"email": {"enabled": True, "recipients": ["a@b.example"]}})
        assert [item["status"] for item in monitor["emailRecipientSubscriptions"]] == ["pending"]

    @pytest.mark.rule("monitor-name-not-unique")
    def test_names_are_not_unique(self, api) -> None:
        assert api.create(name="same")["id"] != api.create(name="same")["id"]

    @pytest.mark.rule("target-ids")
    def test_ids_of_targets_are_kept(self, api) -> None:
        given = str(uuid.uuid4())
        assert (
            api.create(targets=[{"type": "scrape", "id": given, "urls": [LEVELS]}])["targets"][0]["id"]
            == given
        )

    def test_many_at_once(self, sandbox, api) -> None:
        with ThreadPoolExecutor(16) as pool:
            ids = {monitor["id"] for monitor in pool.map(lambda n: api.create(name=f"m{n}"), range(60))}
        listed = api.http.get("/v2/monitor?limit=100").json()["data"]
        assert {monitor["id"] for monitor in listed} == ids
        assert len(ids) == 60


class TestReadUpdateDelete:
    @pytest.mark.rule("monitor-list")
    def test_list_is_newest_first_and_in_pages(self, api) -> None:
        ids = [api.create(name=str(number))["id"] for number in range(30)][::-1]
        pages = [
            api.http.get(f"/v2/monitor?limit=12&offset={offset}").json()["data"] for offset in (0, 12, 24, 36)
        ]
        assert [[item["id"] for item in page] for page in pages] == [ids[:12], ids[12:24], ids[24:], []]
        assert len(api.http.get("/v2/monitor").json()["data"]) == 25

    @pytest.mark.rule("monitor-list")
    @pytest.mark.parametrize(
        "query", ["limit=0", "limit=101", "limit=x", "offset=-1", "limit=", "offset=1.5"]
    )
    def test_pagination_is_checked(self, api, query: str) -> None:
        assert api.http.get(f"/v2/monitor?{query}").status_code == 400

    @pytest.mark.rule("monitor-update", "monitor-update-goal")
    @pytest.mark.parametrize(
        ("patch", "changed"),
        [
            ({"name": "b"}, {"name": "b"}),
            ({"status": "paused"}, {"status": "paused"}),
            (
                {"schedule": {"cron": "0 6 * * *"}},
                {"schedule": {"cron": "0 6 * * *", "timezone": "UTC"}, "estimatedCreditsPerMonth": 30},
            ),
            ({"goal": "floods"}, {"goal": "floods", "judgeEnabled": True, "estimatedCreditsPerMonth": 1440}),
            ({"goal": "floods", "judgeEnabled": False}, {"goal": "floods"}),
            ({"notification": {}}, {}),
            (
                {"notification": {"email": {"enabled": True}}},
                {"notification": {"email": {"enabled": True, "includeDiffs": False, "recipients": []}}},
            ),
            ({"webhook": {"url": "https://a.example"}}, {"webhook": {"url": "https://a.example"}}),
            ({"retentionDays": 1, "origin": "test"}, {"retentionDays": 1}),
        ],
    )
    def test_patch_changes_what_it_names(self, api, patch: dict[str, Any], changed: dict[str, Any]) -> None:
        before = api.create(name="a")
        after = api.patch(before["id"], **patch).json()["data"]
        moving = {"updatedAt", "nextRunAt"}
        assert {k: v for k, v in after.items() if k not in moving} == {
            k: v for k, v in {**before, **changed}.items() if k not in moving
        }
        assert api.get(before["id"]) == after

    @pytest.mark.rule("monitor-search-goal", "monitor-webhook-stays", "monitor-update-empty")
    @pytest.mark.rule("monitor-clear-goal")
    @pytest.mark.parametrize(
        ("created", "patch", "text"),
        [
            ({}, {}, "Update body cannot be empty"),
            ({}, {"webhook": None}, "Bad Request"),
            (
                {"targets": [search_target()], "goal": "g"},
                {"goal": None},
                "A search target requires a non-empty goal",
            ),
            (
                {"targets": [search_target()], "judgeEnabled": False},
                {"judgeEnabled": True},
                "A search target requires",
            ),
            (
                {"judgeEnabled": True},
                {"targets": [search_target()]},
                "A search target requires a non-empty goal",
            ),
            (
                {},
                {"schedule": {"cron": "* * * * *"}},
                "Monitor schedule must not run more often than every 5 minutes",
            ),
        ],
    )
    def test_patch_is_refused(self, api, created: dict[str, Any], patch: dict[str, Any], text: str) -> None:
        monitor = api.create(**created)
        response = api.patch(monitor["id"], **patch)
        assert response.status_code == 400
        assert response.json()["error"].startswith(text)
        assert api.get(monitor["id"]) == monitor

    @pytest.mark.rule("monitor-clear-goal")
    def test_goal_can_go_when_judging_goes_with_it(self, api) -> None:
        monitor = api.create(targets=[search_target()], goal="g")
        after = api.patch(monitor["id"], goal=None, judgeEnabled=False).json()["data"]
        assert (after["goal"], after["judgeEnabled"]) == (None, False)

    @pytest.mark.rule("monitor-delete")
    def test_delete_is_soft(self, sandbox, api) -> None:
        monitor = api.create()
        path = f"/v2/monitor/{monitor['id']}"
        assert api.http.delete(path).json() == {"success": True}
        for method, rest in (
            ("GET", ""),
            ("PATCH", ""),
            ("DELETE", ""),
            ("POST", "/run"),
            ("GET", "/checks"),
        ):
            response = api.http.request(method, path + rest, json={"name": "x"})
            assert (response.status_code, response.json()["error"]) == (404, "Monitor not found")
        assert api.http.get("/v2/monitor").json()["data"] == []
        assert [item["status"] for item in sandbox.control.state()["monitors"]] == ["deleted"]
        sandbox.control.advance(7200)
        assert sandbox.control.state()["checks"] == []

    @pytest.mark.rule("ids", "monitor-get")
    @pytest.mark.parametrize("rest", ["", "/run", "/checks", "/checks/11111111-2222-4333-8444-555555555555"])
    def test_unknown_and_malformed_ids(self, api, rest: str) -> None:
        method = "POST" if rest == "/run" else "GET"
        unknown = api.http.request(method, f"/v2/monitor/{uuid.uuid4()}{rest}")
        malformed = api.http.request(method, f"/v2/monitor/abc{rest}")
        assert (unknown.status_code, malformed.status_code) == (404, 400)
        assert "Invalid job ID format" in malformed.json()["error"]

    def test_a_check_belongs_to_its_monitor(self, api) -> None:
        one, other = api.create(), api.create()
        check = api.run(one["id"])
        response = api.http.get(f"/v2/monitor/{other['id']}/checks/{check['id']}")
        assert (response.status_code, response.json()["error"]) == (404, "Check not found")


class TestRun:
    @pytest.mark.rule("monitor-current-check", "monitor-last-check", "monitor-run", "check-running")
    def test_states_of_a_check(self, sandbox, api) -> None:
        sandbox.control.configure(queue_seconds=10, check_seconds=30)
        monitor = api.create()["id"]
        started = api.http.post(f"/v2/monitor/{monitor}/run").json()
        assert (started["data"]["status"], started["data"]["trigger"]) == ("queued", "manual")
        assert started["data"]["id"] == started["id"]
        assert api.get(monitor)["currentCheckId"] is None
        sandbox.control.advance(10)
        running = api.check(monitor, started["id"])
        assert (running["status"], running["billingStatus"], running["reservedCredits"]) == (
            "running",
            "reserved",
            1,
        )
        assert running["startedAt"]
        assert running["finishedAt"] is None
        assert api.get(monitor)["currentCheckId"] == started["id"]
        refused = api.http.post(f"/v2/monitor/{monitor}/run")
        assert (refused.status_code, refused.json()["checkId"]) == (409, started["id"])
        sandbox.control.advance(30)
        done = api.check(monitor, started["id"])
        assert (done["status"], done["billingStatus"], done["actualCredits"]) == ("completed", "confirmed", 1)
        after = api.get(monitor)
        assert after["currentCheckId"] is None
        assert after["lastRunAt"] == done["finishedAt"]
        assert after["lastCheckSummary"] == done["summary"] == summary(new=1)

    @pytest.mark.rule("monitor-run-twice")
    def test_a_second_run_before_the_first_has_started(self, sandbox, api) -> None:
        sandbox.control.configure(queue_seconds=10)
        monitor = api.create()["id"]
        ids = [api.http.post(f"/v2/monitor/{monitor}/run").json()["id"] for _ in range(2)]
        sandbox.control.advance(10)
        assert [check["id"] for check in api.checks(monitor)] == ids[::-1]
        assert {check["status"] for check in api.checks(monitor)} == {"completed"}

    @pytest.mark.rule("monitor-run-conflict")
    def test_paused(self, sandbox, api) -> None:
        monitor = api.create()["id"]
        api.patch(monitor, status="paused")
        refused = api.http.post(f"/v2/monitor/{monitor}/run")
        assert refused.status_code == 409
        assert "checkId" not in refused.json()
        sandbox.control.advance(3 * 3600)
        assert api.checks(monitor) == []

    @pytest.mark.rule("monitor-current-check", "monitor-next-run")
    def test_scheduled(self, sandbox, api) -> None:
        monitor = api.create(schedule={"cron": "*/30 * * * *"})
        sandbox.control.advance(5400)
        checks = api.checks(monitor["id"])
        assert [check["trigger"] for check in checks] == ["scheduled"] * 3
        assert checks[-1]["scheduledFor"] == monitor["nextRunAt"]
        assert api.get(monitor["id"])["nextRunAt"] > checks[0]["scheduledFor"]

    @pytest.mark.rule("monitor-last-check", "check-skipped-overlap")
    def test_skipped_while_the_one_before_runs(self, sandbox, api) -> None:
        sandbox.control.configure(check_seconds=2400)
        created = api.create(schedule={"cron": "*/30 * * * *"})
        monitor = created["id"]
        first, now = (
            datetime.fromisoformat(text.replace("Z", "+00:00"))
            for text in (created["nextRunAt"], sandbox.control.state()["now"])
        )
        sandbox.control.advance((first - now).total_seconds() + 1801)
        skipped = api.checks(monitor)[0]
        assert skipped["status"] == "skipped_overlap"
        assert skipped["error"]
        assert skipped["finishedAt"]
        assert api.get(monitor)["lastCheckSummary"] == SUMMARY

    @pytest.mark.rule("check-skipped-no-credits")
    def test_skipped_without_credits(self, sandbox, api) -> None:
        monitor = api.create()["id"]
        sandbox.control.configure(credits=0)
        sandbox.control.advance(3600)
        assert [check["status"] for check in api.checks(monitor)] == ["skipped_no_credits"]

    @pytest.mark.rule("monitor-next-run")
    def test_paused_during_a_check(self, sandbox, api) -> None:
        sandbox.control.configure(check_seconds=60)
        monitor = api.create()["id"]
        api.http.post(f"/v2/monitor/{monitor}/run")
        sandbox.control.settle()
        paused = api.patch(monitor, status="paused").json()["data"]
        assert paused["nextRunAt"]
        sandbox.control.advance(60)
        assert api.get(monitor)["nextRunAt"] is None
        resumed = api.patch(monitor, status="active").json()["data"]
        assert resumed["nextRunAt"]
        sandbox.control.advance(3600)
        assert len(api.checks(monitor)) == 2

    def test_failed_by_a_fault(self, sandbox, api) -> None:
        monitor = api.create()["id"]
        sandbox.control.add_fault("fail_check")
        check = api.run(monitor)
        assert (check["status"], check["billingStatus"], check["pages"]) == ("failed", "released", [])
        assert check["error"]
        assert api.run(monitor)["status"] == "completed"

    @pytest.mark.rule("check-stale")
    def test_running_too_long(self, sandbox, api) -> None:
        sandbox.control.configure(check_seconds=4000)
        monitor = api.create()["id"]
        check = api.http.post(f"/v2/monitor/{monitor}/run").json()["id"]
        sandbox.control.advance(3600)
        assert api.check(monitor, check)["error"] == "Monitor check exceeded the running timeout."

    def test_deleted_during_a_check(self, sandbox, api) -> None:
        sandbox.control.configure(check_seconds=60)
        monitor = api.create(webhook={"url": "http://127.0.0.1:9/x"})["id"]
        api.http.post(f"/v2/monitor/{monitor}/run")
        sandbox.control.settle()
        api.http.delete(f"/v2/monitor/{monitor}")
        sandbox.control.advance(60)
        assert [check["status"] for check in sandbox.control.state()["checks"]] == ["failed"]
        assert sandbox.control.deliveries() == []

    @pytest.mark.rule("credits-balance")
    @pytest.mark.parametrize("call", ["create", "update", "run"])
    def test_a_credit_is_needed(self, sandbox, api, call: str) -> None:
        monitor = api.create()["id"]
        sandbox.control.configure(credits=0)
        response = {
            "create": lambda: api.http.post(
                "/v2/monitor",
                json={
                    "name": "x",
                    "schedule": {"text": "hourly"},
                    "targets": [{"type": "scrape", "urls": [LEVELS]}],
                },
            ),
            "update": lambda: api.patch(monitor, name="x"),
            "run": lambda: api.http.post(f"/v2/monitor/{monitor}/run"),
        }[call]()
        assert response.status_code == 402
        assert response.json()["error"].startswith("Insufficient credits")


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

    @pytest.mark.parametrize(
        ("before", "after", "line"),
        [("a", "a\n\n--- b", "+--- b"), ("a\n\n++ c", "a", "-++ c")],
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
    @pytest.mark.parametrize(
        ("setup", "status", "code", "check_status"),
        [
            (lambda c, url: c.set_page(url, "<p>gone wrong</p>", status=500), "changed", 500, "completed"),
            (lambda c, url: c.delete_page(url), "changed", 404, "completed"),
            (lambda c, url: c.set_page(url, "<p>x</p>", error="SCRAPE_SSL_ERROR"), "error", None, "partial"),
        ],
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
    @pytest.mark.parametrize(
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
    @pytest.mark.parametrize(("kept", "status"), [(True, "same"), (False, "new")])
    def test_history_goes_with_the_id_of_the_target(self, api, kept: bool, status: str) -> None:
        monitor = api.create()
        api.run(monitor["id"])
        (target,) = monitor["targets"]
        sent = target if kept else {name: value for name, value in target.items() if name != "id"}
        patched = api.patch(monitor["id"], targets=[sent]).json()["data"]
        assert (patched["targets"][0]["id"] == target["id"]) is kept
        assert statuses(api.run(monitor["id"]))[LEVELS] == status

    @pytest.mark.rule("monitor-judge", "check-judgment", "check-cost-judge")
    @pytest.mark.parametrize(
        ("text", "meaningful"), [("The flood mark was passed.", True), ("Painted the gauge.", False)]
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
    @pytest.mark.parametrize(
        ("modes", "price", "around", "status", "text"),
        [
            (["json"], 15, "x", "changed", False),
            (["json"], 12, "y", "same", False),
            (["json", "git-diff"], 12, "y", "changed", True),
            (["json", "git-diff"], 15, "x", "changed", True),
            (["json", "git-diff"], 12, "x", "same", False),
        ],
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

    def test_json_mode_with_broken_data_on_the_page(self, sandbox, api) -> None:
        sandbox.control.set_page(LEVELS, '<script type="application/ld+json">{broken</script>')
        options = {"formats": [{"type": "changeTracking", "modes": ["json"]}]}
        check = api.run(
            api.create(targets=[{"type": "scrape", "urls": [LEVELS], "scrapeOptions": options}])["id"]
        )
        assert (check["status"], check["pages"][0]["status"]) == ("partial", "error")

    def test_json_mode_without_data_on_the_page(self, api) -> None:
        options = {"formats": [{"type": "changeTracking", "modes": ["json"]}]}
        check = api.run(
            api.create(targets=[{"type": "scrape", "urls": [LEVELS], "scrapeOptions": options}])["id"]
        )
        assert "JSON-LD" in check["pages"][0]["error"]


class TestCrawlTarget:
    HOST = "https://tree.example"

    def grow(self, sandbox, *paths: str) -> None:
        links = "".join(f'<a href="/{path}">{path}</a>' for path in paths)
        sandbox.control.set_page(self.HOST, f'<p>root</p>{links}<a href="https://river.example/">away</a>')
        for path in paths:
            sandbox.control.set_page(f"{self.HOST}/{path}", f'<p>{path}</p><a href="/{path}/leaf">leaf</a>')
            sandbox.control.set_page(f"{self.HOST}/{path}/leaf", "<p>leaf</p>")

    @pytest.mark.rule("target-crawl-options", "check-cost-pages")
    @pytest.mark.parametrize(
        ("options", "found"),
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
    @pytest.mark.parametrize("options", [{"limit": "many"}, {"includePaths": ["("]}, {"maxDepth": "deep"}])
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
    @pytest.mark.parametrize(
        ("age", "window", "found"),
        [
            (0, "5m", 1),
            (301, "5m", 0),
            (301, "15m", 1),
            (3601, "1h", 0),
            (3601, "6h", 1),
            (86_401, "24h", 0),
            (86_401, "7d", 1),
        ],
    )
    def test_window(self, sandbox, api, age: int, window: str, found: int) -> None:
        news(sandbox, 1)
        sandbox.control.advance(age)
        monitor = api.create(targets=[search_target(searchWindow=window)], judgeEnabled=False)["id"]
        assert len(api.run(monitor)["pages"]) == found

    @pytest.mark.rule("target-max-results", "target-domains", "check-cost-search")
    @pytest.mark.parametrize(
        ("fields", "pages", "credits"),
        [
            ({}, 10, 4),
            ({"queries": ["zeppelin", "report"]}, 10, 4),
            ({"queries": ["zeppelin", "report"], "maxResults": 20}, 12, 8),
            ({"maxResults": 3}, 3, 2),
            ({"includeDomains": ["other.example"]}, 0, 0),
            ({"excludeDomains": ["sky.example"]}, 0, 0),
        ],
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


class TestPages:
    URLS = tuple(f"https://many.example/{number}" for number in range(7))

    @pytest.fixture
    def check(self, sandbox, api) -> str:
        """Return the path of a check with four unchanged and three changed pages."""
        for url in self.URLS:
            sandbox.control.set_page(url, "<p>x</p>")
        monitor = api.create(targets=[{"type": "scrape", "urls": list(self.URLS)}])["id"]
        api.run(monitor)
        for url in self.URLS[4:]:
            sandbox.control.set_page(url, "<p>y</p>")
        return f"/v2/monitor/{monitor}/checks/{api.run(monitor)['id']}"

    @pytest.mark.rule("check-get")
    @pytest.mark.parametrize(
        ("query", "sizes", "total"),
        [
            ("", [7], 7),
            ("?limit=7", [7], 7),
            ("?limit=3", [3, 3, 1], 7),
            ("?limit=3&skip=3", [3, 1], 4),
            ("?status=changed&limit=2", [2, 1], 3),
            ("?status=same", [4], 4),
            ("?status=error", [0], 0),
            ("?skip=99", [0], 0),
        ],
    )
    def test_next_leads_through_all(self, api, check: str, query: str, sizes: list[int], total: int) -> None:
        seen, found, following = [], [], check + query
        while following:
            answer = api.http.get(following).json()
            seen.append(len(answer["data"]["pages"]))
            found.extend(page["url"] for page in answer["data"]["pages"])
            following = answer.get("next")
            assert answer["data"].get("next") == following
            assert following is None or following.startswith(f"{api.sandbox.url}/v2/monitor/")
        assert seen == sizes
        assert len(set(found)) == total

    @pytest.mark.rule("check-get")
    @pytest.mark.parametrize("query", ["limit=0", "limit=101", "skip=-1", "status=odd"])
    def test_query_is_checked(self, api, check: str, query: str) -> None:
        assert api.http.get(f"{check}?{query}").status_code == 400

    @pytest.mark.rule("check-list")
    @pytest.mark.parametrize(
        ("query", "count"),
        [("", 2), ("?limit=1", 1), ("?offset=1", 1), ("?status=completed", 2), ("?status=failed", 0)],
    )
    def test_list_of_checks(self, api, check: str, query: str, count: int) -> None:
        answer = api.http.get(f"{check.rsplit('/', 1)[0]}{query}").json()
        assert len(answer["data"]) == count
        assert all("pages" not in item for item in answer["data"])
        assert "next" not in answer
