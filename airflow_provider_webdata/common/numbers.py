# SPDX-License-Identifier: Apache-2.0
"""Numbers in data of the service and of pages, which may have any type and size."""

from __future__ import annotations

from typing import Any

_MAX_CREDITS = 1e12


def known_count(value: Any) -> int | None:
    """Return a number of pages, or None if the value is no whole number from 0."""
    return value if type(value) is int and value >= 0 else None


def known_credits(value: Any) -> float | None:
    """Return a number of credits, or None if the value is no number, negative (unknown), or above 10^12."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if 0 <= value <= _MAX_CREDITS else None


def credits_text(value: float | None) -> str:
    """Return a number of credits as text, such as `1250000` or `4.5`."""
    return "unknown" if value is None else f"{value:.12g}"
