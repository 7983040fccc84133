# SPDX-License-Identifier: Apache-2.0
"""An Airflow on PostgreSQL with two API servers and two triggerers, so that one of each may die."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.support.airflow_settings import Ports
from tests.support.stack import Component, Stack

API_SERVERS = ("api-server-1", "api-server-2")
TRIGGERERS = ("triggerer-1", "triggerer-2")
OTHER_CONNECTION = "webdata_other_api_server"


@dataclass
class PairedStack(Stack):
    """A stack with two API servers and two triggerers; `database_url` must be PostgreSQL.

    The webhooks of `webdata_default` go to the first API server, those of `webdata_other_api_server` to the second.
    """

    other_url: str = ""
    _other_ports: Ports | None = field(default=None, repr=False)

    @property
    def components(self) -> Mapping[str, Component]:
        """The components. The API servers start one after the other, because the first one creates the password."""
        assert self._other_ports is not None
        second_api = str(self._other_ports.api)
        other_logs = {"AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(self._other_ports.trigger_logs)}
        return {
            API_SERVERS[0]: Component(("api-server",)),
            API_SERVERS[1]: Component(("api-server", "--port", second_api)),
            "scheduler": Component(("scheduler",)),
            "dag-processor": Component(("dag-processor",)),
            TRIGGERERS[0]: Component(("triggerer",)),
            TRIGGERERS[1]: Component(("triggerer",), {**other_logs, **self.other_execution}),
        }

    @property
    def other_execution(self) -> Mapping[str, str]:
        """The environment that connects a component to the second API server."""
        return {"AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.other_url}/execution/"}

    def start(self) -> None:
        """Start all components, and add the second connection."""
        super().start()
        extra = {**self.connection_extra, "webhook_url": self.other_url}
        self.api.add_connection(self.connection(OTHER_CONNECTION, extra))

    def _start_airflow(self) -> None:
        self._other_ports = Ports.free()
        self.other_url = f"http://127.0.0.1:{self._other_ports.api}"
        self.environment = {
            # Short intervals, so that dead components are detected soon.
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "2",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15",
            **self.environment,
        }
        super()._start_airflow()
