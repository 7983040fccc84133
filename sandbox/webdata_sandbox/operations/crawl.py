# SPDX-License-Identifier: Apache-2.0
"""Crawls: jobs that follow the links of a site."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from webdata_sandbox.engine.admission import admit
from webdata_sandbox.engine.crawl_prompt import options_of_prompt
from webdata_sandbox.engine.crawl_scope import (
    EXTERNAL_HOME,
    INSIDE,
    ONE_HOP,
    Scope,
    links_of,
)
from webdata_sandbox.reference.errors import ServerEndError, ServiceError
from webdata_sandbox.reference.schema import CRAWL_OPTIONS
from webdata_sandbox.reference.urls import canonical, host_of, with_scheme

from .call import Reply
from .endpoint import Endpoint
from .page_jobs import PageJobs
from .validation import valid, valid_in_brief

if TYPE_CHECKING:
    from webdata_sandbox.engine.canned import CannedAnswers
    from webdata_sandbox.engine.scrape_store import ScrapeStore
    from webdata_sandbox.engine.web import Web
    from webdata_sandbox.engine.webhooks import Webhooks
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .call import Call

DEFAULT_LIMIT = 10_000
TEAM = "00000000-0000-4000-8000-000000000001"
DEFAULTS: Json = {
    "includePaths": [],
    "excludePaths": [],
    "sitemap": "include",
    "ignoreQueryParameters": False,
    "deduplicateSimilarURLs": True,
    "limit": DEFAULT_LIMIT,
    "crawlEntireDomain": False,
    "allowExternalLinks": False,
    "allowSubdomains": False,
    "ignoreRobotsTxt": False,
    "regexOnFullURL": False,
}
KEY_HEADER = "x-idempotency-key"
KEY_USED = "Idempotency key already used"
_KEY = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Crawl(PageJobs):
    """Handles crawl requests."""

    kind: ClassVar[str] = "crawl"
    path: ClassVar[str] = "/v2/crawl"
    not_found: ClassVar[str] = "Job not found"

    def __init__(
        self, core: Core, web: Web, canned: CannedAnswers, scrapes: ScrapeStore, webhooks: Webhooks
    ) -> None:
        super().__init__(core, canned, scrapes, webhooks)
        self._web = web

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint("POST", "/v2/crawl", self.start, "crawl", activity="crawl", target="url"),
            Endpoint("GET", "/v2/crawl/(?:active|ongoing)", self.active, "crawl-status"),
            Endpoint("POST", "/v2/crawl/params-preview", self.preview, "crawl"),
            Endpoint("GET", "/v2/crawl/{id}", self.status, "crawl-status"),
            Endpoint("DELETE", "/v2/crawl/{id}", self.cancel, "crawl-status"),
            Endpoint("GET", "/v2/crawl/{id}/errors", self.errors, "crawl-status"),
        ]

    async def start(self, call: Call) -> Reply:
        """Start a crawl."""
        self._use_key(call.headers.get(KEY_HEADER))
        profile = self._settings.profile
        body = valid("crawl", call.body, profile)
        options = {**body.get("scrapeOptions", {})}
        options["formats"] = options.get("formats") or ["markdown"]
        if body.get("zeroDataRetention"):
            options["zeroDataRetention"] = True
        admit(options, self._settings, self._canned, body["url"])
        if body.get("ignoreRobotsTxt") or body.get("robotsUserAgent"):
            self._settings.require_entitlement("robots")
        generated = self._options(body["prompt"]) if body.get("prompt") else {}
        explicit = {name: body[name] for name in CRAWL_OPTIONS if name in body}
        final = {**DEFAULTS, **generated, **explicit}
        final["limit"] = self._affordable(final["limit"])
        request = {**body, "url": with_scheme(body["url"]), "crawlerOptions": final}
        delay = final.get("delay", 0.0)
        job = self.begin(request, options, concurrency=body.get("maxConcurrency"), delay=delay)
        answer: Json = {"success": True, "id": job["id"], "url": f"{call.origin}{self.path}/{job['id']}"}
        if body.get("prompt"):
            answer.update(promptGeneratedOptions=generated, finalCrawlerOptions=final)
        return Reply(200, answer)

    async def active(self, _: Call) -> Reply:
        """List the running crawls."""
        crawls = [
            {
                "id": job["id"],
                "teamId": TEAM,
                "url": job["request"]["url"],
                "options": {**job["request"]["crawlerOptions"], "scrapeOptions": job["options"]},
                "created_at": job["createdAt"],
            }
            for job in self.running()
        ]
        return Reply(200, {"success": True, "crawls": crawls})

    async def preview(self, call: Call) -> Reply:
        """Return the crawl options that a prompt states."""
        body = valid_in_brief("crawl.params", call.body, "Invalid request parameters: ")
        options = self._options(body["prompt"])
        if "delay" in options:
            options["delay"] *= 1000  # milliseconds here, seconds in a crawl
        return Reply(200, {"success": True, "data": {"url": body["url"], **options}})

    def _options(self, prompt: str) -> Json:
        if not self._settings.profile.prompts:
            raise ServiceError(400, "The prompt could not be processed: the server has no language model.")
        return options_of_prompt(prompt)

    def first_pages(self, job: Json) -> None:
        """Add the start URL and, unless the options skip the sitemap, its URLs."""
        options = job["request"]["crawlerOptions"]
        start = canonical(job["request"]["url"])
        self._consider(job, start, 0)
        if options["sitemap"] != "skip":
            for url in self._web.sites.sitemap(host_of(start)):
                if self._full(job):
                    break
                self._consider(job, canonical(url), 0)

    def follow(self, job: Json, page: Json) -> None:
        """Follow the links of a page."""
        options = job["request"]["crawlerOptions"]
        deepest = options.get("maxDiscoveryDepth")
        too_deep = deepest is not None and page["depth"] >= deepest
        if options["sitemap"] == "only" or page["external"] or too_deep or self._full(job):
            return
        for link in links_of(self._web, page["url"]):
            if self._full(job):
                break
            self._consider(job, link, page["depth"] + 1)

    def warning(self, job: Json) -> str | None:
        """Warn about pages that robots.txt blocks, or a crawl that found at most one page."""
        if job["blocked"]:
            return f"{job['blocked']} pages were not scraped because robots.txt forbids it."
        if job["finishedAt"] is not None and job["found"] <= 1 < job["request"]["crawlerOptions"]["limit"]:
            return "The crawl found one page or none. Check the path filters, or allow the entire domain."
        return None

    def _full(self, job: Json) -> bool:
        return bool(job["found"] >= job["request"]["crawlerOptions"]["limit"])

    def _consider(self, job: Json, url: str, depth: int) -> None:
        """Add a page if the crawl options allow its URL."""
        scope = Scope(canonical(job["request"]["url"]), job["request"]["crawlerOptions"])
        position = scope.position(url)
        if position == EXTERNAL_HOME and scope.wanted(url):
            if self._is_first(job, url):
                self.add_error(job, url, "EXTERNAL_LINK", "Home pages of other sites are not crawled.")
            return
        if position not in (INSIDE, ONE_HOP) or not scope.wanted(url):
            return
        robot = scope.robot()
        if robot is not None and not self._web.sites.allows(url, robot):
            if self._is_first(job, url):
                self._store.put(f"{self.kind}-blocked", f"{job['id']} {url}", {"url": url}, parent=job["id"])
                job["blocked"] += 1
                if url == canonical(job["request"]["url"]):
                    self.add_error(job, url, "CRAWL_DENIAL", "robots.txt forbids the start URL.")
            return
        page = self._web.get(url) if self._settings.profile.exact_slashes else None
        address = page.address if page else url
        self.add(job, scope.key(url), {"url": address, "depth": depth, "external": position == ONE_HOP})

    def _is_first(self, job: Json, url: str) -> bool:
        name = f"{job['id']} {url}"
        known = self._store.get(f"{self.kind}-passed", name) is not None
        self._store.put(f"{self.kind}-passed", name, {}, parent=job["id"])
        return not known

    def _affordable(self, limit: int) -> int:
        """Cap the limit at the remaining credits.

        :raises ServiceError: 402: the team has too few credits.
        """
        credits = self._core.credits
        credits.require(limit if self._quirks.on("limit-refused") else 1)
        free = self._quirks.on("pay-as-you-go") or not self._settings.profile.bills
        return limit if free else min(limit, credits.remaining)

    def _use_key(self, key: str | None) -> None:
        """Consume an idempotency key.

        :raises ServiceError: 409: the key was used before or is not a UUID.
        :raises ServerEndError: the server does not survive a key.
        """
        if key is None:
            return
        if not _KEY.fullmatch(key) or self._store.get("idempotency", key) is not None:
            raise ServiceError(409, KEY_USED)
        if not self._settings.profile.keys:
            raise ServerEndError
        self._store.put("idempotency", key, {})
