"""The API server that `dag.test()` gives to tasks, within the process."""

from __future__ import annotations

import functools


def keep_execution_api() -> None:
    """Use one such server for all tasks of the process.

    Airflow 3.2 lets it be collected while it is still in use, and making one for each task takes seconds.
    """
    from airflow.sdk.execution_time import supervisor

    if not hasattr(supervisor.in_process_api_server, "cache_info"):
        supervisor.in_process_api_server = functools.cache(supervisor.in_process_api_server)
