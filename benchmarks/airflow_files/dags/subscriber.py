"""The one DAG that waits for deliveries to the compared provider: with it, they take its accepted path."""

from __future__ import annotations

from airflow.sdk import DAG, Asset, task

with DAG("subscriber", schedule=Asset("heard/monitor.check.completed")):

    @task
    def note() -> None:
        """Never runs: the benchmark starts no scheduler."""

    note()
