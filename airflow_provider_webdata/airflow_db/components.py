"""Airflow's components: the applications that the API server mounts, and the triggerers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow import plugins_manager
from airflow.jobs.job import Job, JobState
from airflow.models.asset import AssetWatcherModel
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import TaskInstanceState
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from airflow_provider_webdata.airflow_db.database import airflow_engine

if TYPE_CHECKING:
    from datetime import datetime


def plugin_applications() -> list[dict[str, Any]]:
    """Return the applications that plugins mount on the API server, in the order in which Airflow mounts them."""
    applications, _ = plugins_manager.get_fastapi_plugins()
    return applications


def triggerers() -> tuple[list[str], datetime | None]:
    """Return the hosts of the running triggerers, and the newest heartbeat of any that did not end; None: no heartbeat.

    :raises StoreUnavailableError: this process has no access to the database.
    :raises SQLAlchemyError: the database is unavailable.
    """
    running = select(Job).where(Job.job_type == "TriggererJob", Job.state == JobState.RUNNING)
    with Session(airflow_engine()) as session:
        jobs = session.scalars(running.order_by(Job.latest_heartbeat.desc())).all()
        beats = [job.latest_heartbeat for job in jobs if job.latest_heartbeat]
        return [str(job.hostname) for job in jobs if job.is_alive()], next(iter(beats), None)


def work_of_triggerers() -> tuple[int, int]:
    """Return the numbers of deferred tasks and of asset watchers, of this package and any other.

    :raises StoreUnavailableError: this process has no access to the database.
    :raises SQLAlchemyError: the database is unavailable.
    """
    deferred = select(func.count()).where(TaskInstance.state == TaskInstanceState.DEFERRED)
    watchers = select(func.count()).select_from(AssetWatcherModel)
    with Session(airflow_engine()) as session:
        return session.scalar(deferred) or 0, session.scalar(watchers) or 0
