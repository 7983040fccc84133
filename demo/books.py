"""Comparison of a demonstration's final counts with the expected ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.errors import StackError


@dataclass
class Books:
    """The lines of a report, and the wrong counts among them."""

    lines: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def check(self, what: str, found: Any, expected: Any) -> None:
        """Add a count, and record it as wrong unless it equals the expected one."""
        self.lines.append(f"{what}: {found}")
        if found != expected:
            self.wrong.append(f"{what}: {found}, expected {expected}")

    def report(self) -> str:
        """Return all lines.

        :raises StackError: a count is wrong.
        """
        if self.wrong:
            raise StackError("\n".join(["Some counts are wrong:", *self.wrong, "", *self.lines]))
        return "\n".join(self.lines)
