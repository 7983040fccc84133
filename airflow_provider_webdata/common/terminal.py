"""Text from other systems on a terminal."""

from __future__ import annotations


def terminal_text(text: str) -> str:
    """Return a text on one line, with control characters escaped: they could fake lines or change the terminal.

    :param text: such as an error message of the service, or an id.
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
