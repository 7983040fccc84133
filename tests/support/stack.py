# SPDX-License-Identifier: Apache-2.0
"""A sandbox and an Airflow connected to it, started and ended together.

Airflow's components run as four programs, as in production. Each can be killed and started again.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from tests.support.airflow_api import AirflowAPI
from tests.support.airflow_settings import DATABASE_URL, Ports, airflow_environment, login
from tests.support.errors import StackError
from tests.support.ports import free_port
from tests.support.processes import Session, stop_all
from tests.support.service import CONNECTION_ID
from tests.support.waiting import PATIENCE, wait_until
from tests.support.warm import Warm

REPOSITORY = Path(__file__).resolve().parents[2]
# The tests use separate homes, so that they do not end what `make up` left running.
HOMES = Path(os.environ.get("WEBDATA_DEMO_HOMES") or REPOSITORY / ".airflow")
EXAMPLE_DAGS = REPOSITORY / "example_dags"
COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
HEALTH = ("metadatabase", "scheduler", "dag_processor", "triggerer")
STATE_FILE = "stack.json"
# Triggers hold events back for the time that a worker may linger behind a deferred task, and two seconds more. On a
# machine that stalls, workers linger longer than their own setting.
PATIENT_TRIGGERER = {"AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "3"}
READY_SCHEDULER = Path(__file__).with_name("ready_scheduler.py")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Component:
    """One of Airflow's programs: the arguments of `airflow`, and additional environment variables."""

    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Stack:
    """Lives in `home`, which `start` empties first and `stop` leaves behind for its logs.

    `environment` adds to or replaces Airflow's settings. `connection_extra` is the extra of the connection that points
    to the sandbox, beside the webhook's address and secret. `sandbox_flags` are passed to the sandbox unchanged.
    `database_url` is SQLAlchemy's address of an empty database; without it, the stack uses SQLite. `prepare` is called
    when both addresses are known and before Airflow starts, for what DAGs must know when they are parsed. `warm` starts
    the programs; without it, each starts a separate Python.
    """

    home: Path
    dag_folders: Sequence[Path] = (EXAMPLE_DAGS,)
    api_key: str = "wd-sandbox-key"
    webhook_secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    environment: Mapping[str, str] = field(default_factory=dict)
    connection_extra: Mapping[str, Any] = field(default_factory=dict)
    sandbox_flags: Sequence[str] = ()
    database_url: str = field(default="", repr=False)
    prepare: Callable[[Stack], None] = field(default=lambda stack: None, repr=False)
    say: Say = print
    warm: Warm | None = field(default=None, repr=False)
    sandbox_url: str = ""
    airflow_url: str = ""
    _sessions: dict[str, Session] = field(default_factory=dict)
    _environment: dict[str, str] = field(default_factory=dict, repr=False)

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
    def running_in(cls, home: Path, sandbox_flags: Sequence[str] = ()) -> Stack | None:
        """The stack that an earlier process started in `home`, or None if none of it still runs."""
        try:
            state = json.loads((home / STATE_FILE).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        stack = cls(
            home,
            sandbox_flags=sandbox_flags,
            sandbox_url=state["sandbox_url"],
            airflow_url=state["airflow_url"],
        )
        stack._sessions = {name: Session.from_state(session) for name, session in state["sessions"].items()}
        return stack if any(session.members() for session in stack._sessions.values()) else None

    def start(self) -> None:
        """Start both, wait until Airflow is healthy, and add the connection."""
        if (left_over := self.running_in(self.home)) is not None:
            self.say("ending what an interrupted run left behind")
            left_over.stop()
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        self._start_sandbox()
        self._start_airflow()
        self.api.add_connection(self.connection(CONNECTION_ID, self.connection_extra))

    def stop(self) -> None:
        """End every process that `start` started."""
        if "api" in self.__dict__:
            self.api.close()
        try:
            stop_all(list(self._sessions.values()))
        except BaseException:
            # After an interrupt, no other caller would end them.
            stop_all(list(self._sessions.values()))
            raise
        self._sessions.clear()
        (self.home / STATE_FILE).unlink(missing_ok=True)

    def kill(self, component: str) -> None:
        """End one of Airflow's components as a machine that dies would."""
        self._sessions[component].kill()

    @property
    def components(self) -> Mapping[str, Component]:
        """The components of Airflow by name, in the order in which they start."""
        # After five seconds without SQLite's lock, these would end. The API server may not wait longer: it waits in its
        # event loop, and the thread that has the lock may need that loop for its commit.
        patient = (
            {}
            if self.database_url
            else {DATABASE_URL: f"{self._environment[DATABASE_URL]}?timeout={PATIENCE}"}
        )
        components = {name: Component((name,), patient) for name in COMPONENTS}
        url = urlsplit(self.airflow_url)
        address = ("--host", str(url.hostname), "--port", str(url.port))
        return {
            **components,
            "api-server": Component(("api-server", *address)),
            "triggerer": Component(("triggerer",), {**patient, **PATIENT_TRIGGERER}),
        }

    def launch(self, name: str) -> None:
        """Start one of Airflow's components, also again after `kill`. Does not wait; see `wait_until_healthy`."""
        component = self.components[name]
        argv = [sys.executable, "-m", "airflow", *component.argv]
        if self.warm is not None and name == "scheduler":
            argv = [sys.executable, str(READY_SCHEDULER)]
        self._launch(name, argv, {**self._environment, **component.environment})

    @property
    def ended(self) -> list[str]:
        """The started programs that no longer run."""
        return [name for name, session in self._sessions.items() if not session.leader_runs()]

    def command(self, *argv: str) -> str:
        """Run a command of `airflow` to its end, and return what it printed; raises `StackError` if it fails."""
        if self.warm is None:
            raise ValueError("The stack has no warm process")
        done = self.warm.run(["-m", "airflow", *argv], env=self._environment, cwd=self.home)
        if done.returncode:
            raise StackError(f"airflow {shlex.join(argv)} failed.\n{done.stdout}{done.stderr}")
        return str(done.stdout)

    def python(self, *argv: str, given: str = "") -> str:
        """Run a program of this repository beside this Airflow, and return what it printed; raises `StackError`.

        :param given: its standard input.
        """
        environment = {**self._environment, **self.components["scheduler"].environment}
        done = subprocess.run(
            [sys.executable, *argv],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd=REPOSITORY,
        )
        if done.returncode:
            raise StackError(f"python {shlex.join(argv)} failed.\n{done.stdout}{done.stderr}")
        return done.stdout

    def restart_sandbox(self) -> None:
        """Start the sandbox again at the same address."""
        self._start_sandbox(urlsplit(self.sandbox_url).port or 0)

    @property
    def environment_file(self) -> Path:
        """A shell script that makes `airflow` the command of this Airflow."""
        return self.home / "environment.sh"

    def write_environment(self) -> None:
        """Write the environment file, for this user alone."""
        ours = {name: value for name, value in self._environment.items() if name.startswith("AIRFLOW")}
        lines = [f"export {name}={shlex.quote(value)}" for name, value in ours.items()]
        lines.append(f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"')
        self.environment_file.touch(mode=0o600)
        self.environment_file.write_text("\n".join(lines) + "\n")

    def members(self, name: str) -> list[psutil.Process]:
        """The live processes of one of the started programs."""
        return self._sessions[name].members()

    def runs(self, name: str) -> bool:
        """Return whether one of the started programs itself still runs; its children may outlive it."""
        return self._sessions[name].leader_runs()

    def wait_until_healthy(self) -> None:
        """Return once the API server answers and the others report; raises `StackError` with a log otherwise."""
        ended: list[str] = []
        probe = AirflowAPI(self.airflow_url, "", "")

        def settled() -> bool:
            health = probe.healthy()
            ended[:] = [name for name in self.components if not self.runs(name)]
            return all(health.get(part) == "healthy" for part in HEALTH) or bool(ended)

        try:
            in_time = wait_until(settled, pause=0.5)
            health = probe.healthy()
        finally:
            probe.close()
        if not in_time or ended:
            logs = [_tail(self._sessions[name].log) for name in ended or self.components]
            raise StackError("\n".join([f"Airflow did not become healthy ({health}).", *logs]))

    @cached_property
    def api(self) -> AirflowAPI:
        """Airflow's REST API, logged in."""
        return AirflowAPI(self.airflow_url, *self.login)

    @property
    def login(self) -> tuple[str, str]:
        """User and password for the UI."""
        return login(self.home)

    def wait_for_dags(self, dag_ids: Sequence[str]) -> None:
        """Return once Airflow has parsed these DAGs; raises `StackError` with the import error otherwise."""

        def parsed() -> bool:
            for file, trace in self.api.import_errors().items():
                raise StackError(f"Airflow cannot import {file}:\n{trace}")
            return set(dag_ids) <= self.api.dag_ids()

        if not wait_until(parsed, pause=0.5):
            missing = sorted(set(dag_ids) - self.api.dag_ids())
            raise StackError(f"Airflow found no DAG {missing} within {PATIENCE:.0f} s.")

    def connection(
        self, connection_id: str, extra: Mapping[str, Any] | None = None, service_url: str = ""
    ) -> dict[str, Any]:
        """A connection to the sandbox (or a proxy in front of it) whose webhooks this Airflow receives.

        `extra` adds to its extra; a value of None removes an entry.
        """
        url = urlsplit(service_url or self.sandbox_url)
        extras = {
            "server": "hosted",
            "webhook_url": self.airflow_url,
            "webhook_secret": self.webhook_secret,
            **(extra or {}),
        }
        return {
            "connection_id": connection_id,
            "conn_type": "webdata",
            "description": "The sandbox that was started together with this Airflow",
            # Host and port apart: the UI of Airflow 3.3.1 and 3.3.2 refuses to test a connection without port.
            "host": f"{url.scheme}://{url.hostname}",
            "port": url.port,
            "password": self.api_key,
            "extra": json.dumps({name: value for name, value in extras.items() if value is not None}),
        }

    def _start_sandbox(self, port: int = 0) -> None:
        argv = [sys.executable, "-m", "webdata_sandbox"]
        # No other test's server gets the port while the sandbox is down: this Airflow would call it.
        address = ["--host", "127.0.0.1", "--port", str(port or free_port())]
        argv += [*address, "--api-key", self.api_key, *self.sandbox_flags]
        log = self.home / "output" / "sandbox.log"
        said_before = len(_text(str(log))) if log.exists() else 0
        environment = os.environ if self.warm is None else self.warm.environ
        sandbox = self._launch("sandbox", argv, {**environment, "PYTHONUNBUFFERED": "1"})

        def listening() -> bool:
            found = re.search(r"sandbox listening on (http://\S+)", _text(sandbox.log)[said_before:])
            self.sandbox_url = found.group(1) if found else ""
            return bool(found) or not sandbox.leader_runs()

        if not wait_until(listening) or not self.sandbox_url:
            raise StackError(f"The sandbox did not start.\n{_tail(sandbox.log)}")
        self._write_state()
        self.say(f"sandbox is up at {self.sandbox_url}")

    def _start_airflow(self) -> None:
        ports = Ports.free()
        self.airflow_url = f"http://127.0.0.1:{ports.api}"
        self._environment = airflow_environment(
            self.home, ports, self.dag_folders, self.database_url, self.environment
        )
        if self.warm is not None:
            # Airflow reads them at import. `components` passes them as arguments.
            for name in ("AIRFLOW__API__HOST", "AIRFLOW__API__PORT"):
                del self._environment[name]
        self.prepare(self)
        self.say("Airflow is starting: its database first, the inbox's tables with it")
        self._migrate()
        for component in self.components:
            self.launch(component)
        self.wait_until_healthy()
        self.say(f"Airflow is up at {self.airflow_url}")

    def _migrate(self) -> None:
        log = self.home / "output" / "migrate.log"
        argv = [sys.executable, "-m", "airflow", "db", "migrate"]
        options: dict[str, Any] = {"env": self._environment, "cwd": self.home}
        if self.warm is None:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                **options,
            )
        else:
            done = self.warm.run(argv[1:], **options)
        log.write_text(done.stdout + (done.stderr or ""))
        if done.returncode:
            raise StackError(f"Airflow's database could not be made.\n{_tail(str(log))}")

    def _launch(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> Session:
        def note(session: Session) -> None:
            self._sessions[name] = session
            self._write_state()

        log = self.home / "output" / f"{name}.log"
        return Session.start(name, argv, env=env, cwd=self.home, log=log, note=note, warm=self.warm)

    def _write_state(self) -> None:
        state = {
            "sandbox_url": self.sandbox_url,
            "airflow_url": self.airflow_url,
            "sessions": {name: session.to_state() for name, session in self._sessions.items()},
        }
        # Replaced whole: a run that is killed here must not leave half a file.
        new = self.home / f"{STATE_FILE}.new"
        new.write_text(json.dumps(state, indent=2))
        new.replace(self.home / STATE_FILE)


def _text(log: str) -> str:
    return Path(log).read_text(errors="replace")


def _tail(log: str, lines: int = 25) -> str:
    return "\n".join([f"Last lines of {log}:", *_text(log).splitlines()[-lines:]])
