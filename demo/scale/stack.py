# SPDX-License-Identifier: Apache-2.0
"""A distributed Airflow on one machine: two of each component, with PostgreSQL, Redis, and Celery."""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from demo.pairs import PairedStack
from tests.support.errors import StackError
from tests.support.stack import Component
from tests.support.waiting import wait_until

SCHEDULERS = ("scheduler-1", "scheduler-2")
WORKERS = ("worker-1", "worker-2")
SLOTS_PER_WORKER = 4


@dataclass
class ScaleStack(PairedStack):
    """A paired stack with two schedulers and two Celery workers.

    Worker 1 uses API server 1, worker 2 uses API server 2.
    """

    redis_port: int = 0

    @property
    def components(self) -> Mapping[str, Component]:
        """Two of each."""
        worker = ("celery", "worker", "--skip-serve-logs", "--concurrency", str(SLOTS_PER_WORKER))
        pairs = {name: found for name, found in super().components.items() if name != "scheduler"}
        return {
            **pairs,
            **dict.fromkeys(SCHEDULERS, Component(("scheduler",))),
            WORKERS[0]: Component((*worker, "--celery-hostname", "worker-1@%h")),
            WORKERS[1]: Component((*worker, "--celery-hostname", "worker-2@%h"), self.other_execution),
        }

    def _start_airflow(self) -> None:
        self._start_redis()
        self.environment = {
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            "AIRFLOW__CORE__PARALLELISM": "32",
            "AIRFLOW__CELERY__BROKER_URL": f"redis://127.0.0.1:{self.redis_port}/0",
            "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{self.database_url}",
            "AIRFLOW__CELERY__WORKER_PREFETCH_MULTIPLIER": "1",
            # After this time, Redis redelivers tasks that a dead worker received but did not start.
            "AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": "60",
            "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "60",
            "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "10",
            **self.environment,
        }
        super()._start_airflow()

    def _start_redis(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise StackError(
                "The program 'redis-server' was not found. Run tools/redis-setup as root, or install the Redis server "
                "(on Debian and Ubuntu, the package 'redis-server')."
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

        if not wait_until(answers) or not server.leader_runs():
            raise StackError("Redis did not start. See output/redis.log.")
        self.say(f"Redis is running on port {self.redis_port}")

    @staticmethod
    def _plain_environment() -> Mapping[str, str]:
        return {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
