# SPDX-License-Identifier: Apache-2.0
"""Scrape: one page in one call."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from webdata_sandbox.engine.admission import admit
from webdata_sandbox.engine.formats import PAGE_BREAK
from webdata_sandbox.engine.providers import found_tools
from webdata_sandbox.engine.scraper import PageError
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.scrape_options import options_of
from webdata_sandbox.reference.urls import with_scheme
from webdata_sandbox.state.processing import TIMED_OUT

from .call import Reply
from .endpoint import Endpoint
from .validation import valid

if TYPE_CHECKING:
    from webdata_sandbox.engine.canned import CannedAnswers
    from webdata_sandbox.engine.page import Page
    from webdata_sandbox.engine.scrape_store import ScrapeStore
    from webdata_sandbox.engine.web import Web
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core
    from webdata_sandbox.state.processing import Processing

    from .call import Call
    from .providers import Providers

DEFAULT_TIMEOUT = 60_000
NO_JOB = "Job not found."
STATUSES = {
    code: status
    for status, codes in {
        400: ("SCRAPE_ACTIONS_NOT_SUPPORTED", "SCRAPE_JSON_CONTENT_TOO_LARGE"),
        403: (
            *("SCRAPE_MEDIA_ACCESS_DENIED", "SCRAPE_PROMPT_INJECTION_DETECTED"),
            *("SAFE_MODE_BLOCKED", "UNSUPPORTED_SITE"),
        ),
        408: ("SCRAPE_TIMEOUT", "CONCURRENCY_QUEUE_TIMEOUT"),
    }.items()
    for code in codes
}
"""HTTP status of a failed page by error code; 500 for other codes."""


class Scrape:
    """Handles ``POST /v2/scrape`` and ``GET /v2/scrape/{id}``."""

    def __init__(
        self,
        core: Core,
        web: Web,
        canned: CannedAnswers,
        scrapes: ScrapeStore,
        processing: Processing,
        providers: Providers,
    ) -> None:
        self._core, self._web, self._canned = core, web, canned
        self._scrapes, self._processing, self._providers = scrapes, processing, providers

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint(
                "POST", "/v2/scrape", self.scrape, "scrape", keyless=True, activity="scrape", target="url"
            ),
            Endpoint("GET", "/v2/scrape/{id}", self.status, "crawl-status"),
        ]

    async def scrape(self, call: Call) -> Reply:
        """Validate, scrape, and bill. Delegate data provider calls."""
        profile = self._core.settings.profile
        if isinstance(call.body, dict) and "alexandria" in call.body and profile.providers:
            return await self._providers.run(call)
        body = valid("scrape", call.body, profile)
        options = options_of(body)
        credits = self._core.credits
        admit(options, self._core.settings, self._canned, body["url"])
        credits.require()
        url = with_scheme(body["url"])
        if profile.longest_timeout_ms and options.get("timeout", 0) > profile.longest_timeout_ms:
            raise ServiceError(408, TIMED_OUT, code="SCRAPE_TIMEOUT")
        self._require_processed(url, options)
        try:
            scraped = self._scrapes.scrape(url, options)
        except PageError as error:
            credits.spend(error.credits)
            ok = error.code == "SCRAPE_DNS_RESOLUTION_ERROR" and self._core.quirks.on("dns-ok")
            status = 200 if ok else STATUSES.get(error.code, 500)
            raise ServiceError(status, str(error), code=error.code) from None
        except ServiceError as error:
            credits.spend(int(error.code == "SCRAPE_LOCKDOWN_CACHE_MISS"))
            raise
        credits.spend(scraped.credits)
        document = scraped.document
        if body.get("domainTools"):
            document = {**document, "tools": found_tools([url], None, body.get("toolDetail"))}
        return Reply(200, {"success": True, "data": document})

    async def status(self, call: Call) -> Reply:
        """Return the document of an earlier scrape, by any operation."""
        document = self._scrapes.document(call.params["id"])
        if document is None:
            raise ServiceError(404, NO_JOB)
        return Reply(200, {"success": True, "data": document})

    def _require_processed(self, url: str, options: Json) -> None:
        """Time out if a PDF is not processed yet."""
        page: Page | None = self._web.get(url)
        if page is None or not page.is_pdf:
            return
        key = hashlib.sha256(json.dumps([url, options], sort_keys=True).encode()).hexdigest()
        pages = len((page.markdown or "").split(PAGE_BREAK))
        timeout = options.get("timeout", DEFAULT_TIMEOUT)
        self._processing.require_done(key, self._core.settings.pdf_seconds, timeout, pages)
