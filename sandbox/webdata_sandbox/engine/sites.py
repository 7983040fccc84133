# SPDX-License-Identifier: Apache-2.0
"""Properties of a site: robots.txt, the sitemap, and generated pages.

Generated pages need no storage: each request generates the page from its number, and neither the cache nor the
results of jobs store its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

from webdata_sandbox.reference.urls import canonical, host_of
from webdata_sandbox.reference.wire import whole_number

from .page import Page

if TYPE_CHECKING:
    from webdata_sandbox.state.store import Store

MAX_PAGES = 1_000_000
AGENT = "FirecrawlAgent"
FAILURE = "SCRAPE_SITE_ERROR"

_LINE = "Station %d of the river measured %d cm at the bridge and %d cm at the mill, less than the day before.\n\n"


@dataclass(frozen=True)
class Site:
    """The properties of one host.

    :param pages: number of generated pages below ``/p/``, 0 to 1,000,000.
    :param fanout: number of links on each generated page to later ones. Every page is reachable from the front page.
    :param size: approximate characters of markdown of each generated page.
    :param fail_every: n: every n-th generated page cannot be scraped.
    :param robots: the text of robots.txt.
    :param sitemap: URLs in the sitemap; True: all generated pages; None: no sitemap.
    """

    host: str
    pages: int = 0
    fanout: int = 10
    size: int = 2000
    fail_every: int | None = None
    robots: str | None = None
    sitemap: tuple[str, ...] | bool | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.pages <= MAX_PAGES:
            raise ValueError(f"pages must be between 0 and {MAX_PAGES}, not {self.pages}")
        if self.fanout < 1 or self.size < 1 or (self.fail_every is not None and self.fail_every < 1):
            raise ValueError("fanout, size, and fail_every must be at least 1")

    def number(self, url: str) -> int | None:
        """Return the number of the generated page at a URL (0: the front page), or None."""
        parts = urlsplit(url)
        if self.pages == 0 or parts.query:
            return None
        if parts.path == "/":
            return 0
        first, _, digits = parts.path.rpartition("/")
        number = whole_number(digits)
        if first != "/p" or number is None or digits != str(number):
            return None
        return number if 1 <= number <= self.pages else None

    def address(self, number: int) -> str:
        """Return the URL of a generated page."""
        return f"https://{self.host}/p/{number}" if number else f"https://{self.host}/"

    def generate(self, number: int) -> Page:
        """Generate a page."""
        links = [self.address(n) for n in self._below(number)]
        title = f"Station {number}"
        lines = self.size // len(_LINE) + 1
        text = f"# {title}\n\n" + "".join(_LINE % (number, n, n // 2) for n in range(lines))
        anchors = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
        paragraphs = "".join(f"<p>{line}</p>" for line in text.split("\n\n")[1:] if line)
        html = (
            f'<html lang="en"><head><title>{title}</title></head>'
            f"<body><main><h1>{title}</h1>{paragraphs}<ul>{anchors}</ul></main></body></html>"
        )
        page = Page(self.address(number), html, text, error=FAILURE if self._fails(number) else None)
        # Set the cached properties, so that ten thousand pages need no parsing.
        vars(page).update(title=title, meta={}, description=text[:160], language="en", links=links)
        return page

    def _fails(self, number: int) -> bool:
        return self.fail_every is not None and number > 0 and number % self.fail_every == 0

    def _below(self, number: int) -> Iterator[int]:
        """Yield the pages that a page links to: its children, and the children of those that fail."""
        parents = [number]
        for parent in parents:
            first = parent * self.fanout + 1
            for child in range(first, min(first + self.fanout, self.pages + 1)):
                yield child
                if self._fails(child):
                    parents.append(child)


class Sites:
    """The properties of all hosts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sites: dict[str, Site] = {}
        for stored in store.list("site"):
            self._add(stored)

    def put(self, **fields: Any) -> None:
        """Create or replace the properties of a host; the fields are those of :class:`Site`.

        :raises ValueError: a field is invalid.
        """
        host = str(fields.pop("host")).lower()
        if isinstance(fields.get("sitemap"), Sequence):
            fields["sitemap"] = tuple(fields["sitemap"])
        site = Site(host, **fields)
        self._store.put("site", host, asdict(site))
        self._sites[host] = site

    def clear(self) -> None:
        """Remove all hosts from memory."""
        self._sites.clear()

    def knows(self, host: str) -> bool:
        """Return whether the host has generated pages."""
        site = self._sites.get(host)
        return site is not None and site.pages > 0

    def hosts(self) -> list[str]:
        """Return all hosts with properties."""
        return list(self._sites)

    def page(self, url: str) -> Page | None:
        """Generate the page at a URL; None if no site generates one there."""
        site = self._sites.get(host_of(url))
        number = site.number(canonical(url)) if site else None
        return site.generate(number) if site and number is not None else None

    def generates(self, url: str) -> bool:
        """Return whether a site generates the page at a URL."""
        site = self._sites.get(host_of(url))
        return site is not None and site.number(canonical(url)) is not None

    def sitemap(self, host: str) -> Iterator[str]:
        """Yield the URLs in the sitemap of a host, if it has one."""
        site = self._sites.get(host)
        listed = site.sitemap if site else None
        if site is not None and listed is True:
            yield from map(site.address, range(site.pages + 1))
        elif isinstance(listed, tuple):
            yield from listed

    def allows(self, url: str, agent: str) -> bool:
        """Return whether robots.txt allows a user agent to fetch the page."""
        site = self._sites.get(host_of(url))
        if site is None or site.robots is None:
            return True
        rules = RobotFileParser()
        rules.parse(site.robots.splitlines())
        return rules.can_fetch(agent, url)

    def _add(self, stored: dict[str, Any]) -> None:
        if isinstance(stored["sitemap"], list):
            stored["sitemap"] = tuple(stored["sitemap"])
        self._sites[stored["host"]] = Site(**stored)
