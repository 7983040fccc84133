# SPDX-License-Identifier: Apache-2.0
"""Crawl options parsed from a few fixed phrases of a prompt, without a language model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webdata_sandbox.reference.errors import ServiceError

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json

LONGEST_DELAY = 60
NOT_UNDERSTOOD = (
    "Failed to process natural language prompt. Please try rephrasing or use explicit crawler options."
)
_PATHS = r"(?P<paths>/[\w./*-]+(?:(?:\s*,\s*|\s+(?:and|or)\s+)/[\w./*-]+)*)"
_EXCLUDED = re.compile(rf"\b(?:not|without|except|exclude|excluding|skip)\b[^/.]*{_PATHS}", re.IGNORECASE)
_INCLUDED = re.compile(_PATHS)
_LIMIT = re.compile(r"\b(\d{1,7})\s+pages\b", re.IGNORECASE)
_DEPTH = re.compile(
    r"\b(\d{1,3})\s+(?:levels|links?)\s+deep\b|\bdepth\s+(?:of\s+)?(\d{1,3})\b", re.IGNORECASE
)
_DELAY = re.compile(r"\b(\d{1,2})\s+seconds?\s+(?:between|apart|pause)", re.IGNORECASE)
_SWITCHES = {
    "allowSubdomains": re.compile(r"\bsubdomains\b", re.IGNORECASE),
    "crawlEntireDomain": re.compile(r"\b(?:entire|whole) (?:domain|site|website)\b", re.IGNORECASE),
    "allowExternalLinks": re.compile(r"\bexternal links\b", re.IGNORECASE),
    "ignoreQueryParameters": re.compile(r"\bignore query\b", re.IGNORECASE),
}


def options_of_prompt(prompt: str) -> Json:
    """Return the crawl options in a prompt.

    Supported are paths (``only /blog``, ``without /tag``), ``N pages``, ``N levels deep``, ``N seconds apart``, and
    the phrases subdomains, entire domain, external links, and ignore query.

    :raises ServiceError: 400: the prompt contains no supported phrase.
    """
    found: Json = {}
    excluded = [path for match in _EXCLUDED.finditer(prompt) for path in _patterns(match["paths"])]
    rest = _EXCLUDED.sub(" ", prompt)
    # The path of a URL in the prompt is not a pattern.
    rest = re.sub(r"https?://\S+", " ", rest)
    included = [path for match in _INCLUDED.finditer(rest) for path in _patterns(match["paths"])]
    if included:
        found["includePaths"] = included
    if excluded:
        found["excludePaths"] = excluded
    limit, depth = _LIMIT.search(prompt), _DEPTH.search(prompt)
    if limit and int(limit[1]) > 0:
        found["limit"] = int(limit[1])
    if depth:
        found["maxDiscoveryDepth"] = int(depth[1] or depth[2])
    delay = _DELAY.search(prompt)
    if delay and 0 < int(delay[1]) <= LONGEST_DELAY:
        found["delay"] = int(delay[1])
    found.update({name: True for name, words in _SWITCHES.items() if words.search(prompt)})
    if not found:
        raise ServiceError(400, NOT_UNDERSTOOD)
    return found


def _patterns(text: str) -> list[str]:
    paths = re.findall(r"/[\w./*-]+", text)
    return [re.escape(path.rstrip(".*/")) for path in paths]
