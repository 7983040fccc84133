# SPDX-License-Identifier: Apache-2.0
"""Programs that fork from a process with Airflow imported behave like programs with a Python of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.support.tables import each_row
from tests.support.waiting import PATIENCE, wait_until
from tests.support.warm import Warm, airflow_environ

SETTINGS = """
import json, os, sys
from airflow.configuration import AIRFLOW_HOME, conf
from airflow import settings
from airflow.sdk.configuration import conf as sdk_conf
print(json.dumps({
    "home": AIRFLOW_HOME,
    "database": settings.SQL_ALCHEMY_CONN,
    "engine": str(settings.engine.url),
    "dags": [settings.DAGS_FOLDER, conf.get("core", "dags_folder"), sdk_conf.get("core", "dags_folder")],
    "logs": conf.get("logging", "base_log_folder"),
    "port": conf.getint("api", "port"),
    "argv": sys.argv,
    "folder": os.getcwd(),
    "extra": os.environ.get("EXTRA"),
    "imported": [name for name in sys.modules if name.startswith("airflow_provider_webdata")],
}))
"""


def test_as_if_it_were_imported_here(warm: Warm, tmp_path: Path) -> None:
    """Configuration, database, arguments, and folder are those that the same program has without it."""
    env = airflow_environ(tmp_path, AIRFLOW__CORE__DAGS_FOLDER=str(tmp_path / "here"), EXTRA="ünïcode")
    argv = ["-c", SETTINGS, "one", "two"]
    forked = warm.run(argv, env=env, cwd=tmp_path)
    assert forked.returncode == 0, forked.stderr
    own = subprocess.run([sys.executable, *argv], env=env, cwd=tmp_path, capture_output=True, text=True)
    here, there = (json.loads(done.stdout.splitlines()[-1]) for done in (forked, own))
    # Airflow's command line imports the provider's.
    assert {*here.pop("imported")} - {*there.pop("imported")} <= {
        "airflow_provider_webdata.cli",
        "airflow_provider_webdata.common",
        "airflow_provider_webdata.common.extras",
        "airflow_provider_webdata.common.needs_database",
    }
    assert here == there


def test_an_option_that_was_read_at_the_import(warm: Warm, tmp_path: Path) -> None:
    env = airflow_environ(tmp_path, AIRFLOW__API__PORT="4321")
    done = warm.run(["-c", SETTINGS], env=env)
    assert json.loads(done.stdout.splitlines()[-1])["port"] == 4321


@each_row(
    "code, status",
    [
        ("raise SystemExit(3)", 3),
        ("import atexit; atexit.register(print, 'bye')", 0),
        ("raise ValueError('it broke')", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    ],
)
def test_exit_status(warm: Warm, tmp_path: Path, code: str, status: int) -> None:
    done = warm.run(["-c", code], env=airflow_environ(tmp_path))
    assert done.returncode == status
    assert ("bye" in done.stdout) is ("bye" in code)
    assert ("ValueError: it broke" in done.stderr) is ("broke" in code)


def test_streams(warm: Warm, tmp_path: Path) -> None:
    code = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"
    program = warm.start(
        ["-c", code], env=airflow_environ(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert program.stdin is not None
    assert program.stdout is not None
    with program.stdin, program.stdout:
        program.stdin.write("ä\n")
        program.stdin.flush()
        assert program.stdout.readline() == "Ä\n"
        assert program.poll() is None
        program.stdin.close()
        assert program.wait(PATIENCE) == 0


def test_a_session_waits_until_it_may_begin(warm: Warm, tmp_path: Path) -> None:
    """The program leads its own session and leaves no zombie."""
    marker = tmp_path / "began"
    code = f"import pathlib, time; pathlib.Path({str(marker)!r}).touch(); time.sleep({PATIENCE})"
    program = warm.start(["-c", code], env=airflow_environ(tmp_path), session=True)
    try:
        assert os.getsid(program.pid) == program.pid
        assert not marker.exists()
        program.begin()
        assert wait_until(marker.exists)
    finally:
        program.kill()
    assert program.wait(PATIENCE) == -signal.SIGKILL
    assert not psutil.pid_exists(program.pid)


def test_only_sessions_outlive_the_last_client(tmp_path: Path) -> None:
    """A client that dies ends its other programs and the forking process."""
    client = f"""
import os, pathlib, signal
from tests.support.waiting import wait_until
from tests.support.warm import Warm, airflow_environ
home = pathlib.Path({str(tmp_path)!r})
warm, env = Warm(home / "warm"), airflow_environ(home)
code = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep({PATIENCE})"
session = warm.start(["-c", code, str(home / "began")], env=env, session=True)
session.begin()
program = warm.start(["-c", code, str(home / "began too")], env=env)
assert wait_until(lambda: (home / "began").exists() and (home / "began too").exists())
(home / "pids").write_text(f"{{session.pid}} {{program.pid}} {{os.getpgid(program.pid)}}")
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", client], check=False)
    assert done.returncode == -signal.SIGKILL
    session, *others = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    try:
        assert len(others) == 2
        assert wait_until(lambda: not any(psutil.pid_exists(pid) for pid in others))
        assert psutil.Process(session).status() != psutil.STATUS_ZOMBIE
    finally:
        os.kill(session, signal.SIGKILL)
