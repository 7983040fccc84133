"""The service-side time limit of a request, derived from its body.

The client's read timeout is slightly longer, so that it receives the service's own timeout error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEFAULT_TIMEOUT_MS = 60_000
"""The service's default for `timeout`, both in a search and in scrape options."""

_MAX_SCRAPE_SECONDS = 300.0
_MAX_PROVIDER_SECONDS = 120.0
_START_SECONDS = 60.0
_PROMPT_SECONDS = 120.0
_CODE_SECONDS = 30.0
_ASK_SECONDS = 65.0


def scrape(body: Mapping[str, Any]) -> float:
    """Return the requested `timeout`, or the service's default."""
    given = body.get("timeout")
    return (float(given) if isinstance(given, (int, float)) else DEFAULT_TIMEOUT_MS) / 1000


def search(body: Mapping[str, Any]) -> float:
    """Return the time for the search plus the scraping of its results: which one `timeout` covers is undocumented."""
    options = body.get("scrapeOptions")
    if isinstance(options, Mapping) and options.get("formats"):
        return scrape(body) + scrape(options)
    return scrape(body)


def without_default(body: Mapping[str, Any]) -> float:
    """Return the requested `timeout`, or a long one without a default: aborting early would waste a billed result."""
    return scrape(body) if body.get("timeout") is not None else _MAX_SCRAPE_SECONDS


def providers(body: Mapping[str, Any]) -> float:
    """Return the requested `timeout`, or the default, which is also the maximum."""
    given = body.get("timeout")
    longest = _MAX_PROVIDER_SECONDS
    return min(float(given) / 1000, longest) if isinstance(given, (int, float)) else longest


def start(body: Mapping[str, Any]) -> float:
    """Return a long limit: a lost response leaves an unknown job. With a prompt, the service first calls a model."""
    return _PROMPT_SECONDS if body.get("prompt") else _START_SECONDS


def execute(body: Mapping[str, Any]) -> float:
    """Return the requested `timeout`, which is in seconds here, or the default."""
    given = body.get("timeout")
    return float(given) if isinstance(given, (int, float)) else _CODE_SECONDS


def interact(body: Mapping[str, Any]) -> float:
    """Return the code's limit plus that of a scrape: the first call opens a browser and repeats the scrape."""
    return _MAX_SCRAPE_SECONDS + execute(body)


def ask(body: Mapping[str, Any]) -> float:  # noqa: ARG001
    """Return the time limit of the support agent, which usually takes 15 to 30 seconds."""
    return _ASK_SECONDS
