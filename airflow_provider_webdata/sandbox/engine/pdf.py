"""The embedded text of a PDF, page by page, as read by pypdf. No letters are recognized or guessed."""

from __future__ import annotations

import io
import logging
import time
from typing import TYPE_CHECKING, Any

from pypdf import PdfReader, apply_configuration

from airflow_provider_webdata.sandbox.reference.errors import UnsupportedHereError

if TYPE_CHECKING:
    from pypdf import PageObject

MAX_SECONDS = 30.0
"""Most seconds to read one file. pypdf itself limits the unpacked size and the depth."""
MAX_TOKENS = 500_000
"""Most tokens in a page's drawing instructions: some seconds' work."""

_SYMBOLIC = 4
"""Flag of a font that assigns its own letters to codes."""

# It has a line for each oddity of a file, thousands for a hostile one.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


class PdfError(Exception):
    """The file is not a PDF, or is broken."""


def pdf_pages(data: bytes) -> list[str]:
    """Return the text of each page.

    :raises PdfError: it is not a PDF, a broken one, or takes too long to read.
    :raises UnsupportedHereError: it is encrypted, embeds no text, or does not state which letters its codes mean.
    """
    try:
        with apply_configuration(stream_parsing_work_maximum_count=MAX_TOKENS):
            pages = _read(data)
    except (PdfError, UnsupportedHereError):
        raise
    except NotImplementedError as error:
        raise UnsupportedHereError(f"read this PDF: {error}") from None
    except Exception as error:  # noqa: BLE001 - a damaged file trips pypdf anywhere
        raise PdfError(str(error) or type(error).__name__) from None
    if not any(pages):
        raise UnsupportedHereError("recognise letters in pictures (this PDF embeds no text)")
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
            raise PdfError(f"it takes more than {MAX_SECONDS:g} seconds to read")

    def on_text(
        text: str, _place: object, _matrix: object, font: dict[str, Any] | None, _size: object
    ) -> None:
        if text.strip():
            _check_font(font, text)

    on_operator()
    text = page.extract_text(visitor_operand_before=on_operator, visitor_text=on_text)
    return "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()


def _check_font(font: dict[str, Any] | None, text: str) -> None:
    """Refuse a font whose letters pypdf could only guess."""
    if font is None:
        raise PdfError("text comes without a font")
    if "/ToUnicode" in font:
        return
    encoding = font.get("/Encoding")
    flags = font.get("/FontDescriptor", {}).get("/Flags", 0)
    # pypdf writes the name of a letter that it does not know.
    names = encoding.get("/Differences", ()) if isinstance(encoding, dict) else ()
    unread = any(isinstance(name, str) and len(name) > 2 and name in text for name in names)
    if font.get("/Subtype") == "/Type0" or unread or (encoding is None and flags & _SYMBOLIC):
        raise UnsupportedHereError("read PDFs whose fonts do not say what letters they hold")
