# SPDX-License-Identifier: Apache-2.0
"""Checks of monitor targets, by kind."""

from __future__ import annotations

import uuid
from collections import deque
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.prices import JSON_TRACKING, is_judging, search_cost
from webdata_sandbox.reference.rules import check as check_body
from webdata_sandbox.reference.scrape_options import format_options, tracking_modes, type_of
from webdata_sandbox.reference.urls import canonical

from .admission import refuse_unsupported
from .crawl_scope import INSIDE, Scope, links_of
from .diffs import changed_lines, diff_tree, json_diff, text_diff
from .index import Filters, Index
from .judge import judge
from .scraper import PageError, Scraped, Scraper
from .words import sentences

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .page import Page
    from .web import Web

WINDOWS = {
    "5m": timedelta(minutes=5),
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}


@dataclass(frozen=True)
class Finding:
    """A page result, its cost, and whether a search found it."""

    page: Json
    credits: int
    by_search: bool = False


class TargetRunner:
    """Scrapes or searches the pages of a target and compares them with the previous check."""

    def __init__(self, core: Core, web: Web, index: Index, scraper: Scraper) -> None:
        self._store, self._clock = core.store, core.clock
        self._web, self._index, self._scraper = web, index, scraper

    def run(self, monitor: Json, target: Json) -> tuple[list[Finding], Json]:
        """Return the findings and the item of ``targetResults``."""
        result: Json = {"targetId": target["id"], "type": target["type"]}
        if target["type"] == "search":
            return self._search(monitor, target, result)
        if target["type"] == "scrape":
            urls = list(dict.fromkeys(target["urls"]))
            findings = [self._page(monitor, target, url) for url in urls]
            result["expectedJobs"] = [finding.page["id"] for finding in findings]
            return findings, result
        urls = self._discover(target)
        findings = [self._page(monitor, target, url) for url in urls]
        findings.extend(self._gone(target, {canonical(url) for url in urls}))
        result["crawlId"] = str(uuid.uuid4())
        return findings, result

    def _page(self, monitor: Json, target: Json, url: str) -> Finding:
        page = self._result(target, url)
        try:
            scraped, extraction = self._scrape(target.get("scrapeOptions", {}), url)
        except PageError as error:
            page.update(status="error", error=f"{error.code}: {error}")
            return Finding(page, error.credits)
        except ServiceError as error:
            page.update(status="error", error=error.text)
            return Finding(page, 0)
        before = self._history(target, url)
        markdown = scraped.document["markdown"]
        page.update(currentScrapeId=scraped.id, statusCode=scraped.page.status, status="new")
        page["metadata"] = {"title": scraped.document["metadata"]["title"], "creditsUsed": scraped.credits}
        if extraction is not None:
            page["snapshot"] = {"json": extraction}
        cost = scraped.credits
        if before is not None:
            page["previousScrapeId"] = before["scrapeId"]
            page["diff"] = self._diff(target["scrapeOptions"], before, markdown, extraction)
            page["status"] = "changed" if page["diff"] else "same"
        if page["status"] == "changed" and is_judging(monitor):
            cost += 1
            page["judgment"] = judge(monitor["goal"], *_changes(page["diff"]))
        self._remember(target, url, {"scrapeId": scraped.id, "markdown": markdown, "json": extraction})
        return Finding(page, cost)

    def _scrape(self, options: Json, url: str) -> tuple[Scraped, Any]:
        """Scrape a page. Options are validated here because monitors store them without validation."""
        issues = check_body("scrapeOptions", options)
        # Monitors add markdown themselves, so change tracking does not require it in the options.
        issues = [issue for issue in issues if "changeTracking needs" not in issue.message]
        if issues:
            place = ".".join(map(str, issues[0].path))
            raise ServiceError(
                400, f"Invalid scrapeOptions: {place}: {issues[0].message}".replace(": :", ":")
            )
        tracking = format_options(options, "changeTracking") or {}
        others = [
            item for item in options.get("formats", []) if type_of(item) not in ("markdown", "changeTracking")
        ]
        options = {**options, "formats": ["markdown", *others]}
        refuse_unsupported(options)
        scraped = self._scraper.scrape(url, options, max_age=0)
        extraction = self._scraper.extraction(scraped.page, tracking)
        if extraction is None:
            return scraped, None
        # The scrape ran without the changeTracking format, so its surcharge is added here.
        return replace(scraped, credits=scraped.credits + JSON_TRACKING), extraction

    @staticmethod
    def _diff(options: Json, before: Json, markdown: str, extraction: Any) -> Json | None:
        modes = tracking_modes(options)
        text = text_diff(before["markdown"], markdown)
        if "json" not in modes:
            return {"text": text, "json": diff_tree(text)} if text else None
        fields = json_diff(before["json"], extraction)
        if "git-diff" not in modes:
            return {"json": fields} if fields else None
        return {"text": text, "json": fields} if text or fields else None

    def _discover(self, target: Json) -> list[str]:
        """Follow the links of a site breadth-first from the target's URL."""
        options = target.get("crawlOptions", {})
        limit = options.get("limit", 10_000)
        depth = options.get("maxDiscoveryDepth", options.get("maxDepth"))
        start = canonical(target["url"])
        scope = Scope(start, options)
        seen, queue = {scope.key(start)}, deque([(start, 0)])
        found: list[str] = []
        while queue and len(found) < limit:
            url, level = queue.popleft()
            page = self._web.get(url)
            if level and (page is None or not scope.wanted(url)):
                continue
            found.append(url)
            if page is None or (depth is not None and level >= depth):
                continue
            for link in links_of(self._web, url):
                if scope.position(link) == INSIDE and (key := scope.key(link)) not in seen:
                    seen.add(key)
                    queue.append((link, level + 1))
        return found

    def _gone(self, target: Json, present: set[str]) -> list[Finding]:
        """Report pages of the previous check that the crawl no longer found."""
        findings = []
        for entry in self._store.list("history", parent=target["id"]):
            if entry["url"] not in present:
                page = self._result(target, entry["url"])
                page.update(status="removed", previousScrapeId=entry["scrapeId"])
                findings.append(Finding(page, 0))
                self._store.delete("history", entry["key"])
        return findings

    def _search(self, monitor: Json, target: Json, result: Json) -> tuple[list[Finding], Json]:
        filters = Filters(
            include=tuple(target.get("includeDomains", [])), exclude=tuple(target.get("excludeDomains", []))
        )
        window, limit = WINDOWS[target["searchWindow"]], target["maxResults"]
        merged: dict[str, Page] = {}
        cost = 0
        for query in target["queries"]:
            found = self._index.published_within(query, filters, limit, window)
            cost += search_cost(len(found))
            merged.update({page.url: page for page in found})
        findings = [self._hit(monitor, target, page) for page in list(merged.values())[:limit]]
        judged = sum(finding.credits for finding in findings)
        result.update(searchCompleted=True, resultCount=len(findings), searchCredits=cost)
        result.update(judgeCredits=judged, resultsJudged=judged, judgeDegraded=False)
        result["matches"] = sum(finding.page["metadata"]["searchStatus"] == "alert" for finding in findings)
        return findings, result

    def _hit(self, monitor: Json, target: Json, found: Page) -> Finding:
        page = self._result(target, found.url)
        page["statusCode"] = found.status
        status, cost = "alert", 0
        known = self._history(target, found.url)
        judging = is_judging(monitor)
        # A verdict is valid only for the same goal and queries.
        verdict = {"goal": monitor["goal"], "queries": target["queries"]}
        if known is not None and (not judging or known["verdict"] == verdict):
            status = "already_seen"
        elif judging:
            cost = 1
            page["judgment"] = judge(monitor["goal"], [], sentences(f"{found.title}. {found.body_text}"))
            status = "alert" if page["judgment"]["meaningful"] else "ignored"
            if status == "alert" and known is not None and known["alerted"]:
                status = "already_seen"
        alerted = status == "alert" or bool(known and known["alerted"])
        page["status"] = "new" if status == "alert" else "same"
        page["metadata"] = {"title": found.title, "searchStatus": status}
        self._remember(target, found.url, {"scrapeId": None, "verdict": verdict, "alerted": alerted})
        return Finding(page, cost, by_search=True)

    def _result(self, target: Json, url: str) -> Json:
        empty = dict.fromkeys(
            (
                "previousScrapeId",
                "currentScrapeId",
                "statusCode",
                "error",
                "metadata",
                "judgment",
                "diff",
                "snapshot",
            )
        )
        now = self._clock.iso()
        return {
            "id": str(uuid.uuid4()),
            "targetId": target["id"],
            "url": url,
            "status": "new",
            **empty,
            "createdAt": now,
        }

    def _history(self, target: Json, url: str) -> Json | None:
        return self._store.get("history", f"{target['id']} {canonical(url)}")

    def _remember(self, target: Json, url: str, facts: Json) -> None:
        url = canonical(url)
        key = f"{target['id']} {url}"
        self._store.put("history", key, {"key": key, "url": url, **facts}, parent=target["id"])


def _changes(diff: Json) -> tuple[list[str], list[str]]:
    if "text" in diff:
        return changed_lines(diff["text"])
    pairs = [(path, change) for path, change in diff["json"].items()]
    removed = [f"{path}: {change['previous']}" for path, change in pairs]
    return removed, [f"{path}: {change['current']}" for path, change in pairs]
