# SPDX-License-Identifier: Apache-2.0
"""Extraction of a PDF's embedded text with pypdf, without character recognition."""

from __future__ import annotations

import io
import logging
import time
from typing import TYPE_CHECKING, Any

from pypdf import PdfReader, apply_configuration

from webdata_sandbox.reference.errors import UnsupportedHereError

if TYPE_CHECKING:
    from pypdf import PageObject

MAX_SECONDS = 30.0
"""Maximum seconds to read one file. pypdf itself limits the unpacked size and the depth."""
MAX_TOKENS = 500_000
"""Maximum tokens in a page's content stream; they take a few seconds."""

_SYMBOLIC = 4
"""Flag of a font with its own character set."""

# pypdf logs every irregularity, which can be thousands of lines for a hostile file.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


class PdfError(Exception):
    """The file is not a PDF, or is damaged."""


def pdf_pages(data: bytes) -> list[str]:
    """Return the text of each page.

    :raises PdfError: the file is not a PDF, is damaged, or takes more than 30 seconds to read.
    :raises UnsupportedHereError: the file is encrypted, embeds no text, or has a font without a character mapping.
    """
    try:
        with apply_configuration(stream_parsing_work_maximum_count=MAX_TOKENS):
            pages = _read(data)
    except (PdfError, UnsupportedHereError):
        raise
    except NotImplementedError as error:
        raise UnsupportedHereError(f"read this PDF: {error}") from None
    except Exception as error:  # noqa: BLE001 - on a damaged file, pypdf may raise any exception
        raise PdfError(str(error) or type(error).__name__) from None
    if not any(pages):
        raise UnsupportedHereError("recognize text in images (this PDF embeds no text)")
    return pages


def _read(data: bytes) -> list[str]:
    until = time.monotonic() + MAX_SECONDS
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted:
        raise UnsupportedHereError("read encrypted PDFs")
    return [_text(page, until) for page in reader.pages]


def _text(page: PageObject, until: float) -> str:
    def on_operator(*_: object) -> None:
        if time.monotonic() > until:
            raise PdfError(f"reading it takes more than {MAX_SECONDS:g} seconds")

    def on_text(
        text: str, _place: object, _matrix: object, font: dict[str, Any] | None, _size: object
    ) -> None:
        if text.strip():
            _check_font(font, text)

    on_operator()
    text = page.extract_text(visitor_operand_before=on_operator, visitor_text=on_text)
    return "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()


def _check_font(font: dict[str, Any] | None, text: str) -> None:
    """Refuse a font without a character mapping, because pypdf would guess the text."""
    if font is None:
        raise PdfError("text without a font")
    if "/ToUnicode" in font:
        return
    encoding = font.get("/Encoding")
    flags = font.get("/FontDescriptor", {}).get("/Flags", 0)
    # For an unknown character, pypdf outputs its glyph name.
    names = encoding.get("/Differences", ()) if isinstance(encoding, dict) else ()
    unread = any(isinstance(name, str) and len(name) > 2 and name in text for name in names)
    if font.get("/Subtype") == "/Type0" or unread or (encoding is None and flags & _SYMBOLIC):
        raise UnsupportedHereError("read PDFs with fonts that lack a character mapping")
