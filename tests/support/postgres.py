# SPDX-License-Identifier: Apache-2.0
"""A private PostgreSQL in a separate folder. Nothing of it is left once it is closed or its user has died.

It keeps PostgreSQL's default settings, `fsync` included, so that tests and measurements hold elsewhere.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.errors import StackError
from tests.support.ports import free_port
from tests.support.waiting import wait_until

USER = "wd_owner"
# Its input ends with the process that started it, however that ends.
_WATCH = """
read _
kill -INT $1
for _ in $(seq 100); do kill -0 $1 2>/dev/null || break; sleep 0.1; done
rm -rf "$2"
"""
_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")


@dataclass
class Postgres:
    """A server on a free loopback port; use it as a context manager.

    :param settings: of the server, such as `{"max_connections": "50"}`.
    :param programs: folder of PostgreSQL's programs; by default those of this machine.
    """

    settings: dict[str, str] = field(default_factory=dict)
    programs: str = ""
    port: int = 0
    folder: Path = Path()
    _password: str = field(default_factory=lambda: secrets.token_urlsafe(12), repr=False)
    _server: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _watchdog: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def __enter__(self) -> Postgres:
        """Create the folder and start the server."""
        self.folder = Path(tempfile.mkdtemp(prefix="webdata-postgres-"))
        try:
            if owner := _owner():
                os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            self._initialize()
            self.port = free_port()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server and remove the folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        """Process id of the server, 0 while it is stopped."""
        return 0 if self._server is None else self._server.pid

    def url(self, database: str = "postgres", port: int | None = None) -> str:
        """Return SQLAlchemy's address of a database; through another port where a proxy stands in between."""
        return f"postgresql+psycopg2://{USER}:{self._password}@127.0.0.1:{port or self.port}/{database}"

    def create_database(self, name: str) -> str:
        """Create an empty database and return its address."""
        argv = [self._program("createdb"), "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, name]
        done = subprocess.run(
            argv, env={**os.environ, "PGPASSWORD": self._password}, capture_output=True, text=True
        )
        if done.returncode:
            raise StackError(f"The database {name} could not be created: {done.stderr.strip()}")
        return self.url(name)

    def start(self) -> None:
        """Start the server, again after `stop`, and return once it accepts connections."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
            "max_connections": "200",
            **self.settings,
        }
        argv = [self._program("postgres"), "-D", str(self._data), "-p", str(self.port)]
        argv += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._server = server = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **_as_owner(),
            )
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "watchdog", str(server.pid), str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        if not wait_until(lambda: self._ready() or server.poll() is not None, pause=0.05):
            raise StackError(f"PostgreSQL did not start within 30 s.\n{self._last_words()}")
        if not self._ready():
            raise StackError(f"PostgreSQL did not start.\n{self._last_words()}")

    def stop(self, *, crash: bool = False) -> None:
        """Stop the server and close its connections; `crash` gives it no time to clean up."""
        if self._watchdog is not None:
            self._watchdog.kill()
            self._watchdog.communicate()
            self._watchdog = None
        if self._server is None:
            return
        server, self._server = self._server, None
        for ask in (signal.SIGQUIT if crash else signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            server.send_signal(ask)
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(10.0)
                return
        raise StackError(f"PostgreSQL's process {server.pid} could not be ended.")

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _log(self) -> Path:
        return self.folder / "postgres.log"

    def _initialize(self) -> None:
        password = self.folder / "password"
        password.touch(mode=0o600)
        password.write_text(self._password)
        if owner := _owner():
            os.chown(password, owner.pw_uid, owner.pw_gid)
        argv = [self._program("initdb"), "-D", str(self._data), "-U", USER, "--pwfile", str(password)]
        argv += ["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"]
        done = subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, **_as_owner())
        if done.returncode:
            raise StackError(f"PostgreSQL's initdb failed: {done.stderr.strip()}")

    def _ready(self) -> bool:
        """Return whether the running server reports readiness in its pid file."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return (
            self._server is not None
            and len(lines) >= 8
            and lines[0] == str(self._server.pid)
            and lines[7].strip() == "ready"
        )

    def _program(self, name: str) -> str:
        """Return the path of one of PostgreSQL's programs, which Debian keeps out of the PATH."""
        folders = sorted((folder for pattern in _FOLDERS for folder in glob.glob(pattern)), key=_version)
        places = self.programs or os.pathsep.join([os.environ.get("PATH", ""), *reversed(folders)])
        if (found := shutil.which(name, path=places)) is None:
            raise StackError(
                f"PostgreSQL's program '{name}' is not on this machine; run tools/postgres-setup as root, "
                "or install PostgreSQL's server (on Debian and Ubuntu the package 'postgresql')."
            )
        return found

    def _last_words(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])


def _owner() -> pwd.struct_passwd | None:
    """Return the user that the server runs as, None for the current one. PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise StackError("PostgreSQL does not run as root, and there is neither a user 'postgres' nor 'nobody'.")


def _as_owner() -> dict[str, Any]:
    owner = _owner()
    return {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


def _version(folder: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", folder)]
