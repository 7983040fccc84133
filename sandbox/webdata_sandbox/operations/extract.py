# SPDX-License-Identifier: Apache-2.0
"""Extract jobs: structured data from pages, without a language model (see ``engine/structured_data.py``)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from webdata_sandbox.engine.admission import refuse_unsupported
from webdata_sandbox.engine.structured_data import missing
from webdata_sandbox.reference.prices import TOKENS_PER_CREDIT
from webdata_sandbox.reference.profiles import NO_KEY
from webdata_sandbox.reference.urls import host_of, in_domain

from .call import Reply
from .endpoint import Endpoint
from .step_jobs import BALANCE, JobFailedError, StepJobs
from .validation import split_urls, valid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.reference.wire import Json

    from .call import Call

LETTERS_PER_TOKEN = 4
SEARCHED_PAGES = 3
SITE_PAGES = 100
SITE = "/*"


class Extract(StepJobs):
    """Handles extract requests."""

    kind: ClassVar[str] = "extract"
    not_found: ClassVar[str] = "Extract job not found"

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint("POST", "/v2/extract", self.start, "agent", activity="extract", target="urls"),
            Endpoint("GET", "/v2/extract/{id}", self.status, "agent-status"),
        ]

    async def start(self, call: Call) -> Reply:
        """Start a job."""
        profile = self._settings.profile
        body = valid("extract", call.body, profile)
        if "threatProtection" in body:
            self._settings.require_entitlement("threatProtection")
        if profile.prompts:
            refuse_unsupported(body.get("scrapeOptions", {}))
        lenient = body.get("ignoreInvalidURLs", True)
        requested, bad = split_urls(body.get("urls", []), lenient=lenient, suffix=SITE)
        self._core.credits.require(BALANCE)
        urls = self._pages(body, requested)
        job = self.begin(body, [{"action": "scrape", "input": {"url": url}} for url in urls], tokens=0)
        answer: Json = {"success": True, "id": job["id"]}
        if not profile.prompts:
            answer["urlTrace"] = []
        elif lenient:
            answer["invalidURLs"] = bad
        return Reply(200, answer)

    async def status(self, call: Call) -> Reply:
        """Return the status of a job; a failed job is HTTP 200 with ``success`` false."""
        job = self.find(call.params["id"])
        body: Json = {
            "success": job["status"] != "failed",
            "status": job["status"],
            "data": job["data"] if job["status"] == "completed" else [],
            "expiresAt": job["expiresAt"],
        }
        if job["status"] == "completed":
            body.update(tokensUsed=job["tokens"], creditsUsed=job["spent"])
            if job["request"].get("showSources"):
                body["sources"] = job["sources"]
            if job.get("warning"):
                body["warning"] = job["warning"]
        if job["error"] is not None:
            body["error"] = job["error"]
        return Reply(200, body)

    def _pages(self, body: Json, requested: list[str]) -> list[str]:
        urls: list[str] = []
        for url in requested:
            urls.extend(self._site(url, body) if url.endswith(SITE) else [url])
        if body.get("enableWebSearch") or not requested:
            urls.extend(self._index.about(body.get("prompt", ""), SEARCHED_PAGES))
        return list(dict.fromkeys(urls))

    def _site(self, url: str, body: Json) -> list[str]:
        """Return the pages under a URL that ends with ``/*``."""
        parts = urlsplit(url.removesuffix(SITE))
        host = host_of(url)
        below = body.get("includeSubdomains", True)
        found = [
            page.url
            for page in self._web
            if (page.host == host or (below and in_domain(page.host, host)))
            and urlsplit(page.url).path.startswith(parts.path)
        ]
        return sorted(found)[:SITE_PAGES]

    def perform(self, job: Json, step: Json) -> None:
        """Scrape one page."""
        if not self._settings.profile.prompts:
            raise JobFailedError(NO_KEY)
        markdown = self.visit(job, step["input"]["url"], job["request"].get("scrapeOptions", {}))
        job["tokens"] += max(TOKENS_PER_CREDIT, math.ceil(len(markdown) / LETTERS_PER_TOKEN))
        job["spent"] = math.ceil(job["tokens"] / TOKENS_PER_CREDIT)

    def complete(self, job: Json) -> None:
        """Collect the requested data."""
        if not job["known"]:
            raise JobFailedError(f"No page could be read. {' '.join(job.get('problems', []))}".strip())
        super().complete(job)
        lacking = missing(job["request"].get("schema"), job["data"])
        notes = [f"No page states: {', '.join(lacking)}."] if lacking else []
        if job.get("problems"):
            notes.append(f"Pages that could not be read: {', '.join(job['problems'])}.")
        job["warning"] = " ".join(notes)

    def outcome(self, job: Json) -> Iterator[tuple[str, Json | None]]:
        """Yield the final event."""
        if job["status"] == "failed":
            yield "failed", None
        else:
            data = {
                "success": True,
                "data": job["data"],
                "extractId": job["id"],
                "llmUsage": 0,
                "totalUrlsScraped": len(job["known"]),
                "sources": job["sources"],
            }
            yield "completed", data
