# SPDX-License-Identifier: Apache-2.0
"""Monitors: their life, and what the service fills in."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from sandbox.tests.conftest import pass_the_half_hour
from tests.support.tables import each_row

from .monitor_calls import LEVELS, search_target


class TestCreate:
    @pytest.mark.rule("success-status", "monitor-status", "monitor-record")
    def test_what_comes_back(self, api) -> None:
        monitor = api.create(name="gauge", schedule={"cron": "0 * * * *"})
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
    @each_row(
        "given, stored",
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
    @each_row(
        "given, stored",
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
    @each_row(
        "fields, credits",
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
        assert (
            api.create(**{"schedule": {"cron": "0 * * * *"}, **fields})["estimatedCreditsPerMonth"] == credits
        )

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
    @each_row("query", ["limit=0", "limit=101", "limit=x", "offset=-1", "limit=", "offset=1.5"])
    def test_pagination_is_checked(self, api, query: str) -> None:
        assert api.http.get(f"/v2/monitor?{query}").status_code == 400

    @pytest.mark.rule("monitor-update", "monitor-update-goal")
    @each_row(
        "patch, changed",
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
        pass_the_half_hour(api.sandbox)
        before = api.create(name="a", schedule={"cron": "0 * * * *"})
        after = api.patch(before["id"], **patch).json()["data"]
        moving = {"updatedAt", "nextRunAt"}
        assert {k: v for k, v in after.items() if k not in moving} == {
            k: v for k, v in {**before, **changed}.items() if k not in moving
        }
        assert api.get(before["id"]) == after

    @pytest.mark.rule("monitor-search-goal", "monitor-webhook-stays", "monitor-update-empty")
    @pytest.mark.rule("monitor-clear-goal")
    @each_row(
        "created, patch, text",
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
    @each_row("rest", ["", "/run", "/checks", "/checks/11111111-2222-4333-8444-555555555555"])
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
