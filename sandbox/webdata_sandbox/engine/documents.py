# SPDX-License-Identifier: Apache-2.0
"""Conversion of uploaded files to pages, without an office suite.

Office files are ZIP archives of XML. The sandbox reads their headings, paragraphs, lists, links, and tables, and
ignores the formatting. It refuses kinds that need a separate program (the binary office formats, RTF).
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING
from xml.etree import ElementTree

from webdata_sandbox.reference.errors import ServiceError, UnsupportedHereError

from . import office
from .page import Page
from .pdf import PdfError, pdf_pages

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = (
    *("html", "htm", "xhtml", "pdf", "docx", "doc", "docm", "odt", "ods", "odp", "rtf"),
    *("xlsx", "xls", "xlsm", "xlsb", "pptx", "ppt", "pptm", "epub", "csv"),
)
"""File extensions that the service accepts (sandbox/docs/service.md#parse-extension)."""

_DELIMITERS = ",;\t|"
_BROKEN = (
    *(office.BrokenFileError, PdfError, zipfile.BadZipFile, zlib.error, ElementTree.ParseError, csv.Error),
    # Standard library readers also raise these on damaged files.
    *(ValueError, LookupError, StopIteration, EOFError, NotImplementedError, RuntimeError, OSError),
)


def kind_of(filename: str) -> str:
    """Return the extension that determines the file type, in lower case.

    :raises ServiceError: 400 ``UNSUPPORTED_FILE_TYPE``.
    """
    kind = PurePosixPath(filename.replace("\\", "/")).suffix.lower().removeprefix(".")
    if kind not in KINDS:
        known = ", ".join(f".{name}" for name in KINDS)
        raise ServiceError(
            400,
            f"Unsupported file type. Supported extensions: {known}",
            code="UNSUPPORTED_FILE_TYPE",
        )
    return kind


def convert(kind: str, content: IO[bytes]) -> Page:
    """Convert a file to a page.

    :param kind: one of :data:`KINDS`.
    :raises UnsupportedHereError: the sandbox does not support the kind, or a feature that the file uses.
    :raises ServiceError: 500 ``SCRAPE_UNSUPPORTED_FILE_ERROR``: the file is damaged.
    """
    reader = _READERS.get(kind)
    if reader is None:
        raise UnsupportedHereError(
            f"read .{kind} files. Supported extensions: {', '.join(f'.{name}' for name in _READERS)}"
        )
    try:
        return reader(content)
    except _BROKEN as error:
        raise ServiceError(
            500, f"The .{kind} file could not be read: {error}", code="SCRAPE_UNSUPPORTED_FILE_ERROR"
        ) from None


def _html(content: IO[bytes]) -> Page:
    return Page("", _decoded(content.read()))


def _decoded(raw: bytes) -> str:
    """Decode by byte order mark, or else by the declared charset (default: UTF-8); if that fails, as Windows-1252."""
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if raw.startswith(mark):
            return raw.decode(encoding, errors="replace")
    stated = re.search(rb"""(?:charset|encoding)\s*=\s*["']?([\w-]+)""", raw[:2048])
    try:
        return raw.decode(stated[1].decode("ascii") if stated else "utf-8")
    except (UnicodeDecodeError, LookupError):
        return raw.decode("cp1252", errors="replace")


def _csv(content: IO[bytes]) -> Page:
    text = _decoded(content.read())
    first = re.sub(r'"[^"]*"', "", text.split("\n", 1)[0])
    delimiter = max(_DELIMITERS, key=first.count)
    return _page(office.table(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)))


def _office(write: Callable[[IO[bytes]], str]) -> Callable[[IO[bytes]], Page]:
    return lambda content: _page(write(content))


def _page(body: str) -> Page:
    return Page("", f"<html><body><main>{body}</main></body></html>")


def _pdf(content: IO[bytes]) -> Page:
    sections = pdf_pages(content.read())
    return Page("", markdown="\f".join(sections), content_type="application/pdf")


_READERS: dict[str, Callable[[IO[bytes]], Page]] = {
    **dict.fromkeys(("html", "htm", "xhtml"), _html),
    "csv": _csv,
    "pdf": _pdf,
    **{kind: _office(write) for kind, write in office.READERS.items()},
}
