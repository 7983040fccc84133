"""The map operation: the addresses of a site (supplement 7)."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_provider_webdata.sandbox.engine.crawl_scope import base_domain
from airflow_provider_webdata.sandbox.engine.index import in_domain, words
from airflow_provider_webdata.sandbox.engine.page import canonical
from airflow_provider_webdata.sandbox.reference.rules import with_scheme
from airflow_provider_webdata.sandbox.reference.wire import Json, Reply, ServiceError

from .scrape import NO_THREATS
from .validation import valid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.sandbox.reference.wire import Call
    from airflow_provider_webdata.sandbox.service import Sandbox

DEFAULT_LIMIT = 5000
TIMED_OUT = "Map timed out"


class Mapping:
    """Answers ``POST /v2/map``: what the sitemaps list, and what the sandbox's own index knows of the site."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def map(self, call: Call) -> Reply:
        """Validate, list, bill."""
        body = valid("map", call.body)
        sandbox = self._sandbox
        if "threatProtection" in body and "threatProtection" not in sandbox.entitlements:
            raise ServiceError(403, NO_THREATS)
        if sandbox.latency_ms > body.get("timeout", float("inf")):
            raise ServiceError(408, TIMED_OUT, code="MAP_TIMEOUT")
        sandbox.credits.require()
        sandbox.credits.spend(1)
        links = self._links(body)[: body.get("limit", DEFAULT_LIMIT)]
        plain = sandbox.quirks.on("map-strings")
        shown = [link["url"] for link in links] if plain else links
        return Reply(200, {"success": True, "id": str(uuid.uuid4()), "links": shown})

    def _links(self, body: Json) -> list[Json]:
        start = canonical(with_scheme(body["url"]))
        addresses = dict.fromkeys(url for url in self._addresses(start, body) if _wanted(url, body))
        links = [self._link(url) for url in addresses]
        if body.get("search"):
            asked = set(words(body["search"]))
            links.sort(key=lambda link: -len(asked & set(words(" ".join(link.values())))))
        return links

    def _addresses(self, start: str, body: Json) -> Iterator[str]:
        yield start
        web, host = self._sandbox.web, (urlsplit(start).hostname or "").lower()
        hosts = [host]
        if body.get("includeSubdomains", True):
            known = dict.fromkeys([page.host for page in web] + web.sites.hosts())
            hosts.extend(name for name in known if name != host and in_domain(name, base_domain(host)))
        if body.get("sitemap") != "skip":
            for name in hosts:
                yield from map(canonical, web.sites.sitemap(name))
        if body.get("sitemap") != "only":
            yield from sorted(page.url for page in web if page.host in hosts)

    def _link(self, url: str) -> Json:
        page = self._sandbox.web.get(url)
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
