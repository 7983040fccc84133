# SPDX-License-Identifier: Apache-2.0
"""Python names of wire names, and suggestions for misspelled names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def snake_case(name: str) -> str:
    """Return the Python name for a wire name."""
    return name if name.islower() else re.sub(r"(?<=[a-z0-9])([A-Z]+)", r"_\1", name).lower()


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name, ignoring case and underscores, or None."""
    import difflib

    plain = {name.replace("_", "").lower(): name for name in known}
    found = difflib.get_close_matches(word[:100].replace("_", "").lower(), plain, n=1)
    return plain[found[0]] if found else None
