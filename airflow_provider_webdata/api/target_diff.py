"""The difference between the declared and the stored targets of a monitor, and which target keeps which history."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

Wire = Mapping[str, Any]

_SCRAPE_DEFAULTS: dict[str, Any] = {
    "onlyMainContent": True,
    "onlyCleanContent": False,
    "includeTags": None,
    "excludeTags": None,
    "maxAge": 0,  # of a monitor's scrapes; elsewhere it is two days
    "minAge": None,
    "headers": None,
    "waitFor": 0,
    "mobile": False,
    "skipTlsVerification": True,
    "timeout": 60000,
    "actions": None,
    "location": {"country": "US"},
    "removeBase64Images": True,
    "blockAds": True,
    "proxy": "auto",
    "storeInCache": True,
    "lockdown": False,
    "redactPII": False,
    "profile": None,
    "threatProtection": None,
    "auditMetadata": None,
    "formats": [],
    "parsers": [{"type": "pdf"}],
}

_CRAWL_DEFAULTS: dict[str, Any] = {
    "limit": 10000,
    "includePaths": None,
    "excludePaths": None,
    "regexOnFullURL": False,
    "sitemap": "include",
    "ignoreQueryParameters": False,
    "deduplicateSimilarURLs": True,
    "crawlEntireDomain": False,
    "allowExternalLinks": False,
    "allowSubdomains": False,
    "ignoreRobotsTxt": False,
}

_FORMAT_DEFAULTS: dict[str, Any] = {"fullPage": False, "tag": None}


def match_targets(declared: Sequence[Wire], stored: Sequence[Wire]) -> list[int | None]:
    """Return for each declared target the index of the stored one whose history it continues, or None.

    An id that is declared decides; then what is watched (URLs, URL or queries), wholly or in part; then the
    place in the list, within the same type.

    :param declared: targets in wire form.
    :param stored: targets as the service returns them.
    """
    partners: list[int | None] = [None] * len(declared)
    free = set(range(len(stored)))

    def pair(index: int, partner: int | None) -> None:
        if partner is not None:
            partners[index] = partner
            free.discard(partner)

    def open_targets() -> Iterator[tuple[int, Wire]]:
        return ((index, target) for index, target in enumerate(declared) if partners[index] is None)

    def same_type(target: Wire) -> list[int]:
        return [number for number in sorted(free) if stored[number].get("type") == target.get("type")]

    for index, target in open_targets():
        own = target.get("id")
        pair(
            index, next((number for number in sorted(free) if own and stored[number].get("id") == own), None)
        )
    for index, target in open_targets():
        watched = _watched(target)
        pair(index, next((n for n in same_type(target) if _watched(stored[n]) == watched), None))
    for index, target in open_targets():
        watched = _watched(target)
        shares = {number: len(watched & _watched(stored[number])) for number in same_type(target)}
        best = max(shares, key=lambda number: shares[number], default=None)
        pair(index, best if best is not None and shares[best] else None)
    for index, target in open_targets():
        candidates = same_type(target)
        pair(index, index if index in candidates else next(iter(candidates), None))
    return partners


def with_ids(
    declared: Sequence[Wire], stored: Sequence[Wire], partners: Sequence[int | None]
) -> list[dict[str, Any]]:
    """Return the declared targets, each with the id of the stored one whose history it continues."""
    ids = [None if partner is None else stored[partner].get("id") for partner in partners]
    return [
        {**target, "id": own} if own is not None else dict(target)
        for target, own in zip(declared, ids, strict=True)
    ]


def _watched(target: Wire) -> frozenset[str]:
    if target.get("type") == "search":
        return frozenset(_queries(target))
    return frozenset(rest for _, rest in map(_url_key, _urls(target)))


def _urls(target: Wire) -> list[str]:
    urls = as_values(target.get("urls"))
    return urls if urls or not target.get("url") else [str(target["url"])]


def _queries(target: Wire) -> set[str]:
    return {str(query).strip() for query in as_values(target.get("queries"))}


def _url_key(url: str) -> tuple[str, str]:
    """Return scheme (empty if none is written) and the rest of a URL, apart from spelling that means nothing."""
    text = str(url).strip()
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
    except ValueError:
        return "", text
    rest = parts._replace(scheme="", netloc=parts.netloc.lower(), path=parts.path or "/")
    return parts.scheme.lower(), rest.geturl()


def _same_urls(declared: Iterable[str], stored: Iterable[str]) -> bool:
    kept = {_url_key(url) for url in stored}
    wanted = set()
    for scheme, rest in map(_url_key, declared):
        # The service puts a scheme in front of a URL that has none; which one is its own affair.
        added = next((other for other, same in sorted(kept) if same == rest), "http")
        wanted.add((scheme or added, rest))
    return wanted == kept


def target_changes(declared: Wire, stored: Wire) -> list[str]:
    """Return the names of the fields in which a target differs from the stored one."""
    kind = declared.get("type")
    if kind == "search":
        return _search_changes(declared, stored)
    name = "url" if kind == "crawl" else "urls"
    fields = [] if _same_urls(_urls(declared), _urls(stored)) else [name]
    if kind == "crawl":
        fields += _option_changes("crawlOptions", declared, stored, _CRAWL_DEFAULTS)
    return fields + _option_changes("scrapeOptions", declared, stored, _SCRAPE_DEFAULTS)


def _search_changes(declared: Wire, stored: Wire) -> list[str]:
    fields = [] if _queries(declared) == _queries(stored) else ["queries"]
    fields += [
        name
        for name, default in (("searchWindow", "24h"), ("maxResults", 10))
        if (declared.get(name) or default) != (stored.get(name) or default)
    ]
    fields += [
        name
        for name in ("includeDomains", "excludeDomains")
        if folded(declared.get(name)) != folded(stored.get(name))
    ]
    return fields


def _option_changes(group: str, declared: Wire, stored: Wire, defaults: Wire) -> list[str]:
    """Compare two groups of options: one left out means its default, and is free where that is not known."""
    wanted, kept = declared.get(group) or {}, stored.get(group) or {}
    fields = []
    for name in sorted({*wanted, *kept}):
        if name not in wanted and name not in defaults:
            continue
        wanted_here = _plain_option(name, wanted.get(name, defaults.get(name)))
        kept_here = _plain_option(name, kept.get(name, defaults.get(name)))
        exact = name == "headers" or name not in wanted
        if not (wanted_here == kept_here if exact else _covers(wanted_here, kept_here)):
            fields.append(f"{group}.{name}")
    return fields


def _plain_option(name: str, value: Any) -> Any:
    if name == "formats":
        return _formats(value)
    if name == "parsers" and isinstance(value, list):
        return [_typed(item, {"mode": "auto"}) for item in value]
    return None if value in ({}, []) else value


def _formats(value: Any) -> list[str]:
    """Return formats in one spelling and order; markdown, which a monitor always adds, is left out."""
    if not isinstance(value, list):
        return []
    plain = (_typed(item, _FORMAT_DEFAULTS) for item in value)
    return sorted(json.dumps(item, sort_keys=True) for item in plain if item != {"type": "markdown"})


def _typed(item: Any, defaults: Wire) -> Any:
    if isinstance(item, str):
        return {"type": item}
    if not isinstance(item, Mapping):
        return item
    return {
        name: value
        for name, value in item.items()
        if value is not None and not (name in defaults and value == defaults[name])
    }


def _covers(declared: Any, stored: Any) -> bool:
    """Return whether the stored value holds all that is declared; what the service adds to it is free."""
    if isinstance(declared, Mapping):
        return isinstance(stored, Mapping) and all(
            name in stored and _covers(value, stored[name]) for name, value in declared.items()
        )
    if isinstance(declared, (list, tuple)):
        return (
            isinstance(stored, (list, tuple))
            and len(declared) == len(stored)
            and all(map(_covers, declared, stored))
        )
    return bool(declared == stored)


def as_values(value: Any) -> list[Any]:
    """Return a list; the service may show one text where several would be a list."""
    return [value] if isinstance(value, str) else list(value or ())


def folded(values: Any) -> set[str]:
    """Return texts that are compared without regard to case, order and blanks around them."""
    return {str(value).strip().casefold() for value in as_values(values)}
