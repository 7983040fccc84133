# SPDX-License-Identifier: Apache-2.0
"""Conversion of office files and e-books to HTML: headings, paragraphs, lists, links, and tables.

No single library replaces these readers: markitdown has 32 dependencies and does not support OpenDocument, and
kreuzberg's license is not an open-source one.
"""

from __future__ import annotations

import re
import zipfile
from html import escape
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING
from xml.etree import ElementTree

from . import html as markup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from xml.etree.ElementTree import Element

UNPACKED_MAX = 200 * 1024 * 1024
"""Maximum unpacked bytes of one archive."""

_REPEATS_MAX = 1000


class BrokenFileError(Exception):
    """The file does not match its extension."""


class _Archive:
    """The parts of an office file. Limits their unpacked size and refuses document type declarations."""

    def __init__(self, content: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(content)
        self._left = UNPACKED_MAX

    def names(self) -> list[str]:
        return self._zip.namelist()

    def content(self, name: str) -> bytes:
        with self._zip.open(name) as part:
            raw = part.read(self._left + 1)
        self._left -= len(raw)
        if self._left < 0:
            raise BrokenFileError(f"the archive unpacks to more than {UNPACKED_MAX} bytes")
        return raw

    def xml(self, name: str) -> Element:
        raw = self.content(name)
        if b"<!DOCTYPE" in raw or b"<!ENTITY" in raw:
            raise BrokenFileError("a part declares a document type")
        return ElementTree.fromstring(raw)  # noqa: S314 - no document type, so no entities to expand

    def relations(self, name: str) -> dict[str, str]:
        """Return the targets of a part's relationships, by id."""
        path = PurePosixPath(name)
        rels = str(path.parent / "_rels" / f"{path.name}.rels")
        if rels not in self.names():
            return {}
        return {item.get("Id", ""): item.get("Target", "") for item in self.xml(rels)}


def _local(node: Element) -> str:
    return node.tag.rpartition("}")[2]


def _get(node: Element, name: str) -> str | None:
    """Return the attribute with this local name."""
    return next((value for key, value in node.attrib.items() if key.rpartition("}")[2] == name), None)


def _all(node: Element, name: str) -> Iterator[Element]:
    return (child for child in node.iter() if _local(child) == name)


def table(rows: Iterable[Iterable[str]]) -> str:
    """Return rows of cells as an HTML table."""
    written = (
        "<tr>" + "".join(f"<td>{escape(cell, quote=False)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table>{''.join(written)}</table>"


def _link(inner: str, href: str | None) -> str:
    return f'<a href="{escape(href)}">{inner}</a>' if href else inner


def docx(content: IO[bytes]) -> str:
    """Convert a Word document to HTML.

    :raises BrokenFileError: the file is not a Word document.
    """
    archive = _Archive(content)
    links = archive.relations("word/document.xml")
    body = next(_all(archive.xml("word/document.xml"), "body"), None)
    if body is None:
        raise BrokenFileError("it has no body")
    return "".join(_word_blocks(body, links))


def _word_blocks(parent: Element, links: dict[str, str]) -> Iterator[str]:
    items: list[str] = []
    for node in parent:
        block = _local(node)
        if block == "p" and next(_all(node, "numPr"), None) is not None:
            items.append(f"<li>{_word_text(node, links)}</li>")
            continue
        if items:
            yield f"<ul>{''.join(items)}</ul>"
            items = []
        if block == "p":
            style = next(_all(node, "pStyle"), None)
            level = _heading_level((_get(style, "val") if style is not None else None) or "")
            tag = f"h{level}" if level else "p"
            yield f"<{tag}>{_word_text(node, links)}</{tag}>"
        elif block == "tbl":
            rows = (
                [" ".join(_plain(p) for p in _all(cell, "p")) for cell in row if _local(cell) == "tc"]
                for row in node
                if _local(row) == "tr"
            )
            yield table(rows)
        elif block == "sdt":
            yield from _word_blocks(next(_all(node, "sdtContent"), node), links)
    if items:
        yield f"<ul>{''.join(items)}</ul>"


def _heading_level(style: str) -> int:
    if style.lower() == "title":
        return 1
    match = re.fullmatch(r"heading ?([1-6])", style.lower())
    return int(match[1]) if match else 0


def _word_text(node: Element, links: dict[str, str]) -> str:
    parts: list[str] = []
    for child in node:
        inner = escape(_plain(child), quote=False)
        if _local(child) == "hyperlink":
            inner = _link(inner, links.get(_get(child, "id") or ""))
        parts.append(inner)
    return "".join(parts)


_BREAKS = {"tab": "\t", "br": "\n", "line-break": "\n", "s": " "}


def _plain(node: Element) -> str:
    """Return the text of a Word or PowerPoint paragraph, from its ``t`` elements."""
    return "".join(
        (child.text or "") if _local(child) == "t" else _BREAKS.get(_local(child), "")
        for child in node.iter()
        if _local(child) in ("t", *_BREAKS)
    )


def xlsx(content: IO[bytes]) -> str:
    """Convert an Excel workbook to HTML: a table for each sheet.

    :raises BrokenFileError: a row or a cell is invalid, or the archive is too large.
    """
    archive = _Archive(content)
    shared: list[str] = []
    if "xl/sharedStrings.xml" in archive.names():
        shared = [_plain(item) for item in archive.xml("xl/sharedStrings.xml")]
    targets = archive.relations("xl/workbook.xml")
    parts: list[str] = []
    for sheet in _all(archive.xml("xl/workbook.xml"), "sheet"):
        target = targets[_get(sheet, "id") or ""]
        name = target.removeprefix("/") if target.startswith("/") else f"xl/{target}"
        parts.append(f"<h2>{escape(_get(sheet, 'name') or '')}</h2>")
        parts.append(table(_sheet_row(row, shared) for row in _all(archive.xml(name), "row")))
    return "".join(parts)


def _sheet_row(row: Element, shared: list[str]) -> list[str]:
    cells: list[str] = []
    for cell in row:
        column = _column(_get(cell, "r") or "")
        if column - len(cells) > _REPEATS_MAX:
            raise BrokenFileError(f"a row omits {_REPEATS_MAX} or more cells in succession")
        cells.extend([""] * (column - 1 - len(cells)))
        cells.append(_cell(cell, shared))
    return cells


def _column(reference: str) -> int:
    number = 0
    for letter in reference:
        if not "A" <= letter <= "Z":
            break
        number = number * 26 + ord(letter) - 64
    return number


def _cell(cell: Element, shared: list[str]) -> str:
    """Return the stored value of a cell. Dates remain serial numbers."""
    if _get(cell, "t") == "inlineStr":
        return _plain(cell)
    value = next((child.text or "" for child in cell if _local(child) == "v"), "")
    if _get(cell, "t") == "s":
        if not value.isdigit() or int(value) >= len(shared):
            raise BrokenFileError("a cell refers to a missing shared string")
        return shared[int(value)]
    return {"1": "TRUE", "0": "FALSE"}.get(value, value) if _get(cell, "t") == "b" else value


def pptx(content: IO[bytes]) -> str:
    """Convert a PowerPoint presentation to HTML: the titles and paragraphs of each slide."""
    archive = _Archive(content)
    targets = archive.relations("ppt/presentation.xml")
    parts: list[str] = []
    for slide in _all(archive.xml("ppt/presentation.xml"), "sldId"):
        # The attribute `id` without a namespace is the slide's number; the one with a namespace is the relationship.
        relation = next(value for key, value in slide.attrib.items() if key.endswith("}id"))
        for shape in _all(archive.xml(f"ppt/{targets[relation]}"), "sp"):
            place = next(_all(shape, "ph"), None)
            titled = place is not None and _get(place, "type") in ("title", "ctrTitle")
            texts = (_plain(paragraph) for paragraph in _all(shape, "p"))
            tag = "h2" if titled else "p"
            parts.extend(f"<{tag}>{escape(text, quote=False)}</{tag}>" for text in texts if text)
    return "".join(parts)


def open_document(content: IO[bytes]) -> str:
    """Convert an OpenDocument text, spreadsheet, or presentation to HTML.

    :raises BrokenFileError: the file is not an OpenDocument file.
    """
    body = next(_all(_Archive(content).xml("content.xml"), "body"), None)
    if body is None:
        raise BrokenFileError("it has no body")
    return "".join(_odf_blocks(body))


def _odf_blocks(parent: Element) -> Iterator[str]:
    for node in parent:
        block = _local(node)
        if block == "h":
            level = min(6, max(1, int(_get(node, "outline-level") or "1")))
            yield f"<h{level}>{_odf_text(node)}</h{level}>"
        elif block == "p":
            yield f"<p>{_odf_text(node)}</p>"
        elif block == "list":
            items = ("".join(_odf_blocks(item)) for item in node if _local(item).startswith("list-"))
            yield "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"
        elif block == "table":
            if _get(node, "name") and _local(parent) == "spreadsheet":
                yield f"<h2>{escape(_get(node, 'name') or '')}</h2>"
            yield table(_odf_rows(node))
        else:
            yield from _odf_blocks(node)


def _odf_rows(table: Element) -> Iterator[list[str]]:
    for row in _all(table, "table-row"):
        cells: list[str] = []
        gap = 0
        for cell in row:
            times = min(_REPEATS_MAX, int(_get(cell, "number-columns-repeated") or "1"))
            text = " ".join("".join(p.itertext()) for p in cell if _local(p) == "p")
            if not text:
                gap += times  # trailing empty cells only fill the row up to the sheet's width
                continue
            cells.extend([""] * gap + [text] * times)
            gap = 0
        if cells:
            yield cells


def _odf_text(node: Element) -> str:
    parts = [escape(node.text or "", quote=False)]
    for child in node:
        name = _local(child)
        inner = escape(_BREAKS.get(name, ""), quote=False) or _odf_text(child)
        parts.append(_link(inner, _get(child, "href")) if name == "a" else inner)
        parts.append(escape(child.tail or "", quote=False))
    return "".join(parts)


def epub(content: IO[bytes]) -> str:
    """Convert an e-book to HTML: its chapters in reading order."""
    archive = _Archive(content)
    root = next(_all(archive.xml("META-INF/container.xml"), "rootfile"))
    package = root.get("full-path", "")
    opf = archive.xml(package)
    files = {_get(item, "id"): item.get("href", "") for item in _all(opf, "item")}
    bodies: list[str] = []
    for item in _all(opf, "itemref"):
        name = str(PurePosixPath(package).parent / files[item.get("idref", "")])
        chapter = markup.parse(archive.content(name).decode("utf-8-sig", errors="replace"))
        body = next(chapter.iter("body"))
        body.tag = "div"
        bodies.append(markup.to_html(body))
    return "".join(bodies)


READERS: dict[str, Callable[[IO[bytes]], str]] = {
    **dict.fromkeys(("docx", "docm"), docx),
    **dict.fromkeys(("xlsx", "xlsm"), xlsx),
    **dict.fromkeys(("pptx", "pptm"), pptx),
    **dict.fromkeys(("odt", "ods", "odp"), open_document),
    "epub": epub,
}
"""The converter for each file extension."""
