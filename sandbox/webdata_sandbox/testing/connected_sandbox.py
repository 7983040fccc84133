# SPDX-License-Identifier: Apache-2.0
"""The sandbox of the fixtures."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from pluggy import HookimplMarker

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.common.hosts import is_loopback, url_host
from webdata_sandbox.control import SandboxControl
from webdata_sandbox.server import SandboxServer

from .execution_api import keep_execution_api
from .local_inbox import LocalInbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from airflow.sdk import DAG, BaseOperator
    from airflow.triggers.base import BaseTrigger, TriggerEvent

    from airflow_provider_webdata.hooks.connection import ConnectionSettings

    from .local.attempt import LocalRuns

DEFAULT_CONN_ID = "webdata_default"

# Airflow's own marker. Importing Airflow here would read its settings before the fixtures set them.
hookimpl = HookimplMarker("airflow")


class ConnectedSandbox(SandboxControl):
    """A sandbox of the service, an inbox that receives its webhooks, and a connection to both.

    All methods of `SandboxControl` are available: `set_page` (also with canned `json` or a `screenshot`),
    `set_site`, `set_media`, `add_fault`, `configure`, `advance`, `requests`, `deliveries`, `jobs`, `state` and more.

    Jobs and checks end before the call that starts them returns, so that no task waits for a poll. To let them take
    time: `configure(page_seconds=..., check_seconds=..., step_seconds=..., queue_seconds=...)`.

    :ivar url: address of the sandbox.
    :ivar api_key: the accepted API key.
    """

    def __init__(self, server: SandboxServer, inbox: LocalInbox, environment: pytest.MonkeyPatch) -> None:
        super().__init__(server.url)
        self.api_key = server.api_key
        self._inbox = inbox
        self._environment = environment
        self._began = datetime.now(timezone.utc)
        self._runs: LocalRuns | None = None

    def connect(self, conn_id: str = DEFAULT_CONN_ID, *, webhooks: bool = True, **extra: Any) -> None:
        """Point a connection to the sandbox through an environment variable, restored after the test.

        :param conn_id: id of the connection; `webdata_default` exists from the start.
        :param webhooks: deliver webhooks to the inbox of the test; otherwise waits poll.
        :param extra: more extra fields of the connection, such as `retry_budget=0`.
        :raises pytest.fail.Exception: a secrets backend, which takes precedence, has the connection.
        """
        from airflow.sdk import BaseHook

        receives = {
            "webhook_url": self._inbox.url,
            "inbox_url": self._inbox.url,
            "webhook_secret": self._inbox.secret,
        }
        connection = {
            "conn_type": "webdata",
            "host": self.url,
            "password": self.api_key,
            "extra": {"server": "hosted", **(receives if webhooks else {}), **extra},
        }
        self._environment.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))
        if BaseHook.get_connection(conn_id).host != self.url:
            pytest.fail(
                f"Connection {conn_id!r} points to the service instead of the sandbox: a secrets backend has it, which "
                "takes precedence over the environment; unset AIRFLOW__SECRETS__BACKEND, or set webdata_dags_folder",
                pytrace=False,
            )

    def deliver(
        self, body: dict[str, Any], *, key: str | None = None, conn_id: str = DEFAULT_CONN_ID
    ) -> None:
        """Send a delivery to the inbox, as if from a job or program outside the sandbox.

        :param body: in the service's form: `type` (the event), `id` (of the job), `data`, ...
        :param key: correlation key, the last part of the webhook's URL.
        :param conn_id: id of the receiving connection.
        :raises urllib.error.HTTPError: the inbox refused it.
        """
        self._inbox.deliver(conn_id, body, key)

    def execute(self, task: BaseOperator, context: Mapping[str, Any] | None = None) -> Any:
        """Execute a task in this process, without a DAG or a database, and return its result.

        Templates are rendered. If the task defers, its trigger runs here too, and the event resumes the task. Each call
        is another run, which sees the XComs of earlier calls, such as those of an upstream task of the same DAG. A
        failed task is not retried.

        :param task: an operator or a sensor.
        :param context: values that replace those of the task's context, such as `params` or `logical_date`. The logical
            date is the current time by default, and the run began with the fixture, so that events which the test
            caused before are seen.
        :raises Exception: the task's error.
        """
        from airflow.sdk.bases.operator import ExecutorSafeguard
        from airflow.sdk.exceptions import TaskDeferred
        from airflow.sdk.execution_time.context import set_current_context

        from .local.attempt import LocalRuns

        if self._runs is None:
            self._runs = LocalRuns(self._began)
        attempt = self._runs.start(task, context or {})
        method, found = "", dict[str, Any]()
        while True:
            worker, full = attempt.worker()
            # Like Airflow's task runner; otherwise, Airflow warns that something else called `execute`.
            outside = ExecutorSafeguard.tracker.set(worker)
            try:
                with set_current_context(full):
                    value = worker.resume_execution(method, found, full) if method else worker.execute(full)
            except TaskDeferred as deferred:
                event = asyncio.run(_first_event(deferred.trigger))
                method, found = deferred.method_name, {**(deferred.kwargs or {}), "event": event.payload}
            else:
                attempt.succeed(value)
                return value
            finally:
                ExecutorSafeguard.tracker.reset(outside)

    def run(self, dag: DAG, **arguments: Any) -> Any:
        """Run a DAG with `dag.test()`, and return its run.

        :param arguments: arguments of `dag.test()`, such as `run_conf`.
        :raises pytest.fail.Exception: the run failed; the message contains the error of each failed task.
        """
        from airflow.sdk.execution_time.task_runner import get_listener_manager  # type: ignore[attr-defined]

        failures: Any = _Failures()
        listeners: Any = get_listener_manager()
        listeners.add_listener(failures)
        try:
            run = dag.test(**arguments)
        finally:
            listeners.pm.unregister(failures)
        if run is not None and run.state == "failed":
            pytest.fail(
                f"DAG {dag.dag_id!r} failed: {failures.text() or 'no task reports an error'}", pytrace=False
            )
        return run


class _Failures:
    """Airflow listener that keeps the last error of each task without a later success."""

    def __init__(self) -> None:
        self._errors: dict[str, Any] = {}

    @hookimpl
    def on_task_instance_failed(self, task_instance: Any, error: Any) -> None:
        self._errors[_name_of(task_instance)] = error

    @hookimpl
    def on_task_instance_success(self, task_instance: Any) -> None:
        self._errors.pop(_name_of(task_instance), None)

    def text(self) -> str:
        return "".join(f"\n  {task}: {type(error).__name__}: {error}" for task, error in self._errors.items())


def _name_of(task_instance: Any) -> str:
    index = getattr(task_instance, "map_index", None)
    return f"{task_instance.task_id}{'' if index is None or index < 0 else f' [{index}]'}"


def _refuse_other_services(environment: pytest.MonkeyPatch) -> None:
    """Refuse connections to other machines: a test must not call a service that bills."""
    # They import Airflow, which reads its settings then.
    from airflow_provider_webdata.hooks import connection, webdata, webdata_async

    def settings_of(*args: Any) -> ConnectionSettings:
        settings = connection.settings_of(*args)
        if not is_loopback(url_host(settings.client.base_url)):
            raise ConfigurationError(
                f"connection {settings.conn_id!r}: host (Base URL) is not that of the sandbox; before the test uses "
                f"the connection, call connect({settings.conn_id!r}) of the fixture"
            )
        return settings

    for module in (webdata, webdata_async):
        environment.setattr(module, "settings_of", settings_of)


async def _first_event(trigger: BaseTrigger) -> TriggerEvent:
    async for event in trigger.run():
        return event
    raise RuntimeError(f"{type(trigger).__name__} ended without an event")


@contextmanager
def connected_sandbox(folder: Path, **settings: Any) -> Iterator[ConnectedSandbox]:
    """Run a sandbox and an inbox, and point `webdata_default` to them.

    :param folder: folder of the inbox's database.
    :param settings: fields of `webdata_sandbox.config.SandboxConfig`.
    """
    with (
        SandboxServer(**{"settle": True, "queue_seconds": 0, "closing_seconds": 0, **settings}) as server,
        LocalInbox(folder) as inbox,
        pytest.MonkeyPatch.context() as environment,
    ):
        # Triggers run in the process of the test: a deferred task has no worker.
        environment.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "0")
        for name in ("no_proxy", "NO_PROXY"):
            environment.setenv(name, ",".join(filter(None, (os.environ.get(name), "127.0.0.1"))))
        keep_execution_api()
        _refuse_other_services(environment)
        sandbox = ConnectedSandbox(server, inbox, environment)
        sandbox.connect()
        yield sandbox
