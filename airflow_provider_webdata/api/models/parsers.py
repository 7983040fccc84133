"""Parsers that turn files found at a URL into text."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import RequestModel
from airflow_provider_webdata.api.models.fields import Integer, Switch, one_of


class PdfParser(RequestModel):
    """PDF to markdown, at 1 credit per page.

    :param mode: `fast` (embedded text only), `auto` (fast first, then OCR; service default), `ocr` (OCR
        always).
    :param max_pages: 1 to 10,000; how many pages are parsed.
    :param pages: return the markdown of each page too.
    :param blocks: return the layout blocks of each page too.
    :param page_markers: mark page borders in the markdown.
    """

    type: Literal["pdf"] = "pdf"
    mode: Literal["fast", "auto", "ocr"] | None = None
    max_pages: Annotated[Integer, Field(ge=1, le=10_000)] | None = None
    pages: Switch | None = None
    blocks: Switch | None = None
    page_markers: Switch | None = None


class ImageParser(RequestModel):
    """Text recognition on raster images."""

    type: Literal["image"] = "image"


Parser = Annotated[Literal["pdf", "image"] | PdfParser | ImageParser, one_of("a parser")]
"""A parser as an object or as text."""
