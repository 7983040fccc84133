"""Finding monitors: by id or by name, at a service whose reads lag behind its writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.common.arguments import seconds
from airflow_provider_webdata.runs.replica import REPLICA_WAIT_SECONDS, until_found
from airflow_provider_webdata.tasks.links import LINKS
from airflow_provider_webdata.tasks.operator import WebDataOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import timedelta

    from airflow.sdk import BaseOperatorLink

    from airflow_provider_webdata.api.models import Monitor

T = TypeVar("T")


class MonitorOperator(WebDataOperator):
    """Base of the operators that deal with one monitor.

    :param replica_wait: most seconds to wait for a monitor or check that should be there. The service reads from
        a replica, where what was just written may be missing for a moment. 0: read once.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    operator_extra_links: Collection[BaseOperatorLink] = LINKS

    def __init__(self, *, replica_wait: float | timedelta = REPLICA_WAIT_SECONDS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.replica_wait = seconds("replica_wait", replica_wait, zero=True)

    def until_found(self, lookup: Callable[[], T | None]) -> T | None:
        """Repeat a lookup until it returns something or `replica_wait` is over.

        :param lookup: returns what was found, or None.
        """
        return until_found(lookup, self.replica_wait)

    def monitors_named(self, name: str) -> list[Monitor]:
        """Return all monitors of this name, newest first. The service has no filter for names."""
        return [
            monitor for monitor in self.hook.iter_monitors() if (monitor.name or "").strip() == name.strip()
        ]

    def visible_monitor(self, monitor_id: str) -> Monitor | None:
        """Return a monitor that should be there, or None if it stays missing."""
        return self.until_found(lambda: self._look_up(monitor_id))

    def _look_up(self, monitor_id: str) -> Monitor | None:
        from airflow_provider_webdata.api.errors import NotFoundError

        try:
            return self.hook.get_monitor(monitor_id)
        except NotFoundError:
            return None

    def only_one(self, name: str, found: list[Monitor]) -> Monitor | None:
        """Return the one monitor that was found, or None.

        :param name: the name.
        :param found: what has this name.
        :raises MonitorConflictError: there are several.
        """
        from airflow_provider_webdata.runs.failures import MonitorConflictError

        if len(found) > 1:
            raise MonitorConflictError(
                f"{len(found)} monitors are named {name!r}: {', '.join(monitor.id for monitor in found)}. "
                "Give monitor_id to say which one is meant, or delete the others"
            )
        return found[0] if found else None


class ExistingMonitorOperator(MonitorOperator):
    """Base of the operators that deal with a monitor that exists.

    :param monitor_id: UUID of the monitor (templated).
    :param monitor_name: name of the monitor, in place of the id (templated). Two of the same name are an error.
    :param kwargs: arguments of `MonitorOperator`.
    """

    template_fields: Sequence[str] = (*WebDataOperator.template_fields, "monitor_id", "monitor_name")

    def __init__(
        self, *, monitor_id: str | None = None, monitor_name: str | None = None, **kwargs: Any
    ) -> None:
        if (monitor_id is None) == (monitor_name is None):
            raise ArgumentError("give monitor_id or monitor_name, one of them")
        super().__init__(**kwargs)
        self.monitor_id = monitor_id
        self.monitor_name = monitor_name

    def find(self) -> Monitor | None:
        """Return the monitor, or None if it stays missing.

        :raises MonitorConflictError: several have the name.
        """
        if self.monitor_id:
            return self.visible_monitor(self.monitor_id)
        name = self._checked_name()
        return self.until_found(lambda: self.only_one(name, self.monitors_named(name)))

    def found(self) -> Monitor:
        """Return the monitor.

        :raises MonitorMissingError: it is missing.
        :raises MonitorConflictError: several have the name.
        """
        from airflow_provider_webdata.runs.failures import MonitorMissingError

        if (monitor := self.find()) is None:
            raise MonitorMissingError(f"There is no monitor {self.described}")
        return monitor

    @property
    def described(self) -> str:
        """A description of the intended monitor."""
        return f"with the id {self.monitor_id!r}" if self.monitor_id else f"named {self.monitor_name!r}"

    def _checked_name(self) -> str:
        if not self.monitor_name or not str(self.monitor_name).strip():
            self.refuse("monitor_id and monitor_name are both empty after rendering; one must name a monitor")
        return str(self.monitor_name)
