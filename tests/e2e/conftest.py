# SPDX-License-Identifier: Apache-2.0
"""A real Airflow with the sandbox beside it, for all end-to-end tests: on SQLite, then on PostgreSQL."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pytest
from playwright.sync_api import Page

from tests.e2e.airflow_tables import AirflowTables
from tests.e2e.killed_triggerer import KilledTriggerer
from tests.e2e.outside import InboxTable, Monitors, Sender
from tests.e2e.run import Run
from tests.support.browser import logged_in
from tests.support.postgres import Postgres
from tests.support.stack import EXAMPLE_DAGS, HOMES, Stack
from tests.support.waiting import wait_until
from tests.support.warm import Warm
from webdata_sandbox.control import SandboxControl

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
# Common AI needs Python 3.11.
HAS_AGENTS = find_spec("airflow.providers.common.ai") is not None
# One of each file, since a file's DAGs become known together.
DAGS = (
    "webdata_wait",
    "e2e_crowd",
    "e2e_indexes",
    "e2e_monitor_life",
    "e2e_on_asset",
    "e2e_on_check",
    "e2e_secrets",
    "e2e_short_operations",
    "e2e_site",
    "e2e_check",
    *(["e2e_agent"] if HAS_AGENTS else []),
)
MAX_BODY_MB = 1
# As many as the DAG has.
CROWD = 12
KNOWN_MONITORS = "monitors.json"

DATABASES = ("sqlite", "postgresql")

Test = TypeVar("Test", bound=Callable[..., None])


def on(*databases: str) -> Callable[[Test], Test]:
    """Run a test on these databases instead of on SQLite."""

    def mark(test: Test) -> Test:
        vars(test)["databases"] = databases
        return test

    return mark


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "stack" in metafunc.fixturenames:
        databases = vars(metafunc.function).get("databases", DATABASES[:1])
        metafunc.parametrize("stack", databases, indirect=True, scope="package")


# The last tests of a database: the triggerer is killed, then the API server, and the hunt for secrets sees all logs.
LAST = ("test_waiting_faults.py", "test_event_driven.py", "test_secrets.py")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these tests first: those of `make demo` and `make up`, then those of one Airflow for each database."""
    here = Path(__file__).parent

    def place(item: pytest.Item) -> tuple[int, int]:
        if here not in item.path.parents:
            return (len(DATABASES), 0)
        callspec = getattr(item, "callspec", None)
        database = callspec.params.get("stack", DATABASES[0]) if callspec else DATABASES[0]
        name = item.path.name
        order = LAST.index(name) + 1 if name in LAST else -(name == "test_demo.py")
        return (DATABASES.index(database), order)

    items.sort(key=place)
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(900))


# Stopped with the last of these tests: an idle Airflow takes a tenth of the machine from the tests after them.
@pytest.fixture(scope="package")
def stack(request: pytest.FixtureRequest, warm: Warm) -> Iterator[Stack]:
    environment = {
        "E2E_EXAMPLES": str(EXAMPLE_DAGS),
        # In the environment, where neither the database nor the audit log gets to see them in the clear.
        "AIRFLOW_VAR_E2E_PAGE_SESSION": PAGE_SESSION,
        # Every file is parsed once, and again on request.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "25",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
        # A killed triggerer is missed sooner.
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
            prepare=_create_known_monitors,
            warm=warm,
        )
        opened.enter_context(stack)
        secret_headers = {"secret_headers": {"X-Team": CONNECTION_HEADER}}
        stack.api.add_connection(stack.connection("webdata_with_headers", secret_headers))
        by_signature = {"webhook_secret": None, "signing_secret": SIGNING_SECRET}
        stack.api.add_connection(stack.connection(SIGNED_CONNECTION, by_signature))
        stack.wait_for_dags(DAGS)
        stack.api.unpause_all("e2e_%")
        yield stack


def _create_known_monitors(stack: Stack) -> None:
    """Create the monitors that DAGs must know when they are parsed."""
    with contextlib.closing(Monitors(stack, SandboxControl(stack.sandbox_url))) as monitors:
        known = {name: monitors.create(name) for name in ("crowd", "scheduled", "watched")}
    (stack.home / KNOWN_MONITORS).write_text(json.dumps(known))


def known_monitors(stack: Stack) -> dict[str, str]:
    """Return name and id of the monitors that DAGs know when they are parsed."""
    found: dict[str, str] = json.loads((stack.home / KNOWN_MONITORS).read_text())
    return found


@pytest.fixture(scope="package")
def browser_page(stack: Stack) -> Iterator[Page]:
    with logged_in(stack) as page:
        yield page


@pytest.fixture
def page(browser_page: Page) -> Iterator[Page]:
    """A page of Airflow's UI. An open one takes a sixth of a processor from the tests after it."""
    yield browser_page
    browser_page.goto("about:blank")


@pytest.fixture(scope="package")
def tables(stack: Stack) -> Iterator[AirflowTables]:
    with contextlib.closing(AirflowTables(stack)) as tables:
        yield tables


@pytest.fixture(scope="package")
def start(stack: Stack, tables: AirflowTables) -> Callable[..., Run]:
    """Trigger a DAG."""

    def start(dag_id: str, conf: dict[str, Any] | None = None) -> Run:
        return Run(stack.api, tables, dag_id, conf)

    return start


@pytest.fixture(scope="package")
def control(stack: Stack) -> SandboxControl:
    return SandboxControl(stack.sandbox_url)


@pytest.fixture
def sandbox(control: SandboxControl) -> Iterator[SandboxControl]:
    """The sandbox without faults and former requests."""
    control.clear_faults()
    control.clear_requests()
    yield control
    control.clear_faults()


@pytest.fixture(scope="package")
def monitors(stack: Stack, control: SandboxControl) -> Iterator[Monitors]:
    with contextlib.closing(Monitors(stack, control)) as monitors:
        yield monitors


@pytest.fixture(scope="package")
def sender(stack: Stack) -> Iterator[Sender]:
    with contextlib.closing(Sender(stack)) as sender:
        yield sender


@pytest.fixture(scope="package")
def inbox(stack: Stack) -> Iterator[InboxTable]:
    with contextlib.closing(InboxTable(stack)) as table:
        yield table


@pytest.fixture(scope="package")
def crowd(start: Callable[..., Run]) -> Run:
    """Tasks that wait for one check from before any component is killed to the end."""
    run = start("e2e_crowd")
    assert wait_until(lambda: Counter(run.states().values()) == {"deferred": CROWD}, pause=0.5), run.states()
    return run


@pytest.fixture(scope="package")
def killed_triggerer(
    stack: Stack,
    tables: AirflowTables,
    start: Callable[..., Run],
    monitors: Monitors,
    sender: Sender,
    crowd: Run,
) -> KilledTriggerer:
    """A triggerer that was killed while tasks waited and DAGs watched a monitor, and started again."""
    killed = KilledTriggerer(stack, tables, start, monitors, known_monitors(stack)["watched"])
    killed.kill_and_restart(sender)
    return killed
