# SPDX-License-Identifier: Apache-2.0
"""Lookup of monitors by id or name, despite the service's replication lag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api.errors import NotFoundError
from airflow_provider_webdata.runs.failures import MonitorConflictError, MonitorMissingError
from airflow_provider_webdata.runs.replica import until_found, until_visible

if TYPE_CHECKING:
    from datetime import timedelta

    from airflow_provider_webdata.api.models import Monitor
    from airflow_provider_webdata.base.monitor_operator import ExistingMonitorOperator
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.runs.run import Run


def monitors_named(hook: WebDataHook, name: str) -> list[Monitor]:
    """Return all monitors with this name, newest first. The service cannot filter by name."""
    return [monitor for monitor in hook.iter_monitors() if (monitor.name or "").strip() == name.strip()]


def visible_monitor(hook: WebDataHook, monitor_id: str, replica_wait: float | timedelta) -> Monitor | None:
    """Return a monitor that should exist, or None if it stays missing.

    :param replica_wait: maximum seconds to spend, or a timedelta.
    """
    try:
        return until_visible(lambda: hook.get_monitor(monitor_id), replica_wait)
    except NotFoundError:
        return None


def only_one(name: str, found: list[Monitor]) -> Monitor | None:
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


def find_monitor(run: Run, task: ExistingMonitorOperator) -> Monitor | None:
    """Return the monitor of a task, by `monitor_id` or `monitor_name`, or None if it stays missing.

    :raises MonitorConflictError: several monitors have the name.
    """
    hook = run.hook
    if task.monitor_id:
        return visible_monitor(hook, task.monitor_id, task.replica_wait)
    if not task.monitor_name or not str(task.monitor_name).strip():
        run.refuse("monitor_id and monitor_name are both empty after rendering; set one of them")
    name = str(task.monitor_name)
    return until_found(lambda: only_one(name, monitors_named(hook, name)), task.replica_wait)


def required_monitor(run: Run, task: ExistingMonitorOperator) -> Monitor:
    """Return the monitor of a task.

    :raises MonitorMissingError: the monitor does not exist.
    :raises MonitorConflictError: several monitors have the name.
    """
    if (monitor := find_monitor(run, task)) is None:
        raise MonitorMissingError(f"The monitor {described(task)} does not exist. It may have been deleted")
    return monitor


def described(task: ExistingMonitorOperator) -> str:
    """Return the id or name of a task's monitor, for messages."""
    return f"with the id {task.monitor_id!r}" if task.monitor_id else f"named {task.monitor_name!r}"
