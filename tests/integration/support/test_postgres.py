# SPDX-License-Identifier: Apache-2.0
"""The private PostgreSQL: it starts on demand and leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from sqlalchemy import create_engine, text

from tests.support.errors import StackError
from tests.support.postgres import Postgres
from tests.support.waiting import wait_until

HOLD = """
import sys
from tests.support.postgres import Postgres
with Postgres() as server:
    print(server.pid, server.folder, flush=True)
    sys.stdin.read()
"""


def test_data_survives_a_crash_and_processes_end_on_exit() -> None:
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
        processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
        folder = server.folder
    assert not any(process.is_running() for process in processes)
    assert not folder.exists()


def test_the_server_ends_with_the_process_that_started_it() -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        cwd=Path(__file__).parents[3],
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


def test_missing_programs(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="run tools/postgres-setup as root"):
        Postgres(programs=str(tmp_path)).__enter__()
