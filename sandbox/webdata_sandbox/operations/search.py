# SPDX-License-Identifier: Apache-2.0
"""Search: from the request body to the response."""

from __future__ import annotations

import asyncio
import uuid
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from webdata_sandbox.engine.admission import refuse_unsupported
from webdata_sandbox.engine.index import Filters, Index, category_of, highlight
from webdata_sandbox.engine.providers import found_tools
from webdata_sandbox.engine.scraper import PageError, Scraper
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.prices import search_cost
from webdata_sandbox.reference.rules import check
from webdata_sandbox.reference.scrape_options import format_names, type_of
from webdata_sandbox.reference.timestamps import iso
from webdata_sandbox.reference.unions import UNION_LISTS, nest
from webdata_sandbox.reference.wire import Issue, Json

from .call import Call, Reply
from .endpoint import Endpoint
from .research import found_paper
from .validation import details_of, refuse_unknown_keys

if TYPE_CHECKING:
    from webdata_sandbox.engine.page import Page
    from webdata_sandbox.state.core import Core

MAX_HOSTS = 20


class Search:
    """Handles ``POST /v2/search``."""

    def __init__(self, core: Core, index: Index, scraper: Scraper) -> None:
        self._core, self._index, self._scraper = core, index, scraper

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint(
                "POST",
                "/v2/search",
                self.search,
                "search",
                keyless=True,
                own_latency=True,
                activity="search",
                target="query",
            ),
        ]

    async def search(self, call: Call) -> Reply:
        """Validate, search, scrape, and bill."""
        core, body = self._core, call.body
        self._validate(body)
        self._require_entitlements(body)
        await self._wait(body)
        core.credits.require()
        options = body.get("scrapeOptions", {})
        scraping = bool(format_names(options))
        if scraping and core.settings.profile.searches:
            refuse_unsupported(options)
        searches = core.settings.profile.searches
        data, pages_cost = self._results(body, options, scraping) if searches else ({}, 0)
        # Tools of data providers are free.
        found = sum(len(items) for kind, items in data.items() if kind != "tools")
        cost = search_cost(found, body.get("enterprise", ())) + pages_cost
        core.credits.spend(cost)
        answer: Json = {"success": True, "data": data, "id": str(uuid.uuid4()), "creditsUsed": cost}
        # The response has one warning for all results.
        notes = [item.pop("warning") for items in data.values() for item in items if "warning" in item]
        if searches and not found and "tools" not in data:
            notes = [self._no_results_note(body["query"])]
        if notes:
            answer["warning"] = " ".join(dict.fromkeys(notes))
        return Reply(200, answer)

    def _validate(self, body: Any) -> None:
        issues = nest(check("search", body, self._core.settings.profile), UNION_LISTS)
        refuse_unknown_keys(issues)
        quirks = self._core.quirks
        if not issues and quirks.on("formats-as-objects"):
            formats = body.get("scrapeOptions", {}).get("formats", [])
            if any(isinstance(item, str) for item in formats):
                issues = [
                    Issue(("scrapeOptions", "formats"), "Expected object, received string", "invalid_type")
                ]
        if not issues:
            for name in map(type_of, body.get("categories", [])):
                gone = {
                    "github": self._core.settings.profile.searches and not quirks.on("codehost-unknown"),
                    "codehost": quirks.on("category-removed"),
                }
                if gone.get(name):
                    raise ServiceError(
                        400, f"The category {name} was removed; use developer.", code="CATEGORY_REMOVED"
                    )
                if name == "codehost" and quirks.on("codehost-unknown"):
                    issues = [Issue(("categories",), "Invalid enum value 'codehost'", "invalid_enum_value")]
        if issues:
            # Here a search error has no code.
            raise ServiceError(400, "Invalid request body", details=details_of(issues))

    def _require_entitlements(self, body: Json) -> None:
        settings = self._core.settings
        if any(name != "default" for name in body.get("enterprise", [])):
            settings.require_entitlement("enterprise")
        if body.get("scrapeOptions", {}).get("zeroDataRetention"):
            settings.require_entitlement("zeroDataRetention")
        if "threatProtection" in body or "threatProtection" in body.get("scrapeOptions", {}):
            settings.require_entitlement("threatProtection")

    async def _wait(self, body: Json) -> None:
        latency, timeout = self._core.settings.latency_ms, body.get("timeout", 60_000)
        await asyncio.sleep(min(latency, timeout) / 1000)
        if latency > timeout:
            raise ServiceError(408, "Request timed out")

    def _no_results_note(self, query: str) -> str:
        """Return a note that lists the hosts, because the first query of a user usually has no results."""
        hosts = self._index.hosts()
        more = f" and {len(hosts) - MAX_HOSTS} more" if len(hosts) > MAX_HOSTS else ""
        note = f"No results. The sandbox searches only its own pages: {', '.join(hosts[:MAX_HOSTS])}{more}."
        left_out = len(self._index.web(query, Filters(), limit=100))
        if left_out:
            note += f" Without sources and filters (dates, domains, categories), the query has {left_out} results."
        return note

    def _results(self, body: Json, options: Json, scraping: bool) -> tuple[Json, int]:
        bulk = self._core.settings.bulk
        limit = body.get("limit", 10)
        filters = _filters(body)
        items = [item if isinstance(item, dict) else {"type": item} for item in body.get("sources", [])]
        sources = {item["type"]: item for item in items} or {"web": {}}
        data: Json = {}
        cost = 0
        if "web" in sources:
            if bulk is not None:
                data["web"] = _bulk(*bulk, limit, scraping)
                cost += len(data["web"]) if scraping else 0
            else:
                tbs = sources["web"].get("tbs", body.get("tbs"))
                cost += self._web(body, filters, limit, tbs, options if scraping else None, data)
        if "news" in sources:
            pages = self._index.news(body["query"], filters, limit)
            data["news"] = [self._news_item(body, page, number) for number, page in enumerate(pages, 1)]
            if scraping:
                cost += self._scrape_all(data["news"], options)
        if "images" in sources:
            data["images"] = self._images(body["query"], filters, limit)
        if body.get("threatProtection", {}).get("mode") == "normal":
            cost += 2 * sum(map(len, data.values()))
        if "alexandria" in sources or body.get("domainTools"):
            urls = [item["url"] for item in data.get("web", ())] if body.get("domainTools") else []
            query = body["query"] if "alexandria" in sources else None
            data["tools"] = found_tools(urls, query, body.get("toolDetail"))[:limit]
        return data, cost

    def _web(
        self, body: Json, filters: Filters, limit: int, tbs: str | None, options: Json | None, data: Json
    ) -> int:
        categories = [type_of(item) for item in body.get("categories", [])]
        pages = self._index.web(body["query"], filters, limit, tbs=tbs, categories=categories)
        items = []
        for number, page in enumerate(pages, 1):
            item: Json = {"url": page.url, "title": page.title, "description": self._description(body, page)}
            if categories:
                item["category"] = category_of(page, categories)
            if self._core.quirks.on("search-position"):
                item["position"] = number
            items.append(item)
        cost = self._scrape_all(items, options) if options is not None else 0
        data["web"] = items
        if self._core.quirks.on("research-moved") and "research" in categories:
            data["web"] = [item for item in items if item["category"] != "research"]
            data["research"] = [
                found_paper(page, body["query"])
                for page, item in zip(pages, items, strict=True)
                if item["category"] == "research"
            ]
        return cost

    def _description(self, body: Json, page: Page) -> str:
        if not body.get("highlights", True) or "zdr" in body.get("enterprise", ()):
            return page.description
        found = highlight(page, body["query"], markdown=self._core.quirks.on("markdown-highlights"))
        return found or page.description

    def _news_item(self, body: Json, page: Page, position: int) -> Json:
        item: Json = {
            "title": page.title,
            "url": page.url,
            "snippet": self._description(body, page),
            "date": iso(page.published) if page.published else "",
            "position": position,
        }
        if page.pictures:
            item["imageUrl"] = page.pictures[0].url
        if self._core.quirks.on("search-position"):
            item["category"] = "news"
        return item

    def _images(self, query: str, filters: Filters, limit: int) -> list[Json]:
        items = []
        found = self._index.images(query, filters, limit)
        for position, (page, picture) in enumerate(found, 1):
            item: Json = {
                "title": picture.alt or page.title,
                "imageUrl": picture.url,
                "url": page.url,
                "position": position,
            }
            if picture.width and picture.height:
                item.update(imageWidth=picture.width, imageHeight=picture.height)
            items.append(item)
        return items

    def _scrape_all(self, items: list[Json], options: Json) -> int:
        """Scrape the items in place; return the credits.

        If only cached pages are allowed and no result is cached, the search fails like a scrape.
        """
        outcomes = [self._scrape_item(item, options) for item in items]
        cost = sum(spent for spent, _ in outcomes)
        misses = [miss for _, miss in outcomes if miss is not None]
        if misses and len(misses) == len(items):
            self._core.credits.spend(cost)
            raise misses[0]
        return cost

    def _scrape_item(self, item: Json, options: Json) -> tuple[int, ServiceError | None]:
        """Scrape one item in place; return its credits, and the error of a cache miss."""
        try:
            scraped = self._scraper.scrape(item["url"], options)
        except PageError as error:
            item["metadata"] = _failure(str(error))
            return error.credits, None
        except ServiceError as error:
            item["metadata"] = _failure(error.text)
            return int(error.code == "SCRAPE_LOCKDOWN_CACHE_MISS"), error
        item.update(scraped.document)
        return scraped.credits, None


def _failure(text: str) -> Json:
    return {"statusCode": 500, "error": text, "proxyUsed": "basic"}


def _filters(body: Json) -> Filters:
    threats = body.get("threatProtection", {})
    active = threats.get("mode") != "off"
    return Filters(
        include=tuple(domain.strip().lower() for domain in body.get("includeDomains", [])),
        exclude=tuple(domain.strip().lower() for domain in body.get("excludeDomains", [])),
        safe=body.get("safe", False),
        public_only=body.get("ignoreInvalidURLs", False),
        blocked=tuple(threats.get("blacklist", [])) if active else (),
        blocked_tlds=tuple(threats.get("blockedTlds", [])) if active else (),
        allowed=tuple(threats.get("whitelist", [])) if active else (),
    )


def _bulk(results: int, size: int, limit: int, scraping: bool) -> list[Json]:
    items: list[Json] = []
    for number in range(min(results, limit)):
        url = f"https://bulk.example/{number}"
        item: Json = {"url": url, "title": f"Result {number}", "description": "A generated result."}
        if scraping:
            item["markdown"] = bulk_text(size)
            item["metadata"] = {"title": item["title"], "sourceURL": url, "url": url, "statusCode": 200}
        items.append(item)
    return items


@lru_cache(maxsize=8)
def bulk_text(size: int) -> str:
    """Return ASCII markdown of exactly ``size`` bytes, with the line breaks and quotes of typical pages."""
    line = 'The river "Example" rises in the hills, passes %d mills and [three towns](https://towns.example/%d).\n\n'
    parts, length, number = [], 0, 0
    while length < size:
        part = line % (number % 90 + 10, number)
        parts.append(part)
        length += len(part)
        number += 1
    return "".join(parts)[:size]
