"""`airflow webdata costs`, on an Airflow with runs of two DAGs and a sandbox that bills."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from airflow import settings
from airflow.models.xcom import XComModel
from airflow.sdk.bases.xcom import BaseXCom
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from airflow_provider_webdata.airflow_db.spent import spent, spent_by_day, total
from tests.support.airflow_rows import START, add_task
from tests.support.cli import run_command
from tests.support.service import SANDBOX_KEY, connection_text
from webdata_sandbox.server import SandboxServer
from webdata_sandbox.testing.migrated_database import MigratedDatabase

SINCE = f"{START - timedelta(hours=1):%Y-%m-%dT%H:%M:%S}"


def told(**by_operation: float) -> dict[str, Any]:
    return {
        "used": sum(by_operation.values()),
        "saved": 1,
        "unknown": 0,
        "byOperation": by_operation,
        "byFormat": {"page": 1},
    }


# XComs of other tasks with the same key.
ODD: list[Any] = [
    {"used": "all"},
    {"used": True, "byOperation": {}},
    {"used": 10**400, "byOperation": {}},
    {"used": 1, "byOperation": {"search": "two"}},
    {"used": 1, "byOperation": {}, "byFormat": [1]},
    {"used": 1, "byOperation": {}, "jobs": {"crawl/j": "ten"}},
    {"used": 1, "byOperation": {}, "saved": []},
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


def test_references_of_an_xcom_backend_are_read(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    shown = json.loads(run("--since", SINCE, "--dag-id", "far", "--output", "json"))
    assert (shown["used"], shown["unread"]) == (7, {"the XCom backend raises FileNotFoundError": 1})
    assert json.loads(run("--since", SINCE, "--output", "json"))["used"] == 38 + 7


BY = {
    "dag": [{"dag_id": "news", "used": 33}, {"dag_id": "shop", "used": 5}],
    "run": [{"dag_id": "news", "run_id": "run", "used": 33}, {"dag_id": "shop", "run_id": "run", "used": 5}],
    "task": [
        {"task_id": "search", "map_index": -1, "used": 32, "by_operation": {"search": 2, "scrape": 30}},
        {"task_id": "crawl", "used": 5, "by_format": {"page": 1}},
        {"task_id": "map", "used": 1, "saved": 1, "unknown": 0, "tasks": 1},
    ],
}


def test_sums_by_dag_run_and_task(run: Any) -> None:
    for by, expected in BY.items():
        document = json.loads(run("--since", SINCE, "--by", by, "--output", "json"))
        assert document["used"] == 38
        assert "service" not in document
        shown = document["spent"]
        assert [
            {name: one[name] for name in names} for one, names in zip(shown, expected, strict=True)
        ] == expected


def test_a_job_is_counted_once(database: None, run: Any) -> None:
    """An operator that gave up told of 4 credits, the sensor that took the result of 10, and another one too."""
    with settings.Session() as session:
        for task, cost in (("1_operator", 4), ("2_sensor", 10), ("3_sensor", 10)):
            credits = told(crawl=cost) | {
                "byFormat": {"page": 1, "json": cost - 1},
                "jobs": {"crawl/j": cost},
            }
            add_task(session, "twice", task, operator="S", xcoms={"credits": credits})
        session.commit()
    found = json.loads(run("--since", SINCE, "--dag-id", "twice", "--by", "task", "--output", "json"))
    assert found["used"] == 10
    assert {one["task_id"]: (one["used"], one["by_operation"]) for one in found["spent"]} == {
        "1_operator": (4, {"crawl": 4}),
        "2_sensor": (6, {"crawl": 6}),
        "3_sensor": (0, {}),
    }
    (whole,) = json.loads(run("--since", SINCE, "--dag-id", "twice", "--output", "json"))["spent"]
    assert (whole["used"], whole["by_operation"], whole["tasks"]) == (10, {"crawl": 10}, 3)


def test_of_some_dags_at_some_time(run: Any) -> None:
    def used(*flags: str) -> float:
        return float(json.loads(run("-o", "json", *flags))["used"])

    later, before = START + timedelta(days=1), START - timedelta(days=1)
    assert used("--since", SINCE, "--dag-id", "shop") == 5
    assert used("--since", SINCE, "--dag-id", "shop", "--dag-id", "news") == 38
    assert used("--since", later.isoformat()) == 0
    assert used("--since", f"{before:%Y-%m-%d}", "--until", SINCE) == 0
    assert used("--since", f"{before:%Y-%m-%d}", "--until", later.isoformat().replace("+00:00", "Z")) == 38


def test_for_people(run: Any) -> None:
    printed = run("--since", SINCE, "--output", "plain")
    assert "search 2, scrape 30" in printed
    assert printed.splitlines()[-1].split()[:3] == ["total", "3", "38"]
    nothing = run("--since", "2199-01-01")
    assert nothing == "Credits, given period: 2199-01-01 00:00 to now (UTC)\nNo task reported credits\n"
    assert "used: 38" in run("--since", SINCE, "--output", "yaml")


def test_control_characters_are_escaped(database: None, run: Any) -> None:
    """They could fake lines, or change the terminal."""
    with settings.Session() as session:
        add_task(session, "odd", "t", operator="S", xcoms={"credits": told(**{"a\x1b[2Jb\nc": 1.0})})
        session.commit()
    printed = run("--since", SINCE, "--dag-id", "odd", "--output", "plain")
    assert "\x1b" not in printed
    assert "a\\x1b[2Jb\\nc 1" in printed


def test_of_a_connection_beside_what_the_service_says(
    database: None, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with settings.Session() as session:
        for task, credits, by_connection in (
            ("1_operator", told(crawl=4), {"billed": 4}),
            # The same job, then credits of both connections.
            ("2_sensor", told(crawl=4), {"billed": 4}),
            ("3_both", told(search=6, scrape=2), {"billed": 6, "other": 2}),
            ("4_other", told(search=9), {"other": 9}),
            # Only savings, and calls of unknown cost beside credits of another connection.
            ("5_saved", told() | {"saved": 50}, {"billed": 0}),
            ("6_unknown", told(search=9) | {"saved": 4, "unknown": 2}, {"billed": 0, "other": 9}),
        ):
            jobs = {"jobs": {"crawl/j": 4}} if "crawl" in credits["byOperation"] else {}
            xcom = credits | {"byConnection": by_connection} | jobs
            add_task(session, "shared", task, operator="S", xcoms={"credits": xcom})
        session.commit()
    with SandboxServer() as sandbox:
        monkeypatch.setenv("AIRFLOW_CONN_BILLED", connection_text(sandbox.url))
        body = {"url": "https://docs.pipeline.example/"}
        headers = {"Authorization": f"Bearer {SANDBOX_KEY}"}
        assert httpx.post(f"{sandbox.url}/v2/scrape", json=body, headers=headers).status_code == 200
        printed = run("--since", SINCE, "--conn-id", "billed", "--output", "json")
        document = json.loads(printed)
        assert document["used"] == 10
        (shared,) = document["spent"]
        assert (shared["dag_id"], shared["used"], shared["tasks"]) == ("shared", 10, 5)
        assert (shared["saved"], shared["unknown"]) == (1 + 1 + 0.75 + 50, 2)
        assert shared["by_operation"] == {"crawl": 4, "search": 4.5, "scrape": 1.5}
        service = document["service"]
        assert [period["used"] for period in service["periods"]] == [1]
        assert service["remaining"] == 99_999
        table = run("--since", SINCE, "--conn-id", "billed")
        assert table.startswith("Credits of billed, given period: ")
        assert "total  |     5 |   10 |" in table
        assert "The service: 1 credits from" in table
        assert re.search(r"from \d{4}-\d\d-\d\d \d\d:\d\d to \S+ \S+ \(UTC\), by the whole team", table)
        assert "99999 credits are left" in table
        assert SANDBOX_KEY not in printed + table
        past = json.loads(
            run("--since", "1999-01-01", "--until", "1999-02-01", "--conn-id", "billed", "-o", "json")
        )
        assert past["service"]["periods"] == []


def test_reports_do_not_count_a_job_again(database: None) -> None:
    """Neither two consecutive months, nor two DAGs, nor days in the chart."""
    edge = START.replace(hour=0, minute=0, second=0, microsecond=0)
    with settings.Session() as session:
        for dag_id, minutes in (("crawler", -2), ("loader", 2)):
            credits = told(crawl=90) | {"byConnection": {"a": 90}, "jobs": {"crawl/j": 90}}
            add_task(session, dag_id, "t", operator="S", xcoms={"credits": credits})
            its = session.scalars(select(XComModel).where(XComModel.dag_id == dag_id)).one()
            its.timestamp = edge + timedelta(minutes=minutes)
        session.commit()
    first = edge - timedelta(days=28)
    dags = ["crawler", "loader"]
    assert [total(spent("dag", dags, *span)) for span in ((first, edge), (edge, None))] == [90, 0]
    assert [total(spent("dag", [one], first, None)) for one in dags] == [90, 0]
    assert [one.tasks for one in spent("dag", ["loader"], edge, None)] == [1]
    assert spent_by_day(edge)["a"] == {edge.date(): {"loader": 0}}
    assert total(spent("dag", dags, datetime.min.replace(tzinfo=timezone.utc), None)) == 90


def test_a_job_is_counted_once_for_its_connection(database: None) -> None:
    """The other connection of a task that reads the job keeps its credits."""
    with settings.Session() as session:
        for task, credits, by_connection in (
            ("1_operator", told(crawl=90), {"a": 90}),
            ("2_both", told(crawl=90, search=10), {"a": 90, "b": 10}),
        ):
            xcom = credits | {"byConnection": by_connection, "jobs": {"crawl/j": 90}}
            add_task(session, "split", task, operator="S", xcoms={"credits": xcom})
        session.commit()
    since = START - timedelta(hours=1)
    parts = {
        conn_id: [(one.used, dict(one.operations)) for one in spent("dag", ["split"], since, None, conn_id)]
        for conn_id in ("a", "b")
    }
    assert parts == {"a": [(90, {"crawl": 90})], "b": [(10, {"search": 10})]}


WRONG = {
    "no date": (["--since", "yesterday"], "--since must be a date or time such as 2026-01-31"),
    "no day": (["--since", "2026-02-31"], "given: '2026-02-31'"),
    "no end": (["--since", "2026-01-01", "--until", "soon"], "--until must be a date or time"),
    "end first": (["--since", "2026-01-02", "--until", "2026-01-01"], "--until must be later than --since"),
    "no connection": (
        ["--since", "2026-01-01", "--conn-id", "nowhere"],
        "Connection 'nowhere' does not exist",
    ),
    "another type": (
        ["--since", "2026-01-01", "--conn-id", "other"],
        "is of type 'http'. Set --conn-id to one of type webdata",
    ),
}


def test_what_is_wrong_is_said(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", '{"conn_type": "http", "host": "h", "password": "a-secret"}')
    for flags, words in WRONG.values():
        told = run(*flags)
        assert words in told
        assert "a-secret" not in told
        assert SANDBOX_KEY not in told


def test_without_the_services_figures(database: None, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums are in Airflow's database."""
    monkeypatch.setenv("AIRFLOW_CONN_AWAY", connection_text("http://127.0.0.1:1", retry_budget=0))
    with settings.Session() as session:
        credits = told(crawl=4) | {"byConnection": {"away": 4}}
        add_task(session, "far", "t", operator="S", xcoms={"credits": credits})
        session.commit()
    *_, total_row, reason = run("--since", SINCE, "--conn-id", "away", "-o", "plain").splitlines()
    assert total_row.split()[:3] == ["total", "1", "4"]
    assert reason.startswith("The service's own figures are missing: ")
    document = json.loads(run("--since", SINCE, "--conn-id", "away", "-o", "json"))
    assert (document["used"], document["service"]["remaining"], document["service"]["periods"]) == (
        4,
        None,
        [],
    )
    assert "connection refused" in document["service"]["problem"]
    assert SANDBOX_KEY not in reason


def test_the_default_is_the_billing_period(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with SandboxServer() as sandbox:
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(sandbox.url))
        headers = {"Authorization": f"Bearer {SANDBOX_KEY}"}
        usage = httpx.get(f"{sandbox.url}/v2/team/credit-usage", headers=headers).json()["data"]
        document = json.loads(run("-o", "json"))
        assert document["period"] == "billing period of webdata_default"
        assert document["since"][:19] == usage["billingPeriodStart"][:19]
        assert run("--conn-id", "webdata_default").startswith("Credits of webdata_default, billing period: ")


def test_without_a_billing_period(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first, reason, *_ = run().splitlines()
    start = f"{datetime.now(timezone.utc) - timedelta(days=30):%Y-%m-%d}"
    assert first.startswith(f"Credits, last 30 days: {start} ")
    assert reason == "No billing period: connection webdata_default does not exist"
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text("http://127.0.0.1:1"))
    printed = run()
    assert "(connection refused: no server listens there)" in printed
    assert "38" in printed.splitlines()[-1]


def test_without_airflows_tables(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = create_engine("sqlite://")
    monkeypatch.setattr(settings, "Session", scoped_session(sessionmaker(empty)))
    told = run("--days", "1")
    assert told == "The credits cannot be read: Airflow's own tables are missing; run `airflow db migrate`"


def test_some_days(run: Any) -> None:
    assert run("--days", "14").startswith("Credits, last 14 days: ")
    assert run("--days", "0") == "--days must be 1 to 36500 (given: 0)"
    assert run("--days", "1", "--since", SINCE) == "--since and --days exclude each other"


def test_a_terminal_of_80_columns(database: None, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with settings.Session() as session:
        credits = told(crawl=1234567, scrape=4.5, search=8)
        add_task(session, "d" * 60, "t" * 60, operator="S", run_id="r" * 60, xcoms={"credits": credits})
        session.commit()
    for by in ("dag", "run", "task"):
        _, names, rule, *rows = run("--since", SINCE, "--by", by).splitlines()
        assert {len(line) for line in (names, rule, *rows)} <= {*range(81)}
        used = names.split("|").index(next(name for name in names.split("|") if name.strip() == "used"))
        cells = [row.split("|")[used] for row in rows]
        assert cells[0].strip() == "1234579.5"
        assert cells[-1].strip() == "1234617.5"
        assert len({len(cell.rstrip()) for cell in cells}) == 1, cells
        assert rows[0].startswith("ddddddddd")
        assert "…" in rows[0]
