"""What can be wrong with the place where results are to go."""

from __future__ import annotations


class OutputError(ValueError):
    """The place for results cannot be used as it is written; the message says what to change."""
