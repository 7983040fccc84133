# SPDX-License-Identifier: Apache-2.0
"""Airflow stamps the partition key of a run on the asset events of its tasks."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from tests.e2e.airflow_tables import AirflowTables
from tests.e2e.conftest import on
from tests.support.stack import Stack
from tests.support.waiting import wait_until
from webdata_sandbox.control import SandboxControl


@on("postgresql")
def test_a_backfill_starts_a_run_for_each_day(
    stack: Stack, tables: AirflowTables, sandbox: SandboxControl, tmp_path: Path
) -> None:
    stack.wait_for_dags(["e2e_each_day", "e2e_one_day"])
    first = date(2026, 3, 1)
    days = {str(first + timedelta(days=number)) for number in range(3)}
    folder = f"file://{tmp_path}"
    stack.api.unpause("e2e_one_day")
    stack.api.backfill("e2e_each_day", min(days), max(days), {"folder": folder})
    # Backfills of paused DAGs do not run; the DAG's newest day then runs too.
    stack.api.unpause("e2e_each_day")

    ended = wait_until(lambda: days <= tables.succeeded_partitions("e2e_one_day"), pause=0.5)
    assert ended, days - tables.succeeded_partitions("e2e_one_day")
    found = {
        run["partition_key"]: stack.api.xcom("e2e_one_day", run["dag_run_id"], "path")
        for run in stack.api.runs("e2e_one_day")
        if run["partition_key"] in days
    }
    assert found == {day: f"{folder}/{day}.jsonl" for day in days}
    # Each day was searched once, and only that day.
    filters = [request["body"]["tbs"] for request in sandbox.requests("/v2/search")]
    march = [text for text in filters if "cd_min:3/" in text or "cd_min:03/" in text]
    assert len({*march}) == len(march) == len(days), filters
