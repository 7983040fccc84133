# SPDX-License-Identifier: Apache-2.0
"""Commands without a database, without its tables, and without a terminal end with a reason."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest
from airflow import settings
from sqlalchemy import create_engine
from sqlalchemy.orm import scoped_session, sessionmaker

from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter, NewDelivery
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from tests.support.cli import run_command
from webdata_sandbox.testing.migrated_database import MigratedDatabase

INIT = ["init", "--no-example", "--base-url", "http://127.0.0.1:1", "--webhook-url", "", "--skip-test"]
COMMANDS = [
    INIT,
    ["costs", "--days", "3"],
    ["inbox", "list"],
    ["inbox", "show", "3"],
    ["inbox", "replay", "3"],
    ["inbox", "prune", "--yes"],
]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    return partial(run_command, capsys)


@pytest.fixture
def use_database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], DeliveryStore]]:
    engines = []

    def use(path: Path) -> DeliveryStore:
        engines.append(engine := create_engine(f"sqlite:///{path}"))
        monkeypatch.setattr(settings, "engine", engine)
        monkeypatch.setattr(settings, "Session", scoped_session(sessionmaker(engine)))
        return DeliveryStore(engine)

    yield use
    for engine in engines:
        engine.dispose()


def test_no_database(
    run: Callable[..., str], use_database: Callable[[Path], DeliveryStore], tmp_path: Path
) -> None:
    backend = "MetastoreBackend fail"
    for path, reasons in (
        (tmp_path / "missing" / "airflow.db", ("the database cannot be reached", "database failed", backend)),
        (tmp_path / "empty.db", ("un `airflow db migrate`", backend)),
    ):
        use_database(path)
        for argv in COMMANDS:
            told = run(*argv)
            assert any(reason in told for reason in reasons), (argv, told)


def test_no_answer(
    run: Callable[..., str],
    use_database: Callable[[Path], DeliveryStore],
    migrated_database: MigratedDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The standard input is empty, or closed."""
    migrated_database.copy_to(tmp_path)
    store = use_database(tmp_path / "airflow.db")
    old = datetime.now(timezone.utc) - timedelta(days=60)
    store.add([NewDelivery.from_body("prod", None, b"{}", old)])
    monkeypatch.delenv("WEBDATA_API_KEY", raising=False)
    for stdin in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stdin", stdin)
        assert "specify --yes" in run("inbox", "prune", "--older-than", "30d")
        assert "specify --base-url" in run("init", "--no-example")
        assert "the API key is missing" in run(
            "init", "--no-example", "--base-url", "https://api.firecrawl.dev"
        )
    monkeypatch.setattr("airflow_provider_webdata.commands.inbox._MAX_COUNTED", 1)
    counted = run("inbox", "prune", "--older-than", "30d", "--dry-run")
    assert counted.startswith("1 or more deliveries received before")
    assert len(store.newest(None, DeliveryFilter(), 2)) == 1
