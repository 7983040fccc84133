# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server on a separate in-memory file system of a fixed size, which can be filled."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psycopg2

from tests.support.errors import StackError
from tests.support.postgres import Postgres
from tests.support.waiting import wait_until

DISK_MB = 2048
_CLONE_NEWNS = 0x20000


@dataclass
class StarvedPostgres(Postgres):
    """A server that can run out of connections and, if this process may mount file systems, out of disk space.

    :ivar has_disk: True if the server has a separate file system.
    """

    has_disk: bool = False

    def __enter__(self) -> StarvedPostgres:
        """Create the folder and start the server."""
        super().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server and remove the folder."""
        self.stop()
        if self.has_disk:
            subprocess.run(["umount", str(self.folder)], check=False)
        super().__exit__()

    def fill_disk(self) -> None:
        """Fill the disk completely."""
        with contextlib.suppress(OSError), self._ballast.open("wb") as ballast:
            while True:
                ballast.write(bytes(2**20))
                ballast.flush()

    def free_disk(self) -> None:
        """Free the disk, and start the server if it has died."""
        self._ballast.unlink(missing_ok=True)
        self.revive()

    def revive(self) -> None:
        """Restart the server if it has died; return when it accepts connections."""
        if self._server is not None and self._server.poll() is not None:
            self.stop()
        if self._server is None:
            self.start()
        if not wait_until(self._answers):
            raise StackError("PostgreSQL no longer accepts connections.")

    def exhaust_connections(self) -> list[psycopg2.extensions.connection]:
        """Open all remaining connections; the caller closes them."""
        connections = []
        with contextlib.suppress(psycopg2.OperationalError):
            while True:
                connections.append(psycopg2.connect(self.address()))
        return connections

    def address(self, database: str = "postgres") -> str:
        """Return the URL of a database for psycopg2."""
        return self.url(database).replace("+psycopg2", "")

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg2.OperationalError):
            psycopg2.connect(self.address(), connect_timeout=2).close()
            return True
        return False

    def _initialize(self) -> None:
        self.has_disk = _mount(str(self.folder))
        super()._initialize()

    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"


def _mount(folder: str) -> bool:
    """Mount a file system of a fixed size, visible only to this process and its children; return False on failure."""
    if os.getuid() != 0 or ctypes.CDLL(None).unshare(_CLONE_NEWNS) != 0:
        return False
    stat = os.stat(folder)
    options = f"size={DISK_MB}m,uid={stat.st_uid},gid={stat.st_gid},mode=700"
    steps = (["--make-rprivate", "/"], ["-t", "tmpfs", "-o", options, "tmpfs", folder])
    return all(subprocess.run(["mount", *step], check=False).returncode == 0 for step in steps)
