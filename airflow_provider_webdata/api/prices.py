# SPDX-License-Identifier: Apache-2.0
"""Upper bounds of a request's cost, from the documented prices: sandbox/docs/service.md#credits.

Requests are in wire form. Where sources differ, the higher price applies.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import zip_longest
from typing import Any, Literal

import msgspec

from airflow_provider_webdata.common.hosts import url_host
from airflow_provider_webdata.common.numbers import credits_text, known_credits
from airflow_provider_webdata.common.spelling import snake_case

Wire = Mapping[str, Any]

MAP_CREDITS = 1
"""Credits of a map that scans no URLs."""


_PAGE = 1
_SEARCH_PER_TEN = 2
_ENTERPRISE_PER_TEN = {"anon": 2, "zdr": 10}
_FORMATS = {
    **dict.fromkeys(("markdown", "summary", "html", "rawHtml", "links", "images", "screenshot"), 0),
    **dict.fromkeys(("json", "question", "highlights", "audio", "video"), 4),
    "deterministicJson": 10,
}
_NAMED = {*_FORMATS, "changeTracking"}
_JSON_TRACKING = 4
_REDACTION = 4
_INJECTION_CHECK = 4
_ZERO_DATA_RETENTION = 1
_ENHANCED_OR_LOCKDOWN = 5
_SCANNED_URL = 2
_FAILED_SCRAPES = {"SCRAPE_DNS_RESOLUTION_ERROR": 1, "SCRAPE_LOCKDOWN_CACHE_MISS": 1}
_PAGE_OF_X = 29
_X = (".x.com", ".twitter.com")
_BROWSER_MINUTE, _BROWSER_MINUTE_WITH_PROMPT = 2, 7

CATALOG = "firecrawl"
"""The data provider of the catalog and of terms."""

_MAX_RECORDS = 10**12
_FREE_CAPABILITIES = frozenset({f"{CATALOG}/find-tools", f"{CATALOG}/terms/show"})

_DEFAULT_RESULTS = 10
_DEFAULT_PAPERS = 40
DEFAULT_LINKS = 5000
_DEFAULT_CRAWL_PAGES = 10_000
_DEFAULT_AGENT_CREDITS = 2500
_DEFAULT_BROWSER_SECONDS = 600
_MAX_PDF_PAGES = 10_000


class PriceBound(msgspec.Struct, frozen=True):
    """The maximum cost of a request.

    :param credits: the part with a documented price.
    :param unknown: costs without a documented limit, each with a remedy; if empty, `credits` is an upper bound.
    """

    credits: float
    how: str
    unknown: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether `credits` is an upper bound."""
        return not self.unknown


class Price(msgspec.Struct, frozen=True):
    """The price of an operation.

    :param operation: name of the operation in limits, accounts, and metrics.
    :param bound: returns the maximum cost of a request.
    :param fixed: credits of a call whose response does not report its cost, and which scans no URLs.
    :param pages: field of the request with the scrape options of its pages; empty: the request itself; None: the
        request does not fetch pages.
    """

    operation: str
    bound: Callable[[Wire], PriceBound]
    fixed: float | None = None
    pages: str | None = None

    def most(self, body: Wire, extra_body: Wire | None = None) -> PriceBound:
        """Return the maximum cost of a request.

        :param body: the request. For parse, also `filename`; for interact, whether a step has a `prompt`; for calls of
            data providers, their contracts as `tools`.
        :param extra_body: additional fields, which are sent unchecked.
        """
        most = self.bound(body)
        if not extra_body:
            return most
        unchecked = "extra_body is sent unchecked, and may change the cost: omit it"
        return PriceBound(most.credits, most.how, (*most.unknown, unchecked))

    def cost(self, response: Any, body: Wire) -> float | None:
        """Return the credits of a call, or None if they are unknown.

        :param body: the request.
        """
        if self.fixed is None:
            return reported_credits(response)
        used = getattr(response, "credits_used", None)
        # The field is undocumented, so the model may lack it.
        used = (response.model_extra or {}).get("creditsUsed") if used is None else used
        if used is None:
            return None if _scans(body) else self.fixed
        return known_credits(used)

    def pdf_parsers(self, body: Wire, credits: float) -> list[dict[str, Any]] | None:
        """Return PDF parsers that keep a request within a credit limit; each page of a PDF is billed.

        :param body: the request.
        :param credits: the maximum cost.
        :return: parsers with the maximum pages per PDF that the credits allow, at least 1. None if the request parses
            no PDFs, or specifies its parsers.
        """
        if self.pages is None or "parsers" in self._page_options(body) or self.bound(body).is_known:
            return None
        one, two = (self.bound(self.with_parsers(body, _pdf(pages))).credits for pages in (1, 2))
        more = (credits - one) // (two - one) if two > one else 0
        return _pdf(min(max(1 + int(more), 1), _MAX_PDF_PAGES))

    def with_parsers(self, body: Wire, parsers: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a copy of a request with the given parsers."""
        options = {**self._page_options(body), "parsers": parsers}
        return {**body, self.pages: options} if self.pages else {**body, **options}

    def _page_options(self, body: Wire) -> Wire:
        return (body.get(self.pages) or {}) if self.pages else body


def _pdf(pages: int) -> list[dict[str, Any]]:
    return [{"type": "pdf", "maxPages": pages}]


INCLUDED: Literal["included"] = "included"
"""The price is included in that of another call: the session or the parse."""

UNDOCUMENTED: Literal["undocumented"] = "undocumented"
"""The call bills, or starts something that bills, without a documented price."""


def reported_credits(response: Any) -> float | None:
    """Return the credits that a response reports, or None."""
    used = getattr(response, "credits_used", None)
    if used is None:
        used = getattr(getattr(getattr(response, "data", None), "metadata", None), "credits_used", None)
    return known_credits(used)


def failed_scrape(code: str | None, body: Wire) -> float:
    """Return the credits of a scrape that failed because of its page. See sandbox/docs/service.md#credits-failed.

    :param code: the service's error code.
    :param body: the request.
    """
    return _FAILED_SCRAPES.get(code or "", 0) + (_SCANNED_URL if _scans(body) else 0)


def page_extras(options: Wire, *, zero_data_retention: bool = False) -> dict[str, int]:
    """Return the additional credits per page, by format or option.

    :param options: scrape options, or the options of a parse.
    :param zero_data_retention: whether the request sets it outside of the options.
    """
    found: dict[str, int] = {}
    for item in options.get("formats") or ():
        name, details = (item, {}) if isinstance(item, str) else (item["type"], item)
        price = _FORMATS.get(name, 0)
        if name == "changeTracking" and "json" in (details.get("modes") or ()):
            price = _JSON_TRACKING
        if price:
            found[name] = found.get(name, 0) + price
        if details.get("checkPromptInjection"):
            found["checkPromptInjection"] = _INJECTION_CHECK
    if options.get("redactPII"):
        found["redactPII"] = _REDACTION
    if options.get("checkPromptInjection"):
        found["checkPromptInjection"] = _INJECTION_CHECK
    if zero_data_retention or options.get("zeroDataRetention"):
        found["zeroDataRetention"] = _ZERO_DATA_RETENTION
    if _scans(options):
        found["threatProtection"] = _SCANNED_URL
    return found


def by_format(used: float, pages: int, extras: Mapping[str, int]) -> dict[str, float]:
    """Split the credits of pages by format, at the documented prices; `page` is the rest.

    :param used: credits for the pages that the service reports.
    :param pages: number of pages.
    :param extras: credits that each format adds to a page, see `page_extras`.
    """
    left = max(used - pages, 0)
    found: dict[str, float] = {}
    for name, price in extras.items():
        if part := min(price * pages, left):
            found[name] = part
            left -= part
    rest = used - sum(found.values())
    return {"page": rest, **found} if used else {}


def search_price(results: int, enterprise: Iterable[str] = ()) -> int:
    """Return the credits of a search, without the cost of scraping its results.

    :param results: number of results per source.
    :param enterprise: kinds of zero data retention. Whether they are billed in addition is undocumented; this assumes
        so.
    """
    per_ten = _SEARCH_PER_TEN + sum(_ENTERPRISE_PER_TEN.get(kind, 0) for kind in enterprise)
    return per_ten * math.ceil(results / 10)


def _search(body: Wire) -> PriceBound:
    limit = body.get("limit") or _DEFAULT_RESULTS
    billed = [item for item in body.get("sources") or ("web",) if _type(item) != "alexandria"]
    sources = len(billed)
    results = limit * sources
    credits = sources * search_price(limit, body.get("enterprise") or ())
    how = f"{credits} for {results} results" + (f" of {sources} sources" if sources > 1 else "")
    if body.get("enterprise"):
        how += f" with enterprise={body['enterprise']!r}"
    if _scans(body):
        credits += results * _SCANNED_URL
        how += f", {_SCANNED_URL} more for each result that threat_protection scans"
    options = body.get("scrapeOptions") or {}
    if not options.get("formats"):
        return PriceBound(credits, how)
    page = _page(
        options,
        "scrape_options.",
        of_x=_may_find_x(body),
        without_x="exclude_domains=['x.com', 'twitter.com']",
    )
    return PriceBound(
        credits + results * page.credits, f"{how}, and for each scraped result {page.how}", page.unknown
    )


def _type(item: Any) -> Any:
    return item["type"] if isinstance(item, Mapping) else item


def _index_search(default: int, body: Wire) -> PriceBound:
    results = body.get("k") or default
    credits = search_price(results)
    return PriceBound(credits, f"{credits} for {results} results")


def _may_find_x(body: Wire) -> bool:
    if included := body.get("includeDomains"):
        return any(_is_x(host) for host in included)
    return not {host[1:] for host in _X} <= set(body.get("excludeDomains") or ())


def _scrape(body: Wire) -> PriceBound:
    return _page(body, of_x=_is_x(body["url"]))


def _batch_scrape(body: Wire) -> PriceBound:
    urls = body["urls"]
    of_x = sum(_is_x(url) for url in urls)
    page = _page(body)
    how = f"{len(urls)} pages at {page.how}" + (f", and {_PAGE_OF_X} for {of_x} of X" if of_x else "")
    return PriceBound(len(urls) * page.credits + of_x * _PAGE_OF_X, how, page.unknown)


def _crawl(body: Wire) -> PriceBound:
    limit = body.get("limit") or _DEFAULT_CRAWL_PAGES
    options = body.get("scrapeOptions") or {}
    leaves = body.get("allowExternalLinks")
    # A prompt may set an option that the request omits.
    leaves = bool(body.get("prompt")) if leaves is None else leaves
    page = _page(
        options,
        "scrape_options.",
        of_x=leaves or _is_x(body["url"]),
        without_x="" if _is_x(body["url"]) else "allow_external_links=False",
        zero_data_retention=bool(body.get("zeroDataRetention")),
    )
    unknown = page.unknown
    if _scans(options):
        unknown += (
            "threat protection bills each scanned URL, and a crawl may scan any number of them: omit it",
        )
    return PriceBound(limit * page.credits, f"{limit} pages at {page.how}", unknown)


def _map(body: Wire) -> PriceBound:
    if not _scans(body):
        return PriceBound(MAP_CREDITS, "1 per call")
    links = body.get("limit") or DEFAULT_LINKS
    return PriceBound(
        MAP_CREDITS + _SCANNED_URL * (links + 1),
        f"1, and {_SCANNED_URL} for each of limit={links} links and the site, which threat_protection scans",
    )


def _parse(body: Wire) -> PriceBound:
    is_pdf = str(body.get("filename", ".pdf")).lower().endswith(".pdf")
    return _page({"proxy": "basic", **body}, may_be_pdf=is_pdf)


def _agent(body: Wire) -> PriceBound:
    given = body.get("maxCredits")
    most = _DEFAULT_AGENT_CREDITS if given is None else given
    unknown = ["threat protection bills each scanned URL: omit it"] if _scans(body) else []
    exchange = body.get("exchange") or {}
    # A run inherits what it omits from its thread.
    if (exchange or body.get("threadId")) and exchange.get("enabled") is not False:
        unknown.append(
            "it is undocumented whether max_credits limits provider calls: set exchange={'enabled': False}"
        )
    return PriceBound(
        most, "max_credits" + (", which defaults to 2500" if given is None else ""), tuple(unknown)
    )


def _interact(body: Wire) -> PriceBound:
    seconds = max(body.get("ttl") or _DEFAULT_BROWSER_SECONDS, 60)
    rate, remark = _BROWSER_MINUTE, ""
    if body.get("prompt"):
        rate, remark = _BROWSER_MINUTE_WITH_PROMPT, f" ({_BROWSER_MINUTE} without a prompt in steps)"
    return PriceBound(
        math.ceil(seconds * rate / 60),
        f"{rate} per minute{remark} for the browser's ttl of {seconds} s",
    )


def _provider(body: Wire) -> PriceBound:
    calls = body["alexandria"]
    tools = [*(body.get("tools") or ())][: len(calls)]
    bounds = [_provider_call(call, tool) for call, tool in zip_longest(calls, tools)]
    return PriceBound(
        sum(bound.credits for bound in bounds),
        ", ".join(bound.how for bound in bounds if bound.how),
        tuple(dict.fromkeys(text for bound in bounds for text in bound.unknown)),
    )


def _provider_call(call: Wire, tool: Wire | None) -> PriceBound:
    name = f"{call['provider']}/{call['capability']}"
    if name in _FREE_CAPABILITIES:
        return PriceBound(0, "")
    if tool is None:
        return PriceBound(0, "", (f"{name}: its price is in its contract, which is unknown",))
    rate = known_credits(tool.get("creditsCost"))
    if rate is None:
        return PriceBound(0, "", (f"{name}: only its response states the price",))
    if not tool.get("perRecord"):
        return PriceBound(rate, f"{rate:g} for {name}")
    records = _most_records(call.get("options") or {}, tool)
    if records is None:
        why = (
            f"{name}: {credits_text(rate)} per record without a limit: set the option 'limit', if it has one, to a "
            "whole number of at least 1"
        )
        return PriceBound(0, "", (why,))
    return PriceBound(rate * records, f"{rate:g} for each of {records} records of {name}")


def _most_records(options: Wire, tool: Wire) -> int | None:
    """Return the maximum number of records of a call, from its option `limit`, or None."""
    listed = [item for item in tool.get("options") or () if isinstance(item, Mapping)]
    option = next((item for item in listed if item.get("name") == "limit"), None)
    if option is None:
        return None
    if "limit" in options:
        # A provider may read any other value as no limit.
        return _count(options["limit"])
    return _count(option.get("default")) or _count(option.get("maximum"))


def _count(value: Any) -> int | None:
    """Return a number of records, which may be text, or None if the value is no whole number of at least 1."""
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,30}\s*", value, re.ASCII):
        value = int(value)
    is_whole = isinstance(value, float) and value.is_integer()
    if isinstance(value, bool) or not (isinstance(value, int) or is_whole) or value < 1:
        return None
    # Only a number that fits into a float has a price.
    return int(min(value, _MAX_RECORDS))


def _page(
    options: Wire,
    prefix: str = "",
    *,
    of_x: bool = False,
    without_x: str = "",
    may_be_pdf: bool = True,
    zero_data_retention: bool = False,
) -> PriceBound:
    extras = page_extras(options, zero_data_retention=zero_data_retention)
    if options.get("lockdown"):
        parts = {"page from the cache, with lockdown": _ENHANCED_OR_LOCKDOWN}
    elif options.get("proxy") == "basic":
        parts = {"page": _PAGE}
    else:
        parts = {f"page; {_PAGE} with {prefix}proxy='basic'": _ENHANCED_OR_LOCKDOWN}
    # The names of formats are values.
    parts |= {name if name in _NAMED else snake_case(name): credits for name, credits in extras.items()}
    formats = {_type(item) for item in options.get("formats") or ()}
    unknown = [
        f"the format {name!r} has no documented price: remove it from {prefix}formats"
        for name in sorted(formats - _FORMATS.keys() - {"changeTracking"})
    ]
    limits = _pdf_page_limits(options) if may_be_pdf else []
    if limits:
        known = [limit for limit in limits if limit is not None]
        if len(known) < len(limits):
            unknown.append(
                f"each page of a PDF is billed: limit them with {prefix}parsers="
                "[{'type': 'pdf', 'maxPages': ...}], or leave PDFs unparsed with parsers=[]"
            )
        else:
            again = sum(extras.get(name, 0) for name in ("redactPII", "zeroDataRetention"))
            parts[f"further pages of a PDF, by {prefix}parsers"] = (max(known) - 1) * (_PAGE + again)
    if of_x:
        parts["page of X" + (f"; 0 with {without_x}" if without_x else "")] = _PAGE_OF_X
    shown = " + ".join(f"{credits} ({name})" for name, credits in parts.items() if credits)
    return PriceBound(sum(parts.values()), shown, tuple(unknown))


def _pdf_page_limits(options: Wire) -> list[int | None]:
    """Return the maximum pages of each PDF parser. Without one, a PDF is returned unparsed, for one credit."""
    given = options.get("parsers")
    pdf = [item for item in (["pdf"] if given is None else given) if _type(item) == "pdf"]
    return [item.get("maxPages") if isinstance(item, Mapping) else None for item in pdf]


def _scans(body: Wire) -> bool:
    given = body.get("threatProtection")
    return given is not None and given.get("mode") != "off"


def _is_x(url: str) -> bool:
    host = url_host(url)
    # The service may interpret an ambiguous host as X.
    return host is None or f".{host}".endswith(_X)


SEARCH = Price("search", _search, pages="scrapeOptions")
DEVELOPER_SEARCH = Price("developer_search", partial(_index_search, _DEFAULT_RESULTS))
PAPER_SEARCH = Price("paper_search", partial(_index_search, _DEFAULT_PAPERS))
SCRAPE = Price("scrape", _scrape, pages="")
BATCH_SCRAPE = Price("batch_scrape", _batch_scrape, pages="")
CRAWL = Price("crawl", _crawl, pages="scrapeOptions")
PROVIDER = Price("provider", _provider)
MAP = Price("map", _map, fixed=MAP_CREDITS)
PARSE = Price("parse", _parse, pages="")
AGENT = Price("agent", _agent)
INTERACT = Price("interact", _interact)
