"""`airflow db migrate` makes the tables, and what it makes is what the code expects; and back again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from tests.support.postgres import Postgres

DRIVER = Path(__file__).with_name("airflow_driver.py")
MANAGER = "airflow_provider_webdata.inbox.server.db_manager.InboxDBManager"
TABLES = ["alembic_version_webdata", "webdata_inbox_counter", "webdata_inbox_delivery"]


@dataclass(frozen=True)
class Home:
    """An Airflow of its own, with nothing in its database yet."""

    env: Mapping[str, str]

    def run(self, *steps: str) -> list[Any]:
        """The answers of `airflow_driver` to these steps; a failed command fails the test."""
        done = subprocess.run(
            [sys.executable, str(DRIVER)],
            env=dict(self.env),
            input=json.dumps(
                [step.split(maxsplit=1 if step.startswith("execute") else -1) for step in steps]
            ),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        answers: list[Any] = json.loads(done.stdout.rpartition("\nANSWER ")[2])
        for step, answer in zip(steps, answers, strict=True):
            assert not step.startswith("airflow") or answer[0] in (0, None), answer
        return answers


MakeHome = Callable[..., Home]


@pytest.fixture
def make_home(tmp_path: Path, request: pytest.FixtureRequest) -> MakeHome:
    def make(kind: str, **settings: str) -> Home:
        url = f"sqlite:///{tmp_path}/airflow.db"
        if kind == "postgresql":
            server: Postgres = request.getfixturevalue("postgres")
            url = server.create_database(f"airflow_{tmp_path.name}".lower())
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        return Home(
            {
                **inherited,
                "AIRFLOW_HOME": str(tmp_path),
                "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url,
                "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                **settings,
            }
        )

    return make


COMPLETE = {"differences": [], "tables": TABLES, "airflow": True, "complete": True}
BELOW = {"tables": ["alembic_version_webdata"], "airflow": True, "revision": None, "complete": False}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_there_and_back(make_home: MakeHome, kind: str) -> None:
    # Airflow finds the manager by itself; only `airflow db-manager` asks for its name in the configuration too.
    home = make_home(kind, AIRFLOW__DATABASE__EXTERNAL_DB_MANAGERS=MANAGER)
    _, made, _, below, _, again, *_, kept, _, anew, _, gone = home.run(
        # What Airflow makes from the code ...
        "airflow db migrate",
        "schema",
        # ... is gone after the way down ...
        f"airflow db-manager downgrade {MANAGER} --to-revision base --yes",
        "schema",
        # ... and is the same when the migrations make it.
        "upgrade heads",
        "schema",
        # A second migration finds nothing to do, and keeps what is stored.
        "execute INSERT INTO webdata_inbox_counter (id, last_position) VALUES (1, 42)",
        "airflow db migrate",
        "execute SELECT last_position FROM webdata_inbox_counter",
        # A reset makes the tables anew; without what follows it, it leaves none.
        "airflow db reset --yes",
        "schema",
        "airflow db reset --yes --skip-init",
        "schema",
    )
    head = made["revision"]
    assert head
    assert made == {**COMPLETE, "revision": head}
    assert below == {**below, **BELOW}
    assert again == made
    assert kept == 42
    assert anew == made
    assert gone["tables"] == []


def test_tables_without_a_version_are_taken_over(make_home: MakeHome) -> None:
    _, made, *_, found = make_home("sqlite").run(
        "airflow db migrate",
        "schema",
        "execute DROP TABLE alembic_version_webdata",
        "airflow db migrate",
        "schema",
    )
    assert found == made
    assert found["complete"]


def test_a_schema_of_its_own(make_home: MakeHome) -> None:
    home = make_home("postgresql", AIRFLOW__DATABASE__SQL_ALCHEMY_SCHEMA="airflow_data")
    # Airflow's own tables would come to this schema too; ours alone are looked at here.
    *_, made, there = home.run(
        "execute CREATE SCHEMA airflow_data",
        "upgrade heads",
        "schema",
        "execute SELECT string_agg(table_name, ' ' ORDER BY table_name) FROM information_schema.tables"
        " WHERE table_schema = 'airflow_data'",
    )
    assert made["tables"] == TABLES
    assert made["differences"] == []
    assert there.split() == TABLES[1:]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_statements_can_be_looked_at_first(make_home: MakeHome, kind: str) -> None:
    home = make_home(kind)
    (printed,) = home.run("sql")
    for words in ("CREATE TABLE webdata_inbox_delivery", "CREATE TABLE webdata_inbox_counter"):
        assert words in printed
        assert words.replace("CREATE", "DROP") in printed
    if kind == "postgresql":
        statements = "\n".join(line for line in printed.splitlines() if "[info" not in line)
        engine = create_engine(home.env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"], isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(statements)
        engine.dispose()
        (left,) = home.run("schema")
        # Alembic's own table stays, empty.
        assert left["tables"] == ["alembic_version_webdata"]
