# SPDX-License-Identifier: Apache-2.0
"""Safe display of external text on a terminal, and output of commands."""

from __future__ import annotations

import os
import sys


def write_text(text: str) -> None:
    """Write text to the standard output immediately.

    :raises SystemExit: the reader, such as `head`, has ended.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes again at exit.
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
        raise SystemExit(1) from None


def is_terminal() -> bool:
    """Return whether the standard input is a terminal. It may be closed."""
    return sys.stdin is not None and sys.stdin.isatty()


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
