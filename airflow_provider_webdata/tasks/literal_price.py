"""Check of a literal request's price against its credit limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic.alias_generators import to_camel

from airflow_provider_webdata.api import prices
from airflow_provider_webdata.common.literals import is_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

_PRICES = {
    "AgentRequest": (prices.AGENT, "prompt", ["lower max_credits"]),
    "BatchScrapeRequest": (prices.BATCH_SCRAPE, "urls", ["pass fewer urls"]),
    "CrawlRequest": (prices.CRAWL, "url", ["lower limit"]),
    "DeveloperSearchRequest": (prices.DEVELOPER_SEARCH, "query", ["lower k"]),
    "ExtractRequest": (prices.EXTRACT, "urls", []),
    "MapRequest": (prices.MAP, "url", []),
    "PaperSearchRequest": (prices.PAPER_SEARCH, "query", ["lower k"]),
    "ScrapeRequest": (prices.SCRAPE, "url", []),
    "SearchRequest": (prices.SEARCH, "query", ["lower limit"]),
}
"""The price of each request model, a field without which the operator sends a different request, and ways to lower the
price."""


def price_problems(model: str, fields: Mapping[str, Any], credit_limit: float) -> Sequence[str]:
    """Return the problems of a literal request that exceeds its `credit_limit`.

    :param fields: arguments by their Python names, all valid by themselves.
    :param credit_limit: credits.
    """
    price, subject, remedies = _PRICES.get(model, (None, "", []))
    if price is None or subject not in fields:
        return ()
    if subject != "urls" and not is_literal(fields[subject]):
        # A page or query that is known only at run time: the price depends on the host only for pages of X.
        fields = {**fields, subject: "https://example.com"}
    body = _wire(fields)
    if not is_literal(body):
        return ()
    try:
        parsers = price.pdf_parsers(body, credit_limit)
        most = price.bound(body if parsers is None else price.with_parsers(body, parsers))
        is_held = most.credits <= credit_limit
    except (AttributeError, KeyError, TypeError, ValueError):
        # For example, a number as text; the run checks it.
        return ()
    if not most.is_known:
        return [f"credit_limit={credit_limit:g} cannot be enforced: {'; '.join(most.unknown)}"]
    if is_held:
        return ()
    remedies = ["raise credit_limit", *remedies]
    options = (body.get(price.pages) or {}) if price.pages else body
    if "(page)" in most.how and options.get("proxy") != "basic" and not options.get("lockdown"):
        remedies.append("set proxy='basic'" + (" in scrape_options" if price.pages else ""))
    if price is prices.SEARCH and "(page of X)" in most.how and not body.get("includeDomains"):
        remedies.append("exclude x.com and twitter.com")
    problem = (
        f"credit_limit={credit_limit:g} is below the maximum price of {most.credits:g} credits: {most.how}"
    )
    return [f"{problem}; {', or '.join(remedies)}"]


def _wire(value: Any) -> Any:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        # The models parse booleans in the same way.
        return value.strip().lower() == "true"
    if isinstance(value, Mapping):
        return {
            to_camel(name) if isinstance(name, str) else name: _wire(part) for name, part in value.items()
        }
    return [_wire(part) for part in value] if isinstance(value, (list, tuple)) else value
