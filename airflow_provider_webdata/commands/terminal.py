"""Safe display of external text on a terminal."""

from __future__ import annotations


def terminal_text(text: str) -> str:
    """Return text on one line, with escaped control characters, which could fake output or control the terminal.

    :param text: for example an error message of the service, or an id.
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def terminal_lines(text: str) -> str:
    """Return text of this package on its lines; see `terminal_text`."""
    return "\n".join(map(terminal_text, text.split("\n")))
