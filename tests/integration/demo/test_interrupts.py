# SPDX-License-Identifier: Apache-2.0
"""A demo that is interrupted, whenever that is: its exit status and what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.processes import Session
from tests.support.stack import REPOSITORY
from tests.support.waiting import PATIENCE

# Runs the demo with a command of ours, which sends signals to itself.
DRIVER = """
import os, signal, sys
from demo import __main__ as demo, commands

def send(name):
    os.kill(os.getpid(), getattr(signal, name))

def run():
{body}

commands.run = run
sys.argv = ["demo", "run"]
sys.exit(demo.main())
"""
MOMENTS = {
    "while it waits": "import time; send('{}'); time.sleep(60)",
    # As an import of dataclasses or named tuples does.
    "while a string is executed": "exec(\"send('{}')\", globals())",
    "while it gives up": "try: 1 / 0\nfinally: send('{}')",
    "again while it ends all": "try: send('{}')\nfinally: send('SIGINT'); send('SIGTERM'); send('SIGHUP')",
}
# A program that does not mind SIGINT, so that its end takes a while; in the middle of which a signal comes.
STUBBORN = """
import json, threading
from pathlib import Path
from tests.support.processes import Session
from tests.support.stack import Stack

stack = Stack(Path.cwd())
argv = ["sh", "-c", "trap '' INT; touch ready; while :; do sleep 1; done"]
session = Session.start("stubborn", argv, env=os.environ, cwd=stack.home, log=stack.home / "log")
Path("session.json").write_text(json.dumps(session.to_state()))
stack._sessions["stubborn"] = session
while not Path("ready").exists():
    pass
threading.Timer(1.0, send, ["SIGTERM"]).start()
stack.stop()
"""
INTERRUPTED = (130, "interrupted; all started programs have been stopped")


def demo(folder: Path, command: str) -> tuple[int, str]:
    """Exit status and complaints of the demo whose command is this code."""
    (folder / "driver.py").write_text(DRIVER.format(body=textwrap.indent(command, "    ")))
    done = subprocess.run(
        [sys.executable, "-m", "driver"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{REPOSITORY}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stderr.strip()


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("while it waits", "SIGTERM"),
        ("while it waits", "SIGHUP"),
        *((moment, "SIGINT") for moment in MOMENTS),
    ],
)
def test_an_interrupt_gives_its_exit_status(tmp_path: Path, moment: str, number: str) -> None:
    assert demo(tmp_path, MOMENTS[moment].format(number)) == INTERRUPTED


def test_what_is_being_ended_is_ended_all_the_same(tmp_path: Path) -> None:
    assert demo(tmp_path, STUBBORN) == INTERRUPTED
    session = Session.from_state(json.loads((tmp_path / "session.json").read_text()))
    assert session.members() == []
