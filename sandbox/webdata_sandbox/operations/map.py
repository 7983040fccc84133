# SPDX-License-Identifier: Apache-2.0
"""Map: the URLs of a site."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from webdata_sandbox.engine.words import words
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.urls import (
    bare,
    base_domain,
    canonical,
    host_of,
    in_domain,
    with_scheme,
)

from .call import Reply
from .endpoint import Endpoint
from .validation import valid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.engine.web import Web
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .call import Call

DEFAULT_LIMIT = 5000
FEW_LINKS = "Only {} result(s) found. For broader coverage, try mapping the base domain: {}"
TIMED_OUT = "Map timed out"


class Map:
    """Handles ``POST /v2/map``: lists the URLs in a site's sitemaps and its pages in the sandbox's index."""

    def __init__(self, core: Core, web: Web) -> None:
        self._core, self._web = core, web

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint("POST", "/v2/map", self.map, "map", activity="map", target="url"),
        ]

    async def map(self, call: Call) -> Reply:
        """Validate, list, and bill."""
        body = valid("map", call.body, self._core.settings.profile)
        core = self._core
        if "threatProtection" in body:
            core.settings.require_entitlement("threatProtection")
        if core.settings.latency_ms > body.get("timeout", float("inf")):
            raise ServiceError(408, TIMED_OUT, code="MAP_TIMEOUT")
        core.credits.require()
        core.credits.spend(1)
        links = self._links(body)[: body.get("limit", DEFAULT_LIMIT)]
        plain = core.quirks.on("map-strings")
        shown = [link["url"] for link in links] if plain else links
        answer: Json = {"success": True, "id": str(uuid.uuid4()), "links": shown}
        domain = base_domain(host := host_of(canonical(with_scheme(body["url"]))))
        is_narrow = host != domain and body.get("sitemap") != "only"
        if not core.settings.profile.searches and len(links) <= 1 and is_narrow:
            answer["warning"] = FEW_LINKS.format(len(links), domain)
        return Reply(200, answer)

    def _links(self, body: Json) -> list[Json]:
        start = canonical(with_scheme(body["url"]))
        addresses = self._addresses(start, body)
        if self._core.settings.profile.exact_slashes:
            with_query = not body.get("ignoreQueryParameters", True)
            addresses = (bare(url, query=with_query) for url in addresses)
        links = [self._link(url) for url in dict.fromkeys(url for url in addresses if _wanted(url, body))]
        if body.get("search"):
            terms = set(words(body["search"]))
            links.sort(key=lambda link: -len(terms & set(words(" ".join(link.values())))))
        return links

    def _addresses(self, start: str, body: Json) -> Iterator[str]:
        web, host = self._web, host_of(start)
        hosts = [host]
        if body.get("includeSubdomains", True):
            known = dict.fromkeys([page.host for page in web] + web.sites.hosts())
            hosts.extend(name for name in known if name != host and in_domain(name, base_domain(host)))
        listed = []
        if body.get("sitemap") != "skip":
            listed = [canonical(url) for name in hosts for url in web.sites.sitemap(name)]
        searches = self._core.settings.profile.searches
        if listed or (searches and web.knows_host(host)):
            yield start
        yield from listed
        if searches and body.get("sitemap") != "only":
            yield from sorted(page.url for page in web if page.host in hosts)

    def _link(self, url: str) -> Json:
        page = self._web.get(url)
        link: Json = {"url": url}
        if page is not None:
            link.update(title=page.title, description=page.description)
        return link


def _wanted(url: str, body: Json) -> bool:
    parts = urlsplit(url)
    if parts.query and body.get("ignoreQueryParameters", True):
        return False
    include, exclude = body.get("includePaths", []), body.get("excludePaths", [])
    if include and not any(re.search(pattern, parts.path) for pattern in include):
        return False
    return not any(re.search(pattern, parts.path) for pattern in exclude)
