"""Scraping pages of the sandbox's web to the formats that can be made honestly."""

from __future__ import annotations

import re
import uuid
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_webdata.sandbox.reference.errors import ServiceError, UnsupportedHereError
from airflow_provider_webdata.sandbox.reference.prices import page_cost
from airflow_provider_webdata.sandbox.reference.scrape_options import format_names, pdf_parser
from airflow_provider_webdata.sandbox.reference.timestamps import iso
from airflow_provider_webdata.sandbox.reference.urls import canonical

from . import html as markup
from .media import LIFETIMES
from .page import Page
from .words import sentences

if TYPE_CHECKING:
    from lxml.html import HtmlElement

    from airflow_provider_webdata.sandbox.reference.wire import Json
    from airflow_provider_webdata.sandbox.state.core import Core

    from .media import Media
    from .web import Web

FORMATS = ("markdown", "html", "rawHtml", "links", "images", "summary")
DEFAULT_MAX_AGE = 172_800_000
LOCKDOWN_MAX_AGE = 2 * 365 * 86_400_000
SUMMARY_WARNING = "Summaries of the sandbox are the first sentences of the page."

_AROUND = markup.selector(
    "header, nav, footer, aside, form, dialog, [role=navigation], [role=banner], [role=contentinfo], "
    "[role=complementary], [role=dialog]"
)
_DATA_IMAGE = re.compile(r"!\[([^\]]*)\]\(data:image/[^)]*\)")
_PAGE_BREAK = "\f"


class PageError(Exception):
    """A page cannot be scraped; ``code`` is the service's, ``credits`` what the failure costs."""

    def __init__(self, code: str, text: str, credits: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.credits = credits


@dataclass(frozen=True)
class Scraped:
    """One scraped page: its document, its id and what it cost."""

    id: str
    url: str
    status_code: int
    document: Json
    credits: int


class Scraper:
    """Scrapes pages, with the service's cache between."""

    def __init__(self, core: Core, web: Web, media: Media) -> None:
        self._store, self._clock, self._quirks = core.store, core.clock, core.quirks
        self._web, self._media = web, media

    def scrape(self, url: str, options: Json, *, max_age: int = DEFAULT_MAX_AGE) -> Scraped:
        """Scrape one page.

        :param options: scrape options that passed the rules and ``admit`` (``admission.py``).
        :param max_age: the default of ``maxAge``, in milliseconds.
        :raises PageError: when the page cannot be had.
        :raises ServiceError: 404 when only the cache may be asked and it has nothing.
        """
        page, cached_at = self._obtain(canonical(url), options, max_age)
        sections = (page.markdown or "").split(_PAGE_BREAK) if page.is_pdf else []
        wanted = pdf_parser(options).get("maxPages")
        cost = page_cost(
            options,
            pdf_pages=len(sections[:wanted]),
            enhanced_free=self._quirks.on("enhanced-free"),
        )
        scrape_id = str(uuid.uuid4())
        document = {**produce(page, options, sections[:wanted]), **self._files(page, options)}
        metadata = self._metadata(page, url)
        metadata.update(scrapeId=scrape_id, creditsUsed=cost, cacheState="hit" if cached_at else "miss")
        if cached_at:
            metadata["cachedAt"] = iso(datetime.fromtimestamp(cached_at, timezone.utc))
        if page.is_pdf:
            metadata.update(numPages=len(sections[:wanted]), totalPages=len(sections))
        document["metadata"] = metadata
        return Scraped(scrape_id, page.url, page.status, document, cost)

    def _files(self, page: Page, options: Json) -> Json:
        """Return the addresses of the files that were asked for."""
        found: Json = {}
        for kind in format_names(options):
            if kind in LIFETIMES:
                found[kind] = self._media.link(page.url, kind)
                if found[kind] is None:
                    raise UnsupportedHereError(f"make the format {kind!r} of a page that was given none")
        return found

    def _obtain(self, url: str, options: Json, max_age: int) -> tuple[Page, float | None]:
        private = any(options.get(name) for name in ("headers", "actions", "profile"))
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
        page = self._fetch(url)
        kept = options.get("storeInCache", True) and not options.get("zeroDataRetention")
        if kept and not private and not self._web.generates(url):
            self._store.put("cache", url, {"page": asdict(page), "at": self._clock.now()})
        return page, None

    def _fetch(self, url: str) -> Page:
        page = self._web.get(url)
        if page is None:
            host = urlsplit(url).hostname or ""
            if not self._web.knows_host(host):
                raise PageError(
                    "SCRAPE_DNS_RESOLUTION_ERROR", f"DNS resolution failed for hostname: {host}", 1
                )
            html = "<html><head><title>404 Not Found</title></head><body><h1>Not Found</h1></body></html>"
            return Page(url, html, status=404)
        if page.error is not None:
            raise PageError(page.error, f"The page could not be scraped ({page.error}).")
        return page

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
        if self._quirks.on("metadata-arrays"):
            metadata.setdefault("keywords", [])
            for name in ("title", "description", "language", "keywords"):
                value = metadata[name]
                metadata[name] = value if isinstance(value, list) else [value or ""]
        return metadata


def produce(page: Page, options: Json, sections: list[str]) -> Json:
    """Make the asked formats of a page; ``sections`` are the pages of a PDF."""
    names = [name for name in format_names(options) if name in FORMATS]
    filtered = options.get("includeTags") or options.get("excludeTags")
    # A page kept as markdown is parsed only for what needs the tree.
    untouched = page.markdown is not None and not filtered and "html" not in names
    chosen = markup.together([]) if untouched else content(page, options)
    text = markdown_of(page, options, chosen, sections)
    return {name: _format(name, page, chosen, text) for name in names}


def _format(name: str, page: Page, chosen: HtmlElement, text: str) -> Any:
    if name == "markdown":
        return text
    if name == "summary":
        return summary(page)
    if name == "links":
        return page.links
    if name == "images":
        return list(dict.fromkeys(picture.url for picture in page.pictures))
    if page.is_pdf:
        return None
    return page.html if name == "rawHtml" else markup.to_html(chosen)


def markdown_of(page: Page, options: Json, chosen: HtmlElement, sections: list[str]) -> str:
    """Return the markdown of a page under the options."""
    filtered = options.get("includeTags") or options.get("excludeTags")
    if sections:
        text = "\n\n".join(section.strip() for section in sections)
    elif page.markdown is not None and not filtered:
        text = page.markdown
    else:
        text = markup.to_markdown(chosen, page.url)
    if options.get("removeBase64Images", True):
        text = _DATA_IMAGE.sub(r"![\1](<Base64-Image-Removed>)", text)
    return text


def content(page: Page, options: Json) -> HtmlElement:
    """Return the part of the page that the options select, without what is never shown."""
    body = next(markup.visible(page.tree).iter("body"))
    if options.get("excludeTags"):
        markup.drop(markup.selector(",".join(options["excludeTags"]))(body))
    if options.get("includeTags"):
        return markup.together(markup.selector(",".join(options["includeTags"]))(body))
    if not options.get("onlyMainContent", True):
        return body
    root = next(body.iter("main"), body)
    markup.drop(_AROUND(root))
    return root


def summary(page: Page) -> str:
    """Return the first sentences of the page: an extract, nothing is written anew."""
    return " ".join(sentences(page.body_text)[:3])
