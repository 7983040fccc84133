"""Extract requests as the operations that replace `/v2/extract`, and their results in its shape.

Requests are in wire form. See docs/upgrade.md#replace-extract.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

Successor = Literal["extract", "scrape", "agent"]

KINDS: dict[Successor, Literal["extract", "batch_scrape", "agent"]] = {
    "extract": "extract",
    "scrape": "batch_scrape",
    "agent": "agent",
}

_SITE = "/*"
_SHARED = ("threatProtection", "webhook")
_NEEDS_AGENT = ("enableWebSearch", "allowExternalLinks", "agent")
_NOT_OF_AGENT = ("scrapeOptions", "ignoreSitemap", "showSources", "ignoreInvalidURLs")


def agent_reasons(request: Mapping[str, Any]) -> list[str]:
    """Return the reasons why a batch scrape cannot replace an extract job; empty if it can."""
    urls = request.get("urls") or ()
    reasons = [f"{name} is set" for name in _NEEDS_AGENT if request.get(name)]
    reasons += [f"{url!r} is a whole site" for url in urls if url.endswith(_SITE)][:1]
    return reasons if urls else ["urls is empty", *reasons]


def as_batch_scrape(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the batch scrape that replaces an extract job, with a `json` format."""
    wanted = {"type": "json", "schema": request.get("schema"), "prompt": _prompt(request)}
    return {
        **request.get("scrapeOptions", {}),
        **_present(request, _SHARED),
        "urls": request["urls"],
        "formats": [{name: value for name, value in wanted.items() if value is not None}],
        "ignoreInvalidURLs": request.get("ignoreInvalidURLs", True),
    }


def as_agent(request: Mapping[str, Any], max_credits: float | None) -> dict[str, Any]:
    """Return the agent run that replaces an extract job, without the fields in `ignored_by_agent`.

    :param max_credits: the run's credit limit. None: the service's default.
    """
    urls: Sequence[str] = request.get("urls") or ()
    sites = [url.removesuffix(_SITE) for url in urls if url.endswith(_SITE)]
    below = "" if request.get("includeSubdomains", True) else " Leave out its subdomains."
    prompt = [_prompt(request) or "Extract the data that the schema describes."]
    prompt += [f"Read all pages of the site {site}/ for it.{below}" for site in sites]
    body: dict[str, Any] = {**_present(request, (*_SHARED, "schema")), "prompt": "\n\n".join(prompt)}
    if urls:
        body["urls"] = [url.removesuffix(_SITE) for url in urls]
        body["strictConstrainToURLs"] = not sites and not any(request.get(name) for name in _NEEDS_AGENT)
    if max_credits is not None:
        body["maxCredits"] = max_credits
    return body


def ignored_by_agent(request: Mapping[str, Any]) -> list[str]:
    """Return the fields of an extract job that an agent run does not support."""
    return [name for name in _NOT_OF_AGENT if name in request]


def combined(pages: Iterable[tuple[str, Any]], urls: Sequence[str]) -> tuple[Any, dict[str, list[str]]]:
    """Merge the data of all pages; return it with the source pages of each top-level property.

    Lists are concatenated, and objects are merged property by property. For other values, the first page wins.

    :param pages: each page's URL and data.
    :param urls: the request's URLs, which define the order of the pages.
    """
    order = {url: number for number, url in enumerate(urls)}
    data: Any = None
    sources: dict[str, list[str]] = {}
    for url, value in sorted(pages, key=lambda page: (order.get(page[0], len(order)), page[0])):
        data = _joined(data, value)
        for name, part in value.items() if isinstance(value, Mapping) else ():
            if part not in (None, [], {}):
                sources.setdefault(name, []).append(url)
    return data, sources


def _joined(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, list) and isinstance(other, list):
        return [*one, *other]
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: _joined(one.get(name), other.get(name)) for name in {**one, **other}}
    return one


def _prompt(request: Mapping[str, Any]) -> str | None:
    return "\n\n".join(filter(None, (request.get("systemPrompt"), request.get("prompt")))) or None


def _present(request: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: request[name] for name in names if name in request}
