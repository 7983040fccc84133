"""A sandbox and an `airflow standalone` that knows it, as one thing to start and to end."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from demo.airflow_api import AirflowAPI
from demo.airflow_home import Ports, airflow_environment, login
from demo.errors import DemoError
from demo.processes import Session, wait_until

REPOSITORY = Path(__file__).resolve().parent.parent
# The tests use homes of their own, so that they do not end what `make up` left running.
HOMES = Path(os.environ.get("WEBDATA_DEMO_HOMES") or REPOSITORY / ".airflow")
EXAMPLE_DAGS = REPOSITORY / "example_dags"
CONNECTION_ID = "webdata_default"
COMPONENTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
STATE_FILE = "stack.json"

Say = Callable[[str], None]


@dataclass
class Stack:
    """Lives in `home`, which `start` empties first and `stop` leaves behind for its logs.

    `environment` adds to or replaces Airflow's settings; `connection_extra` is the extra of the connection
    that points to the sandbox; `sandbox_flags` are handed to the sandbox as they are.
    """

    home: Path
    dag_folders: Sequence[Path] = (EXAMPLE_DAGS,)
    api_key: str = "wd-sandbox-key"
    environment: Mapping[str, str] = field(default_factory=dict)
    connection_extra: Mapping[str, Any] = field(default_factory=dict)
    sandbox_flags: Sequence[str] = ()
    say: Say = print
    sandbox_url: str = ""
    airflow_url: str = ""
    _sessions: list[Session] = field(default_factory=list)

    def __enter__(self) -> Stack:
        """Start, or leave nothing behind."""
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    @classmethod
    def running_in(cls, home: Path) -> Stack | None:
        """What an earlier process started in `home`, where any of it still runs."""
        try:
            state = json.loads((home / STATE_FILE).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        stack = cls(home, sandbox_url=state["sandbox_url"], airflow_url=state["airflow_url"])
        stack._sessions = [Session.from_state(session) for session in state["sessions"]]
        return stack if any(session.members() for session in stack._sessions) else None

    def start(self) -> None:
        """Start both, wait until Airflow is healthy, and add the connection."""
        if (left_over := self.running_in(self.home)) is not None:
            self.say("ending what an interrupted run left behind")
            left_over.stop()
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        self._start_sandbox()
        self._start_airflow()
        self.api.add_connection(self._connection())

    def stop(self) -> None:
        """End every process that `start` started."""
        if "api" in self.__dict__:
            self.api.close()
        while self._sessions:
            self._sessions[-1].stop()
            self._sessions.pop()
        (self.home / STATE_FILE).unlink(missing_ok=True)

    @cached_property
    def api(self) -> AirflowAPI:
        """Airflow's REST API, logged in."""
        return AirflowAPI(self.airflow_url, *self.login)

    @property
    def login(self) -> tuple[str, str]:
        """User and password for the UI."""
        return login(self.home)

    def wait_for_dags(self, dag_ids: Sequence[str], patience: float = 60.0) -> None:
        """Return once Airflow has parsed these DAGs; raises `DemoError` with the import error otherwise."""

        def parsed() -> bool:
            for file, trace in self.api.import_errors().items():
                raise DemoError(f"Airflow cannot import {file}:\n{trace}")
            return set(dag_ids) <= self.api.dag_ids()

        if not wait_until(parsed, patience, pause=0.5):
            missing = sorted(set(dag_ids) - self.api.dag_ids())
            raise DemoError(f"Airflow found no DAG {missing} within {patience:.0f} s.")

    def _start_sandbox(self) -> None:
        argv = [sys.executable, "-m", "airflow_provider_webdata.sandbox"]
        argv += ["--host", "127.0.0.1", "--port", "0", "--api-key", self.api_key, *self.sandbox_flags]
        sandbox = self._launch("sandbox", argv, {**os.environ, "PYTHONUNBUFFERED": "1"})

        def listening() -> bool:
            found = re.search(r"sandbox listening on (http://\S+)", _text(sandbox.log))
            self.sandbox_url = found.group(1) if found else ""
            return bool(found) or not sandbox.leader_runs()

        if not wait_until(listening, 30.0) or not self.sandbox_url:
            raise DemoError(f"The sandbox did not start.\n{_tail(sandbox.log)}")
        self._write_state()
        self.say(f"sandbox is up at {self.sandbox_url}")

    def _start_airflow(self) -> None:
        ports = Ports.free()
        self.airflow_url = f"http://127.0.0.1:{ports.api}"
        env = airflow_environment(self.home, ports, self.dag_folders, self.environment)
        self.say("Airflow is starting")
        airflow = self._launch("airflow", [sys.executable, "-m", "airflow", "standalone"], env)
        probe = AirflowAPI(self.airflow_url, "", "")

        def settled() -> bool:
            health = probe.healthy()
            return all(health.get(part) == "healthy" for part in COMPONENTS) or not airflow.leader_runs()

        try:
            in_time = wait_until(settled, 120.0, pause=0.5)
            health = probe.healthy()
        finally:
            probe.close()
        if not in_time or not health:
            raise DemoError(f"Airflow did not become healthy ({health}).\n{_tail(airflow.log)}")
        self.say(f"Airflow is up at {self.airflow_url}")

    def _launch(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> Session:
        log = self.home / "output" / f"{name}.log"
        session = Session.start(name, argv, env=env, cwd=self.home, log=log)
        self._sessions.append(session)
        self._write_state()
        return session

    def _write_state(self) -> None:
        state = {
            "sandbox_url": self.sandbox_url,
            "airflow_url": self.airflow_url,
            "sessions": [session.to_state() for session in self._sessions],
        }
        (self.home / STATE_FILE).write_text(json.dumps(state, indent=2))

    def _connection(self) -> dict[str, Any]:
        url = urlsplit(self.sandbox_url)
        return {
            "connection_id": CONNECTION_ID,
            "conn_type": "webdata",
            "description": "The sandbox that was started together with this Airflow",
            # Host and port apart: the UI of Airflow 3.3.1 and 3.3.2 refuses to test a connection without port.
            "host": f"{url.scheme}://{url.hostname}",
            "port": url.port,
            "password": self.api_key,
            "extra": json.dumps(dict(self.connection_extra)),
        }


def _text(log: str) -> str:
    return Path(log).read_text(errors="replace")


def _tail(log: str, lines: int = 25) -> str:
    return "\n".join([f"Last lines of {log}:", *_text(log).splitlines()[-lines:]])
