"""The price of a request that a DAG file spells out, against its credit limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic.alias_generators import to_camel

from airflow_provider_webdata.api import prices
from airflow_provider_webdata.common.literals import is_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

_PRICES = {
    "AgentRequest": (prices.AGENT, "prompt"),
    "BatchScrapeRequest": (prices.BATCH_SCRAPE, "urls"),
    "CrawlRequest": (prices.CRAWL, "url"),
    "ScrapeRequest": (prices.SCRAPE, "url"),
    "SearchRequest": (prices.SEARCH, "query"),
}
"""The price of each request that its fields determine, and a field without which the operator sends another one."""


def price_problems(model: str, fields: Mapping[str, Any], credit_limit: float) -> Sequence[str]:
    """Return what makes a literal request exceed its `credit_limit`, or nothing.

    :param model: name of the request model.
    :param fields: arguments by their Python names, all valid by themselves.
    :param credit_limit: credits.
    """
    price, subject = _PRICES.get(model, (None, ""))
    if price is None or subject not in fields:
        return ()
    if subject != "urls" and not is_literal(fields[subject]):
        # One page or query, known at run time: the price depends on a page's host for X alone.
        fields = {**fields, subject: "https://example.com"}
    body = _wire(fields)
    if not is_literal(body):
        return ()
    try:
        parsers = price.pdf_parsers(body, credit_limit)
        most = price.bound(body if parsers is None else price.with_parsers(body, parsers))
        is_held = most.credits <= credit_limit
    except (AttributeError, KeyError, TypeError, ValueError):
        # A number as text, for example: the run finds out.
        return ()
    if not most.is_known:
        return [f"credit_limit={credit_limit:g} cannot be held: {'; '.join(most.unknown)}"]
    if is_held:
        return ()
    return [f"credit_limit={credit_limit:g} is below what it may cost, {most.credits:g}: {most.how}"]


def _wire(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            to_camel(name) if isinstance(name, str) else name: _wire(part) for name, part in value.items()
        }
    return [_wire(part) for part in value] if isinstance(value, (list, tuple)) else value
