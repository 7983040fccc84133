"""The time that the service itself may need for a request, computed from the request's body.

The client reads a little longer, so that the service's own answer wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEFAULT_TIMEOUT_MS = 60_000
"""The service's own default for `timeout`, in search as in scrape options."""

_LONGEST_SCRAPE_SECONDS = 300.0
_LONGEST_PROVIDER_SECONDS = 120.0
_START_SECONDS = 60.0
_PROMPT_SECONDS = 120.0
_CODE_SECONDS = 30.0
_ASK_SECONDS = 65.0


def scrape(body: Mapping[str, Any]) -> float:
    """The requested `timeout`, or the service's default."""
    given = body.get("timeout")
    return (float(given) if isinstance(given, (int, float)) else DEFAULT_TIMEOUT_MS) / 1000


def search(body: Mapping[str, Any]) -> float:
    """Whether `timeout` of a search covers the scraping of its results is not documented: allow for both."""
    options = body.get("scrapeOptions")
    if isinstance(options, Mapping) and options.get("formats"):
        return scrape(body) + scrape(options)
    return scrape(body)


def without_default(body: Mapping[str, Any]) -> float:
    """Map and parse have no documented default; giving up early would pay for a result that is never read."""
    return scrape(body) if body.get("timeout") is not None else _LONGEST_SCRAPE_SECONDS


def providers(body: Mapping[str, Any]) -> float:
    """The requested `timeout`, or the default, which is the longest."""
    given = body.get("timeout")
    longest = _LONGEST_PROVIDER_SECONDS
    return min(float(given) / 1000, longest) if isinstance(given, (int, float)) else longest


def start(body: Mapping[str, Any]) -> float:
    """Starting is quick, but a lost answer leaves an unknown job. With a prompt, the service asks a model first."""
    return _PROMPT_SECONDS if body.get("prompt") else _START_SECONDS


def execute(body: Mapping[str, Any]) -> float:
    """Here `timeout` is in seconds."""
    given = body.get("timeout")
    return float(given) if isinstance(given, (int, float)) else _CODE_SECONDS


def interact(body: Mapping[str, Any]) -> float:
    """The first call opens a browser and repeats the scrape before the code's own time begins."""
    return _LONGEST_SCRAPE_SECONDS + execute(body)


def ask(body: Mapping[str, Any]) -> float:  # noqa: ARG001
    """The time after which servers give up on the support agent, which takes 15 to 30 seconds as a rule."""
    return _ASK_SECONDS
