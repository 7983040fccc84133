# SPDX-License-Identifier: Apache-2.0
"""The content that shows that an operation read the pages of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

NO_RESULTS = "no results"


class ContentError(Exception):
    """An operation succeeded without the content of the pages."""


def require_text(text: str, found: Any) -> None:
    """Require a text in a result, or in the file at a path, whatever its whitespace.

    :raises ContentError: it is not there.
    """
    wanted = _squeezed(text)
    if not any(wanted in _squeezed(part) for part in _texts(found)):
        raise ContentError(f"the result lacks the text of the page: {text!r}")


def remark(found: Any) -> str | None:
    """Return the remark about a search without results, or None."""
    return None if found else NO_RESULTS


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _texts(found: Any) -> Iterator[str]:
    if isinstance(found, str):
        yield found
    elif isinstance(found, Path):
        yield found.read_text(encoding="utf-8")
    elif isinstance(found, BaseModel):
        yield from _texts(found.model_dump())
    elif isinstance(found, Mapping):
        for value in found.values():
            yield from _texts(value)
    elif isinstance(found, (list, tuple)):
        for value in found:
            yield from _texts(value)
