# SPDX-License-Identifier: Apache-2.0
"""Programs that are started to be found and ended again, whatever becomes of the process that started them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import Session
from tests.support.waiting import wait_until

# Starts `touch ran`, and runs the code of the second argument when it is to write that down.
STARTER = """
import json, os, signal, sys
from pathlib import Path
from tests.support.processes import Session

def note(session):
    print(json.dumps(session.to_state()), flush=True)
    exec(sys.argv[2])

folder = Path(sys.argv[1])
Session.start("touch", ["touch", "ran"], env=os.environ, cwd=folder, log=folder / "log", note=note)
"""


@pytest.mark.parametrize(
    "noting, status, runs",
    [
        ("", 0, True),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, False),
        ("raise OSError('disk full')", 1, False),
    ],
)
def test_what_was_not_written_down_never_runs(tmp_path: Path, noting: str, status: int, runs: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTER, str(tmp_path), noting], stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == status
    session = Session.from_state(json.loads(done.stdout))
    assert wait_until(lambda: not session.members())
    assert (tmp_path / "ran").exists() == runs
    assert (tmp_path / "log").read_text() == ""


def test_a_program_and_its_children_are_found_by_what_was_written_down(tmp_path: Path) -> None:
    """Also those that outlive the program; and the program gets its arguments as they are."""
    written: list[dict[str, object]] = []
    script = 'sleep 600 & echo "$1"; read -r line; echo "<$line>"'
    Session.start(
        "shell",
        ["sh", "-c", script, "sh", "two words; $HOME"],
        env=os.environ,
        cwd=tmp_path,
        log=tmp_path / "log",
        note=lambda session: written.append(session.to_state()),
    )
    session = Session.from_state(written[0])
    assert wait_until(lambda: (tmp_path / "log").read_text() == "two words; $HOME\n<>\n")
    assert wait_until(lambda: not session.leader_runs())
    assert wait_until(lambda: [process.name() for process in session.members()] == ["sleep"])
    session.stop()
    assert session.members() == []
