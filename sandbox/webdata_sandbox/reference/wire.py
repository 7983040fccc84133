# SPDX-License-Identifier: Apache-2.0
"""Types of the service's JSON: objects, validation issues, and numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
LONGEST_NUMBER = 18
"""Maximum digits of a number that always fits the store's 64 bits."""


@dataclass(frozen=True)
class Issue:
    """A violation in a request: its path and the violated rule.

    :param code: ``custom`` for rules beyond the type and the limits of one field.
    :param facts: further fields of the item, depending on the code.
    """

    path: tuple[str | int, ...]
    message: str
    code: str = "custom"
    facts: Json = field(default_factory=dict)

    def to_wire(self) -> Json:
        """Return the issue as an item of ``details``."""
        return {**self.facts, "code": self.code, "path": list(self.path), "message": self.message}


def whole_number(text: str) -> int | None:
    """Parse a number in ASCII digits; None if the text is invalid or too long for the store."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


def webhook_object(webhook: Any) -> Any:
    """Return a webhook as an object; a string is the short form of its ``url``."""
    return {"url": webhook} if isinstance(webhook, str) else webhook
