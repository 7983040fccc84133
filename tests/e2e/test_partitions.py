"""Asset partitions end to end: the examples, on a real Airflow."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.common.supported_airflow import PARTITION_EVENTS, airflow_release
from tests.e2e.airflow_tables import AirflowTables
from tests.e2e.conftest import on
from tests.support.runs import follow, scheduled_run
from tests.support.stack import Stack
from tests.support.waiting import wait_until
from webdata_sandbox.control import SandboxControl

pytestmark = pytest.mark.skipif(
    airflow_release() < PARTITION_EVENTS, reason="tasks of this Airflow cannot emit partitions"
)


def results(stack: Stack, tables: AirflowTables, dag_id: str, keys: Collection[str]) -> dict[str, str]:
    """Return what each run of a consumer returned, by partition, once the runs of these have succeeded."""
    ended = wait_until(lambda: {*keys} <= tables.succeeded_partitions(dag_id), pause=0.5)
    assert ended, {*keys} - tables.succeeded_partitions(dag_id)
    return {
        run["partition_key"]: stack.api.xcom(dag_id, run["dag_run_id"], "count")
        for run in stack.api.runs(dag_id)
        if run["partition_key"] in keys
    }


def test_each_host_of_a_crawl_has_its_own_run(
    stack: Stack, tables: AirflowTables, sandbox: SandboxControl
) -> None:
    stack.wait_for_dags(["webdata_by_host", "webdata_of_one_host"])
    stack.api.unpause("webdata_of_one_host")
    run_id = scheduled_run(stack.api, "webdata_by_host")
    follow(stack.api, "webdata_by_host", run_id, print)
    written: dict[str, Any] = stack.api.xcom("webdata_by_host", run_id, "crawl")
    hosts = {entry["partition"]["host"]: entry["count"] for entry in written["files"]}
    assert len(hosts) > 1
    assert results(stack, tables, "webdata_of_one_host", hosts) == {
        host: f"{count} pages of {host}" for host, count in hosts.items()
    }


@on("postgresql")
def test_a_backfill_of_a_week(
    stack: Stack, tables: AirflowTables, sandbox: SandboxControl, tmp_path: Path
) -> None:
    stack.wait_for_dags(["webdata_by_day", "webdata_of_one_day"])
    stack.api.unpause("webdata_of_one_day")
    first = date(2026, 3, 1)
    days = {str(first + timedelta(days=number)) for number in range(7)}
    stack.api.backfill("webdata_by_day", min(days), max(days), {"folder": f"file://{tmp_path}"})
    # Backfills of paused DAGs do not run; the DAG's newest day then runs too.
    stack.api.unpause("webdata_by_day")
    found = results(stack, tables, "webdata_of_one_day", days)
    assert found.keys() == days
    assert {text.rpartition(" ")[2] for text in found.values()} == days
    # Each day was searched once, and only that day.
    filters = [request["body"]["tbs"] for request in sandbox.requests("/v2/search")]
    march = [text for text in filters if "cd_min:3/" in text or "cd_min:03/" in text]
    assert len({*march}) == len(march) == 7, filters
