# SPDX-License-Identifier: Apache-2.0
"""Scraping of the sandbox's pages through the service's cache."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.prices import page_cost
from webdata_sandbox.reference.profiles import NO_SITE
from webdata_sandbox.reference.scrape_options import format_options, pdf_parser
from webdata_sandbox.reference.timestamps import iso
from webdata_sandbox.reference.urls import canonical, host_of, is_address, is_private

from .abilities import lacking, lacks_json, omitted, within
from .change_tracking import ChangeTracker
from .formats import PAGE_BREAK, produce
from .page import Page
from .structured_data import extraction

if TYPE_CHECKING:
    from typing import Any

    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .canned import CannedAnswers
    from .web import Web

DEFAULT_MAX_AGE = 172_800_000
PLAIN_TEXT = "text/plain; charset=utf-8"
PLACEHOLDERS = {404: ("Not Found", "Not Found"), 594: ("Connection Refused", "Unknown Error")}
"""Content and error of a page that no site serves, by status: the host does not resolve, or refuses connections."""
LOCKDOWN_MAX_AGE = 2 * 365 * 86_400_000


class PageError(Exception):
    """A page cannot be scraped. ``code`` is the service's error code, ``credits`` the cost of the failure."""

    def __init__(self, code: str, text: str, credits: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.credits = credits


@dataclass(frozen=True)
class Scraped:
    """One scraped page: the page, its document, the id and cost of the scrape."""

    id: str
    page: Page
    document: Json
    credits: int


class Scraper:
    """Scrapes pages through the service's cache."""

    def __init__(self, core: Core, web: Web, canned: CannedAnswers) -> None:
        self._store, self._clock, self._quirks = core.store, core.clock, core.quirks
        self._settings = core.settings
        self._web, self._canned = web, canned
        self._tracker = ChangeTracker(core.store, core.clock)

    def scrape(self, url: str, options: Json, *, max_age: int = DEFAULT_MAX_AGE) -> Scraped:
        """Scrape one page.

        :param options: scrape options that passed validation and ``admit`` (``admission.py``).
        :param max_age: the default of ``maxAge``, in milliseconds.
        :raises PageError: the page cannot be scraped.
        :raises ServiceError: 404: the options allow only the cache, which lacks the page; 400: the page lacks a canned
            answer.
        """
        profile = self._settings.profile
        lack = lacking(options, profile)
        if lack is not None:
            raise PageError(lack.code, lack.text)
        warning, without_json = omitted(options, profile), lacks_json(options, profile)
        options = within(options, profile)
        page, cached_at = self._obtain(url, options, max_age)
        sections = (page.markdown or "").split(PAGE_BREAK) if page.is_pdf else []
        wanted = pdf_parser(options).get("maxPages")
        cost = page_cost(
            options,
            pdf_pages=len(sections[:wanted]),
            enhanced_free=self._quirks.on("enhanced-free"),
        )
        scrape_id = str(uuid.uuid4())
        required = self._canned.meet(options, page, page.url)
        document = {**produce(page, options, sections[:wanted], self._canned.get(page.url)), **required}
        if without_json:
            document["json"] = None
        if warning is not None:
            document["warning"] = warning
        tracking = format_options(options, "changeTracking")
        if tracking is not None:
            document["changeTracking"] = self._tracker.track(
                page,
                tracking,
                document["markdown"],
                self.extraction(page, tracking),
                remember=not options.get("zeroDataRetention"),
            )
        metadata = self._metadata(page, url)
        metadata.update(scrapeId=scrape_id, creditsUsed=cost)
        if profile.caches:
            metadata["cacheState"] = "hit" if cached_at else "miss"
        if cached_at:
            metadata["cachedAt"] = iso(datetime.fromtimestamp(cached_at, timezone.utc))
        if page.is_pdf:
            metadata.update(numPages=len(sections[:wanted]), totalPages=len(sections))
        document["metadata"] = metadata
        return Scraped(scrape_id, page, document, cost)

    def extraction(self, page: Page, tracking: Json) -> Any:
        """Return the data that the json mode of changeTracking compares; None in other modes.

        It contains only stated data and canned answers, because sample values never change.
        """
        if "json" not in tracking.get("modes", ()):
            return None
        canned = self._canned.get(page.url)
        return canned["json"] if "json" in canned else extraction(page, tracking.get("schema"))

    def _obtain(self, requested: str, options: Json, max_age: int) -> tuple[Page, float | None]:
        url = canonical(requested)
        if not self._settings.profile.caches and not options.get("lockdown"):
            return self._fetch(url, requested), None
        private = any(options.get(name) for name in ("headers", "actions", "profile"))
        private = private or format_options(options, "changeTracking") is not None
        entry = None if private else self._store.get("cache", url)
        age = (self._clock.now() - entry["at"]) * 1000 if entry else 0.0
        if options.get("lockdown"):
            if entry is None or age > options.get("maxAge", LOCKDOWN_MAX_AGE):
                raise ServiceError(
                    404, "The page is not in the cache and lockdown is on.", code="SCRAPE_LOCKDOWN_CACHE_MISS"
                )
            return Page(**entry["page"]), entry["at"]
        if "minAge" in options:
            if entry is None or (options["minAge"] > 1 and age < options["minAge"]):
                raise ServiceError(404, "No cached data matches the request.", code="SCRAPE_NO_CACHED_DATA")
            return Page(**entry["page"]), entry["at"]
        if entry is not None and age < options.get("maxAge", max_age):
            return Page(**entry["page"]), entry["at"]
        page = self._fetch(url, requested)
        stored = options.get("storeInCache", True) and not options.get("zeroDataRetention")
        if stored and not private and not self._web.generates(url):
            self._store.put("cache", url, {"page": asdict(page), "at": self._clock.now()})
        return page, None

    def _fetch(self, url: str, requested: str) -> Page:
        page, host = self._web.get(url), host_of(url)
        if is_private(host) and self._quirks.on("private-refused"):
            raise PageError(NO_SITE.code, NO_SITE.text)
        if page is not None and page.slash and self._settings.profile.exact_slashes:
            page = page if urlsplit(requested).path.endswith("/") else None
        if page is None:
            if not self._web.knows_host(host):
                return self._unserved(requested, host)
            html = "<html><head><title>404 Not Found</title></head><body><h1>Not Found</h1></body></html>"
            return Page(url, html, status=404)
        if page.error is not None:
            raise PageError(page.error, f"The page could not be scraped ({page.error}).")
        return page

    def _unserved(self, requested: str, host: str) -> Page:
        """Return the page that a self-hosted server returns in place of one that no site serves.

        :raises PageError: the server returns an error instead.
        """
        if not self._settings.profile.error_pages:
            raise PageError("SCRAPE_DNS_RESOLUTION_ERROR", f"DNS resolution failed for hostname: {host}", 1)
        if not requested.startswith("http://"):
            raise PageError(NO_SITE.code, NO_SITE.text)
        status = 594 if is_address(host) else 404
        return Page(requested, markdown=PLACEHOLDERS[status][0], status=status, content_type=PLAIN_TEXT)

    def _metadata(self, page: Page, requested: str) -> Json:
        metadata: Json = {
            name: values if len(values) > 1 else values[0] for name, values in page.meta.items()
        }
        metadata.update(
            title=page.title,
            description=page.description,
            language=page.language,
            sourceURL=requested,
            url=page.url,
            statusCode=page.status,
            contentType=page.content_type,
            proxyUsed="basic",
        )
        content, error = PLACEHOLDERS.get(page.status, (None, None))
        if page.content_type == PLAIN_TEXT and page.markdown == content:
            metadata.update(title=None, description=None, error=error, concurrencyLimited=False)
        elif self._settings.profile.more_metadata:
            metadata.update(
                {"og:title": page.title, "ogTitle": page.title},
                ogLocaleAlternate=[],
                favicon=urljoin(page.url, "/favicon.ico"),
                concurrencyLimited=False,
            )
        if self._quirks.on("metadata-arrays"):
            metadata.setdefault("keywords", [])
            for name in ("title", "description", "language", "keywords"):
                value = metadata[name]
                metadata[name] = value if isinstance(value, list) else [value or ""]
        return {name: value for name, value in metadata.items() if value is not None}
