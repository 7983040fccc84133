"""`python -m demo run | up | down | scale | chaos`: the commands behind those of `make`."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal came.

    Not `KeyboardInterrupt`: Python remembers one that passed through `exec` of a string, as it does while dataclasses
    are imported, and ends by SIGINT for it although it was caught.
    """


def main() -> int:
    """Run one command; return 0 on success, 1 with a reason on stderr, 130 when interrupted."""
    _on_signals(_interrupt)
    try:
        status = _run_command()
        # What is done is done.
        _on_signals(_go_on)
    except Interrupted:
        print("\ninterrupted; everything that was started has been ended", file=sys.stderr)
        return 130
    return status


def _run_command() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("command", choices=("run", "up", "down", "scale", "chaos"))
    name = parser.parse_args().command
    # Imported here, where an interrupt is caught.
    from demo import commands
    from tests.support.errors import StackError

    try:
        getattr(commands, name)()
    except StackError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


def _on_signals(handler: Callable[..., Any]) -> None:
    for number in SIGNALS:
        signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    # A second one must not keep us from ending what was started.
    _on_signals(_go_on)
    raise Interrupted


def _go_on(*_: object) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
