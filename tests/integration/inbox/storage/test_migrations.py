"""`airflow db migrate` makes the tables, and what it makes is what the code expects; and back again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from airflow_provider_webdata import __version__
from airflow_provider_webdata.inbox.server.db_manager import InboxDBManager
from tests.support.postgres import Postgres
from tests.support.warm import Warm, airflow_environ

DRIVER = Path(__file__).with_name("airflow_driver.py")
MANAGER = "airflow_provider_webdata.inbox.server.db_manager.InboxDBManager"
TABLES = ["alembic_version_webdata", "webdata_inbox_counter", "webdata_inbox_delivery"]


@dataclass(frozen=True)
class Home:
    """An Airflow of its own, with nothing in its database yet."""

    env: Mapping[str, str]
    warm: Warm

    def run(self, *steps: str) -> list[Any]:
        """Return the answers of `airflow_driver` to these steps; a failed command fails the test."""
        wanted = [step.split(maxsplit=1 if step.startswith("execute") else -1) for step in steps]
        done = self.warm.run([str(DRIVER)], env=self.env, input=json.dumps(wanted))
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        found: list[Any] = json.loads(done.stdout.rpartition("\nANSWER ")[2])
        for step, answer in zip(steps, found, strict=True):
            assert not step.startswith("airflow") or answer[0] in (0, None), answer
        return found


MakeHome = Callable[..., Home]


@pytest.fixture
def make_home(tmp_path: Path, request: pytest.FixtureRequest, warm: Warm) -> MakeHome:
    made: set[str] = set()

    def make(kind: str, **settings: str) -> Home:
        url = f"sqlite:///{tmp_path}/airflow.db"
        if kind == "postgresql":
            server: Postgres = request.getfixturevalue("postgres")
            name = f"airflow_{tmp_path.name}".lower()
            url = server.url(name) if name in made else server.create_database(name)
            made.add(name)
        env = airflow_environ(tmp_path, AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=url, **settings)
        return Home(env, warm)

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


CREATE_TABLES = {"AIRFLOW__WEBDATA__INBOX_CREATE_TABLES": "True"}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_inbox_makes_its_tables_from_any_number_of_processes(make_home: MakeHome, kind: str) -> None:
    home = make_home(kind, **CREATE_TABLES)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: home.run("make_tables", "make_tables", "schema"), range(4)))
    for first, second, found in answers:
        assert first == second == found["revision"] is not None
        assert found == {**COMPLETE, "airflow": False, "revision": first}


def test_what_is_missing_is_named_where_migrations_are_waited_for(make_home: MakeHome) -> None:
    check = "attempt db check-migrations --migration-wait-timeout 1"
    _, there, _, missing = make_home("sqlite").run(
        "airflow db migrate", check, "execute DROP TABLE alembic_version_webdata", check
    )
    assert there == {"error": None, "warnings": []}
    # Airflow names its own revisions alone, which are the same on both sides.
    assert "still unapplied migrations" in missing["error"]
    for cure in ("`airflow db migrate`", "`inbox_create_tables = True`"):
        assert cure in missing["warnings"][0]
    (not_waited_for,) = make_home("sqlite", **CREATE_TABLES).run(check)
    assert not_waited_for == {"error": None, "warnings": []}


NEWER = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "ffffffffffff", "{head}", None, None


def change():
    # As `script.py.mako` says; without it SQLite's ids would begin anew.
    return op.batch_alter_table("webdata_inbox_delivery", table_kwargs={{"sqlite_autoincrement": True}})


def upgrade():
    with change() as batch:
        batch.add_column(sa.Column("note", sa.String(10)))


def downgrade():
    with change() as batch:
        batch.drop_column("note")
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_back_to_an_older_version_of_the_package(make_home: MakeHome, tmp_path: Path, kind: str) -> None:
    older = Path(InboxDBManager.migration_dir)
    newer = tmp_path / "newer"
    shutil.copytree(older, newer, ignore=shutil.ignore_patterns("__pycache__"))
    head = InboxDBManager.revision_heads_map[__version__]
    (newer / "versions" / "0002_newer.py").write_text(NEWER.format(head=head))
    home = make_home(kind, AIRFLOW__DATABASE__EXTERNAL_DB_MANAGERS=MANAGER, **CREATE_TABLES)
    _, _, _, _, made, _, refused, goes_on, _, _, _, again, kept = home.run(
        "upgrade heads",
        "execute INSERT INTO webdata_inbox_counter (id, last_position) VALUES (1, 42)",
        f"package {newer}",
        "upgrade heads",
        "execute SELECT version_num FROM alembic_version_webdata",
        # The older one is installed without another word ...
        f"package {older}",
        f"attempt db-manager migrate {MANAGER}",
        "make_tables",
        # ... and then as the message says.
        f"package {newer}",
        f"airflow db-manager downgrade {MANAGER} --to-revision {head} --yes",
        f"package {older}",
        "schema",
        "execute SELECT last_position FROM webdata_inbox_counter",
    )
    assert made == goes_on == "ffffffffffff"
    assert "revision ffffffffffff of a newer airflow-provider-webdata" in refused["error"]
    assert f"`airflow db-manager downgrade {MANAGER} --to-revision {head}`" in refused["error"]
    assert again == {**COMPLETE, "airflow": False, "revision": head}
    assert kept == 42
    if kind == "sqlite":
        (statement,) = home.run("execute SELECT sql FROM sqlite_master WHERE name = 'webdata_inbox_delivery'")
        assert "AUTOINCREMENT" in statement


def test_ids_are_never_given_twice_on_sqlite(make_home: MakeHome) -> None:
    """What the migrations make: a comparison of schemas does not see it."""
    _, statement = make_home("sqlite").run(
        "upgrade heads", "execute SELECT sql FROM sqlite_master WHERE name = 'webdata_inbox_delivery'"
    )
    assert "AUTOINCREMENT" in statement
