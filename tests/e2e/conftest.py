"""One real Airflow for the whole end-to-end session, with the sandbox beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.sandbox.control import SandboxControl
from demo.processes import wait_until
from demo.stack import EXAMPLE_DAGS, HOMES, Stack

# Long and unlike anything else, so that finding them anywhere can only be a leak.
API_KEY = "wd-e2e-key-5f1c0a7b93d24e68"
CONNECTION_HEADER = "connheader-77aa0c5d1be94f02"
PAGE_SESSION = "pagesession-c40e8d9a6b2f4713"
SECRETS = {"API key": API_KEY, "connection header": CONNECTION_HEADER, "task header": PAGE_SESSION}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make demo` and `make up` before our own Airflow runs; the hunt for secrets when all is done."""
    order = {"test_demo.py": 1, "test_secrets.py": 3}
    here = Path(__file__).parent
    items.sort(key=lambda item: order.get(item.path.name, 2) if here in item.path.parents else 0)


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    environment = {
        # In the environment, where neither the database nor the audit log gets to see them in the clear.
        "AIRFLOW_VAR_E2E_PAGE_SESSION": PAGE_SESSION,
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "15",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    }
    stack = Stack(
        HOMES / "e2e",
        dag_folders=(EXAMPLE_DAGS, Path(__file__).parent / "dags"),
        api_key=API_KEY,
        environment=environment,
        connection_extra={"retry_budget": 1},
    )
    with stack:
        stack.api.add_connection(
            {
                "connection_id": "webdata_with_headers",
                "conn_type": "webdata",
                "host": stack.sandbox_url,
                "password": API_KEY,
                "extra": json.dumps({"secret_headers": {"X-Team": CONNECTION_HEADER}}),
            }
        )
        stack.wait_for_dags(["webdata_search", "webdata_monitor", "e2e_killed_worker", "e2e_secrets"])
        yield stack


@pytest.fixture
def sandbox(stack: Stack) -> Iterator[SandboxControl]:
    control = SandboxControl(stack.sandbox_url)
    control.clear_faults()
    control.clear_requests()
    yield control
    control.clear_faults()


class Run:
    """One triggered DAG run."""

    def __init__(self, stack: Stack, dag_id: str, conf: dict[str, Any] | None = None) -> None:
        self._api = stack.api
        self._dag_id = dag_id
        self._api.unpause(dag_id)
        self.id = self._api.trigger(dag_id, conf)

    def task(self, task_id: str) -> dict[str, Any]:
        tasks = self._api.task_instances(self._dag_id, self.id)
        return next(task for task in tasks if task["task_id"] == task_id)

    def wait_for(self, task_id: str, *states: str, patience: float = 90.0) -> dict[str, Any]:
        """The task instance, once it is in one of the states."""
        found: dict[str, Any] = {}

        def reached() -> bool:
            found.update(self.task(task_id))
            return found["state"] in states

        assert wait_until(reached, patience, pause=0.2), f"still {found['state']}: {self.log(found)}"
        return found

    def wait_until_ended(self, patience: float = 120.0) -> str:
        state = ""

        def ended() -> bool:
            nonlocal state
            state = self._api.run(self._dag_id, self.id)["state"]
            return state in ("success", "failed")

        assert wait_until(ended, patience, pause=0.2), f"{self._dag_id} is still {state}"
        return state

    def xcom(self, task_id: str, key: str = "return_value") -> Any:
        return self._api.xcom(self._dag_id, self.id, task_id, key)

    def log(self, task: dict[str, Any]) -> str:
        lines = self._api.log_lines(
            self._dag_id, self.id, task["task_id"], max(task["try_number"], 1), task["map_index"]
        )
        return "\n".join(lines)
