# SPDX-License-Identifier: Apache-2.0
"""Checks of monitors: when they run, their states, and reading them."""

from __future__ import annotations

from datetime import datetime

import pytest

from sandbox.tests.conftest import pass_the_half_hour
from tests.support.tables import each_row

from .conftest import reset_sandbox
from .monitor_calls import LEVELS, SUMMARY, summary


class TestRun:
    @pytest.mark.rule("monitor-current-check", "monitor-last-check", "monitor-run", "check-running")
    def test_states_of_a_check(self, sandbox, api) -> None:
        sandbox.control.configure(queue_seconds=1000, check_seconds=3000)
        monitor = api.create()["id"]
        started = api.http.post(f"/v2/monitor/{monitor}/run").json()
        assert (started["data"]["status"], started["data"]["trigger"]) == ("queued", "manual")
        assert started["data"]["id"] == started["id"]
        assert api.get(monitor)["currentCheckId"] is None
        sandbox.control.advance(1000)
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
        sandbox.control.advance(3000)
        done = api.check(monitor, started["id"])
        assert (done["status"], done["billingStatus"], done["actualCredits"]) == ("completed", "confirmed", 1)
        after = api.get(monitor)
        assert after["currentCheckId"] is None
        assert after["lastRunAt"] == done["finishedAt"]
        assert after["lastCheckSummary"] == done["summary"] == summary(new=1)

    @pytest.mark.rule("monitor-run-twice")
    def test_a_second_run_before_the_first_has_started(self, sandbox, api) -> None:
        sandbox.control.configure(queue_seconds=1000)
        monitor = api.create()["id"]
        ids = [api.http.post(f"/v2/monitor/{monitor}/run").json()["id"] for _ in range(2)]
        sandbox.control.advance(1000)
        assert [check["id"] for check in api.checks(monitor)] == ids[::-1]
        assert {check["status"] for check in api.checks(monitor)} == {"completed"}

    @pytest.mark.rule("monitor-run-conflict")
    def test_paused(self, sandbox, api) -> None:
        monitor = api.create()["id"]
        api.patch(monitor, status="paused")
        refused = api.http.post(f"/v2/monitor/{monitor}/run")
        assert refused.status_code == 409
        assert "checkId" not in refused.json()
        sandbox.control.advance(13 * 3600)
        assert api.checks(monitor) == []

    @pytest.mark.rule("monitor-current-check", "monitor-next-run")
    def test_scheduled(self, sandbox, api) -> None:
        pass_the_half_hour(sandbox)
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
        sandbox.control.advance(12 * 3600)
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
        sandbox.control.advance(12 * 3600)
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
    @each_row("call", ["create", "update", "run"], before=reset_sandbox)
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
    @each_row(
        "query, sizes, total",
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
    @each_row("query", ["limit=0", "limit=101", "skip=-1", "status=odd"])
    def test_query_is_checked(self, api, check: str, query: str) -> None:
        assert api.http.get(f"{check}?{query}").status_code == 400

    @pytest.mark.rule("check-list")
    @each_row(
        "query, count",
        [("", 2), ("?limit=1", 1), ("?offset=1", 1), ("?status=completed", 2), ("?status=failed", 0)],
    )
    def test_list_of_checks(self, api, check: str, query: str, count: int) -> None:
        answer = api.http.get(f"{check.rsplit('/', 1)[0]}{query}").json()
        assert len(answer["data"]) == count
        assert all("pages" not in item for item in answer["data"])
        assert "next" not in answer
