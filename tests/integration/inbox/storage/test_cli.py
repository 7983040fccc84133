# SPDX-License-Identifier: Apache-2.0
"""`airflow webdata inbox list`, `show`, `replay`, and `prune` on a separate Airflow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from airflow_provider_webdata.airflow_db.errors import TablesMissingError
from airflow_provider_webdata.inbox_server.storage.errors import OptionError
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter, NewDelivery
from airflow_provider_webdata.inbox_server.storage.refusals import Refusal
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.inbox_server.storage.tables import metadata
from tests.support.warm import Warm, airflow_environ
from webdata_sandbox.testing.migrated_database import MigratedDatabase

DRIVER = Path(__file__).with_name("airflow_driver.py")
NOW = datetime.now(timezone.utc)

COMMAND = ["airflow", "webdata", "inbox"]

Answer = tuple[Any, str]


@dataclass
class Terminal:
    warm: Warm
    env: dict[str, str]
    engine: Engine
    store: DeliveryStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = DeliveryStore(self.engine)

    def run(self, *lines: str) -> list[Answer]:
        """Return status and output of each command; a line `NAME=VALUE` sets a variable for those that follow.

        One process runs them all, which saves time.
        """
        steps = [
            ["environ", *line.split("=", 1)]
            if line.startswith(("AIRFLOW__", "COLUMNS="))
            else [*COMMAND, *line.split()]
            for line in lines
        ]
        done = self.warm.run([str(DRIVER)], env=self.env, input=json.dumps(steps))
        assert done.returncode == 0, done.stderr[-3000:]
        answers = json.loads(done.stdout.rpartition("\nANSWER ")[2])
        return [(status, output) for status, output in filter(None, answers)]

    def ids(self) -> list[int]:
        """Return the ids of all deliveries, the newest first."""
        return [delivery.id for delivery in self.store.newest(None, DeliveryFilter(), 10)]


@pytest.fixture(scope="module")
def migrated(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: MigratedDatabase, warm: Warm
) -> Iterator[Terminal]:
    home = tmp_path_factory.mktemp("airflow")
    env = airflow_environ(home)
    migrated_database.copy_to(home)
    engine = create_engine(env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    yield Terminal(warm, env, engine)
    engine.dispose()


@pytest.fixture
def terminal(migrated: Terminal) -> Terminal:
    """An inbox with deliveries 1 to 4, which are 40, 31, 20, and 0 days old."""
    metadata.drop_all(migrated.engine)
    metadata.create_all(migrated.engine)
    rows: list[tuple[str, str | None, dict[str, Any], int]] = [
        (
            "prod",
            "key-1",
            {"type": "monitor.page", "id": "check-1", "success": True, "data": {"monitorId": "m-1"}},
            40,
        ),
        (
            "prod",
            "key-2",
            {"type": "monitor.check.completed", "id": "check-1", "data": [{"monitorId": "m-1"}]},
            31,
        ),
        (
            "test",
            None,
            {
                "type": "page",
                "id": "job-2",
                "success": False,
                "data": [{"metadata": {"sourceURL": "https://a.example/?p=1"}}],
            },
            20,
        ),
        ("test", None, {"type": "[/red]odd[bold]", "note": "ünïcode"}, 0),
    ]
    migrated.store.add(
        [
            NewDelivery.from_body(conn, key, json.dumps(body).encode(), NOW - timedelta(days=days))
            for conn, key, body, days in rows
        ]
    )
    return migrated


LISTS = ("list", "list -o plain", "list -o yaml --limit 1", "list --conn-id none", "list --limit 0")


def test_list(terminal: Terminal) -> None:
    cases = {
        "": [4, 3, 2, 1],
        "--conn-id prod": [2, 1],
        "--conn-id none": [],
        "--event page": [3, 1],
        "--event crawl.page": [3],
        "--event page --event check.completed": [3, 2, 1],
        "--key key-2": [2],
        "--job-id check-1": [2, 1],
        "--monitor-id m-1 --event monitor.page": [1],
        "--page-url https://a.example/?p=1": [3],
        "--page-url https://a.example/": [],
        "--limit 2": [4, 3],
    }
    answers = terminal.run(*(f"list -o json {flags}" for flags in cases), *LISTS)
    found = [
        (status, [int(row["id"]) for row in json.loads(output)]) for status, output in answers[: len(cases)]
    ]
    assert found == [(0, ids) for ids in cases.values()]
    (_, table), (_, plain), (_, rows), (_, nothing), wrong = answers[len(cases) :]
    for words in ("monitor.check.completed", "[/red]odd[bold]", "check-1", "job-2"):
        assert words in table
        assert words in plain
    assert "None" not in table + plain
    assert "id: 4\n" in rows
    assert "key: null" in rows
    assert nothing == "No deliveries match\n"
    assert wrong == ("--limit must be 1 or more (given: 0)", "")


def test_dag_and_task(terminal: Terminal) -> None:
    """Those that a delivery names are in every format, and lead to it."""
    body = {"type": "crawl.completed", "id": "job-3", "metadata": {"dag_id": "shop", "task_id": "read"}}
    terminal.store.add([NewDelivery.from_body("prod", None, json.dumps(body).encode(), NOW)])
    rows, table, plain, one, none, wrong = terminal.run(
        "list --dag-id shop -o json",
        "list --dag-id shop",
        f"list --since {NOW.isoformat()} -o plain",
        "show 5 -o json",
        "list --dag-id another",
        "list --since yesterdays",
    )
    [row] = json.loads(rows[1])
    assert [row[name] for name in ("id", "dag_id", "task_id")] == [5, "shop", "read"]
    assert "shop.read" in table[1]
    assert [line.split()[0] for line in plain[1].splitlines()[1:]] == ["5", "4"]
    assert json.loads(one[1])["dag_id"] == "shop"
    assert none[1] == "No deliveries match\n"
    assert wrong[0].startswith("--since must be a date or time")


def test_refused_deliveries_follow_the_list(terminal: Terminal) -> None:
    terminal.store.add_refusals({Refusal("PROD", "secret wrong", "203.0.113.9"): 2})
    refused = "Refused: 2 deliveries to prod with a wrong webhook secret, from 203.0.113.9; the last one at "
    everything, its_own, others = terminal.run("list", "list -o json --conn-id prod", "list --conn-id test")
    assert refused in everything[1]
    assert f"]\n{refused}" in its_own[1]
    assert "Refused" not in others[1]


def test_the_list_fits_80_columns(terminal: Terminal) -> None:
    body = {"type": "batch_scrape.completed.with.a.long.name", "id": "f" * 36}
    terminal.store.add([NewDelivery.from_body("prod", None, json.dumps(body).encode(), NOW)])
    [(_, table)] = terminal.run("COLUMNS=80", "list")
    names, rule, *rows = table.splitlines()
    assert [name.strip() for name in names.split("|")] == ["id", "time (UTC)", "event", "task", "job"]
    assert len(rows) == 5
    assert [line for line in (names, rule, *rows) if len(line) > 80] == []
    assert rows[0].rstrip().endswith("…")


def test_show(terminal: Terminal) -> None:
    one, table, other, missing, odd = terminal.run(
        "show 1 -o json", "show 1", "show 3 -o yaml", "show 9", "show 4"
    )
    found = json.loads(one[1])
    assert found["body"] == {
        "type": "monitor.page",
        "id": "check-1",
        "success": True,
        "data": {"monitorId": "m-1"},
    }
    assert (found["id"], found["conn_id"], found["key"], found["success"]) == (1, "prod", "key-1", True)
    assert '"monitorId": "m-1"' in table[1]
    assert "\nkey          key-1\n" in table[1]
    assert "None" not in table[1]
    assert "success: false" in other[1]
    assert missing == ("Delivery 9 does not exist. `airflow webdata inbox list` shows the deliveries", "")
    assert "[/red]odd[bold]" in odd[1]


def test_replay(terminal: Terminal) -> None:
    cursor = terminal.store.end()
    done, missing = terminal.run("replay 2 1", "replay 3 77")
    assert done == (0, "Replayed delivery 2 as 5\nReplayed delivery 1 as 6\n")
    assert missing == ("the inbox has no delivery 77; no delivery was replayed", "")
    again = terminal.store.read("prod", DeliveryFilter(received_after=NOW), cursor, 10).deliveries
    assert [(d.id, d.replay_of, d.key) for d in again] == [(5, 2, "key-2"), (6, 1, "key-1")]


# flags, in this order; output, and the deliveries that remain
PRUNES = [
    ("--dry-run", "2 deliveries received before", [4, 3, 2, 1]),
    ("--older-than 0m --yes --dry-run", "4 deliveries received before", [4, 3, 2, 1]),
    ("--older-than 480h --dry-run", "3 deliveries received before", [4, 3, 2, 1]),
    ("--older-than 400d --yes", "0 deliveries received before", [4, 3, 2, 1]),
    ("--older-than 35d --yes", "Deleted 1 delivery", [4, 3, 2]),
    ("--yes", "Deleted 1 delivery", [4, 3]),
    ("--older-than 10000m -y", "Deleted 1 delivery", [4]),
]


def test_prune(terminal: Terminal) -> None:
    answers = terminal.run(*(line for flags, *_ in PRUNES for line in (f"prune {flags}", "list -o json")))
    for (flags, says, left), (status, output), (_, listed) in zip(
        PRUNES, answers[::2], answers[1::2], strict=True
    ):
        assert (flags, status) == (flags, 0)
        assert output.startswith(says), (flags, output)
        assert [int(row["id"]) for row in json.loads(listed)] == left, flags


def test_prune_asks_first(terminal: Terminal) -> None:
    argv = ["-m", "airflow", "webdata", "inbox", "prune"]
    process = terminal.warm.run(argv, env=terminal.env, input="n\n")
    assert "Delete 2 deliveries received before" in process.stdout
    assert process.returncode != 0
    assert terminal.ids() == [4, 3, 2, 1]


AGES = ["5", "5x", "-5d", "1.5d", "d", "99999999999999999d", "400000d"]


def test_prune_by_configuration_and_invalid_ages(terminal: Terminal) -> None:
    days = "AIRFLOW__WEBDATA__INBOX_RETENTION_DAYS"
    settings = ["0", "-1", "a month", "19.5"]
    answers = terminal.run(
        *(f"prune --yes --older-than={age}" for age in AGES),
        *(line for setting in settings for line in (f"{days}={setting}", "prune --yes")),
    )
    for age, (status, _) in zip(AGES, answers, strict=False):
        assert "--older-than" in status
        assert repr(age) in status
    kept, negative, text, done = answers[len(AGES) :]
    assert "keeps all deliveries; set --older-than" in kept[0]
    for setting, (status, _) in (("-1", negative), ("a month", text)):
        rule = f"[webdata] inbox_retention_days must be a number, 0 or more (given: {setting!r})"
        assert status == str(OptionError(rule))
    # Which are all that the invalid commands left.
    assert done == (0, "Deleted 3 deliveries\n")
    assert terminal.ids() == [4]


def test_no_tables(terminal: Terminal) -> None:
    metadata.drop_all(terminal.engine)
    for status, _ in terminal.run("list", "show 1", "replay 1", "prune --yes"):
        assert status == f"The inbox is unavailable: {TablesMissingError()}"
        assert "Run `airflow db migrate`, or set `inbox_create_tables = True`" in status
