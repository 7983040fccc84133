# SPDX-License-Identifier: Apache-2.0
"""The process behind `tests.support.warm`: Airflow imported, one forked child per requested Python program.

`python warm_server.py SOCKET` listens on a Unix socket until no client holds a lease. Clients and messages are those of
`tests.support.warm`. The process must stay single-threaded, since a fork copies one thread only.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Modules that commands, components, and tasks of Airflow import. A module that a version of Airflow lacks is skipped.
MODULES = (
    "airflow.cli.cli_parser",
    "airflow.cli.commands.api_server_command",
    "airflow.cli.commands.connection_command",
    "airflow.cli.commands.dag_command",
    "airflow.cli.commands.dag_processor_command",
    "airflow.cli.commands.db_command",
    "airflow.cli.commands.db_manager_command",
    "airflow.cli.commands.scheduler_command",
    "airflow.cli.commands.task_command",
    "airflow.cli.commands.triggerer_command",
    "airflow.api_fastapi.core_api.app",
    "airflow.api_fastapi.core_api.routes.public",
    "airflow.api_fastapi.core_api.routes.ui",
    "airflow.api_fastapi.auth.managers.simple.simple_auth_manager",
    "airflow.api_fastapi.execution_api.app",
    "airflow.api_fastapi.execution_api.routes",
    "airflow.dag_processing.processor",
    "airflow.executors.local_executor",
    "airflow.jobs.scheduler_job_runner",
    "airflow.jobs.triggerer_job_runner",
    "airflow.providers.common.compat.standard.operators",
    "airflow.providers.standard.decorators.branch_python",
    "airflow.providers.standard.decorators.python",
    "airflow.sdk.api.client",
    "airflow.sdk.bases.sensor",
    "airflow.sdk.definitions.decorators",
    "airflow.sdk.execution_time.hitl",
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
    "airflow.utils.db",
    "airflow.utils.db_manager",
    "alembic.autogenerate",
    "alembic.command",
    "airflow.providers.common.sql.hooks.sql",
    "httpx",
    "jsonschema",
    "lxml.html",
    "msgspec.json",
    "pendulum",
    "pyarrow.parquet",
    "uvicorn",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)

# Each has a `conf`, read from the environment and from `airflow.cfg`.
CONFIGURATIONS = ("airflow.configuration", "airflow.sdk.configuration")

# The module of the configuration, section, and key.
Option = tuple[str, str, str]

# Modules that read an option for themselves alone: a reload gives them another value. Empty: no module keeps it.
RELOADED: dict[Option, str] = {
    # The default of an argument that programs pass.
    ("airflow.configuration", "api", "port"): "",
    ("airflow.configuration", "api", "base_url"): "airflow.api_fastapi.app",
    ("airflow.configuration", "core", "auth_manager"): "airflow.utils.db_cleanup",
    ("airflow.sdk.configuration", "database", "sql_alchemy_conn"): "",
}

# Constants that an option gives its value to: module, path, and type.
ASSIGNED: dict[Option, tuple[str, str, type]] = {
    ("airflow.sdk.configuration", "scheduler", "task_instance_heartbeat_timeout"): (
        "airflow.sdk.execution_time.supervisor",
        "HEARTBEAT_TIMEOUT",
        int,
    ),
    ("airflow.sdk.configuration", "workers", "min_heartbeat_interval"): (
        "airflow.sdk.execution_time.supervisor",
        "MIN_HEARTBEAT_INTERVAL",
        int,
    ),
    ("airflow.configuration", "triggerer", "triggerer_health_check_threshold"): (
        "airflow.jobs.triggerer_job_runner",
        "TriggerRunnerSupervisor.health_check_threshold",
        int,
    ),
}


def import_airflow() -> dict[Option, str | None]:
    """Import Airflow without initializing it; return the options that its modules read meanwhile."""
    os.environ["_AIRFLOW__AS_LIBRARY"] = "1"
    # `import airflow` alone reads this one, before anything can be recorded.
    read: set[Option] = {("airflow.configuration", "database", "sql_alchemy_schema")}
    recording = True
    for name in CONFIGURATIONS:
        parser = type(importlib.import_module(name).conf)

        def recorded(
            self: Any,
            section: str,
            key: str,
            *args: Any,
            name: str = name,
            get: Any = parser.get,
            **options: Any,
        ) -> Any:
            if recording:
                read.add((name, section.lower(), key.lower()))
            return get(self, section, key, *args, **options)

        parser.get = recorded
    for module in MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    prepare_execution_api()
    recording = False
    del os.environ["_AIRFLOW__AS_LIBRARY"]
    return {option: value_of(option) for option in read}


def prepare_execution_api() -> None:
    """Build Airflow's execution API, which costs 5 CPU seconds, for the first one that a child creates."""
    api = importlib.import_module("airflow.api_fastapi.execution_api.app")
    create = api.create_task_execution_api_app
    app = create()
    app._cadwyn_initialize()
    prepared = [app]

    def create_once(**options: Any) -> Any:
        if not prepared or options.keys() - {"lifespan"}:
            return create(**options)
        if "lifespan" in options:
            app.router.lifespan_context = options["lifespan"]
        return prepared.pop()

    for name in ("airflow.api_fastapi.execution_api.app", "airflow.api_fastapi.app"):
        vars(importlib.import_module(name))["create_task_execution_api_app"] = create_once


def value_of(option: Option) -> str | None:
    """Return an option's text, or None."""
    name, section, key = option
    value = sys.modules[name].conf.get(section, key, fallback=None)
    return None if value is None else str(value)


def initialize_airflow(read: dict[Option, str | None]) -> bool:
    """Configure the imported Airflow by the environment, as its import does.

    Return whether that is possible: false if a module has read an option that has another value here.
    """
    from airflow import configuration, settings

    home = configuration.get_airflow_home()
    for name, module in list(sys.modules.items()):
        if name.startswith("airflow.") and "AIRFLOW_HOME" in vars(module):
            vars(module)["AIRFLOW_HOME"] = home
    configuration.AIRFLOW_CONFIG = configuration.get_airflow_config(home)
    for name in CONFIGURATIONS:
        # In place, since others have imported it.
        conf = vars(sys.modules[name].conf)
        fresh = vars(sys.modules[name].initialize_config())
        conf.clear()
        conf.update(fresh)
    differing = [option for option, value in read.items() if value_of(option) != value]
    if not {*RELOADED, *ASSIGNED} >= {*differing}:
        print("a Python of its own, for", differing, file=LOG, flush=True)
        return False
    configuration.secrets_backend_list = configuration.initialize_secrets_backends()
    configuration.conf.validate()
    importlib.reload(settings)
    settings.initialize()  # type: ignore[no-untyped-call]
    for option in differing:
        if reloaded := RELOADED.get(option):
            importlib.reload(sys.modules[reloaded])
        if assigned := ASSIGNED.get(option):
            name, path, kind = assigned
            *owners, constant = path.split(".")
            owner = functools.reduce(getattr, owners, sys.modules[name])
            setattr(owner, constant, kind(value_of(option)))
    return True


class Server:
    """Forks a child per request and reports its pid and its exit status."""

    def __init__(self, address: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(64)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        wake, self._woken = socket.socketpair()
        for end in (wake, self._woken):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        self._selector.register(wake, selectors.EVENT_READ, self._reap)
        self._leases = 0
        # The connection of each child, by pid, and the children that end with their connection.
        self._children: dict[int, socket.socket] = {}
        self._bound: set[int] = set()
        self._ended = False

    def serve(self) -> Callable[[], None] | None:
        """Serve until the last lease ends. In a child, return the program to run."""
        while not self._ended:
            for key, _ in self._selector.select():
                if (program := key.data(key.fileobj)) is not None:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    self._close()
                    return program  # type: ignore[no-any-return]
        for pid in self._bound:
            os.kill(pid, signal.SIGKILL)
        return None

    def _accept(self, listener: socket.socket) -> Callable[[], None] | None:
        connection, _ = listener.accept()
        try:
            size, descriptors, *_ = socket.recv_fds(connection, 8, 3)
            request = json.loads(_read(connection, int.from_bytes(size, "big")))
        except (OSError, ValueError):
            connection.close()
            return None
        if request.get("lease"):
            self._leases += 1
            self._selector.register(connection, selectors.EVENT_READ, self._end_lease)
            return None
        pid = os.fork()
        if pid == 0:
            return lambda: become(request, connection, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self._children[pid] = connection
        if not request["session"]:
            self._bound.add(pid)
            self._selector.register(connection, selectors.EVENT_READ, lambda _: self._drop(pid))
        return None

    def _end_lease(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        connection.close()
        self._leases -= 1
        self._ended = self._leases == 0

    def _drop(self, pid: int) -> None:
        """End a child whose client is gone."""
        if (connection := self._children.get(pid)) is not None:
            self._forget(connection)
            os.kill(pid, signal.SIGKILL)

    def _reap(self, wake: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            wake.recv(4096)
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = found
                self._bound.discard(pid)
                if (connection := self._children.pop(pid, None)) is None:
                    continue
                _send(connection, {"status": os.waitstatus_to_exitcode(status)})
                self._forget(connection)
                connection.close()

    def _close(self) -> None:
        """Close the sockets that a child must not keep open."""
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        for connection in self._children.values():
            connection.close()
        self._woken.close()
        self._selector.close()

    def _forget(self, connection: socket.socket) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (part := connection.recv(size - len(data))):
            raise OSError("the client is gone")
        data += part
    return data


def _send(connection: socket.socket, message: dict[str, int]) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(json.dumps(message).encode() + b"\n")


def become(request: dict[str, Any], connection: socket.socket, descriptors: list[int]) -> None:
    """Become `python ARGV...` in this child."""
    if request["session"]:
        os.setsid()
    _send(connection, {"pid": os.getpid()})
    # The client writes the pid of a session down before the program begins.
    if request["session"] and not connection.recv(1):
        os._exit(1)
    connection.close()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    # Found again by this environment.
    tempfile.tempdir = None
    argv = request["argv"]
    if not initialize_airflow(READ):
        os.execve(sys.executable, [sys.executable, *argv], request["env"])
    _open_streams()
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    gc.enable()
    match argv:
        case ["-m", module, *rest]:
            sys.path.insert(0, os.getcwd())
            sys.argv = [module, *rest]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *rest]:
            sys.path.insert(0, "")
            sys.argv = ["-c", *rest]
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        case [script, *rest]:
            sys.path.insert(0, str(Path(script).resolve().parent))
            sys.argv = [script, *rest]
            runpy.run_path(script, run_name="__main__")


def _open_streams() -> None:
    """Open the standard streams anew, buffered as Python does it at its start."""
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", errors="backslashreplace", closefd=False)  # type: ignore[misc]
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty(), write_through=unbuffered)
    sys.stderr.reconfigure(line_buffering=True, write_through=unbuffered)


if __name__ == "__main__":
    sys.path.pop(0)
    LOG = os.fdopen(os.dup(2), "w")
    # Children share objects that never change.
    gc.disable()
    READ = import_airflow()
    gc.freeze()
    if (program := Server(sys.argv[1]).serve()) is not None:
        program()
