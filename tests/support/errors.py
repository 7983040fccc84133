"""What a person at the terminal is told when it cannot go on: one sentence, and where to look next."""

from __future__ import annotations


class StackError(Exception):
    """What was started cannot go on; the message is meant for the person at the terminal."""
