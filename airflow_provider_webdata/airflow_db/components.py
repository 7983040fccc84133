# SPDX-License-Identifier: Apache-2.0
"""Airflow's components: the applications that the API server mounts, and the triggerers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pendulum
from airflow import plugins_manager
from airflow.configuration import conf
from airflow.jobs.job import Job, JobState
from airflow.models.asset import AssetWatcherModel
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import TaskInstanceState
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from airflow_provider_webdata.airflow_db.database import airflow_engine

if TYPE_CHECKING:
    from datetime import datetime

START_TRIGGERER = (
    "Start one with `airflow triggerer`. Until then, use deferrable=False, which waits in the worker."
)


def plugin_applications() -> list[dict[str, Any]]:
    """Return the applications that plugins mount on the API server, in the order in which Airflow mounts them."""
    applications, _ = plugins_manager.get_fastapi_plugins()
    return applications


class Triggerers(NamedTuple):
    """The triggerers of this Airflow, and what needs one.

    :param hosts: hosts of those that run.
    :param heartbeat: the newest of any that did not end, or None.
    :param needed_by: what needs one while none runs, as text; empty: nothing yet.
    """

    hosts: tuple[str, ...]
    heartbeat: datetime | None
    needed_by: str

    def problem(self) -> str | None:
        """Return the problem if none runs, but one ran before or is needed."""
        age = pendulum.instance(self.heartbeat).diff_for_humans() if self.heartbeat else ""
        last = age and f"; the last heartbeat was {age}"
        if self.hosts or not (last or self.needed_by):
            return None
        reason = f"but needed by: {self.needed_by}" if self.needed_by else "so deferred tasks never resume"
        return f"no triggerer is running{last}, {reason}"


def triggerers() -> Triggerers:
    """Return the running triggerers, and what needs one, of this package and any other.

    :raises StoreUnavailableError: this process has no access to the database.
    :raises SQLAlchemyError: the database is unavailable.
    """
    running = select(Job).where(Job.job_type == "TriggererJob", Job.state == JobState.RUNNING)
    with Session(airflow_engine()) as session:
        jobs = session.scalars(running.order_by(Job.latest_heartbeat.desc())).all()
        heartbeat = next((job.latest_heartbeat for job in jobs if job.latest_heartbeat), None)
        hosts = tuple(str(job.hostname) for job in jobs if job.is_alive())
        return Triggerers(hosts, heartbeat, "" if hosts else _work_of_triggerers(session))


def _work_of_triggerers(session: Session) -> str:
    deferred = select(func.count()).where(TaskInstance.state == TaskInstanceState.DEFERRED)
    watchers = select(func.count()).select_from(AssetWatcherModel)
    counts = {"deferred task": session.scalar(deferred), "asset watcher": session.scalar(watchers)}
    work = [f"{count} {what}{'' if count == 1 else 's'}" for what, count in counts.items() if count]
    if conf.getboolean("operators", "default_deferrable", fallback=False):
        work.append("[operators] default_deferrable = True")
    return ", ".join(work)
