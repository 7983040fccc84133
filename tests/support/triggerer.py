# SPDX-License-Identifier: Apache-2.0
"""Airflow's supervisor of a triggerer, without the process that runs triggers."""

from __future__ import annotations

import os
import socket
from typing import Any

import psutil
import structlog
from airflow.jobs.job import Job
from airflow.jobs.triggerer_job_runner import TriggerRunnerSupervisor


def supervisor_of(job: Job, kind: type = TriggerRunnerSupervisor, stdin: socket.socket | None = None) -> Any:
    """Return a supervisor.

    :param kind: its class.
    :param stdin: the socket to the process that it has not.
    """
    return kind(
        id=job.id,
        job=job,
        capacity=1000,
        pid=os.getpid(),
        process=psutil.Process(),
        process_log=structlog.get_logger(),
        stdin=stdin,
    )
