"""The final counts of a demonstration, checked against the expected ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.errors import StackError


@dataclass
class Books:
    """The counts, line by line, and the wrong ones among them."""

    lines: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def check(self, what: str, found: Any, expected: Any) -> None:
        """Add a count, also to the wrong ones if it is not the expected one."""
        self.lines.append(f"{what}: {found}")
        if found != expected:
            self.wrong.append(f"{what}: {found}, expected {expected}")

    def report(self) -> str:
        """Return all lines; raises `StackError` if any count is wrong."""
        if self.wrong:
            raise StackError("\n".join(["The books do not balance:", *self.wrong, "", *self.lines]))
        return "\n".join(self.lines)
