"""The server that other tests use is there when it is needed, and gone afterwards, come what may."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from sqlalchemy import create_engine, text

from tests.support import postgres
from tests.support.errors import StackError
from tests.support.postgres import Postgres
from tests.support.waiting import wait_until

HOLD = """
import sys
from tests.support.postgres import Postgres
with Postgres() as server:
    print(server._server.pid, server.folder, flush=True)
    sys.stdin.read()
"""


def test_its_data_survive_a_crash_and_its_processes_nothing() -> None:
    with Postgres() as server:
        engine = create_engine(server.create_database("some"), pool_pre_ping=True)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE t AS SELECT 1 AS n"))
        for crash in (False, True):
            server.stop(crash=crash)
            server.start()
            with engine.connect() as connection:
                assert connection.execute(text("SELECT n FROM t")).scalar() == 1
                assert connection.execute(text("SHOW fsync")).scalar() == "on"
        engine.dispose()
        assert server._server is not None
        processes = [psutil.Process(server._server.pid), *psutil.Process(server._server.pid).children()]
        folder = server.folder
    assert not any(process.is_running() for process in processes)
    assert not folder.exists()


def test_it_ends_with_the_process_that_started_it() -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        cwd=Path(postgres.__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    pid, folder = holder.stdout.readline().split()
    server = psutil.Process(int(pid))
    assert server.is_running()
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert wait_until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)
    assert wait_until(lambda: not Path(folder).exists())


def test_a_machine_without_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgres, "_FOLDERS", (str(tmp_path / "*"),))
    with pytest.raises(StackError, match="run tools/postgres-setup as root"):
        Postgres().__enter__()
