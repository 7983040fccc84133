# SPDX-License-Identifier: Apache-2.0
"""A real Airflow in a separate process, which runs DAGs against a sandbox."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import secrets
import subprocess
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.service import connection_text
from tests.support.waiting import PATIENCE
from tests.support.warm import Warm, airflow_environ
from webdata_sandbox.server import SandboxServer
from webdata_sandbox.testing.migrated_database import MigratedDatabase

WORKER = Path(__file__).with_name("dag_worker.py")


@dataclass
class Outcome:
    """The runs of a DAG.

    :param runs: per run: state, tasks, xcom, rendered.
    :param log: everything logged meanwhile.
    """

    runs: list[dict[str, Any]]
    log: str

    @property
    def run(self) -> dict[str, Any]:
        (run,) = self.runs
        return run

    @property
    def xcom(self) -> dict[str, Any]:
        found: dict[str, Any] = self.run["xcom"]
        return found

    def state(self, task: str) -> str:
        return str(self.run["tasks"][task]["state"])

    def ended(self, task: str) -> tuple[str, int]:
        """Return a task's state and the number of its last attempt."""
        found = self.run["tasks"][task]
        return found["state"], found["try_number"]

    def log_of(self, task: str) -> str:
        """Return the log of all attempts of a task."""
        mark = rf"\[DAG TEST\] {{}} task_id={re.escape(task)} map_index="
        attempts = rf"{mark.format('starting')}.*?(?:{mark.format('end task')}|\Z)"
        return "\n".join(re.findall(attempts, self.log, re.DOTALL))


class Airflow:
    """A process that runs DAGs with `dag.test()`: real task runner, real execution API, real metadata."""

    def __init__(self, home: Path, database: MigratedDatabase, warm: Warm) -> None:
        self.home = home
        self.dags = home / "dags"
        self.dags.mkdir()
        self._log = home / "worker.log"
        self._numbers = itertools.count(1)
        environ = airflow_environ(
            home,
            AIRFLOW__API_AUTH__JWT_SECRET=secrets.token_hex(32),
            AIRFLOW__CORE__DAGS_FOLDER=str(self.dags),
            AIRFLOW__LOGGING__LOGGING_LEVEL="INFO",
        )
        database.copy_to(home)
        with self._log.open("wb") as log:
            self._process = warm.start([str(WORKER)], env=environ, stdin=subprocess.PIPE, stdout=log)

    def run(self, source: str, **environ: str) -> Outcome:
        """Run a DAG and wait for its end.

        :param source: a DAG file that binds `dag`; `DAG_ID` in it becomes a unique name.
        :param environ: environment variables to set first.
        """
        name = f"dag_{next(self._numbers)}"
        for other in self.dags.glob("*.py"):
            other.unlink()
        path, answer = self.dags / f"{name}.py", self.home / f"{name}.json"
        path.write_text(textwrap.dedent(source).replace("DAG_ID", name))
        begin = self._log.stat().st_size
        assert self._process.stdin is not None
        order = {"path": str(path), "answer": str(answer), "environ": environ}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        deadline = time.monotonic() + PATIENCE
        while not answer.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"Airflow did not run the DAG:\n{self._since(begin)[-5000:]}")
            time.sleep(0.05)
        told = json.loads(answer.read_text())
        assert "error" not in told, told["error"]
        return Outcome(runs=told["runs"], log=self._since(begin))

    def _since(self, begin: int) -> str:
        return self._log.read_bytes()[begin:].decode(errors="replace")

    def stop(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def connection(server: SandboxServer, /, **extra: Any) -> str:
    """Return a connection to the sandbox as JSON."""
    return connection_text(server.url, server.api_key, **extra)


HEAD = """
from __future__ import annotations
import datetime, os
from airflow.sdk import DAG, task
from airflow_provider_webdata.operators.monitor import (
    WebDataCreateMonitorOperator, WebDataDeleteMonitorOperator, WebDataListMonitorsOperator,
    WebDataRunMonitorOperator, WebDataUpdateMonitorOperator,
)
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Changes, Quality
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.sensors.webhook import WebDataWebhookSensor

TARGETS = [{"type": "scrape", "urls": ["https://example.com/"]}]
"""


def dag_runner(airflow: Airflow, sandbox: SandboxServer) -> Callable[..., Outcome]:
    """Return a function that runs the body of a DAG against the sandbox.

    It takes the lines inside `with DAG(...)`, lines before it, extras of the connection, and environment variables.
    """

    def run(body: str, before: str = "", *, environ: dict[str, str] | None = None, **extra: Any) -> Outcome:
        source = (
            HEAD
            + textwrap.dedent(before)
            + '\nwith DAG("DAG_ID", schedule=None) as dag:\n'
            + textwrap.indent(textwrap.dedent(body), "    ")
        )
        return airflow.run(
            source, AIRFLOW_CONN_WEBDATA_DEFAULT=connection(sandbox, **extra), **(environ or {})
        )

    return run
