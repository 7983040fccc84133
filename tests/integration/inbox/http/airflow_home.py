# SPDX-License-Identifier: Apache-2.0
"""A separate Airflow with a migrated database and connections, and the inbox served from it as users serve it."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
from sqlalchemy import create_engine, select

from airflow_provider_webdata.inbox_server.storage.tables import delivery
from tests.integration.inbox.http.served_inbox import EXTRAS, SECRET
from tests.support.waiting import PATIENCE, wait_until
from tests.support.warm import Warm, airflow_environ
from webdata_sandbox.testing.migrated_database import MigratedDatabase

# A connection of another type with everything that the inbox needs, and one with invalid settings.
OTHERS = {
    "other": {"conn_type": "http", "extra": json.dumps({"webhook_secret": SECRET})},
    "broken": {"conn_type": "webdata", "extra": json.dumps({"webhook_secret": SECRET, "webhook_url": "::"})},
}


@dataclass(frozen=True)
class AirflowHome:
    """An Airflow home, the environment of its processes, and the process that forks them."""

    folder: Path
    env: Mapping[str, str]
    warm: Warm

    @classmethod
    def create(cls, folder: Path, database: MigratedDatabase, warm: Warm) -> AirflowHome:
        env = airflow_environ(
            folder,
            AIRFLOW__WEBDATA__INBOX="True",
            AIRFLOW__WEBDATA__INBOX_MAX_BODY_MB="1",
            PYTHONUNBUFFERED="1",
        )
        home = cls(folder, env, warm)
        database.copy_to(folder)
        known = {
            kind: {
                "conn_type": "webdata",
                "host": "https://api.service.example",
                "password": "wd-key-0123456789",
                "extra": json.dumps(extra),
            }
            for kind, extra in EXTRAS.items()
        }
        listed = folder / "connections.json"
        listed.write_text(json.dumps({**known, **OTHERS}))
        home.airflow("connections", "import", str(listed))
        return home

    def airflow(self, *argv: str) -> str:
        return self.python("-m", "airflow", *argv)

    def python(self, *argv: str, **environ: str) -> str:
        done = self.warm.run(argv, env={**self.env, **environ})
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def stored(self, conn_id: str) -> list[bytes]:
        """Return the bodies in the database, read past the inbox."""
        engine = create_engine(self.env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
        with engine.connect() as link:
            chosen = select(delivery.c.body).where(delivery.c.conn_id == conn_id).order_by(delivery.c.id)
            bodies = list(link.execute(chosen).scalars())
        engine.dispose()
        return bodies

    @contextlib.contextmanager
    def serving(self, *flags: str) -> Iterator[ServeProcess]:
        """Run `airflow webdata inbox serve` on a free port."""
        process = ServeProcess(self, flags)
        try:
            process.wait_until_ready()
            yield process
        finally:
            process.kill()


class ServeProcess:
    """A running inbox.

    :ivar url: the address that it reports.
    """

    def __init__(self, home: AirflowHome, flags: tuple[str, ...]) -> None:
        argv = ["-m", "airflow", "webdata", "inbox", "serve", "--port", "0", *flags]
        self._process = home.warm.start(argv, env=home.env, stdout=subprocess.PIPE)
        self._lines: list[str] = []
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = ""

    @property
    def output(self) -> str:
        """All of its output so far."""
        return "".join(self._lines)

    def wait_until_ready(self) -> None:
        self._ready.wait(PATIENCE)
        assert self.url, f"the inbox did not start: {self.output}"

    def warm_up(self) -> None:
        """Wait until the inbox can look up connections in time: Airflow imports modules for the first one."""
        address = f"{self.url}/webdata/inbox/nobody"
        assert wait_until(lambda: httpx.post(address, content=b"{}", timeout=PATIENCE).status_code == 401)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """Return the exit status; the output is complete."""
        status = self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(PATIENCE)

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        for line in stdout:
            self._lines.append(line)
            if found := re.search(r"Uvicorn running on (\S+)", line):
                self.url = found[1]
                self._ready.set()
        stdout.close()
        self._ready.set()
