# SPDX-License-Identifier: Apache-2.0
"""The runner that stalls random processes of a command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE, wait_until

NAMES = ("shell", "child", "orphan")
WAIT = 'echo $$ >"$1.new"; mv "$1.new" "$1.pid"; read -r line <"$1.fifo"; echo "$line" >"$1.line"'
# A shell, its child, and a process whose parent has ended, in its own session. Each waits for a line.
TREE = """
sh wait.sh child &
sh -c 'setsid sh wait.sh orphan &'
sh wait.sh shell
wait
exit 7
"""


def stalls(folder: Path, *argv: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tools.stalls", "--log", str(folder / "log"), *argv]
    # From the root of the clone; the command changes to its folder itself.
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_all_processes_stall_and_live_on(tmp_path: Path) -> None:
    (tmp_path / "wait.sh").write_text(WAIT)
    for name in NAMES:
        os.mkfifo(tmp_path / f"{name}.fifo")
    rhythm = ["--mean", "0.01", "--most", "0.05", "--seed", "5"]
    runner = stalls(tmp_path, *rhythm, "--", "sh", "-c", f"cd '{tmp_path}'; {TREE}")

    def stopped() -> list[str]:
        return re.findall(r"stopped (\d+)", (tmp_path / "log").read_text())

    files = [tmp_path / f"{name}.pid" for name in NAMES]
    assert wait_until(lambda: all(file.exists() for file in files))
    pids = {file.read_text().strip() for file in files}
    assert wait_until(lambda: pids <= {*stopped()})
    for name in NAMES:
        (tmp_path / f"{name}.fifo").write_text(f"to {name}\n")
    output, _ = runner.communicate(timeout=PATIENCE)
    assert runner.returncode == 7
    for name in NAMES:
        line = tmp_path / f"{name}.line"
        assert wait_until(lambda line=line: line.exists() and line.read_text())
        assert line.read_text() == f"to {name}\n"
    assert str(runner.pid) not in stopped()
    assert "seed 5" in output
    assert f"{len(stopped())} stops" in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_runner_continues_what_it_stopped(tmp_path: Path, number: signal.Signals) -> None:
    """A stopped process ends by neither signal."""
    runner = stalls(tmp_path, "--mean", "1e9", "--most", "1e9", "--", "sleep", "1000000")
    log = tmp_path / "log"
    assert wait_until(lambda: log.exists() and "stopped" in log.read_text())
    runner.send_signal(number)
    runner.communicate(timeout=PATIENCE)
    assert runner.returncode == 128 + number
