# SPDX-License-Identifier: Apache-2.0
"""Start a program in a separate session, and end everything that it started.

Airflow's components fork, and a task run moves to its own process group, so ending one process or one group leaves
others behind. All of them keep the session, even after their parent has died.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING, Any

import psutil

from tests.support.errors import StackError
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.support.warm import Warm


# A line on its input lets the program begin. If the writer dies first, the program exits without having begun.
_GATE = ("sh", "-c", 'read -r go && exec "$@" </dev/null', "sh")


@contextlib.contextmanager
def _start_new(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, output: IO[bytes]
) -> Iterator[tuple[int, Callable[[], object]]]:
    """Start a program that waits; yield its pid and the function that lets it begin."""
    process = subprocess.Popen(
        [*_GATE, *argv],
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdin is not None
    with process.stdin as gate:
        yield process.pid, lambda: gate.write(b"go\n")


@contextlib.contextmanager
def _fork(
    warm: Warm, argv: Sequence[str], env: Mapping[str, str], cwd: Path, output: IO[bytes]
) -> Iterator[tuple[int, Callable[[], object]]]:
    """Do the same with a program that starts with Airflow imported."""
    program = warm.start(argv[1:], env=env, cwd=cwd, stdout=output, session=True)
    with contextlib.closing(program):
        yield program.pid, program.begin


@dataclass(frozen=True)
class Session:
    """A started program: `pid` leads the session, `started` (epoch seconds) distinguishes it from a recycled pid."""

    name: str
    pid: int
    started: float
    log: str

    @classmethod
    def start(
        cls,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        note: Callable[[Session], None] | None = None,
        warm: Warm | None = None,
    ) -> Session:
        """Start `argv` detached from the terminal and append its output to `log`.

        The program begins after `note` has recorded the session. It never begins if `note` fails or this process dies
        before that, so every running program can be found again.

        :param warm: starts the program if `argv` is `[sys.executable, ...]`.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            start = (
                _start_new if warm is None or argv[0] != sys.executable else functools.partial(_fork, warm)
            )
            with start(argv, env, cwd, output) as (pid, begin):
                session = cls(name, pid, psutil.Process(pid).create_time(), str(log))
                if note:
                    note(session)
                begin()
        return session

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Session:
        """The session that an earlier process wrote down with `to_state`."""
        return cls(**state)

    def to_state(self) -> dict[str, Any]:
        """JSON-able; see `from_state`."""
        return asdict(self)

    def leader_runs(self) -> bool:
        """Return whether the started program itself still runs (its children may outlive it)."""
        return any(process.pid == self.pid for process in self.members())

    def members(self) -> list[psutil.Process]:
        """Every live process of the session."""
        if self._pid_was_recycled():
            return []
        return [process for process in psutil.process_iter() if self._holds(process)]

    def stop(self) -> None:
        """End it, in a friendly way if possible; see `stop_all`."""
        stop_all([self])

    def kill(self) -> None:
        """End every process of the session immediately, with SIGKILL; returns once none remains."""
        stop_all([self], [(signal.SIGKILL, PATIENCE)])

    def _pid_was_recycled(self) -> bool:
        try:
            return bool(abs(psutil.Process(self.pid).create_time() - self.started) > 1.0)
        except psutil.NoSuchProcess:
            return False

    def _holds(self, process: psutil.Process) -> bool:
        try:
            if os.getsid(process.pid) != self.pid:
                return False
            alive = process.status() != psutil.STATUS_ZOMBIE
            return bool(alive and process.create_time() >= self.started - 1.0)
        except (ProcessLookupError, PermissionError, psutil.Error):
            return False


# What is sent, to whom, and how many seconds are given: first the programs themselves, which see to their children.
FRIENDLY = ((signal.SIGINT, 4.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, PATIENCE))


def stop_all(sessions: Sequence[Session], ways: Sequence[tuple[signal.Signals, float]] = FRIENDLY) -> None:
    """End sessions at the same time, in one way after the other; returns once none of their processes remains."""

    def left() -> list[tuple[Session, psutil.Process]]:
        return [(session, process) for session in sessions for process in session.members()]

    for ask, patience in ways:
        for session, process in left():
            if ask is not signal.SIGINT or process.pid == session.pid:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(ask)
        if wait_until(lambda: not left(), patience):
            return
    raise StackError(f"Processes {[f'{s.name}: {p.pid}' for s, p in left()]} could not be ended.")
