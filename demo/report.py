# SPDX-License-Identifier: Apache-2.0
"""The report of a demonstration, which compares its final counts with the expected ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.support.errors import StackError


@dataclass
class Report:
    """A report with counts, some of which may be wrong."""

    lines: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def check(self, what: str, found: Any, expected: Any) -> None:
        """Add a count, and record it as wrong unless it equals the expected one."""
        self.lines.append(f"{what}: {found}")
        if found != expected:
            self.wrong.append(f"{what}: {found}, expected {expected}")

    def text(self) -> str:
        """Return all lines.

        :raises StackError: a count is wrong.
        """
        if self.wrong:
            raise StackError("\n".join(["Some counts are wrong:", *self.wrong, "", *self.lines]))
        return "\n".join(self.lines)


def listed(counts: Counter[str]) -> str:
    """Return counts as text, such as `1 failed, 5 success`."""
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
