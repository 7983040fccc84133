"""The service's JSON: objects, numbers in plain digits, and violations in a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
LONGEST_NUMBER = 18
"""Digits of a number that still fits the store's 64 bits."""


@dataclass(frozen=True)
class Issue:
    """One thing that is wrong with a request: where, and the rule it breaks."""

    path: tuple[str | int, ...]
    message: str
    code: str = "custom"

    def to_wire(self) -> Json:
        """Return the issue as an item of ``details``."""
        return {"code": self.code, "path": list(self.path), "message": self.message}


def whole_number(text: str) -> int | None:
    """Return the number a text states in plain digits; None when it states none, or one too large for the store."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None
