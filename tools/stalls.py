# SPDX-License-Identifier: Apache-2.0
"""Run a command while random processes of it stall, as they do on an overloaded machine.

    python -m tools.stalls [--mean 0.7] [--most 3] [--seed SEED] [--log FILE] -- COMMAND...

Stops up to three processes of the command with SIGSTOP, continues them with SIGCONT, waits, and starts over until the
command ends. Stalls and the pauses between them are exponentially distributed, with the same mean. A process belongs to
the command if the command or one of its descendants started it, even in a session that has outlived its parent.
Processes that another program has stopped are left alone. The exit status is that of the command.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType

import psutil

AT_THE_SAME_TIME = 3
ALIVE = {psutil.STATUS_RUNNING, psutil.STATUS_SLEEPING, psutil.STATUS_DISK_SLEEP, psutil.STATUS_IDLE}
_PR_SET_CHILD_SUBREAPER = 36


class Stalls:
    """A running command and the stalls of its processes.

    :param mean: the mean length of a stall and of a pause, in seconds.
    :param most: the maximum length of both, in seconds.
    """

    def __init__(self, command: list[str], mean: float, most: float, seed: int, log: Path | None) -> None:
        self._mean, self._most = mean, most
        self._random = random.Random(seed)
        if log:
            log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log.open("w", buffering=1) if log else None
        self._begin = time.monotonic()
        self._interrupted = False
        self.counts: Counter[str] = Counter()
        self.seconds = 0.0
        self.status: int | None = None
        # Orphaned descendants become children of this process, so that none is lost.
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "This system cannot adopt orphaned processes. Run it on Linux.")
        self._pid: int | None = None
        # Before the command starts, so that it does not inherit that signals are ignored, as in a background job.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._interrupt)
        # In its own session, so that a terminal's Ctrl-C reaches it once, through this process.
        self._pid = subprocess.Popen(command, start_new_session=True).pid

    def run(self) -> int:
        """Stall processes until the command ends; return its exit status."""
        while self.status is None:
            if not self._interrupted:
                self._stall()
            self._wait()
        return self.status if self.status >= 0 else 128 - self.status

    def _stall(self) -> None:
        processes = self._processes()
        chosen = self._random.sample(
            processes, min(len(processes), self._random.randint(1, AT_THE_SAME_TIME))
        )
        stopped = []
        try:
            for process in chosen:
                with contextlib.suppress(psutil.NoSuchProcess):
                    name, argv = process.name(), process.cmdline()
                    stopped.append(process)
                    process.suspend()
                    self.counts[name] += 1
                    self._note(f"stopped {process.pid} {' '.join(argv)[:100]!r}")
            self.seconds += self._wait()
        finally:
            for process in stopped:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()
                    self._note(f"continued {process.pid}")

    def _processes(self) -> list[psutil.Process]:
        alive = []
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.status() in ALIVE:
                    alive.append(process)
        return alive

    def _wait(self) -> float:
        """Wait for a random time, at most until the command ends or a signal arrives; return the seconds."""
        begin = time.monotonic()
        end = begin + min(self._random.expovariate(1 / self._mean), self._most)
        while (left := end - time.monotonic()) > 0 and self.status is None:
            time.sleep(min(left, 0.05))
            with contextlib.suppress(ChildProcessError):
                while (found := os.waitpid(-1, os.WNOHANG))[0]:
                    if found[0] == self._pid:
                        self.status = os.waitstatus_to_exitcode(found[1])
            if self._interrupted:
                break
        return time.monotonic() - begin

    def _interrupt(self, number: int, _: FrameType | None) -> None:
        """Stop stalling, and forward the signal to the command."""
        self._interrupted = True
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)

    def _note(self, text: str) -> None:
        if self._log:
            self._log.write(f"{time.monotonic() - self._begin:.2f} s: {text}\n")


def main() -> int:
    """Run the command of the command line, and print the seed and a summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mean", type=float, default=0.7, help="seconds; default: 0.7")
    parser.add_argument("--most", type=float, default=3.0, help="seconds; default: 3")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--log", type=Path, help="file for a line per stop")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    print(
        f"== stalls of {options.mean} s on average, at most {options.most} s, seed {options.seed}", flush=True
    )
    stalls = Stalls(options.command, options.mean, options.most, options.seed, options.log)
    status = stalls.run()
    most = ", ".join(f"{name} {count}" for name, count in stalls.counts.most_common(8))
    print(
        f"== {stalls.counts.total()} stops in {stalls.seconds:.0f} s of stalls, seed {options.seed}: {most}",
        flush=True,
    )
    return status


if __name__ == "__main__":
    sys.exit(main())
