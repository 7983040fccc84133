# SPDX-License-Identifier: Apache-2.0
"""Removal of secrets from values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

_SHORTEST = 5
"""Shorter secrets are not removed, because they occur in ordinary words. Airflow's masker has the same limit."""


def without_secrets(value: T, secrets: Iterable[str]) -> T:
    """Replace each secret of at least 5 characters in text or a JSON value with `***`."""
    # Longest first: a secret may be a prefix of another.
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
