# SPDX-License-Identifier: Apache-2.0
"""The settings of a small Airflow that lives in one folder and disturbs nothing else on the machine."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Options that Airflow reads at its import.
IMPORTED_SETTINGS = {
    "AIRFLOW__CORE__PARALLELISM": "4",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
    # Intervals that a task waits for between two of its states.
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
    # A slow machine's API server may take longer than five seconds for its first answers.
    "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
}


DATABASE_URL = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"


@dataclass(frozen=True)
class Ports:
    """The ports that an Airflow on one machine listens on."""

    api: int
    worker_logs: int
    trigger_logs: int

    @classmethod
    def free(cls) -> Ports:
        """Ports that nothing uses just now."""
        found: set[int] = set()
        while len(found) < 3:
            found.add(free_port())
        return cls(*found)


def airflow_environment(
    home: Path,
    ports: Ports,
    dag_folders: Sequence[Path],
    database_url: str,
    overrides: Mapping[str, str],
) -> dict[str, str]:
    """Environment of every process of this Airflow: the caller's, without its own Airflow settings.

    An empty `database_url` stands for SQLite in `home`.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AIRFLOW_", "_AIRFLOW", "PYTHONPATH"))
    }
    url = f"http://127.0.0.1:{ports.api}"
    bundles = [
        {
            "name": f"webdata_{folder.name}",
            "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
            "kwargs": {"path": str(folder)},
        }
        for folder in dag_folders
    ]
    return {
        **inherited,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "PYTHONUNBUFFERED": "1",
        **IMPORTED_SETTINGS,
        "AIRFLOW_HOME": str(home),
        DATABASE_URL: database_url or f"sqlite:///{home}/airflow.db",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dag_folders[0]),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        # For as long, a worker may linger after its task has ended.
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        "AIRFLOW__WEBDATA__INBOX": "True",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(ports.api),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(ports.worker_logs),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports.trigger_logs),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "SCARF_ANALYTICS": "false",
        **overrides,
    }


def login(home: Path) -> tuple[str, str]:
    """User and password that Airflow generated at its first start; raises `FileNotFoundError` before."""
    generated = home / "simple_auth_manager_passwords.json.generated"
    ((user, password),) = json.loads(generated.read_text()).items()
    return user, password
