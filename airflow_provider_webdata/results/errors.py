"""What can be wrong with the storage of results."""

from __future__ import annotations


class OutputError(ValueError):
    """Results cannot be written where they should go; the message says what to change."""
