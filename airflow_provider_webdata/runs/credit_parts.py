"""The parts of a search's credits: for the search, and for scraping its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.prices import page_extras, search_price
from airflow_provider_webdata.runs.credit_account import by_format

if TYPE_CHECKING:
    from collections.abc import Mapping


def credit_parts(body: Mapping[str, Any], used: Any, results: Mapping[str, Any]) -> dict[str, Any]:
    """Return `scraping`, the credits of scraped results, and `formats`, those of each format among them.

    :param body: the request in wire form.
    :param used: what the search cost, as the service says.
    :param results: lists of results by source.
    """
    options = body.get("scrapeOptions") or {}
    if not options.get("formats") or not isinstance(used, (int, float)):
        return {}
    items = [item for found in results.values() if isinstance(found, list) for item in found]
    pages = sum(1 for item in items if isinstance(item, dict) and "metadata" in item)
    scraping = max(used - search_price(len(items), body.get("enterprise") or ()), 0)
    return {"scraping": scraping, "formats": by_format(scraping, pages, page_extras(options))}
