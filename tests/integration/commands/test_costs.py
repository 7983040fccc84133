# SPDX-License-Identifier: Apache-2.0
"""`airflow webdata costs`, on an Airflow with runs of two DAGs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from airflow import settings
from airflow.cli.cli_parser import get_parser
from airflow.models.xcom import XComModel
from airflow.sdk.bases.xcom import BaseXCom
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from airflow_provider_webdata.airflow_db.spent import Spent, columns_of, spent, spent_by_day
from airflow_provider_webdata.commands import costs
from tests.support.airflow_rows import START, add_task
from tests.support.cli import run_command
from webdata_sandbox.testing.migrated_database import MigratedDatabase

SINCE = f"{START - timedelta(hours=1):%Y-%m-%dT%H:%M:%S}"


def told(**by_operation: float) -> dict[str, Any]:
    return {
        "used": sum(by_operation.values()),
        "saved": 1,
        "unknown": 0,
        "by_operation": by_operation,
        "by_format": {"page": 1},
    }


# XComs of other tasks with the same key.
ODD: list[Any] = [
    {"used": "all"},
    {"used": True, "by_operation": {}},
    {"used": 10**400, "by_operation": {}},
    {"used": 1, "by_operation": {"search": "two"}},
    {"used": 1, "by_operation": {}, "jobs": {"crawl/j": "ten"}},
    {"used": 1, "by_operation": {}, "unknown": []},
    "{" * 5000,
]


@pytest.fixture
def database(
    tmp_path: Path, migrated_database: MigratedDatabase, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    migrated_database.copy_to(tmp_path)
    engine = create_engine(f"sqlite:///{tmp_path}/airflow.db")
    sessions = scoped_session(sessionmaker(engine, expire_on_commit=False))
    monkeypatch.setattr(settings, "engine", engine)
    monkeypatch.setattr(settings, "Session", sessions)
    with Session(engine) as session:
        add_task(session, "news", "search", operator="S", xcoms={"credits": told(search=2, scrape=30)})
        add_task(session, "news", "map", operator="M", xcoms={"credits": told(map=1), "creditsUsed": 1})
        add_task(session, "shop", "crawl", operator="C", xcoms={"credits": told(crawl=5)})
        # Of tasks that are none of ours.
        add_task(session, "shop", "bank", operator="B", xcoms={"credits": 500, "used": 3})
        for number, odd in enumerate(ODD):
            add_task(session, "shop", f"odd_{number}", operator="B", xcoms={"credits": odd})
        session.commit()
    yield
    sessions.remove()
    engine.dispose()


@pytest.fixture
def run(database: None, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command; return the end of it, or what it printed."""

    return partial(run_command, capsys, "costs")


class References(BaseXCom):
    """An XCom backend that stores a file beside the database, and its URL in the database."""

    @staticmethod
    def deserialize_value(result: Any) -> Any:
        value = result.value
        if isinstance(value, str) and value.startswith("file://"):
            return json.loads(Path(value.removeprefix("file://")).read_text())
        return value


def rows(run: Any, *flags: str) -> list[dict[str, Any]]:
    return list(json.loads(run("--since", SINCE, "--output", "json", *flags)))


def used(run: Any, *flags: str) -> float:
    return float(sum(row["used"] for row in rows(run, *flags)))


def test_references_of_an_xcom_backend_are_read(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that cannot be read are not 0 credits: their number is reported, with the reason."""
    (tmp_path / "credits.json").write_text(json.dumps(told(crawl=7)))
    with settings.Session() as session:
        for name in ("credits", "gone"):
            add_task(session, "far", name, operator="S", xcoms={"credits": f"file://{tmp_path}/{name}.json"})
        session.commit()
    unconfigured = run("--since", SINCE, "--dag-id", "far")
    assert (
        "No task reported credits\nNot included: the credits of 2 tasks, because they are references"
        in unconfigured
    )
    monkeypatch.setenv("AIRFLOW__CORE__XCOM_BACKEND", f"{References.__module__}.{References.__qualname__}")
    args = get_parser().parse_args(["webdata", "costs", "--since", SINCE, "--dag-id", "far", "-o", "json"])
    capsys.readouterr()
    args.func(args)
    printed = capsys.readouterr()
    assert [row["used"] for row in json.loads(printed.out)] == [7]
    assert "the credits of 1 tasks, because the XCom backend raises FileNotFoundError" in printed.err
    assert used(run) == 38 + 7


SUMS: dict[str, list[dict[str, Any]]] = {
    "dag": [
        {"dag_id": "news", "used": 33, "tasks": 2, "unknown": 0},
        {"dag_id": "shop", "used": 5, "tasks": 1, "unknown": 0},
    ],
    "task": [
        {"dag_id": "news", "task_id": "search", "used": 32, "tasks": 1, "unknown": 0},
        {"dag_id": "shop", "task_id": "crawl", "used": 5, "tasks": 1, "unknown": 0},
        {"dag_id": "news", "task_id": "map", "used": 1, "tasks": 1, "unknown": 0},
    ],
}


def test_sums_by_dag_and_task(run: Any) -> None:
    for by, expected in SUMS.items():
        assert rows(run, "--by", by) == expected
        table = run("--since", SINCE, "--by", by, "--output", "csv")
        assert [*csv.DictReader(io.StringIO(table))] == [
            {name: str(value) for name, value in row.items()} for row in expected
        ]


def test_sums_by_month_and_day(database: None, run: Any) -> None:
    """In order of time, of UTC."""
    times = {"a": "2026-01-31T23:59:59", "b": "2026-02-01T00:00:00", "c": "2026-02-28T12:00:00"}
    with settings.Session() as session:
        for number, (task, time) in enumerate(times.items(), 1):
            add_task(session, "old", task, operator="S", xcoms={"credits": told(search=number)})
            its = session.scalars(select(XComModel).where(XComModel.task_id == task)).one()
            its.timestamp = datetime.fromisoformat(f"{time}+00:00")
        session.commit()
    span = ("--since", "2026-01-01", "--until", "2026-03-01", "--output", "json")
    months = json.loads(run(*span, "--by", "month"))
    assert [(row["month"], row["used"], row["tasks"]) for row in months] == [
        ("2026-01", 1, 1),
        ("2026-02", 5, 2),
    ]
    days = json.loads(run(*span, "--by", "day"))
    assert [(row["day"], row["used"]) for row in days] == [
        ("2026-01-31", 1),
        ("2026-02-01", 2),
        ("2026-02-28", 3),
    ]


def test_a_job_is_counted_once(database: None, run: Any) -> None:
    """An operator that gave up told of 4 credits, the sensor that took the result of 10, and another one too."""
    with settings.Session() as session:
        for task, cost in (("1_operator", 4), ("2_sensor", 10), ("3_sensor", 10)):
            credits = told(crawl=cost) | {"jobs": {"crawl/j": cost}}
            add_task(session, "twice", task, operator="S", xcoms={"credits": credits})
        session.commit()
    found = rows(run, "--dag-id", "twice", "--by", "task")
    assert {row["task_id"]: row["used"] for row in found} == {"1_operator": 4, "2_sensor": 6, "3_sensor": 0}
    (whole,) = rows(run, "--dag-id", "twice")
    assert (whole["used"], whole["tasks"]) == (10, 3)


def test_of_some_dags_at_some_time(run: Any) -> None:
    def within(*flags: str) -> float:
        return float(sum(row["used"] for row in json.loads(run("-o", "json", *flags))))

    later, before = START + timedelta(days=1), START - timedelta(days=1)
    assert within("--since", SINCE, "--dag-id", "shop") == 5
    assert within("--since", SINCE, "--dag-id", "shop", "--dag-id", "news") == 38
    assert within("--since", later.isoformat()) == 0
    assert within("--since", f"{before:%Y-%m-%d}", "--until", SINCE) == 0
    assert within("--since", f"{before:%Y-%m-%d}", "--until", later.isoformat().replace("+00:00", "Z")) == 38
    since = START - timedelta(hours=1)
    assert spent("dag", since, dag_ids=[]) == []
    assert [one.used for one in spent("dag", since, dag_ids=["shop"])] == [5]


def test_for_people(run: Any) -> None:
    printed = run("--since", SINCE, "--output", "plain")
    assert printed.splitlines()[1].split() == ["dag_id", "used", "tasks", "unknown"]
    assert printed.splitlines()[-1].split() == ["total", "38", "3", "0"]
    nothing = run("--since", "2199-01-01")
    assert nothing == "Credits from 2199-01-01 00:00 to now (UTC)\nNo task reported credits\n"
    assert run("--since", "2199-01-01", "-o", "csv") == "dag_id,used,tasks,unknown\n"
    assert run("--since", "2199-01-01", "-o", "json") == "[]\n"
    assert "used: 33" in run("--since", SINCE, "--output", "yaml")


def test_text_of_a_dag_forges_neither_a_line_nor_a_formula(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Spent({"dag_id": "=a\x1b[2Jb\nc"}, used=1, tasks=1)
    monkeypatch.setattr(costs, "spent", lambda *_, **__: [odd])
    plain = run("--since", SINCE, "--output", "plain")
    assert "\x1b" not in plain
    assert "=a\\x1b[2Jb\\nc" in plain
    assert run("--since", SINCE, "--output", "csv").splitlines()[1:] == ["'=a\\x1b[2Jb\\nc,1,1,0"]


def test_of_a_connection(database: None, run: Any) -> None:
    with settings.Session() as session:
        for task, credits, by_connection in (
            ("1_operator", told(crawl=4), {"billed": 4}),
            # The same job, then credits of both connections.
            ("2_sensor", told(crawl=4), {"billed": 4}),
            ("3_both", told(search=6, scrape=2), {"billed": 6, "other": 2}),
            ("4_other", told(search=9), {"other": 9}),
            # No credits, and calls of unknown cost beside credits of another connection.
            ("5_free", told(), {"billed": 0}),
            ("6_unknown", told(search=9) | {"unknown": 2}, {"billed": 0, "other": 9}),
        ):
            jobs = {"jobs": {"crawl/j": 4}} if "crawl" in credits["by_operation"] else {}
            xcom = credits | {"by_connection": by_connection} | jobs
            add_task(session, "shared", task, operator="S", xcoms={"credits": xcom})
        session.commit()
    assert rows(run, "--conn-id", "billed") == [{"dag_id": "shared", "used": 10, "tasks": 5, "unknown": 2}]
    assert run("--since", SINCE, "--conn-id", "billed").startswith("Credits of billed from ")
    assert rows(run, "--conn-id", "nowhere") == []


def test_reports_do_not_count_a_job_again(database: None) -> None:
    """Neither two consecutive months, nor two DAGs, nor days in the chart."""
    edge = START.replace(hour=0, minute=0, second=0, microsecond=0)
    with settings.Session() as session:
        for dag_id, minutes in (("crawler", -2), ("loader", 2)):
            credits = told(crawl=90) | {"by_connection": {"a": 90}, "jobs": {"crawl/j": 90}}
            add_task(session, dag_id, "t", operator="S", xcoms={"credits": credits})
            its = session.scalars(select(XComModel).where(XComModel.dag_id == dag_id)).one()
            its.timestamp = edge + timedelta(minutes=minutes)
        session.commit()
    first = edge - timedelta(days=28)
    dags = ["crawler", "loader"]

    def total(*span: datetime | None, of: list[str] = dags) -> float:
        return sum(one.used for one in spent("dag", *span, dag_ids=of))  # type: ignore[arg-type]

    assert [total(*span) for span in ((first, edge), (edge, None))] == [90, 0]
    assert [total(first, None, of=[one]) for one in dags] == [90, 0]
    assert [one.tasks for one in spent("dag", edge, dag_ids=["loader"])] == [1]
    assert spent_by_day(edge)["a"] == {edge.date(): {"loader": 0}}
    assert total(datetime.min.replace(tzinfo=timezone.utc), None) == 90


def test_a_job_is_counted_once_for_its_connection(database: None) -> None:
    """The other connection of a task that reads the job keeps its credits."""
    with settings.Session() as session:
        for task, credits, by_connection in (
            ("1_operator", told(crawl=90), {"a": 90}),
            ("2_both", told(crawl=90, search=10), {"a": 90, "b": 10}),
        ):
            xcom = credits | {"by_connection": by_connection, "jobs": {"crawl/j": 90}}
            add_task(session, "split", task, operator="S", xcoms={"credits": xcom})
        session.commit()
    since = START - timedelta(hours=1)
    parts = {
        conn_id: [one.used for one in spent("dag", since, dag_ids=["split"], conn_id=conn_id)]
        for conn_id in ("a", "b")
    }
    assert parts == {"a": [90], "b": [10]}


def test_each_row_has_the_columns_of_its_report(database: None) -> None:
    since = START - timedelta(hours=1)
    for by in ("dag", "task", "month", "day"):
        found = spent(by, since)  # type: ignore[arg-type]
        assert found
        assert {tuple(one.as_dict()) for one in found} == {columns_of(by)}  # type: ignore[arg-type]


WRONG = {
    "no date": (["--since", "yesterday"], "--since must be a date or time such as 2026-01-31"),
    "no day": (["--since", "2026-02-31"], "given: '2026-02-31'"),
    "no end": (["--since", "2026-01-01", "--until", "soon"], "--until must be a date or time"),
    "end first": (["--since", "2026-01-02", "--until", "2026-01-01"], "--until must be later than --since"),
    "no days": (["--days", "0"], "--days must be 1 to 36500 (given: 0)"),
    "two starts": (["--days", "1", "--since", SINCE], "--since and --days exclude each other"),
}


def test_what_is_wrong_is_said(run: Any) -> None:
    for flags, words in WRONG.values():
        assert words in run(*flags)


def test_the_default_is_the_last_30_days(run: Any) -> None:
    start = f"{datetime.now(timezone.utc) - timedelta(days=30):%Y-%m-%d}"
    assert run().startswith(f"Credits from {start} ")
    start = f"{datetime.now(timezone.utc) - timedelta(days=14):%Y-%m-%d}"
    assert run("--days", "14").startswith(f"Credits from {start} ")


def test_without_airflows_database(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = create_engine("sqlite://")
    monkeypatch.setattr(settings, "engine", empty)
    told = run("--days", "1")
    assert told == (
        "The credits cannot be read: Airflow's own tables are missing; run `airflow db migrate`. "
        "This command needs Airflow's database: run it on the scheduler or the API server."
    )


def test_a_terminal_of_80_columns(database: None, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with settings.Session() as session:
        credits = told(crawl=1234567, scrape=4.5, search=8)
        add_task(session, "d" * 60, "t" * 60, operator="S", run_id="r" * 60, xcoms={"credits": credits})
        session.commit()
    for by in ("dag", "task"):
        _, names, rule, *rows = run("--since", SINCE, "--by", by).splitlines()
        assert {len(line) for line in (names, rule, *rows)} <= {*range(81)}
        at = names.split("|").index(next(name for name in names.split("|") if name.strip() == "used"))
        cells = [row.split("|")[at] for row in rows]
        assert cells[0].strip() == "1234579.5"
        assert cells[-1].strip() == "1234617.5"
        assert len({len(cell.rstrip()) for cell in cells}) == 1, cells
        assert rows[0].startswith("ddddddddd")
        assert "…" in rows[0]
