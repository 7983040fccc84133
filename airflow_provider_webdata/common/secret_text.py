"""Values without the secrets that their author may have written into them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

_SHORTEST = 5
"""Shorter secrets stay: they are parts of ordinary words. Airflow's masker draws the line here too."""


def without_secrets(value: T, secrets: Iterable[str]) -> T:
    """Return text, or a JSON value, with `***` in place of each secret of at least 5 characters."""
    # The longer first: one may be the beginning of another.
    ordered = sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True)

    def clean(part: Any) -> Any:
        if isinstance(part, dict):
            return {clean(name): clean(item) for name, item in part.items()}
        if isinstance(part, list):
            return [clean(item) for item in part]
        if isinstance(part, str):
            for secret in ordered:
                part = part.replace(secret, "***")
        return part

    cleaned: T = clean(value)
    return cleaned
