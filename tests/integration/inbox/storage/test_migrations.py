# SPDX-License-Identifier: Apache-2.0
"""Migrations of the inbox's tables, up and down, by Airflow's commands and by the inbox itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata import __version__
from airflow_provider_webdata.inbox_server.db_manager import InboxDBManager
from tests.support.postgres import Postgres
from tests.support.warm import Warm, airflow_environ
from webdata_sandbox.testing.migrated_database import MigratedDatabase

DRIVER = Path(__file__).with_name("airflow_driver.py")
MANAGER = "airflow_provider_webdata.inbox_server.db_manager.InboxDBManager"
TABLES = [
    "alembic_version_webdata",
    "webdata_asset_event",
    "webdata_inbox_counter",
    "webdata_inbox_delivery",
    "webdata_inbox_refusal",
]


@dataclass(frozen=True)
class Home:
    """A separate Airflow."""

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


@dataclass(frozen=True)
class Homes:
    """Creates Airflow homes with an empty database."""

    folder: Path
    postgres: Callable[[], Postgres]
    warm: Warm

    def create(self, kind: str, **settings: str) -> Home:
        url = f"sqlite:///{self.folder}/airflow.db"
        if kind == "postgresql":
            url = self.postgres().create_database(f"airflow_{self.folder.name}".lower())
        env = airflow_environ(
            self.folder,
            **{
                "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url,
                "AIRFLOW__WEBDATA__INBOX": "True",
                **settings,
            },
        )
        return Home(env, self.warm)


@pytest.fixture
def homes(tmp_path: Path, request: pytest.FixtureRequest, warm: Warm) -> Homes:
    return Homes(tmp_path, lambda: request.getfixturevalue("postgres"), warm)


CREATE_TABLES = {"AIRFLOW__WEBDATA__INBOX_CREATE_TABLES": "True"}
SQLITE_TABLE = "execute SELECT sql FROM sqlite_master WHERE name = 'webdata_inbox_delivery'"
COMPLETE = {"differences": [], "tables": TABLES, "airflow": True, "complete": True}
BELOW = {"tables": ["alembic_version_webdata"], "airflow": True, "revision": None, "complete": False}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_up_and_down(homes: Homes, kind: str) -> None:
    # Airflow finds the manager by itself; only `airflow db-manager` needs its name in the configuration.
    home = homes.create(kind, AIRFLOW__DATABASE__EXTERNAL_DB_MANAGERS=MANAGER)
    statement = SQLITE_TABLE if kind == "sqlite" else "execute SELECT 1"
    _, made, _, below, _, again, table, *_, kept, _, adopted, _, anew, _, gone, printed, left = home.run(
        # Airflow's command creates the tables from the code,
        "airflow db migrate",
        "schema",
        # which are gone after the downgrade,
        f"airflow db-manager downgrade {MANAGER} --to-revision base --yes",
        "schema",
        # and the migrations create the same.
        "upgrade heads",
        "schema",
        statement,
        # Another migration takes over tables without a version, and keeps their rows.
        "execute INSERT INTO webdata_inbox_counter (id, last_position) VALUES (1, 42)",
        "execute DROP TABLE alembic_version_webdata",
        "airflow db migrate",
        "execute SELECT last_position FROM webdata_inbox_counter",
        "airflow db migrate",
        "schema",
        # A reset creates the tables anew. Without the migration that follows it, it leaves none.
        "airflow db reset --yes",
        "schema",
        "airflow db reset --yes --skip-init",
        "schema",
        # The statements can be reviewed first. SQLite's driver does not run several at a time.
        "sql" if kind == "sqlite" else "run_sql",
        "schema",
    )
    head = made["revision"]
    assert head
    assert made == {**COMPLETE, "revision": head}
    assert below == {**below, **BELOW}
    assert again == made
    # Without it, SQLite would assign the id of a deleted delivery again. Comparing schemas does not notice it.
    assert kind != "sqlite" or "AUTOINCREMENT" in table
    assert kept == 42
    assert adopted == made
    assert anew == made
    assert gone["tables"] == []
    for words in (f"CREATE TABLE {table}" for table in TABLES[1:]):
        assert words in printed
        assert words.replace("CREATE TABLE", "DROP TABLE IF EXISTS") in printed
    # Alembic's own table remains, empty.
    assert left["tables"] == ([] if kind == "sqlite" else ["alembic_version_webdata"])


def test_a_separate_schema(homes: Homes) -> None:
    home = homes.create("postgresql", AIRFLOW__DATABASE__SQL_ALCHEMY_SCHEMA="airflow_data")
    # Airflow's own tables would be in this schema too; this test creates the inbox's alone.
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
def test_processes_of_the_inbox_create_its_tables_concurrently(homes: Homes, kind: str) -> None:
    home = homes.create(kind, **CREATE_TABLES)
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: home.run("create_tables", "create_tables", "schema"), range(3)))
    for first, second, found in answers:
        assert first == second == found["revision"] is not None
        assert found == {**COMPLETE, "airflow": False, "revision": first}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_tables_that_a_dump_or_a_killed_migration_left_out(homes: Homes, kind: str) -> None:
    home = homes.create(kind, AIRFLOW__DATABASE__EXTERNAL_DB_MANAGERS=MANAGER)
    migrate = f"airflow db-manager migrate {MANAGER}"
    gone = ["execute DROP TABLE webdata_inbox_delivery", "execute DROP INDEX idx_webdata_asset_event_state"]
    found = home.run(
        "upgrade heads",
        "execute INSERT INTO webdata_inbox_counter (id, last_position) VALUES (1, 42)",
        # A dump has the revision, but not all tables.
        *gone,
        "schema",
        migrate,
        "schema",
        *gone,
        "create_tables",
        "schema",
        # A migration was killed before it wrote the revision.
        *gone,
        "execute DROP TABLE alembic_version_webdata",
        migrate,
        "schema",
        "execute SELECT last_position FROM webdata_inbox_counter",
        # A downgrade was killed before it deleted the revision.
        "execute DROP TABLE webdata_asset_event",
        f"airflow db-manager downgrade {MANAGER} --to-revision base --yes",
        "schema",
    )
    before, migrated, created, adopted, below = (one for one in found if isinstance(one, dict))
    assert not before["complete"]
    whole = {**COMPLETE, "airflow": False, "revision": InboxDBManager.revision_heads_map[__version__]}
    assert migrated == created == adopted == whole
    assert 42 in found
    assert below == {**below, **BELOW, "airflow": False}


def test_check_migrations_names_missing_tables(
    homes: Homes, migrated_database: MigratedDatabase, tmp_path: Path
) -> None:
    migrated_database.copy_to(tmp_path)
    check = "attempt db check-migrations --migration-wait-timeout 1"
    there, _, missing, _, not_awaited = homes.create("sqlite").run(
        check,
        "execute DROP TABLE alembic_version_webdata",
        check,
        *(f"environ {name} {value}" for name, value in CREATE_TABLES.items()),
        check,
    )
    assert there == {"error": None, "warnings": []}
    # Airflow names its own revisions alone, which are the same on both sides.
    assert "still unapplied migrations" in missing["error"]
    for fix in ("`airflow db migrate`", "`inbox_create_tables = True`"):
        assert fix in missing["warnings"][0]
    assert not_awaited == {"error": None, "warnings": []}


NEWER = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "ffffffffffff", "{head}", None, None


def change():
    # As in `script.py.mako`; without it SQLite's ids would start again.
    return op.batch_alter_table("webdata_inbox_delivery", table_kwargs={{"sqlite_autoincrement": True}})


def upgrade():
    with change() as batch:
        batch.add_column(sa.Column("note", sa.String(10)))


def downgrade():
    with change() as batch:
        batch.drop_column("note")
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_back_to_an_older_version_of_the_package(homes: Homes, tmp_path: Path, kind: str) -> None:
    older = Path(InboxDBManager.migration_dir)
    newer = tmp_path / "newer"
    shutil.copytree(older, newer, ignore=shutil.ignore_patterns("__pycache__"))
    head = InboxDBManager.revision_heads_map[__version__]
    (newer / "versions" / "0002_newer.py").write_text(NEWER.format(head=head))
    home = homes.create(kind, AIRFLOW__DATABASE__EXTERNAL_DB_MANAGERS=MANAGER, **CREATE_TABLES)
    _, _, _, _, made, _, refused, served, _, _, _, again, kept, table = home.run(
        "upgrade heads",
        "execute INSERT INTO webdata_inbox_counter (id, last_position) VALUES (1, 42)",
        f"package {newer}",
        "upgrade heads",
        "execute SELECT version_num FROM alembic_version_webdata",
        # The older version is installed without a downgrade,
        f"package {older}",
        f"attempt db-manager migrate {MANAGER}",
        "create_tables",
        # and then as the message says.
        f"package {newer}",
        f"airflow db-manager downgrade {MANAGER} --to-revision {head} --yes",
        f"package {older}",
        "schema",
        "execute SELECT last_position FROM webdata_inbox_counter",
        SQLITE_TABLE if kind == "sqlite" else "execute SELECT 1",
    )
    assert made == served == "ffffffffffff"
    assert "revision ffffffffffff of a newer airflow-provider-webdata" in refused["error"]
    assert f"`airflow db-manager downgrade {MANAGER} --to-revision {head}`" in refused["error"]
    assert again == {**COMPLETE, "airflow": False, "revision": head}
    assert kept == 42
    assert kind != "sqlite" or "AUTOINCREMENT" in table
