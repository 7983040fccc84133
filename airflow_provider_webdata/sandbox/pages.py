"""The sandbox's little web: its pages, read from a directory or set by the control API.

A directory holds one directory per host, and in it one file per page: ``index.html`` is the host's front page,
``a/b.html`` is ``https://host/a/b``, ``a/b.pdf.md`` is the text of the PDF ``https://host/a/b.pdf``, its pages
separated by form feeds. All that the sandbox knows of a page stands in the page itself, in the usual meta tags:
``article:published_time``, ``og:type`` (``article`` is news, ``object`` a thing on a code host), ``rating``
(``adult``), ``citation_title`` (a scientific work). A time may be written ``ago:36h`` or ``ago:3d``: that long
before the sandbox was started or reset.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from . import html as markup
from .clock import Clock, from_iso, iso

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.html import HtmlElement

    from .sites import Sites
    from .store import Store

BUILT_IN = Path(__file__).parent / "web"

_AGO = re.compile(r"ago:(\d+)([hd])")


@dataclass(frozen=True)
class Picture:
    """An image on a page; width and height in pixels, 0 when the page does not say."""

    url: str
    alt: str
    width: int
    height: int


@dataclass
class Page:
    """One page, as the site serves it.

    ``markdown`` is set where the page was given as markdown (and for PDFs, which are kept as their text).
    ``error`` is the code a scrape of the page fails with.
    """

    url: str
    html: str = ""
    markdown: str | None = None
    status: int = 200
    content_type: str = "text/html"
    error: str | None = None

    @cached_property
    def tree(self) -> HtmlElement:
        """The parsed document."""
        return markup.parse(self.html)

    @cached_property
    def meta(self) -> dict[str, list[str]]:
        """All meta tags, by name or property."""
        found: dict[str, list[str]] = {}
        for node in self.tree.iter("meta"):
            name = node.get("name") or node.get("property")
            if name:
                found.setdefault(name, []).append(node.get("content", ""))
        return found

    @cached_property
    def title(self) -> str:
        """The document's title."""
        node = next(self.tree.iter("title"), None)
        return "" if node is None else markup.text(node)

    @cached_property
    def description(self) -> str:
        """The description meta tag, or the first words of the main text."""
        described = self.meta.get("description")
        return described[0] if described else self.body_text[:160]

    @cached_property
    def language(self) -> str | None:
        """The language the document declares."""
        return self.tree.get("lang") or None

    @cached_property
    def body_text(self) -> str:
        """The visible text of the main part of the page."""
        body = next(self.tree.iter("body"))
        return markup.text(next(body.iter("main"), body))

    @cached_property
    def published(self) -> datetime | None:
        """When the page was published, if it says so."""
        stated = self.meta.get("article:published_time")
        return from_iso(stated[0]) if stated else None

    @property
    def is_news(self) -> bool:
        """Whether the page declares itself an article and has a date."""
        return self.meta.get("og:type") == ["article"] and self.published is not None

    @property
    def is_adult(self) -> bool:
        """Whether the page declares explicit content."""
        return "adult" in self.meta.get("rating", [])

    @property
    def is_research(self) -> bool:
        """Whether the page declares itself a scientific work."""
        return "citation_title" in self.meta

    @property
    def is_code(self) -> bool:
        """Whether the page declares itself a repository, an issue or the like, as code hosts do."""
        return self.meta.get("og:type") == ["object"]

    @property
    def is_pdf(self) -> bool:
        """Whether the page is a PDF."""
        return self.content_type == "application/pdf"

    @property
    def host(self) -> str:
        """The host name, in lower case."""
        return (urlsplit(self.url).hostname or "").lower()

    @cached_property
    def links(self) -> list[str]:
        """Absolute links of the page in order, each once."""
        found = [
            markup.absolute(self.url, node.get("href", ""))
            for node in self.tree.iter("a")
            if node.get("href")
        ]
        return list(dict.fromkeys(link for link in found if link.startswith(("http://", "https://"))))

    @cached_property
    def pictures(self) -> list[Picture]:
        """The images of the page."""
        return [
            Picture(
                markup.absolute(self.url, node.get("src", "")),
                node.get("alt", ""),
                _pixels(node.get("width")),
                _pixels(node.get("height")),
            )
            for node in self.tree.iter("img")
            if node.get("src")
        ]


def _pixels(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0


def canonical(url: str) -> str:
    """Return the URL as pages are kept by: scheme added, host in lower case, no fragment, no trailing slash."""
    if "://" not in url:
        url = f"http://{url}"
    parts = urlsplit(url)
    scheme = "https" if parts.scheme == "http" else parts.scheme.lower()
    return urlunsplit((scheme, parts.netloc.lower(), parts.path.rstrip("/") or "/", parts.query, ""))


def is_public(url: str) -> bool:
    """Whether other endpoints of the service would take the URL: http(s), and a host with a TLD or an IP."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https"):
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return re.fullmatch(r"([\w-]{1,63}\.)+[^\W\d_][\w-]{1,62}\.?", host) is not None
    return True


def compose(
    url: str,
    *,
    html: str | None = None,
    markdown: str | None = None,
    title: str | None = None,
    description: str | None = None,
    published: str | None = None,
    language: str = "en",
    news: bool = False,
    status: int = 200,
    error: str | None = None,
    content_type: str = "text/html",
) -> Page:
    """Make a page from its parts; ``html`` that is a whole document is taken as it is.

    :raises ValueError: when both or neither of html and markdown are given, or ``published`` is not a time.
    """
    if (html is None) == (markdown is None):
        raise ValueError("give either html or markdown")
    if html is None or "<html" not in html.lower():
        metas = {
            "description": description,
            "article:published_time": published,
            "og:type": "article" if news else None,
        }
        head = "".join(
            f'<meta property="{name}" content="{escape(value)}">'
            for name, value in metas.items()
            if value is not None
        )
        body = html if html is not None else markup.from_markdown(markdown or "")
        html = (
            f'<html lang="{escape(language)}"><head><title>{escape(title or url)}</title>{head}</head>'
            f"<body><main>{body}</main></body></html>"
        )
    page = Page(canonical(url), html, markdown, status, content_type, error)
    _ = page.published  # a time that cannot be read is refused now, not in a later search
    return page


class Web:
    """All pages: the built-in ones, those of a directory, what the control API changed since, and generated ones.

    Iterating leaves the generated ones out.
    """

    def __init__(self, store: Store, clock: Clock, sites: Sites, directory: str | None = None) -> None:
        self._store, self._clock = store, clock
        self.sites = sites
        self._directories = (BUILT_IN, *([Path(directory)] if directory else []))
        self.reset()
        for change in store.list("page"):
            self._apply(change)

    def __iter__(self) -> Iterator[Page]:
        return iter(self._pages.values())

    def get(self, url: str) -> Page | None:
        """Return the page at that URL, or None."""
        return self._pages.get(canonical(url)) or self.sites.page(url)

    def generates(self, url: str) -> bool:
        """Whether the page at that URL can be made again, so that nobody need keep it."""
        return canonical(url) not in self._pages and self.sites.makes(url)

    def knows_host(self, host: str) -> bool:
        """Whether any page lives on that host."""
        return self.sites.knows(host) or any(page.host == host for page in self._pages.values())

    def put(self, page: Page) -> None:
        """Create or replace a page."""
        change = asdict(page)
        self._store.put("page", page.url, change)
        self._apply(change)

    def remove(self, url: str) -> bool:
        """Remove a page; return whether it was there."""
        url = canonical(url)
        known = url in self._pages
        self._store.put("page", url, {"url": url, "removed": True})
        self._pages.pop(url, None)
        return known

    def reset(self) -> None:
        """Go back to the pages of the directories; their ``ago:`` times count from now."""
        now = self._clock.datetime()
        self._pages = {page.url: page for directory in self._directories for page in load(directory, now)}

    def _apply(self, change: dict[str, Any]) -> None:
        if change.get("removed"):
            self._pages.pop(change["url"], None)
        else:
            self._pages[change["url"]] = Page(**change)


def load(directory: Path, now: datetime) -> Iterator[Page]:
    """Read all pages of a directory; ``ago:`` times are counted back from ``now``."""
    if not directory.is_dir():
        raise NotADirectoryError(f"the directory of pages does not exist: {directory}")
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.name.endswith((".html", ".pdf.md")):
            yield _read(path, directory, now)


def _read(path: Path, directory: Path, now: datetime) -> Page:
    host, *rest = path.relative_to(directory).parts
    name = "/".join(rest)
    text = _AGO.sub(lambda match: _before(now, match), path.read_text(encoding="utf-8"))
    if name.endswith(".pdf.md"):
        page = compose(f"https://{host}/{name.removesuffix('.md')}", markdown=text, title=_heading(text))
        return replace(page, content_type="application/pdf")
    location = "" if name == "index.html" else name.removesuffix(".html").removesuffix("/index")
    return Page(canonical(f"https://{host}/{location}"), text)


def _heading(text: str) -> str:
    return text.lstrip().split("\n", 1)[0].lstrip("# ")


def _before(now: datetime, match: re.Match[str]) -> str:
    amount = int(match[1])
    span = timedelta(hours=amount) if match[2] == "h" else timedelta(days=amount)
    return iso(now - span)
