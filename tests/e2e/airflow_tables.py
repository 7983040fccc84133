# SPDX-License-Identifier: Apache-2.0
"""Airflow's own tables, read with plain SQL."""

from __future__ import annotations

from typing import Any

import sqlalchemy

from tests.support.stack import Stack
from tests.support.waiting import PATIENCE


def engine_of(stack: Stack) -> sqlalchemy.Engine:
    """Return an engine of the stack's database that patiently waits for other writers."""
    if stack.database_url:
        return sqlalchemy.create_engine(stack.database_url, isolation_level="AUTOCOMMIT")
    return sqlalchemy.create_engine(
        f"sqlite:///{stack.home}/airflow.db", isolation_level="AUTOCOMMIT", connect_args={"timeout": PATIENCE}
    )


class AirflowTables:
    """States of runs and tasks; a query costs less than a millisecond, a request to the API server 30."""

    def __init__(self, stack: Stack) -> None:
        self._engine = engine_of(stack)

    def close(self) -> None:
        self._engine.dispose()

    def run_state(self, dag_id: str, run_id: str) -> str:
        query = "select state from dag_run where dag_id = :dag and run_id = :run"
        [(state,)] = self._rows(query, dag=dag_id, run=run_id)
        return str(state)

    def task_states(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        query = "select task_id, state from task_instance where dag_id = :dag and run_id = :run"
        return {str(task): state for task, state in self._rows(query, dag=dag_id, run=run_id)}

    def run_states(self, dag_id: str) -> list[str]:
        """Return the states of all runs of a DAG."""
        query = "select state from dag_run where dag_id = :dag"
        return [str(state) for (state,) in self._rows(query, dag=dag_id)]

    def succeeded_partitions(self, dag_id: str) -> set[str]:
        """Return the partition keys of a DAG's successful runs."""
        query = "select partition_key from dag_run where dag_id = :dag and state = 'success'"
        return {str(key) for (key,) in self._rows(query, dag=dag_id)}

    def has_xcom(self, dag_id: str, run_id: str, task_id: str, key: str) -> bool:
        query = "select 1 from xcom where dag_id = :dag and run_id = :run and task_id = :task and key = :key"
        return bool(self._rows(query, dag=dag_id, run=run_id, task=task_id, key=key))

    def _rows(self, query: str, **values: str) -> list[Any]:
        with self._engine.connect() as connection:
            return list(connection.execute(sqlalchemy.text(query), values))
