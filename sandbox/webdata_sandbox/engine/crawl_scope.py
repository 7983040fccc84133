# SPDX-License-Identifier: Apache-2.0
"""The scope of a crawl."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from webdata_sandbox.reference.urls import base_domain, canonical, host_of, in_domain

from .sites import AGENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.reference.wire import Json

    from .web import Web

_INDEX = re.compile(r"/index\.(?:html?|php)$")
INSIDE, ONE_HOP, OUTSIDE, EXTERNAL_HOME = "inside", "one hop", "outside", "external home"


@dataclass(frozen=True)
class Scope:
    """The URLs that a crawl's options allow.

    :param start: the start URL, canonical.
    :param options: validated crawl options.
    """

    start: str
    options: Json

    def position(self, url: str) -> str:
        """Classify a URL: inside the crawl, one hop out, outside, or the home page of another site."""
        parts, home = urlsplit(url), urlsplit(self.start)
        host, own = host_of(url), host_of(self.start)
        sibling = bool(self.options.get("allowSubdomains")) and in_domain(host, base_domain(own))
        if host != own and not sibling:
            if not self.options.get("allowExternalLinks"):
                return OUTSIDE
            return EXTERNAL_HOME if parts.path in ("", "/") else ONE_HOP
        below = host != own or parts.path.startswith(home.path.rstrip("/") or "/")
        return INSIDE if below or self.options.get("crawlEntireDomain") else OUTSIDE

    def wanted(self, url: str) -> bool:
        """Return whether the path patterns allow a URL. They apply to the start URL too."""
        text = url if self.options.get("regexOnFullURL") else urlsplit(url).path
        include, exclude = self.options.get("includePaths", []), self.options.get("excludePaths", [])
        if include and not any(_compiled(pattern).search(text) for pattern in include):
            return False
        return not any(_compiled(pattern).search(text) for pattern in exclude)

    def key(self, url: str) -> str:
        """Return the key by which the crawl deduplicates pages."""
        parts = urlsplit(canonical(url))
        host, path = parts.netloc, parts.path
        if self.options.get("deduplicateSimilarURLs", True):
            host, path = host.removeprefix("www."), _INDEX.sub("/", path).rstrip("/") or "/"
        query = "" if self.options.get("ignoreQueryParameters") else parts.query
        return urlunsplit(("https", host, path, query, ""))

    def robot(self) -> str | None:
        """Return the user agent for robots.txt, or None if the crawl ignores robots.txt."""
        if self.options.get("ignoreRobotsTxt"):
            return None
        return str(self.options.get("robotsUserAgent") or AGENT)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def links_of(web: Web, url: str) -> Iterator[str]:
    """Yield the canonical links of a page; no links if the page does not exist."""
    page = web.get(url)
    if page is not None:
        yield from map(canonical, page.links)
