# SPDX-License-Identifier: Apache-2.0
"""The in-process API server of `dag.test()`."""

from __future__ import annotations

import functools


def keep_execution_api() -> None:
    """Use one server for all tasks of the process.

    Airflow 3.2 lets the server be garbage-collected while in use, and creating one for each task takes seconds.
    """
    # docs/contributing/upstream/execution_api_collected.md
    from airflow.sdk.execution_time import supervisor

    if not hasattr(supervisor.in_process_api_server, "cache_info"):
        supervisor.in_process_api_server = functools.cache(supervisor.in_process_api_server)
