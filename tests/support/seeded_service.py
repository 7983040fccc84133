# SPDX-License-Identifier: Apache-2.0
"""Sixteen days of the service for `seed`: monitors with checks, jobs of the last day, and the team's credits.

A sandbox lives through them by its control API and leaves its state in a file, from which another sandbox continues.
Its clock starts in the past, and ends at the present.
"""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import mock

import httpx

from tests.support.service import JOB_PATHS
from tests.support.waiting import PATIENCE
from webdata_sandbox.server import SandboxServer
from webdata_sandbox.state.core import Core
from webdata_sandbox.state.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webdata_sandbox.control import SandboxControl

DAYS = 16
SEED = 38
PLAN = 100_000
"""The team's credits of a billing period, which began with the first day."""

SHOP, BOARD = "kettleworld.example", "tenders.example"
DOCS, CATALOG, EXPORT = "docs.lakehouse.example", "parts-supply.example", "export.parts-supply.example"
ROASTS = ("house-blend", "espresso-roast", "decaf", "single-origin-yirgacheffe")
JOB_ERRORS = {
    "fail_agent": "The page did not load within 60 seconds.",
    "fail_crawl": "The site refused every request: HTTP 403.",
}
"""Errors of the failed jobs, by fault."""
GUIDES = ("install", "connectors", "scheduling", "retries", "lineage", "quality", "costs")


@dataclass(frozen=True)
class Check:
    """A check of a monitor, as the rows of the task that waited for it need it."""

    id: str
    at: float
    status: str
    summary: dict[str, int]
    credits: float
    pages: list[tuple[str, str]] = field(default_factory=list)
    """URL and status of each page that is not the same."""


@dataclass(frozen=True)
class Job:
    """A job of the last day, as the rows of the task that waited for it need it.

    :param ended: None: it still runs.
    """

    kind: str
    id: str
    started: float
    ended: float | None
    pages: int
    credits: float


@dataclass(frozen=True)
class Service:
    """What the service knows.

    :param monitors: ids by name.
    :param checks: by the monitor's name, oldest first.
    :param jobs: by role; see `_Days`.
    """

    monitors: dict[str, str] = field(default_factory=dict)
    checks: dict[str, list[Check]] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON."""
        return asdict(self)

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Service:
        """Return what `as_dict` returned."""
        checks = {name: [Check(**one) for one in found] for name, found in stored["checks"].items()}
        jobs = {role: Job(**one) for role, one in stored["jobs"].items()}
        return cls(stored["monitors"], checks, jobs)


def live(state: Path, now: datetime, webhook_url: str = "", webhook_secret: str = "") -> Service:
    """Let a sandbox live through the days up to `now`.

    :param state: file for its state, which does not exist yet.
    :param webhook_url: address of the inbox to which the monitors report from now on; empty: they do not.
    :param webhook_secret: secret header of these reports.
    """
    start = (now - timedelta(days=DAYS)).timestamp()
    with (
        mock.patch.object(Core, "_stored_time", return_value=start),
        SandboxServer(state=str(state), settle=True, credits=PLAN) as sandbox,
        httpx.Client(
            base_url=sandbox.url, headers={"Authorization": f"Bearer {sandbox.api_key}"}, timeout=PATIENCE
        ) as client,
    ):
        days = _Days(sandbox.control, client, start, now.timestamp())
        service = days.live()
        if webhook_url:
            _report(client, service, webhook_url, webhook_secret)
    with closing(Store(str(state))) as store:
        for role, (kind, job_id) in days.begun.items():
            service.jobs[role] = _job(kind, store.get(kind, job_id) or {})
        for checks in service.checks.values():
            for check in checks:
                results = store.list("result", parent=check.id)
                check.pages[:] = [(one["url"], one["status"]) for one in results if one["status"] != "same"]
    return service


def spend(state: Path, credits: float) -> None:
    """Let the team spend more credits, as DAGs and others did by calls that no sandbox received."""
    with closing(Store(str(state))) as store:
        found = store.get("meta", "credits") or {}
        found["remaining"] -= round(credits)
        store.put("meta", "credits", found)


class _Days:
    """Sixteen days of a sandbox.

    :ivar begun: kind and id of the last day's jobs, by role.
    """

    def __init__(self, control: SandboxControl, client: httpx.Client, start: float, end: float) -> None:
        self._control, self._client = control, client
        self._start, self._now, self._end = start, start, end
        self._random = random.Random(SEED)
        self._found = Service()
        self.begun: dict[str, tuple[str, str]] = {}
        self._prices = dict(zip(ROASTS, (11.90, 13.50, 12.20, 18.40), strict=True))
        self._releases = 0
        self._pages: dict[str, dict[str, Any]] = {}
        self._guides = list(GUIDES[:4])

    def live(self) -> Service:
        self._control.set_site(DOCS, pages=40, fanout=8, size=900, fail_every=8)
        self._control.set_site(CATALOG, pages=1200, fanout=20, size=600)
        self._control.set_site(EXPORT, pages=90, fanout=20, size=600)
        self._control.set_site(SHOP, pages=36, size=400)
        self._control.configure(check_seconds=40)
        for day in range(DAYS):
            self._change_pages(day)
            if day == 1:
                self._declare()
            if day == DAYS - 5:
                self._control.add_fault("fail_check")
            self._advance_to(self._start + (day + 1) * 86400 if day < DAYS - 1 else self._end - 23 * 3600)
        self._run_jobs()
        for name, monitor_id in self._found.monitors.items():
            listed = self._client.get(f"/v2/monitor/{monitor_id}/checks", params={"limit": 100}).json()[
                "data"
            ]
            self._found.checks[name] = [
                Check(
                    one["id"],
                    _time(one["finishedAt"]),
                    one["status"],
                    one["summary"],
                    one["actualCredits"],
                )
                for one in reversed(listed)
            ]
        return self._found

    def _advance_to(self, when: float) -> None:
        self._control.advance(max(when - self._now, 0))
        self._now = when

    def _change_pages(self, day: int) -> None:
        draw = self._random
        for roast in ROASTS:
            if day == 0 or draw.random() < 0.4:
                self._prices[roast] = round(self._prices[roast] * draw.choice((0.9, 0.95, 1.05, 1.1)), 2)
            name, price = roast.replace("-", " ").title(), self._prices[roast]
            stock = "In stock" if draw.random() < 0.8 else "Sold out"
            url = f"https://{SHOP}/{roast}"
            text = f"# {name}\n\n250 g: {price:.2f} EUR\n\n{stock}. Shipped in two days.\n\nRoasted in Hamburg.\n"
            self._set(
                url, markdown=text, json={"name": name, "price": price, "available": stock == "In stock"}
            )
        if day % 3 == 0:
            self._releases += 1
        if day in (5, 9, 12):
            self._guides.append(GUIDES[len(self._guides)])
        if day == 14:
            self._delete(f"https://{DOCS}/guide/{self._guides.pop(1)}")
        for guide in self._guides:
            version = f"2.{self._releases}" if guide in ("install", "connectors") else "2.0"
            self._set(
                f"https://{DOCS}/guide/{guide}",
                markdown=f"# {guide.title()}\n\nApplies to release {version}.\n\nRun it, then check the log.\n",
            )
        listed = "".join(f'<li><a href="/guide/{guide}">{guide.title()}</a></li>' for guide in self._guides)
        self._set(
            f"https://{DOCS}/guide/",
            html=f"<h1>Guide</h1><p>Pick a chapter.</p><ul>{listed}</ul>",
            title="Guide",
        )
        tenders = "".join(f"- Road bridge, lot {lot}: open\n" for lot in range(1 + day // 2, 4 + day // 2))
        self._set(f"https://{BOARD}/bridges", markdown=f"# Bridges\n\n{tenders}")
        self._set(f"https://{BOARD}/archive", markdown="# Archive\n\nNothing is archived.\n")
        if day == 7:
            self._set(f"https://{BOARD}/archive", markdown="", error="SCRAPE_DNS_RESOLUTION_ERROR")

    def _set(self, url: str, **page: Any) -> None:
        if self._pages.get(url) != page:
            self._pages[url] = page
            self._control.set_page(url, **page)

    def _delete(self, url: str) -> None:
        del self._pages[url]
        self._control.delete_page(url)

    def _declare(self) -> None:
        price = {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "price": {"type": "number"},
                "available": {"type": "boolean"},
            },
        }
        tracking = {"type": "changeTracking", "modes": ["git-diff", "json"], "schema": price}
        self._monitor(
            "Competitor prices",
            "15 5 * * *",
            {
                "type": "scrape",
                "urls": [f"https://{SHOP}/{roast}" for roast in ROASTS],
                "scrapeOptions": {"formats": ["markdown", tracking]},
            },
            goal="Report a new price of 250 g, or a roast that is sold out",
        )
        self._monitor(
            "Lakehouse docs",
            "30 4 * * *",
            {
                "type": "crawl",
                "url": f"https://{DOCS}/guide/",
                "crawlOptions": {"limit": 12, "includePaths": ["^/guide/"]},
            },
        )
        self._monitor(
            "Bridge tenders",
            "0 6 * * *",
            {"type": "scrape", "urls": [f"https://{BOARD}/bridges", f"https://{BOARD}/archive"]},
            goal="A lot for a bridge was opened or closed",
        )

    def _monitor(self, name: str, cron: str, target: dict[str, Any], **more: Any) -> None:
        body = {"name": name, "schedule": {"cron": cron}, "targets": [target], **more}
        self._found.monitors[name] = self._post("/v2/monitor", body)["data"]["id"]

    def _run_jobs(self) -> None:
        """Run the jobs of the last day."""
        shop = [f"https://{SHOP}/p/{number}" for number in range(1, 37)]
        schema = {
            "type": "object",
            "properties": {"name": {"type": "string"}, "founded": {"type": "integer"}},
        }
        company = "https://about.kettleworld.example/"
        self._control.set_page(company, markdown="# About us\n\nKettle World was founded in 1987.\n")
        # Role, hours before the end, kind, request, seconds of each page or step, and a fault.
        plan: list[tuple[str, float, str, dict[str, Any], dict[str, float], str]] = [
            ("cancelled", 22, "crawl", {"url": f"https://{CATALOG}/", "limit": 400}, {"page_seconds": 5}, ""),
            (
                "profile",
                0.49,
                "agent",
                {"prompt": "When was Kettle World founded?", "urls": [company], "schema": schema},
                {"step_seconds": 20},
                "",
            ),
            (
                "agent",
                0.45,
                "agent",
                {"prompt": "Who leads Kettle World, and since when?", "urls": [company]},
                {"step_seconds": 30},
                "fail_agent",
            ),
            ("docs", 4.99, "crawl", {"url": f"https://{DOCS}/", "limit": 41}, {"page_seconds": 3}, ""),
            ("prices", 2.99, "batch_scrape", {"urls": shop}, {"page_seconds": 4}, ""),
            (
                "lost",
                2,
                "crawl",
                {"url": f"https://{DOCS}/", "limit": 41},
                {"page_seconds": 30},
                "fail_crawl",
            ),
            (
                "catalog",
                59.5 / 60,
                "crawl",
                {"url": f"https://{CATALOG}/", "limit": 1200, "delay": 60},
                {},
                "",
            ),
            ("export", 16 / 60, "crawl", {"url": f"https://{EXPORT}/", "limit": 90, "delay": 60}, {}, ""),
        ]
        steps: list[tuple[float, Callable[[], None]]] = [
            (self._end - hours * 3600, partial(self._begin, role, kind, request, seconds, fault))
            for role, hours, kind, request, seconds, fault in plan
        ]
        steps.append((self._end - 22 * 3600 + 240, lambda: self._cancel("cancelled")))
        for when, step in sorted(steps, key=lambda one: one[0]):
            self._advance_to(when)
            step()
        self._advance_to(self._end)

    def _begin(
        self, role: str, kind: str, request: dict[str, Any], seconds: dict[str, float], fault: str
    ) -> None:
        self._control.configure(**{"page_seconds": 0.0, "step_seconds": 0.0, **seconds})
        if fault:
            self._control.add_fault(fault, body=JOB_ERRORS[fault])
        self.begun[role] = (kind, self._post(JOB_PATHS[kind], request)["id"])

    def _cancel(self, role: str) -> None:
        kind, job_id = self.begun[role]
        self._client.delete(f"{JOB_PATHS[kind]}/{job_id}").raise_for_status()

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._client.post(path, json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found


def _job(kind: str, stored: dict[str, Any]) -> Job:
    ended = stored["finishedAt"]
    return Job(
        kind,
        stored["id"],
        _time(stored["createdAt"]),
        None if ended is None else _time(ended),
        stored.get("completed", 0),
        billed(stored),
    )


def billed(job: dict[str, Any]) -> float:
    """Return the credits of a stored job; those of a free agent run are not billed."""
    return 0 if job.get("free") else float(job["spent"])


def _time(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _report(client: httpx.Client, service: Service, url: str, secret: str) -> None:
    """Let the monitors report to an inbox."""
    for name, monitor_id in service.monitors.items():
        webhook = {
            "url": f"{url}/{monitor_id[:8]}",
            "headers": {"X-WebData-Webhook-Secret": secret},
            "events": ["monitor.check.completed", "monitor.page"],
            "metadata": {"monitor": name},
        }
        client.patch(f"/v2/monitor/{monitor_id}", json={"webhook": webhook}).raise_for_status()
