"""The scrape operation: one page, at once (supplement 4)."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from airflow_provider_webdata.sandbox.engine.scraper import (
    DEFAULT_MAX_AGE,
    SUMMARY_WARNING,
    PageError,
    Scraped,
    refuse_unsupported,
)
from airflow_provider_webdata.sandbox.reference.rules import format_names, with_scheme
from airflow_provider_webdata.sandbox.reference.wire import Json, Reply, ServiceError

from .validation import valid

if TYPE_CHECKING:
    from airflow_provider_webdata.sandbox.engine.page import Page
    from airflow_provider_webdata.sandbox.reference.wire import Call
    from airflow_provider_webdata.sandbox.service import Sandbox

DEFAULT_TIMEOUT = 60_000
NO_RETENTION = "Zero data retention is not enabled for your team."
NO_THREATS = "Threat Protection is not enabled for your team."
NO_JOB = "Job not found."
STATUSES = {
    code: status
    for status, codes in {
        400: ("SCRAPE_ACTIONS_NOT_SUPPORTED", "SCRAPE_JSON_CONTENT_TOO_LARGE"),
        403: ("SCRAPE_MEDIA_ACCESS_DENIED", "SCRAPE_PROMPT_INJECTION_DETECTED", "SAFE_MODE_BLOCKED"),
        408: ("SCRAPE_TIMEOUT", "CONCURRENCY_QUEUE_TIMEOUT"),
    }.items()
    for code in codes
}
"""Statuses of the codes a page can fail with; all others are 500 (supplement 17.3)."""

OPTIONS_ONLY = (
    *("url", "urls", "origin", "integration", "webhook", "maxConcurrency"),
    *("ignoreInvalidURLs", "appendToId"),
)
"""Fields of bodies that hold scrape options at the top level, and are none."""


class Scraping:
    """Answers ``POST /v2/scrape`` and ``GET /v2/scrape/{id}``, and scrapes the pages of jobs."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._store = sandbox.store

    async def scrape(self, call: Call) -> Reply:
        """Validate, scrape, bill."""
        body = valid("scrape", call.body)
        options = options_of(body)
        sandbox = self._sandbox
        self.admit(options)
        sandbox.credits.require()
        url = with_scheme(body["url"])
        self._in_time(url, options)
        try:
            scraped = self.take(url, options)
        except PageError as error:
            sandbox.credits.spend(error.credits)
            ok = error.code == "SCRAPE_DNS_RESOLUTION_ERROR" and sandbox.quirks.on("dns-ok")
            status = 200 if ok else STATUSES.get(error.code, 500)
            raise ServiceError(status, str(error), code=error.code) from None
        except ServiceError as error:
            sandbox.credits.spend(int(error.code == "SCRAPE_LOCKDOWN_CACHE_MISS"))
            raise
        sandbox.credits.spend(scraped.credits)
        return Reply(200, {"success": True, "data": scraped.document})

    async def status(self, call: Call) -> Reply:
        """Return an earlier scrape, of whatever operation."""
        kept = self._store.get("scrape", call.params["id"])
        if kept is None:
            raise ServiceError(404, NO_JOB)
        return Reply(200, {"success": True, "data": self.document(call.params["id"], kept)})

    def admit(self, options: Json) -> None:
        """Refuse what the team may not, and the sandbox cannot, do.

        :raises ServiceError: 403, or 400 ``UNSUPPORTED_IN_SANDBOX``.
        """
        granted = self._sandbox.entitlements
        if options.get("zeroDataRetention") and "zeroDataRetention" not in granted:
            raise ServiceError(403, NO_RETENTION)
        if "threatProtection" in options and "threatProtection" not in granted:
            raise ServiceError(403, NO_THREATS)
        refuse_unsupported(options, self._sandbox.media.kinds())

    def take(self, url: str, options: Json) -> Scraped:
        """Scrape a page and keep what it gave, for ``GET /v2/scrape/{id}``.

        :raises PageError: when it cannot be had.
        :raises ServiceError: when the options cannot be met for this page.
        """
        scraped = self._sandbox.scraper.scrape(url, options)
        document = scraped.document
        if "summary" in format_names(options):
            document["warning"] = SUMMARY_WARNING
        if options.get("zeroDataRetention"):
            scraped = Scraped(scraped.id, scraped.url, scraped.status_code, document, scraped.credits + 1)
            document["metadata"]["creditsUsed"] = scraped.credits
        made_again = self._sandbox.web.generates(url)
        kept = {"url": url, "options": options, "document": None if made_again else document}
        self._store.put("scrape", scraped.id, kept)
        return scraped

    def document(self, scrape_id: str, kept: Json) -> Json:
        """Return the document of a scrape that was kept; that of a generated page is made again."""
        if kept["document"] is not None:
            document: Json = kept["document"]
            return document
        again = self._sandbox.scraper.scrape(kept["url"], kept["options"], max_age=DEFAULT_MAX_AGE)
        again.document["metadata"]["scrapeId"] = scrape_id
        return again.document

    def _in_time(self, url: str, options: Json) -> None:
        """Let a PDF take its time (supplement 4.3)."""
        page: Page | None = self._sandbox.web.get(url)
        if page is None or not page.is_pdf:
            return
        key = hashlib.sha256(json.dumps([url, options], sort_keys=True).encode()).hexdigest()
        pages = len((page.markdown or "").split("\f"))
        timeout = options.get("timeout", DEFAULT_TIMEOUT)
        self._sandbox.still_working.wait(key, self._sandbox.pdf_seconds, timeout, pages)


def options_of(body: Json) -> Json:
    """Return the scrape options of a body that holds them at the top level."""
    given = {name: value for name, value in body.items() if name not in OPTIONS_ONLY}
    return {**given, "formats": given.get("formats") or ["markdown"]}
