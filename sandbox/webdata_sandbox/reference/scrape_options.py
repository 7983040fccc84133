# SPDX-License-Identifier: Apache-2.0
"""Parsing of scrape options: formats and parsers are names or objects with a type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .wire import Json

_OTHER_FIELDS = (
    *("url", "urls", "origin", "integration", "webhook", "maxConcurrency"),
    *("ignoreInvalidURLs", "appendToId", "domainTools", "toolDetail"),
)
"""Other fields of bodies with scrape options at the top level."""


def options_of(body: Json) -> Json:
    """Return the scrape options of a body that has them at the top level."""
    options = {name: value for name, value in body.items() if name not in _OTHER_FIELDS}
    return {**options, "formats": options.get("formats") or ["markdown"]}


def type_of(item: Any) -> str:
    """Return the type of a format, source, or category, which is a string or an object."""
    return item if isinstance(item, str) else str(item["type"])


def format_names(options: Json) -> list[str]:
    """Return the types of the requested formats, in order."""
    return [type_of(item) for item in options.get("formats", [])]


def format_options(options: Json, name: str) -> Json | None:
    """Return the options of a format: empty if it is requested as a string, None if it is not requested."""
    found = next((item for item in options.get("formats", []) if type_of(item) == name), None)
    return found if isinstance(found, dict) or found is None else {}


def tracking_modes(options: Json) -> tuple[str, ...]:
    """Return the modes in which a monitor compares pages; git-diff by default."""
    return tuple((format_options(options, "changeTracking") or {}).get("modes") or ("git-diff",))


def parses_pdfs(options: Json) -> bool:
    """Return whether a PDF is converted, and billed by page. The default parsers include `pdf`."""
    return any(type_of(item) == "pdf" for item in options.get("parsers", ["pdf"]))


def pdf_parser(options: Json) -> Json:
    """Return the options of the PDF parser; empty if it is requested as a string or not at all."""
    return next(
        (item for item in options.get("parsers", []) if isinstance(item, dict) and item["type"] == "pdf"), {}
    )
