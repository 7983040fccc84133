# SPDX-License-Identifier: Apache-2.0
"""The service-side time limit of a request, derived from its body.

The client's read timeout is slightly longer, so that it receives the service's own timeout error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SEARCH_SECONDS = 60.0
_MAX_SCRAPE_SECONDS = 300.0
_RAISED_SECONDS = {30.0: 120.0}
"""Time limits of a page that the public server replaces. See sandbox/docs/service.md#scrape-time."""
_MAX_PROVIDER_SECONDS = 120.0
_START_SECONDS = 60.0
_PROMPT_SECONDS = 120.0
_CODE_SECONDS = 30.0


def scrape(body: Mapping[str, Any]) -> float:
    """Return the time for a page, preceded by up to two thirds of the requested `timeout` in the queue.

    See sandbox/docs/service.md#scrape-time.
    """
    seconds = _page(body)
    return seconds if body.get("timeout") is None else seconds * 5 / 3


def search(body: Mapping[str, Any]) -> float:
    """Return the time for the search plus the scraping of its results: which one `timeout` covers is undocumented."""
    seconds = _seconds(body, _SEARCH_SECONDS)
    options = body.get("scrapeOptions")
    if isinstance(options, Mapping) and options.get("formats"):
        return seconds + _page(options)
    return seconds


def without_default(body: Mapping[str, Any]) -> float:
    """Return the requested `timeout`, or a long one without a default: aborting early would waste a billed result."""
    return _seconds(body, _MAX_SCRAPE_SECONDS)


def providers(body: Mapping[str, Any]) -> float:
    """Return the requested `timeout`, or the default, which is also the maximum."""
    return min(_seconds(body, _MAX_PROVIDER_SECONDS), _MAX_PROVIDER_SECONDS)


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


def _seconds(body: Mapping[str, Any], default: float) -> float:
    given = body.get("timeout")
    return float(given) / 1000 if isinstance(given, (int, float)) else default


def _page(options: Mapping[str, Any]) -> float:
    seconds = without_default(options)
    return _RAISED_SECONDS.get(seconds, seconds)
