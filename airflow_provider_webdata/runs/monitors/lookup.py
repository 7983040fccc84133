"""Base of the runs of monitors: found by id or by name, at a service whose reads lag behind its writes."""

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
    """One attempt of a task that deals with a monitor."""

    def until_found(self, lookup: Callable[[], T | None]) -> T | None:
        """Repeat a lookup until it returns something or `replica_wait` is over.

        :param lookup: returns what was found, or None.
        """
        return until_found(lookup, self.task.replica_wait)

    def monitors_named(self, name: str) -> list[Monitor]:
        """Return all monitors of this name, newest first. The service has no filter for names."""
        return [
            monitor for monitor in self.hook.iter_monitors() if (monitor.name or "").strip() == name.strip()
        ]

    def visible_monitor(self, monitor_id: str) -> Monitor | None:
        """Return a monitor that should be there, or None if it stays missing."""
        try:
            return until_visible(lambda: self.hook.get_monitor(monitor_id), self.task.replica_wait)
        except NotFoundError:
            return None

    def only_one(self, name: str, found: list[Monitor]) -> Monitor | None:
        """Return the one monitor that was found, or None.

        :param found: what has this name.
        :raises MonitorConflictError: there are several.
        """
        if len(found) > 1:
            raise MonitorConflictError(
                f"{len(found)} monitors are named {name!r}: {', '.join(monitor.id for monitor in found)}. "
                "Give monitor_id to say which one is meant, or delete the others"
            )
        return found[0] if found else None

    def find(self) -> Monitor | None:
        """Return the monitor, or None if it stays missing.

        :raises MonitorConflictError: several have the name.
        """
        if self.task.monitor_id:
            return self.visible_monitor(self.task.monitor_id)
        name = self._checked_name()
        return self.until_found(lambda: self.only_one(name, self.monitors_named(name)))

    def found(self) -> Monitor:
        """Return the monitor.

        :raises MonitorMissingError: it is missing.
        :raises MonitorConflictError: several have the name.
        """
        if (monitor := self.find()) is None:
            raise MonitorMissingError(f"There is no monitor {self.described}")
        return monitor

    @property
    def described(self) -> str:
        """A description of the intended monitor."""
        return (
            f"with the id {self.task.monitor_id!r}"
            if self.task.monitor_id
            else f"named {self.task.monitor_name!r}"
        )

    def _checked_name(self) -> str:
        if not self.task.monitor_name or not str(self.task.monitor_name).strip():
            self.refuse("monitor_id and monitor_name are both empty after rendering; one must name a monitor")
        return str(self.task.monitor_name)
