"""Markup: parsed and selected from by lxml, turned into markdown by markdownify and out of it by markdown-it.

Beautiful Soup as the tree was tried: a page takes six times as long, one nested 5,000 deep five seconds.
"""

from __future__ import annotations

import re
from copy import deepcopy
from itertools import dropwhile
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from bs4 import BeautifulSoup
from cssselect import SelectorError
from lxml.cssselect import CSSSelector
from lxml.etree import ParserError, SubElement, iterwalk
from lxml.html import Element, HTMLParser, document_fromstring, tostring
from markdown_it import MarkdownIt
from markdownify import MarkdownConverter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.html import HtmlElement

_SECTIONS = frozenset(
    ("address", "aside", "details", "fieldset", "figure", "footer", "form", "header", "main", "nav")
)
_BLOCKS = _SECTIONS | {
    *(
        "article",
        "blockquote",
        "br",
        "dd",
        "div",
        "dl",
        "dt",
        "figcaption",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
    ),
    *("hr", "li", "ol", "p", "pre", "section", "table", "td", "th", "tr", "ul"),
}
_HEAD = frozenset(("base", "link", "meta", "noscript", "script", "style", "template", "title"))
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that lxml reads but does not accept back."""
_INVISIBLE = CSSSelector("head, script, style, noscript, template, iframe, svg", translator="html")
_PARSER = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)


class _Markdown(MarkdownConverter):
    def convert_td(self, el: Any, text: str, parent_tags: set[str]) -> Any:
        return super().convert_td(el, text.replace("|", r"\|"), parent_tags)  # type: ignore[misc]

    convert_th = convert_td


def parse(html: str) -> HtmlElement:
    """Parse a document. Broken markup gives some tree, never an error. Elements nested 256 deep are omitted."""
    try:
        tree = document_fromstring(html.encode(errors="replace"), _PARSER, ensure_head_body=True)
    except ParserError:  # nothing is in it
        return document_fromstring("<html></html>", ensure_head_body=True)
    # libxml2 does not know HTML 5's sections and leaves them in a head that was not closed.
    head, rest = next(tree.iter("head")), next(tree.iter("body"))
    strays = [*dropwhile(lambda node: node.tag in _HEAD, head)]
    if strays:
        body = SubElement(tree, "body")
        body.extend(strays)
        body.append(rest)
        rest.tag = "div"
    for node in tree.iter():
        if _CONTROLS.search(node.text or ""):
            node.text = _CONTROLS.sub(" ", node.text or "")
        if _CONTROLS.search(node.tail or ""):
            node.tail = _CONTROLS.sub(" ", node.tail or "")
    return tree


def to_html(node: HtmlElement) -> str:
    """Write the tree as HTML."""
    return tostring(node, encoding="unicode", with_tail=False)


def selector(css: str) -> CSSSelector:
    """Return a function that finds the elements that a CSS selector names, in document order.

    :raises ValueError: it is none.
    """
    try:
        return CSSSelector(css, translator="html")
    except SelectorError:
        raise ValueError(f"not a CSS selector: {css!r}") from None


def drop(nodes: list[HtmlElement]) -> None:
    """Take elements out of their tree; the text that follows them stays."""
    for node in nodes:
        if node.getparent() is not None:
            node.drop_tree()


def together(nodes: list[HtmlElement]) -> HtmlElement:
    """Return copies of elements in one; of an element inside another only the outer one's."""
    found = set(nodes)
    outermost = [node for node in nodes if found.isdisjoint(node.iterancestors())]
    whole = Element("div")
    for node in outermost:
        whole.append(deepcopy(node))
        whole[-1].tail = None
    return whole


def visible(node: HtmlElement) -> HtmlElement:
    """Return a copy without invisible elements."""
    copy = deepcopy(node)
    copy.tail = None
    drop(_INVISIBLE(copy))
    return copy


def text(node: HtmlElement) -> str:
    """Return the visible text with white space folded."""
    return " ".join("".join(_pieces(visible(node))).split())


def _pieces(root: HtmlElement) -> Iterator[str]:
    for event, node in iterwalk(root, events=("start", "end")):
        if node.tag in _BLOCKS:
            yield " "
        if event == "start":
            yield node.text or ""
        elif node is not root:
            yield node.tail or ""


def absolute(base: str, link: str) -> str:
    """Resolve a link against the page ``base``; return an invalid link unchanged."""
    try:
        return urljoin(base, link)
    except ValueError:
        return link


def to_markdown(node: HtmlElement, base: str) -> str:
    """Convert the tree to GitHub's markdown, with the words unchanged.

    :param base: the address against which links and images become absolute.
    """
    copy = visible(node)
    for section in copy.iter(*_SECTIONS):
        section.tag = "div"  # which markdownify knows to stand alone
    soup = BeautifulSoup(to_html(copy), "lxml")
    for name in ("href", "src"):
        for tag in soup.select(f"[{name}]"):
            tag[name] = absolute(base, str(tag[name]))
    converter = _Markdown(
        autolinks=False,
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        heading_style="atx",
        keep_inline_images_in=list(_BLOCKS),
        table_infer_header=True,
        wrap=True,  # white space is folded, ...
        wrap_width=None,  # ... but no line is broken
    )
    return converter.convert_soup(soup).strip()


def from_markdown(markdown: str) -> str:
    """Turn markdown into an HTML fragment."""
    html: str = MarkdownIt("js-default").render(markdown)
    return html.strip()
