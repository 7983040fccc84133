# SPDX-License-Identifier: Apache-2.0
"""Faults of the components and the database, each for some seconds."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
from sqlalchemy.exc import DBAPIError

from demo.pairs import API_SERVERS, TRIGGERERS

if TYPE_CHECKING:
    from demo.chaos.database import StarvedPostgres
    from demo.chaos.stack import ChaosStack


@dataclass(frozen=True)
class Fault:
    """One kind of fault.

    :param name: the name in the report.
    :param seconds: minimum and maximum duration.
    :param inject: a context manager that starts the fault on entry and ends it on exit. It yields another name for the
        report if a different fault occurred.
    """

    name: str
    seconds: tuple[float, float]
    inject: Callable[[], AbstractContextManager[str | None]]


# Seconds after which an API server is killed even without an unregistered event.
_PATIENCE = 15.0


def faults_of(stack: ChaosStack, database: StarvedPostgres | None) -> list[Fault]:
    """Return all faults of a stack and its database; on SQLite, only API servers are killed."""

    @contextmanager
    def killed(name: str) -> Iterator[None]:
        stack.down.add(name)
        stack.kill(name)
        yield
        stack.launch(name)
        stack.down.discard(name)

    @contextmanager
    def killed_before_registration(name: str) -> Iterator[str | None]:
        end = time.monotonic() + _PATIENCE
        found = False
        with contextlib.suppress(DBAPIError):
            while not (found := stack.has_unregistered_events()) and time.monotonic() < end:
                time.sleep(0.005)
        with killed(name):
            yield None if found else f"{name} killed without an unregistered event"

    @contextmanager
    def hung(name: str) -> Iterator[None]:
        members = stack.members(name)
        for process in members:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
        yield
        for process in members:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    def component_fault(
        kind: str, inject: Callable[[str], AbstractContextManager[str | None]], name: str
    ) -> Fault:
        return Fault(f"{name} {kind}", (2.0, 25.0), lambda: inject(name))

    deaths = [
        component_fault("killed before registration", killed_before_registration, name)
        for name in API_SERVERS
    ]
    if database is None:
        return [*deaths, *(component_fault("killed", killed, name) for name in API_SERVERS)]

    @contextmanager
    def crashed() -> Iterator[None]:
        database.stop(crash=True)
        yield
        database.start()

    @contextmanager
    def without_connections() -> Iterator[None]:
        connections = database.exhaust_connections()
        yield
        for connection in connections:
            connection.close()

    @contextmanager
    def without_disk() -> Iterator[None]:
        database.fill_disk()
        yield
        database.free_disk()

    return [
        *deaths,
        *(component_fault("killed", killed, name) for name in stack.components),
        *(component_fault("hung", hung, name) for name in (*API_SERVERS, *TRIGGERERS, "scheduler")),
        Fault("database crashed", (1.0, 10.0), crashed),
        Fault("database out of connections", (5.0, 20.0), without_connections),
        *([Fault("database out of disk", (5.0, 20.0), without_disk)] if database.has_disk else []),
    ]
