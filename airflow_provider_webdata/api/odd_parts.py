# SPDX-License-Identifier: Apache-2.0
"""The parts of a response that do not have the documented shape."""

from __future__ import annotations

from collections import Counter


class OddParts:
    """Collects the odd parts of a response while it is parsed. `str()` describes them.

    :ivar unread: names of fields whose values were read as None.
    :ivar skipped: numbers of skipped entries, by the name of their list.
    """

    def __init__(self) -> None:
        self.unread: set[str] = set()
        self.skipped: Counter[str] = Counter()

    def __str__(self) -> str:
        parts = [f"skipped {count} of {name}" for name, count in sorted(self.skipped.items())]
        if self.unread:
            parts.append(f"ignored the value of {', '.join(sorted(self.unread))}")
        return "; ".join(parts)
