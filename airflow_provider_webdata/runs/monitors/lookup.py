"""Base of the monitor runs: lookup by id or name, despite the service's replication lag."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from airflow_provider_webdata.api.errors import NotFoundError
from airflow_provider_webdata.runs.failures import MonitorConflictError, MonitorMissingError
from airflow_provider_webdata.runs.replica import until_found, until_visible
from airflow_provider_webdata.runs.wait import WaitRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_webdata.api.models import Monitor

T = TypeVar("T")


class MonitorRun(WaitRun):
    """One attempt of a task with a monitor."""

    def until_found(self, lookup: Callable[[], T | None]) -> T | None:
        """Repeat a lookup until it returns a result or `replica_wait` is over.

        :param lookup: returns the result, or None.
        """
        return until_found(lookup, self.task.replica_wait)

    def monitors_named(self, name: str) -> list[Monitor]:
        """Return all monitors with this name, newest first. The service cannot filter by name."""
        return [
            monitor for monitor in self.hook.iter_monitors() if (monitor.name or "").strip() == name.strip()
        ]

    def visible_monitor(self, monitor_id: str) -> Monitor | None:
        """Return a monitor that should exist, or None if it stays missing."""
        try:
            return until_visible(lambda: self.hook.get_monitor(monitor_id), self.task.replica_wait)
        except NotFoundError:
            return None

    def only_one(self, name: str, found: list[Monitor]) -> Monitor | None:
        """Return the only monitor that was found, or None.

        :param found: the monitors with this name.
        :raises MonitorConflictError: several monitors have the name.
        """
        if len(found) > 1:
            raise MonitorConflictError(
                f"{len(found)} monitors are named {name!r}: {', '.join(monitor.id for monitor in found)}. "
                "Set monitor_id to select one, or delete the others"
            )
        return found[0] if found else None

    def find(self) -> Monitor | None:
        """Return the monitor, or None if it stays missing.

        :raises MonitorConflictError: several monitors have the name.
        """
        if self.task.monitor_id:
            return self.visible_monitor(self.task.monitor_id)
        name = self._checked_name()
        return self.until_found(lambda: self.only_one(name, self.monitors_named(name)))

    def found(self) -> Monitor:
        """Return the monitor.

        :raises MonitorMissingError: the monitor does not exist.
        :raises MonitorConflictError: several monitors have the name.
        """
        if (monitor := self.find()) is None:
            raise MonitorMissingError(
                f"The monitor {self.described} does not exist. It may have been deleted"
            )
        return monitor

    @property
    def described(self) -> str:
        """The id or name of the intended monitor, for messages."""
        return (
            f"with the id {self.task.monitor_id!r}"
            if self.task.monitor_id
            else f"named {self.task.monitor_name!r}"
        )

    def _checked_name(self) -> str:
        if not self.task.monitor_name or not str(self.task.monitor_name).strip():
            self.refuse("monitor_id and monitor_name are both empty after rendering; set one of them")
        return str(self.task.monitor_name)
