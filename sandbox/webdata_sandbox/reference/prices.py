# SPDX-License-Identifier: Apache-2.0
"""Prices of calls and pages in credits (sandbox/docs/service.md#credits)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .scrape_options import format_names, parses_pdfs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .wire import Json

TOKENS_PER_CREDIT = 15
SEARCH_PER_TEN = 2
PAPER = 1
ENTERPRISE_PER_TEN = {"anon": 2, "zdr": 10}
UNLIMITED_CRAWL = 10_000
JSON_TRACKING = 4
ZERO_DATA_RETENTION = 1
EXTRA_FORMAT, EXTRA_FORMATS = 4, frozenset({"json", "question", "highlights", "audio", "video"})


def search_cost(results: int, enterprise: Iterable[str] = ()) -> int:
    """Return the credits of a search without scraping: a price per ten results, rounded up."""
    rate = max((ENTERPRISE_PER_TEN.get(name, 0) for name in enterprise), default=0) or SEARCH_PER_TEN
    return rate * math.ceil(results / 10)


def page_cost(options: Json, *, pdf_pages: int = 0, enhanced_free: bool = False) -> int:
    """Return the credits of one scraped page."""
    cost = 1
    if options.get("lockdown") or (options.get("proxy") in ("enhanced", "stealth") and not enhanced_free):
        cost = 5
    if pdf_pages > 1 and parses_pdfs(options):
        cost += pdf_pages - 1
    if any(_is_json_tracking(item) for item in options.get("formats", [])):
        cost += JSON_TRACKING
    if options.get("zeroDataRetention"):
        cost += ZERO_DATA_RETENTION
    return cost + EXTRA_FORMAT * sum(name in EXTRA_FORMATS for name in format_names(options))


def _is_json_tracking(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "changeTracking" and "json" in item.get("modes", [])


def is_judging(monitor: Json) -> bool:
    """Return whether a monitor's changes are judged, which requires a goal."""
    return bool(monitor["judgeEnabled"] and monitor["goal"])


def check_estimate(monitor: Json) -> int:
    """Return an upper bound of the credits of one check."""
    total, judging = 0, is_judging(monitor)
    for target in monitor["targets"]:
        if target["type"] == "search":
            wanted = target["maxResults"]
            total += len(target["queries"]) * search_cost(wanted) + (wanted if judging else 0)
            continue
        if target["type"] == "scrape":
            pages = len(target["urls"])
        else:
            limit = target.get("crawlOptions", {}).get("limit")
            pages = limit if isinstance(limit, int) else UNLIMITED_CRAWL
        total += pages * (page_cost(target.get("scrapeOptions", {})) + (1 if judging else 0))
    return total
