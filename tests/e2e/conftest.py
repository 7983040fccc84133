"""A real Airflow with the sandbox beside it, for all end-to-end tests: on SQLite, then on PostgreSQL."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from airflow_provider_webdata.sandbox.control import SandboxControl
from tests.e2e.outside import InboxTable, Monitors, Sender
from tests.support.browser import logged_in
from tests.support.postgres import Postgres
from tests.support.stack import EXAMPLE_DAGS, HOMES, Stack
from tests.support.waiting import wait_until

# Long and unlike anything else, so that finding them anywhere can only be a leak.
API_KEY = "wd-e2e-key-5f1c0a7b93d24e68"
CONNECTION_HEADER = "connheader-77aa0c5d1be94f02"
PAGE_SESSION = "pagesession-c40e8d9a6b2f4713"
WEBHOOK_SECRET = "hooksecret-4b1e7f02c95a48d6"
SIGNING_SECRET = "signsecret-e83c51d7a06f4b92"
SECRETS = {
    "API key": API_KEY,
    "connection header": CONNECTION_HEADER,
    "task header": PAGE_SESSION,
    "webhook secret": WEBHOOK_SECRET,
    "signing secret": SIGNING_SECRET,
}
SIGNED_CONNECTION = "webdata_signed"
DAGS = (
    "webdata_search",
    "webdata_monitor",
    "webdata_wait",
    "webdata_on_check",
    "e2e_secrets",
    "e2e_crowd",
    "e2e_indexes",
    "e2e_check_by_webhook",
    "e2e_on_check",
    "e2e_on_delivery",
)
MAX_BODY_MB = 1
# As many as the DAG has.
CROWD = 100
KNOWN_MONITORS = "monitors.json"


DATABASES = ("sqlite", "postgresql")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of a module that sets `DATABASES` run on each of them, the others on SQLite."""
    if "stack" in metafunc.fixturenames:
        databases = getattr(metafunc.module, "DATABASES", DATABASES[:1])
        metafunc.parametrize("stack", databases, indirect=True, scope="package")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Never two Airflows at once: those of `make demo` and `make up` first, then ours, one database after the
    other; with each of them last the hunt for secrets."""
    order = {"test_demo.py": -1, "test_waiting_faults.py": 1, "test_secrets.py": 2}
    here = Path(__file__).parent

    def place(item: pytest.Item) -> tuple[int, int]:
        if here not in item.path.parents:
            return (-1, -1)
        callspec = getattr(item, "callspec", None)
        database = callspec.params.get("stack", DATABASES[0]) if callspec else DATABASES[0]
        return (DATABASES.index(database), order.get(item.path.name, 0))

    items.sort(key=place)


# Ended with the last of these tests: an Airflow that idles takes a tenth of the machine from the tests after them.
@pytest.fixture(scope="package")
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    environment = {
        # In the environment, where neither the database nor the audit log gets to see them in the clear.
        "AIRFLOW_VAR_E2E_PAGE_SESSION": PAGE_SESSION,
        # Every file is parsed once, and again when that is asked for.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "25",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
        # A triggerer that was killed is missed sooner.
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "8",
        "AIRFLOW__WEBDATA__INBOX_MAX_BODY_MB": str(MAX_BODY_MB),
    }
    with contextlib.ExitStack() as opened:
        database_url = ""
        if request.param == "postgresql":
            database_url = opened.enter_context(Postgres()).create_database("airflow")
        stack = Stack(
            HOMES / f"e2e-{request.param}",
            dag_folders=(EXAMPLE_DAGS, Path(__file__).parent / "dags"),
            api_key=API_KEY,
            webhook_secret=WEBHOOK_SECRET,
            environment=environment,
            connection_extra={"retry_budget": 1},
            sandbox_flags=("--webhook-secret", SIGNING_SECRET),
            database_url=database_url,
            prepare=_make_known_monitors,
        )
        opened.enter_context(stack)
        secret_headers = {"secret_headers": {"X-Team": CONNECTION_HEADER}}
        stack.api.add_connection(stack.connection("webdata_with_headers", secret_headers))
        by_signature = {"webhook_secret": None, "signing_secret": SIGNING_SECRET}
        stack.api.add_connection(stack.connection(SIGNED_CONNECTION, by_signature))
        stack.wait_for_dags(DAGS)
        yield stack


def _make_known_monitors(stack: Stack) -> None:
    """What the DAGs must know when they are read."""
    with contextlib.closing(Monitors(stack, SandboxControl(stack.sandbox_url))) as monitors:
        known = {name: monitors.make(name) for name in ("crowd", "watched")}
    (stack.home / KNOWN_MONITORS).write_text(json.dumps(known))


def known_monitors(stack: Stack) -> dict[str, str]:
    """Name to id of the monitors that DAGs know when they are read."""
    found: dict[str, str] = json.loads((stack.home / KNOWN_MONITORS).read_text())
    return found


def asked_by_tasks(stack: Stack, sandbox: SandboxControl) -> list[dict[str, Any]]:
    """The requests but for those of the watcher, which looks at its monitor now and then, whatever runs."""
    watched = known_monitors(stack)["watched"]
    return [request for request in sandbox.requests() if watched not in request["path"]]


@pytest.fixture
def page(stack: Stack) -> Iterator[Page]:
    with logged_in(stack) as page:
        yield page


@pytest.fixture
def monitors(stack: Stack, sandbox: SandboxControl) -> Iterator[Monitors]:
    with contextlib.closing(Monitors(stack, sandbox)) as monitors:
        yield monitors


@pytest.fixture
def sender(stack: Stack) -> Iterator[Sender]:
    with contextlib.closing(Sender(stack)) as sender:
        yield sender


@pytest.fixture
def inbox(stack: Stack) -> Iterator[InboxTable]:
    with contextlib.closing(InboxTable(stack)) as table:
        yield table


@pytest.fixture(autouse=True)
def no_schedule(request: pytest.FixtureRequest) -> Iterator[None]:
    """What an example's schedule, or a delivery, starts later is not seen by the tests after this one."""
    yield
    if "stack" in request.fixturenames:
        request.getfixturevalue("stack").api.pause_all("webdata_%")


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

    def tasks(self) -> list[dict[str, Any]]:
        return self._api.task_instances(self._dag_id, self.id)

    def task(self, task_id: str) -> dict[str, Any]:
        return next(task for task in self.tasks() if task["task_id"] == task_id)

    def wait_for(self, task_id: str, *states: str) -> dict[str, Any]:
        """The task instance, once it is in one of the states."""
        found: dict[str, Any] = {}

        def reached() -> bool:
            found.update(self.task(task_id))
            return found["state"] in states

        assert wait_until(reached, pause=0.2), f"still {found['state']}: {self.log(found)}"
        return found

    def wait_until_ended(self) -> str:
        state = ""

        def ended() -> bool:
            nonlocal state
            state = self._api.run(self._dag_id, self.id)["state"]
            return state in ("success", "failed")

        assert wait_until(ended, pause=0.2), f"{self._dag_id} is still {state}"
        return state

    def end(self, task_id: str = "wait") -> dict[str, Any]:
        """The task, which must succeed."""
        task = self.wait_for(task_id, "success", "failed", "upstream_failed", "skipped")
        assert task["state"] == "success", self.log(task)
        return task

    def resumed_once(self, text: str, task_id: str = "wait") -> str:
        """The log of a task that waited and was resumed, by its only try, once; it says `text` when it is."""
        task = self.end(task_id)
        log = self.log(task)
        assert task["try_number"] == 1, log
        assert log.count(text) == 1, log
        # Not twice. A triggerer under load may close a trigger's log before this, its last line.
        assert log.count("Trigger fired event") <= 1, log
        return log

    def xcom(self, task_id: str, key: str = "return_value") -> Any:
        return self._api.xcom(self._dag_id, self.id, task_id, key)

    def log(self, task: dict[str, Any]) -> str:
        lines = self._api.log_lines(
            self._dag_id, self.id, task["task_id"], max(task["try_number"], 1), task["map_index"]
        )
        return "\n".join(lines)
