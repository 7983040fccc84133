"""What the demo tells its user when it cannot go on: one sentence, and where to look next."""

from __future__ import annotations


class DemoError(Exception):
    """The demo cannot go on; the message is meant for the person at the terminal."""
