# SPDX-License-Identifier: Apache-2.0
"""Python programs that start with Airflow already imported.

Importing Airflow costs 2 to 4 CPU seconds, its API server 14. `Warm` imports it once, in a process that forks a child
for each program. The child gets its own arguments, environment, folder, and streams, and initializes Airflow by them;
only imported modules are shared. A test of an import itself needs a separate Python.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tests.support.airflow_settings import IMPORTED_SETTINGS
from tests.support.waiting import PATIENCE, wait_until

SERVER = Path(__file__).with_name("warm_server.py")

# Options that Airflow reads at its import, as most tests need them: no worker lingers behind a deferred task.
SETTINGS = {**IMPORTED_SETTINGS, "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "0"}


def airflow_environ(home: Path, **settings: str) -> dict[str, str]:
    """Return the environment of a small Airflow in `home`: the caller's, without the caller's own Airflow."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AIRFLOW", "_AIRFLOW", "PYTHONPATH"))
    }
    return {
        **inherited,
        **SETTINGS,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        **settings,
    }


class Program:
    """A started program; the part of `subprocess.Popen` that tests use.

    :ivar stdin: a text stream if the program was started with a pipe.
    :ivar stdout: the same.
    """

    def __init__(self, args: Sequence[str], connection: socket.socket) -> None:
        self.args = args
        self.returncode: int | None = None
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None
        self._connection = connection
        self._answers = connection.makefile("rb")
        self.pid: int = self._answer()["pid"]

    def begin(self) -> None:
        """Let a program with its own session begin."""
        self._connection.sendall(b"\n")

    def poll(self) -> int | None:
        """Return the exit status, or None while the program runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status; a negative one is the number of a signal.

        :param timeout: in seconds.
        :raises subprocess.TimeoutExpired: the program still runs.
        """
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = self._answer()["status"]
            self.close()
        return self.returncode

    def close(self) -> None:
        """Forget the program. One with its own session runs on if it has begun, any other one ends."""
        self._answers.close()
        self._connection.close()

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program is known to have ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _answer(self) -> dict[str, int]:
        line = self._answers.readline()
        assert line, "the process that forks programs has ended"
        answer: dict[str, int] = json.loads(line)
        return answer


class Warm:
    """The forking process, shared by all users of the same folder.

    :param folder: of its socket and its log.
    :param environ: the environment in which it imports Airflow. A program whose environment sets another value for an
        option that Airflow reads at its import starts a separate Python instead.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.environ = airflow_environ(folder) if environ is None else environ
        self._opening = threading.Lock()
        self._lease: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def open(self) -> Path:
        """Start the process, and return its folder, for other users of it."""
        # Threads of a test that start their programs together share one lease.
        with self._opening:
            if self._lease is None:
                self._lease = self._leased()
        return self._folder

    def close(self) -> None:
        """Release the process, which ends with its last user; the user that started it waits for that."""
        if self._lease is not None:
            self._lease.close()
            self._lease = None
        if self._server is not None:
            self._server.wait(PATIENCE)
            self._server = None

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        input: str = "",
        timeout: float = PATIENCE,
    ) -> subprocess.CompletedProcess[str]:
        """Run `python ARGV...` to its end and return its output as text."""
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            stdin.write(input.encode())
            stdin.seek(0)
            program = self._start(argv, env, cwd, [stdin.fileno(), out.fileno(), err.fileno()])
            try:
                program.wait(timeout)
            except BaseException:
                program.kill()
                raise
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode(errors="replace"))
        return subprocess.CompletedProcess(argv, program.wait(), *texts)

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: int | IO[Any] = subprocess.DEVNULL,
        stdout: int | IO[Any] = subprocess.DEVNULL,
        stderr: int | IO[Any] = subprocess.STDOUT,
        session: bool = False,
    ) -> Program:
        """Start `python ARGV...`, which ends with this process at the latest.

        :param stdin: a file, `subprocess.PIPE`, or `subprocess.DEVNULL`.
        :param stdout: the same.
        :param stderr: the same without a pipe, or `subprocess.STDOUT`.
        :param session: in its own session, which outlives this process; it waits for `Program.begin`.
        """
        with contextlib.ExitStack() as ours:
            ends: dict[str, IO[str]] = {}

            def descriptor(name: str, stream: int | IO[Any], mode: str) -> int:
                if stream == subprocess.DEVNULL:
                    return ours.enter_context(open(os.devnull, mode)).fileno()
                if stream != subprocess.PIPE:
                    return stream if isinstance(stream, int) else stream.fileno()
                reading, writing = os.pipe()
                theirs, kept = (reading, writing) if mode == "r" else (writing, reading)
                ours.callback(os.close, theirs)
                ends[name] = open(kept, "w" if mode == "r" else "r", encoding="utf-8")  # noqa: SIM115
                return theirs

            streams = [descriptor("stdin", stdin, "r"), descriptor("stdout", stdout, "w")]
            streams.append(streams[1] if stderr == subprocess.STDOUT else descriptor("stderr", stderr, "w"))
            program = self._start(argv, env, cwd, streams, session=session)
        program.stdin, program.stdout = ends.get("stdin"), ends.get("stdout")
        return program

    def _start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path | None,
        streams: list[int],
        session: bool = False,
    ) -> Program:
        self.open()
        order = {"argv": [*argv], "env": dict(env), "cwd": str(cwd or Path.cwd()), "session": session}
        return Program(argv, self._ask(order, streams))

    def _ask(self, order: Mapping[str, Any], streams: Sequence[int] = ()) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self._address))
            body = json.dumps(order).encode()
            socket.send_fds(connection, [len(body).to_bytes(8, "big")], streams)
            connection.sendall(body)
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def _address(self) -> Path:
        return self._folder / "socket"

    def _leased(self) -> socket.socket:
        """Return a lease of the process; start it first if none runs."""
        with self._locked():
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                return self._ask({"lease": True})
            self._address.unlink(missing_ok=True)
            log = self._folder / "log"
            with log.open("ab") as output:
                self._server = process = subprocess.Popen(
                    [sys.executable, str(SERVER), str(self._address)],
                    env=self.environ,
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            assert wait_until(lambda: self._listens() or process.poll() is not None), log.read_text()
            assert process.poll() is None, log.read_text()
            return self._ask({"lease": True})

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self._address)) == 0

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
