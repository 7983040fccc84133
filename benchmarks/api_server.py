# SPDX-License-Identifier: Apache-2.0
"""Airflow's API server, one uvicorn process, with all installed plugins and the database of a benchmark."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.airflow_settings import Ports, airflow_environment
from tests.support.processes import Session
from tests.support.waiting import wait_until

FILES = Path(__file__).parent / "airflow_files"
WEBHOOK_SECRET = "a-secret-of-the-benchmark"


@dataclass(frozen=True)
class Airflow:
    """An Airflow in a folder, with an empty database and settings as environment variables."""

    home: Path
    database: str
    settings: Mapping[str, str]

    def set_up(self) -> None:
        """Create the tables, including those of plugins, and parse the benchmark's DAG."""
        for command in (["db", "migrate"], ["dags", "reserialize"]):
            done = subprocess.run(
                [sys.executable, "-m", "airflow", *command],
                env=self.environment(Ports.free()),
                cwd=self.home,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if done.returncode:
                raise RuntimeError(f"airflow {' '.join(command)} failed:\n{done.stdout}")

    @contextlib.contextmanager
    def api_server(self, name: str, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
        """Run an API server with additional settings; yield its base URL. Several servers can share the database."""
        ports = Ports.free()
        argv = [sys.executable, "-m", "airflow", "api-server"]
        argv += ["--host", "127.0.0.1", "--port", str(ports.api)]
        log = self.home / f"{name}.log"
        environment = {**self.environment(ports), **settings}
        session = Session.start(name, argv, env=environment, cwd=self.home, log=log)
        url = f"http://127.0.0.1:{ports.api}"
        try:
            up = wait_until(lambda: _answers(f"{url}/api/v2/version") or not session.leader_runs(), 60)
            if not (up and session.leader_runs()):
                raise RuntimeError(f"the API server did not start:\n{log.read_text()[-4000:]}")
            yield url
        finally:
            session.stop()

    def environment(self, ports: Ports) -> dict[str, str]:
        """Return the environment of an Airflow process."""
        settings = {
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(FILES / "plugins"),
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            **self.settings,
        }
        return airflow_environment(self.home, ports, [FILES / "dags"], self.database, settings)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except (URLError, ConnectionError, TimeoutError):
        return False
