# SPDX-License-Identifier: Apache-2.0
"""One page of the sandbox's web.

The properties of a page come from its meta tags: ``article:published_time``, ``og:type`` (``article``: news;
``object``: a code host; ``government``: a government authority), ``rating`` (``adult``), and ``citation_title`` (a
scientific work).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from webdata_sandbox.reference.timestamps import from_iso
from webdata_sandbox.reference.urls import canonical, host_of, with_scheme

from . import html as markup

if TYPE_CHECKING:
    from datetime import datetime

    from lxml.html import HtmlElement


@dataclass(frozen=True)
class Picture:
    """An image on a page; width and height in pixels, 0 if unknown."""

    url: str
    alt: str
    width: int
    height: int


@dataclass
class Page:
    """One page, as its site serves it.

    ``markdown`` is set for PDFs, which exist only as text, and for pages that were created from markdown.
    ``error`` is the code with which a scrape of the page fails. ``slash``: its address ends with a slash, which the
    canonical ``url`` lacks.
    """

    url: str
    html: str = ""
    markdown: str | None = None
    status: int = 200
    content_type: str = "text/html"
    error: str | None = None
    slash: bool = False

    @property
    def address(self) -> str:
        """The URL by which its site knows the page."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(path=f"{parts.path}/")) if self.slash else self.url

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
        """The declared language of the document."""
        return self.tree.get("lang") or None

    @cached_property
    def body_text(self) -> str:
        """The visible text of the main part of the page."""
        # An uploaded PDF has no markup.
        return markup.text(self.main) if self.html or self.markdown is None else self.markdown

    @property
    def main(self) -> HtmlElement:
        """The main part of the document."""
        body = next(self.tree.iter("body"))
        return next(body.iter("main"), body)

    @cached_property
    def published(self) -> datetime | None:
        """The time of publication, or None."""
        stated = self.meta.get("article:published_time")
        return from_iso(stated[0]) if stated else None

    @property
    def is_news(self) -> bool:
        """True if the page declares itself an article and has a date."""
        return self.meta.get("og:type") == ["article"] and self.published is not None

    @property
    def is_adult(self) -> bool:
        """True if the page declares explicit content."""
        return "adult" in self.meta.get("rating", [])

    @property
    def is_research(self) -> bool:
        """True if the page declares itself a scientific work."""
        return "citation_title" in self.meta

    @property
    def is_code(self) -> bool:
        """True if the page declares itself an object of a code host, such as a repository or an issue."""
        return self.meta.get("og:type") == ["object"]

    @property
    def is_government(self) -> bool:
        """True if the page declares that it belongs to a government authority."""
        return self.meta.get("og:type") == ["government"]

    @property
    def is_pdf(self) -> bool:
        """True if the page is a PDF."""
        return self.content_type == "application/pdf"

    @property
    def host(self) -> str:
        """The host name, in lower case."""
        return host_of(self.url)

    @cached_property
    def links(self) -> list[str]:
        """Absolute links of the page in order, without duplicates."""
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
    """Build a page from its parts. If ``html`` is a whole document, it is used unchanged.

    :raises ValueError: html and markdown are both set or both missing, or ``published`` is not a time.
    """
    if (html is None) == (markdown is None):
        raise ValueError("set either html or markdown")
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
    path = urlsplit(with_scheme(url)).path
    page = Page(
        canonical(url), html, markdown, status, content_type, error, len(path) > 1 and path.endswith("/")
    )
    _ = page.published  # raises for an invalid time now, not in a later search
    return page
