# SPDX-License-Identifier: Apache-2.0
"""The only DAG that subscribes to deliveries to the compared provider, so that it accepts them."""

from __future__ import annotations

from airflow.sdk import DAG, Asset, task

with DAG("subscriber", schedule=Asset("heard/monitor.check.completed")):

    @task
    def note() -> None:
        """Never runs: the benchmark starts no scheduler."""

    note()
