"""Airflow as it runs on several machines, on one: two of each component, PostgreSQL, Redis and Celery between them."""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.support.airflow_settings import Ports
from tests.support.errors import StackError
from tests.support.stack import Component, Stack
from tests.support.waiting import wait_until

API_SERVERS = ("api-server-1", "api-server-2")
SCHEDULERS = ("scheduler-1", "scheduler-2")
TRIGGERERS = ("triggerer-1", "triggerer-2")
WORKERS = ("worker-1", "worker-2")
SLOTS_PER_WORKER = 4
OTHER_CONNECTION = "webdata_other_api_server"


@dataclass
class ScaleStack(Stack):
    """A stack with two API servers, schedulers, triggerers and Celery workers; `database_url` must be PostgreSQL.

    Worker 1 talks to API server 1, worker 2 to API server 2. So do the webhooks: those of `webdata_default` go to
    the first, those of `webdata_other_api_server` to the second.
    """

    redis_port: int = 0
    other_url: str = ""
    _other_ports: Ports | None = field(default=None, repr=False)

    @property
    def components(self) -> Mapping[str, Component]:
        """Two of each; the API servers one after the other, as the first one makes the password."""
        assert self._other_ports is not None
        second_api = str(self._other_ports.api)
        execution = "AIRFLOW__CORE__EXECUTION_API_SERVER_URL"
        other_execution = {execution: f"{self.other_url}/execution/"}
        other_logs = {"AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(self._other_ports.trigger_logs)}
        worker = ("celery", "worker", "--skip-serve-logs", "--concurrency", str(SLOTS_PER_WORKER))
        return {
            API_SERVERS[0]: Component(("api-server",)),
            API_SERVERS[1]: Component(("api-server", "--port", second_api)),
            SCHEDULERS[0]: Component(("scheduler",)),
            SCHEDULERS[1]: Component(("scheduler",)),
            "dag-processor": Component(("dag-processor",)),
            TRIGGERERS[0]: Component(("triggerer",)),
            TRIGGERERS[1]: Component(("triggerer",), {**other_logs, **other_execution}),
            WORKERS[0]: Component((*worker, "--celery-hostname", "worker-1@%h")),
            WORKERS[1]: Component((*worker, "--celery-hostname", "worker-2@%h"), other_execution),
        }

    def start(self) -> None:
        """Start all of it, and add the second connection."""
        super().start()
        extra = {**self.connection_extra, "webhook_url": self.other_url}
        self.api.add_connection(self.connection(OTHER_CONNECTION, extra))

    def _start_airflow(self) -> None:
        self._start_redis()
        self._other_ports = Ports.free()
        self.other_url = f"http://127.0.0.1:{self._other_ports.api}"
        self.environment = {
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            "AIRFLOW__CORE__PARALLELISM": "32",
            "AIRFLOW__CELERY__BROKER_URL": f"redis://127.0.0.1:{self.redis_port}/0",
            "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{self.database_url}",
            "AIRFLOW__CELERY__WORKER_PREFETCH_MULTIPLIER": "1",
            # What a dead worker had taken from Redis and not begun comes back after so long.
            "AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": "60",
            "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "60",
            "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "10",
            # Who is dead is missed soon.
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "2",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15",
            **self.environment,
        }
        super()._start_airflow()

    def _start_redis(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise StackError(
                "Redis' program 'redis-server' is not on this machine; run tools/redis-setup as root, or install "
                "Redis' server (on Debian and Ubuntu the package 'redis-server')."
            )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.redis_port = probe.getsockname()[1]
        argv = [
            program,
            "--bind",
            "127.0.0.1",
            "--port",
            str(self.redis_port),
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        server = self._launch("redis", [*argv, "--dir", str(self.home)], self._plain_environment())

        def answers() -> bool:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.redis_port), 1.0) as link,
            ):
                link.sendall(b"PING\r\n")
                return link.recv(16).startswith(b"+PONG")
            return not server.leader_runs()

        if not wait_until(answers, 15.0) or not server.leader_runs():
            raise StackError("Redis did not start; see output/redis.log.")
        self.say(f"Redis is up on port {self.redis_port}")

    @staticmethod
    def _plain_environment() -> Mapping[str, str]:
        return {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
