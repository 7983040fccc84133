"""What a demonstration counts in the end, and what of it is not as it must be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.errors import StackError


@dataclass
class Books:
    """What was found, line by line, and what of it is wrong."""

    lines: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def check(self, what: str, found: Any, expected: Any) -> None:
        """Note a number, and that it is not as it must be."""
        self.lines.append(f"{what}: {found}")
        if found != expected:
            self.wrong.append(f"{what}: {found}, expected {expected}")

    def report(self) -> str:
        """Return all lines; raises `StackError` where anything is wrong."""
        if self.wrong:
            raise StackError("\n".join(["The books do not balance:", *self.wrong, "", *self.lines]))
        return "\n".join(self.lines)
