"""A small HTML tree: parse, select, write out, and turn into markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import urljoin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
)
INVISIBLE = frozenset(["head", "script", "style", "noscript", "template", "iframe", "svg"])
BLOCK = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "html",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
_CLOSED_BY_SIBLING = {
    "li": {"li"},
    "p": BLOCK,
    "tr": {"tr"},
    "td": {"td", "th", "tr"},
    "th": {"td", "th", "tr"},
    "dt": {"dt", "dd"},
    "dd": {"dt", "dd"},
    "option": {"option"},
}


@dataclass
class Node:
    """An element; text is a plain string among its children."""

    tag: str
    attrs: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """Yield this element and all below it, in document order."""
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def find(self, tag: str) -> Node | None:
        """Return the first element of that tag, or None."""
        return next((node for node in self.walk() if node.tag == tag), None)

    def all(self, tag: str) -> list[Node]:
        """Return all elements of that tag."""
        return [node for node in self.walk() if node.tag == tag]

    def text(self) -> str:
        """Return the visible text with white space folded."""
        return " ".join("".join(self._texts()).split())

    def _texts(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            elif child.tag not in INVISIBLE:
                yield " " if child.tag in BLOCK or child.tag == "br" else ""
                yield from child._texts()
                yield " " if child.tag in BLOCK else ""


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("#document")
        self.stack = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        top = self.stack[-1].tag
        if tag in _CLOSED_BY_SIBLING.get(top, ()):
            self.stack.pop()
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.stack[-1].children.append(node)
        if tag not in VOID:
            self.stack.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag: str) -> None:
        for depth in range(len(self.stack) - 1, 0, -1):
            if self.stack[depth].tag == tag:
                del self.stack[depth:]
                return

    def handle_data(self, data: str) -> None:
        self.stack[-1].children.append(data)


def parse(html: str) -> Node:
    """Parse a document; broken markup gives some tree, never an error."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    return builder.root


def to_html(node: Node) -> str:
    """Write the tree as HTML."""
    parts: list[str] = []
    _write(node, parts)
    return "".join(parts)


def _write(node: Node, parts: list[str]) -> None:
    if node.tag != "#document":
        attrs = "".join(f' {name}="{escape(value)}"' for name, value in node.attrs.items())
        parts.append(f"<{node.tag}{attrs}>")
    for child in node.children:
        if isinstance(child, Node):
            _write(child, parts)
        else:
            parts.append(child if node.tag in ("script", "style") else escape(child, quote=False))
    if node.tag != "#document" and node.tag not in VOID:
        parts.append(f"</{node.tag}>")


def copy_without(node: Node, unwanted: Callable[[Node], bool]) -> Node:
    """Return a copy that lacks the elements for which ``unwanted`` is true."""
    children: list[Node | str] = []
    for child in node.children:
        if isinstance(child, str):
            children.append(child)
        elif not unwanted(child):
            children.append(copy_without(child, unwanted))
    return Node(node.tag, dict(node.attrs), children)


_SIMPLE = re.compile(r"([.#]?)([\w-]+)|\[([\w-]+)(?:=[\"']?([^\"'\]]*)[\"']?)?\]|(\*)")


def selector(text: str) -> Callable[[Node], bool]:
    """Return a test for a simple CSS selector: tag, .class, #id, [attribute], [attribute=value], and lists of them.

    Combinators (``a b``, ``a > b``) are not known and raise ValueError.
    """
    tests = [_compound(part.strip()) for part in text.split(",")]
    return lambda node: any(test(node) for test in tests)


def _compound(text: str) -> Callable[[Node], bool]:
    conditions: list[Callable[[Node], bool]] = []
    position = 0
    while position < len(text):
        match = _SIMPLE.match(text, position)
        if match is None:
            break
        conditions.append(_condition(match))
        position = match.end()
    if not text or position < len(text):
        raise ValueError(f"not a simple CSS selector: {text!r}")
    return lambda node: all(condition(node) for condition in conditions)


def _condition(match: re.Match[str]) -> Callable[[Node], bool]:
    prefix, name, attribute, value, star = match.groups()
    if star:
        return lambda _: True
    if attribute:
        return lambda node: attribute in node.attrs and (value is None or node.attrs[attribute] == value)
    if prefix == ".":
        return lambda node: name in node.attrs.get("class", "").split()
    if prefix == "#":
        return lambda node: node.attrs.get("id") == name
    return lambda node: node.tag == name.lower()


def to_markdown(node: Node, base: str) -> str:
    """Turn the tree into markdown; links and images become absolute against ``base``."""
    blocks = [block for block in _blocks(node, base) if block.strip()]
    return "\n\n".join(blocks)


def _blocks(node: Node, base: str) -> Iterator[str]:
    inline: list[Node | str] = []
    for child in node.children:
        if isinstance(child, str) or child.tag not in BLOCK:
            inline.append(child)
            continue
        if inline:
            yield _inline(inline, base)
            inline = []
        yield from _block(child, base)
    if inline:
        yield _inline(inline, base)


def _block(node: Node, base: str) -> Iterator[str]:
    tag = node.tag
    if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
        yield f"{'#' * int(tag[1])} {_inline(node.children, base)}"
    elif tag == "hr":
        yield "---"
    elif tag == "pre":
        yield "```\n" + _raw_text(node).strip("\n") + "\n```"
    elif tag == "blockquote":
        yield "\n".join(f"> {line}".rstrip() for line in to_markdown(node, base).split("\n"))
    elif tag in ("ul", "ol"):
        yield _list(node, base)
    elif tag == "table":
        yield _table(node, base)
    else:
        yield from _blocks(node, base)


def _list(node: Node, base: str) -> str:
    lines = []
    items = [child for child in node.children if isinstance(child, Node) and child.tag == "li"]
    for number, item in enumerate(items, 1):
        marker = f"{number}. " if node.tag == "ol" else "- "
        body = "\n".join(block for block in _blocks(item, base) if block.strip())
        lines.append(marker + body.replace("\n", "\n" + " " * len(marker)))
    return "\n".join(lines)


def _table(node: Node, base: str) -> str:
    rows = [
        [_inline(cell.children, base).replace("|", "\\|") for cell in row.walk() if cell.tag in ("td", "th")]
        for row in node.all("tr")
    ]
    if not rows:
        return ""
    width = max(len(row) for row in rows)
    lines = ["| " + " | ".join(row + [""] * (width - len(row))) + " |" for row in rows]
    lines.insert(1, "| " + " | ".join(["---"] * width) + " |")
    return "\n".join(lines)


def _raw_text(node: Node) -> str:
    return "".join(child if isinstance(child, str) else _raw_text(child) for child in node.children)


def _inline(children: list[Node | str], base: str) -> str:
    parts = [
        re.sub(r"\s+", " ", child) if isinstance(child, str) else _span(child, base) for child in children
    ]
    return re.sub(r" *\n *", "\n", "".join(parts)).strip()


def _span(node: Node, base: str) -> str:
    tag = node.tag
    if tag in INVISIBLE:
        return ""
    if tag == "br":
        return "\n"
    if tag == "img":
        return f"![{node.attrs.get('alt', '')}]({urljoin(base, node.attrs.get('src', ''))})"
    if tag == "code":
        return f"`{_raw_text(node)}`"
    text = _inline(node.children, base)
    if not text:
        return ""
    if tag == "a" and node.attrs.get("href"):
        return f"[{text}]({urljoin(base, node.attrs['href'])})"
    if tag in ("strong", "b"):
        return f"**{text}**"
    if tag in ("em", "i"):
        return f"*{text}*"
    # Spaces at the edges of an element without markup of its own belong to the sentence around it.
    raw = _raw_text(node)
    return (" " if raw[:1].isspace() else "") + text + (" " if raw[-1:].isspace() else "")


_MD_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]*)\)")


def from_markdown(text: str) -> str:
    """Turn simple markdown (headings, lists, paragraphs, code blocks, links, images, bold) into an HTML fragment."""
    out: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.split("\n")
        heading = re.match(r"(#{1,6}) (.*)", lines[0])
        if heading and len(lines) == 1:
            level = len(heading[1])
            out.append(f"<h{level}>{_md_inline(heading[2])}</h{level}>")
        elif all(re.match(r"[-*] ", line) for line in lines):
            out.append("<ul>" + "".join(f"<li>{_md_inline(line[2:])}</li>" for line in lines) + "</ul>")
        elif lines[0].startswith("```"):
            out.append(
                f"<pre>{escape(chr(10).join(line for line in lines if not line.startswith('```')))}</pre>"
            )
        else:
            out.append(f"<p>{_md_inline(block)}</p>")
    return "\n".join(out)


def _md_inline(text: str) -> str:
    def link(match: re.Match[str]) -> str:
        if match[1]:
            return f'<img src="{match[3]}" alt="{match[2]}">'
        return f'<a href="{match[3]}">{match[2]}</a>'

    text = _MD_LINK.sub(link, escape(text))
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
