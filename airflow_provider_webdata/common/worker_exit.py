# SPDX-License-Identifier: Apache-2.0
"""The earliest time at which a task that leaves its worker may come back."""

from __future__ import annotations

SCHEDULER_LAG = 5.0
"""Seconds within which a busy scheduler detects that a worker has ended."""


def seconds_until_resumable() -> float:
    """Return the minimum seconds between the end of a worker's process and the task's return to the queue.

    Airflow fails a task that is rescheduled or resumed earlier, because it mistakes the first worker's exit for the
    second's: "finished with state success, but the task instance's state attribute is queued". 0 if
    `[workers] min_heartbeat_interval` is 0.
    """
    # docs/contributing/upstream/resumed_before_worker_exit.md
    from airflow.sdk import conf

    linger = conf.getint("workers", "min_heartbeat_interval", fallback=5)
    return 0.0 if linger <= 0 else linger + SCHEDULER_LAG
