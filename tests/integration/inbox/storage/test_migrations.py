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
from sqlalchemy import create_engine, text

from demo.postgres import Postgres

DRIVER = Path(__file__).with_name("airflow_driver.py")
TABLES = ["alembic_version_webdata", "webdata_inbox_counter", "webdata_inbox_delivery"]


@dataclass(frozen=True)
class Home:
    """An Airflow of its own, with nothing in its database yet."""

    env: Mapping[str, str]

    def airflow(self, *argv: str) -> str:
        return self._run([sys.executable, "-m", "airflow", *argv])

    def ask(self, *argv: str, stdin: str = "") -> Any:
        output = self._run([sys.executable, str(DRIVER), *argv], stdin)
        return json.loads(output.rpartition("\nANSWER ")[2])

    def _run(self, argv: list[str], stdin: str = "") -> str:
        done = subprocess.run(
            argv, env=dict(self.env), input=stdin, capture_output=True, text=True, timeout=180
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout


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


def url_of(home: Home) -> str:
    return home.env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]


COMPLETE = {"differences": [], "tables": TABLES, "airflow": True, "complete": True}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_there_and_back(make_home: MakeHome, kind: str) -> None:
    home = make_home(kind)
    # What `airflow db migrate` makes from the code ...
    home.airflow("db", "migrate")
    made = home.ask("schema")
    head = made.pop("revision")
    assert head
    assert made == COMPLETE
    # ... is gone after the way down ...
    home.ask("downgrade", "base")
    below = home.ask("schema")
    assert below["tables"] == ["alembic_version_webdata"]
    assert below["airflow"]
    assert not below["complete"]
    # ... and is the same when the migrations make it.
    home.ask("upgrade", "heads")
    assert home.ask("schema") == {**COMPLETE, "revision": head}
    # A second migration finds nothing to do and keeps what is stored.
    insert = "INSERT INTO webdata_inbox_counter (id, last_position) VALUES (1, 42)"
    engine = create_engine(url_of(home))
    with engine.begin() as connection:
        connection.execute(text(insert))
    home.airflow("db", "migrate")
    with engine.connect() as connection:
        assert connection.execute(text("SELECT last_position FROM webdata_inbox_counter")).scalar() == 42
    engine.dispose()
    # A reset makes them anew, and with no more than that leaves none.
    home.airflow("db", "reset", "--yes")
    assert home.ask("schema") == {**COMPLETE, "revision": head}
    home.airflow("db", "reset", "--yes", "--skip-init")
    assert home.ask("schema")["tables"] == []


def test_tables_without_a_version_are_taken_over(make_home: MakeHome) -> None:
    home = make_home("sqlite")
    home.airflow("db", "migrate")
    engine = create_engine(url_of(home))
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE alembic_version_webdata"))
    engine.dispose()
    home.airflow("db", "migrate")
    assert home.ask("schema")["complete"]


def test_a_schema_of_its_own(make_home: MakeHome) -> None:
    home = make_home("postgresql", AIRFLOW__DATABASE__SQL_ALCHEMY_SCHEMA="airflow_data")
    engine = create_engine(url_of(home))
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA airflow_data"))
    # Airflow's own tables would come to this schema too; ours alone are looked at here.
    home.ask("upgrade", "heads")
    made = home.ask("schema")
    assert made["tables"] == TABLES
    assert made["differences"] == []
    with engine.connect() as connection:
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'airflow_data'"
        assert set(connection.execute(text(query)).scalars()) == set(TABLES[1:])
    engine.dispose()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_statements_can_be_looked_at_first(make_home: MakeHome, kind: str) -> None:
    home = make_home(kind)
    printed = home.ask("sql")
    for words in ("CREATE TABLE webdata_inbox_delivery", "CREATE TABLE webdata_inbox_counter"):
        assert words in printed
        assert words.replace("CREATE", "DROP") in printed
    if kind == "postgresql":
        engine = create_engine(url_of(home))
        statements = "\n".join(line for line in printed.splitlines() if "[info" not in line)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(statements)
        engine.dispose()
        assert home.ask("schema")["tables"] == []
