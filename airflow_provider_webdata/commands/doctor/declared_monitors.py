# SPDX-License-Identifier: Apache-2.0
"""Check of the monitors that this Airflow declares: the inbox accepts their deliveries."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_webdata.airflow_db.connections import find_webdata_connection
from airflow_provider_webdata.api.client import WebDataClient
from airflow_provider_webdata.api.endpoints import LIST_MONITORS
from airflow_provider_webdata.common.url_secrets import without_secrets
from airflow_provider_webdata.hooks.calls import MonitorPages
from airflow_provider_webdata.hooks.environment import environment
from airflow_provider_webdata.hooks.webhooks import can_receive
from airflow_provider_webdata.inbox.wire import SECRET_HEADER, place_of, root_of
from airflow_provider_webdata.states.monitor_decision import Listed

from .finding import failed, passed, skipped, warning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow_provider_webdata.api.models import Monitor
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.states.monitor_decision import Mark

    from .finding import Finding

_MAX_MONITORS = 5


class Compared(NamedTuple):
    """A declared monitor that reports to this Airflow.

    :param problem: the reason why the inbox refuses its deliveries, or will refuse them; empty if there is none.
    :param is_refused: whether it refuses them now.
    """

    mark: Mark
    problem: str = ""
    is_refused: bool = False


def monitors(settings: ConnectionSettings, seconds: float) -> Finding:
    """Compare the webhooks of declared monitors with the connection and the inbox.

    :param seconds: time limit of all requests.
    """
    if lack := settings.client.server.lacks.get(LIST_MONITORS.name):
        return passed(f"none: {lack.partition('. ')[0]}")
    if not can_receive(settings):
        return passed("none reports here: tasks wait by polling")
    listed = _listed(settings, seconds)
    if listed is None:
        return skipped(f"the list of monitors took longer than {seconds:.0f} s")
    here = environment()
    found = [one for one in (compared(monitor, settings, here, _exists) for monitor in listed) if one]
    problems = [one for one in found if one.problem]
    if refused := [one for one in problems if one.is_refused]:
        return failed(f"the inbox refuses the deliveries of {_names(refused)}", _advice(refused))
    moved = [one for one in problems if one.mark.environment != here]
    if moved:
        theirs = moved[0].mark.environment
        return warning(
            f"declared in another environment than {here!r}: {_names(moved)}",
            f"If this Airflow declares them, set [webdata] environment = {theirs} for all of its components, or "
            "adopt=True in the tasks.",
        )
    if problems:
        return warning(f"in use: {_names(problems)}", _advice(problems))
    return passed(f"{len(found)} declared {'monitor reports' if len(found) == 1 else 'monitors report'} here")


def compared(
    monitor: Monitor, settings: ConnectionSettings, here: str, exists: Callable[[str], bool]
) -> Compared | None:
    """Compare a monitor's webhook with a connection; return None if the monitor does not report to this Airflow.

    :param here: name of this environment.
    :param exists: whether a connection exists.
    """
    one = Listed.of(monitor)
    mark, place, root = one.mark, place_of(one.url), root_of(settings.webhook.url or "")
    if mark is None:
        return None
    if mark.environment != here:
        is_here = place is not None and place[:2] == (root, settings.conn_id)
        return Compared(mark, f"environment {mark.environment!r}") if is_here else None
    if place is None:
        return Compared(mark, "it reports to no inbox", is_refused=True)
    if place.conn_id != settings.conn_id:
        # The check of that connection compares it.
        if exists(place.conn_id):
            return None
        return Compared(mark, f"connection {place.conn_id!r} does not exist", is_refused=True)
    if place.root != root:
        return Compared(mark, f"it reports to {without_secrets(place.root)}", is_refused=True)
    webhook = monitor.webhook
    headers = {} if webhook is None or isinstance(webhook, str) else webhook.headers or {}
    sent = next((value for name, value in headers.items() if name.lower() == SECRET_HEADER.lower()), None)
    if not settings.webhook.secrets or sent == settings.webhook.secret:
        return Compared(mark)
    if sent in settings.webhook.secrets:
        return Compared(mark, "the previous webhook secret")
    return Compared(mark, "it has another webhook secret", is_refused=True)


def _listed(settings: ConnectionSettings, seconds: float) -> list[Monitor] | None:
    end = time.monotonic() + seconds
    pages = MonitorPages()
    found: list[Monitor] = []
    timeout = min(settings.client.timeout, max(seconds, 0.1) * 0.45)
    with WebDataClient(replace(settings.client, timeout=timeout, retry_budget=0)) as client:
        while pages.query is not None:
            if time.monotonic() > end:
                return None
            found += pages.add_page(client.call(LIST_MONITORS, query=pages.query).data)
    return found


def _exists(conn_id: str) -> bool:
    return find_webdata_connection(conn_id) is not None


def _names(problems: Sequence[Compared]) -> str:
    shown = [f"{one.mark.name!r} ({one.problem})" for one in problems[:_MAX_MONITORS]]
    more = len(problems) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "")


def _advice(problems: Sequence[Compared]) -> str:
    return (
        f"Run the tasks that declare them, which update the webhooks: {', '.join(_tasks(problems))}. Delete a monitor "
        "that no task declares any more."
    )


def _tasks(problems: Sequence[Compared]) -> Iterator[str]:
    names = [*dict.fromkeys((one.mark.dag_id, one.mark.task_id) for one in problems)]
    for dag_id, task_id in names[:_MAX_MONITORS]:
        yield f"{task_id!r} of DAG {dag_id!r}"
    if len(names) > _MAX_MONITORS:
        yield f"and {len(names) - _MAX_MONITORS} more"
