# SPDX-License-Identifier: Apache-2.0
"""`python -m demo run | up | down | scale | chaos`: the implementation of the `make` targets."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """The process received a signal.

    Not a `KeyboardInterrupt`: if one passes through `exec` of a string, as during the import of dataclasses, Python
    exits with SIGINT even if the exception is caught.
    """


def main() -> int:
    """Run one command; return 0 on success, 1 with a reason on stderr, 130 when interrupted."""
    _on_signals(_interrupt)
    try:
        status = _run_command()
        # A signal after the end of the command must not change the exit status.
        _on_signals(_ignore)
    except Interrupted:
        print("\ninterrupted; all started programs have been stopped", file=sys.stderr)
        return 130
    return status


def _run_command() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("command", choices=("run", "up", "down", "scale", "chaos"))
    name = parser.parse_args().command
    # Imported here, where an interrupt is handled.
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
    # A second signal must not interrupt the cleanup.
    _on_signals(_ignore)
    raise Interrupted


def _ignore(*_: object) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
