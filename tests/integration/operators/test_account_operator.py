"""The team's account as results."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction
from pyarrow import parquet

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.account import WebDataAccountOperator
from airflow_provider_webdata.operators.monitor import WebDataRunMonitorOperator
from airflow_provider_webdata.options import Wait
from tests.support import direct
from tests.support.direct import Outcome
from tests.support.snippets import ROOT, snippets
from webdata_sandbox.server import SandboxServer

TODAY = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)


def account(
    what: str,
    *,
    partition: str | None = None,
    interval: tuple[datetime | None, datetime | None] = (None, None),
    **more: Any,
) -> Outcome:
    day, until = interval
    task = WebDataAccountOperator(task_id="t", what=what, **more)
    done = direct.run(task, partition=partition, day=day, until=until)
    assert done.state == "success", done.error
    return done


def day(distance: int) -> str:
    """Return the partition of a day: today, and the days before it."""
    return f"{TODAY + timedelta(days=distance):%Y-%m-%d}"


@pytest.mark.rule("team-activity")
def test_the_calls_of_an_interval(here: SandboxServer, log: Any, tmp_path: Path) -> None:
    with WebDataHook() as hook:
        for number in range(101):
            hook.map({"url": "https://river.example/", "search": f"level {number}"})
    path = str(tmp_path / "calls.parquet")
    found = account("activity", output=path).xcom
    assert (found["count"], found["since"]) == (101, None)
    rows = parquet.read_table(path).to_pylist()
    assert {(row["endpoint"], row["target"]) for row in rows} == {("map", "https://river.example/")}
    assert "missing" not in log()
    assert account("activity", partition=day(1)).value["data"] == []
    late = account("activity", partition=day(-2)).value
    assert (late["data"], late["since"][:10], late["until"][:10]) == ([], day(-2), day(-1))
    assert "The service lists calls for 24 hours. Calls from" in log()


def test_the_credits_of_the_period_that_an_interval_is_in(here: SandboxServer) -> None:
    with WebDataHook() as hook:
        hook.map({"url": "https://river.example/"})
        periods = [period.to_wire() for period in hook.credit_history().periods]
    assert account("credits").value["data"] == periods
    (period,) = account("credits", partition=day(0)).value["data"]
    assert period in periods
    assert period["startDate"][:10] <= day(0) <= period["endDate"][:10]
    assert account("credits", partition="2001-01-01").value["data"] == []


def test_the_checks_that_ended_in_an_interval(here: SandboxServer) -> None:
    with WebDataHook() as hook:
        monitor = hook.create_monitor(
            {
                "name": "Plans",
                "schedule": {"cron": "0 6 * * 1"},
                "targets": [{"type": "scrape", "urls": ["https://shop.example/plans"]}],
            }
        )
    waiting: dict[str, Any] = {
        "wait_for_completion": True,
        "deferrable": False,
        "wait": Wait(poll_interval=1),
    }
    check = direct.run(WebDataRunMonitorOperator(task_id="check", monitor_id=monitor.id, **waiting))
    (found,) = account("checks", quality=1).value["data"]
    assert (found["monitorName"], found["id"], found["status"]) == ("Plans", check.value["id"], "completed")
    assert account("checks", partition=found["finishedAt"][:10]).value["data"] == [found]
    assert account("checks", partition=day(-3)).value["data"] == []


@pytest.mark.parametrize("is_documented", [True, False], ids=["the page's schedule", "@hourly"])
def test_the_interval_of_a_schedule(here: SandboxServer, is_documented: bool) -> None:
    """A plain cron text has runs without an interval; those of the documentation's example are an hour long."""
    names: dict[str, Any] = {}
    exec(snippets(ROOT / "docs/operators/account.md")[0].code, names)
    dag = names["read"].dag if is_documented else DAG("d", schedule="@hourly", start_date=TODAY)
    timetable = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).timetable
    due = timetable.next_dagrun_info_v2(
        last_dagrun_info=None, restriction=TimeRestriction(dag.start_date, None, catchup=True)
    )
    found = account("activity", interval=due.data_interval).value
    if is_documented:
        since, until = (datetime.fromisoformat(found[name]) for name in ("since", "until"))
        assert until - since == timedelta(hours=1)
    else:
        assert (found["since"], found["until"]) == (None, None)
