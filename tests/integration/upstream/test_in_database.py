# SPDX-License-Identifier: Apache-2.0
"""Faults that Airflow shows in its database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.upstream import Report
from tests.support.warm import Warm, airflow_environ
from webdata_sandbox.testing.migrated_database import MigratedDatabase

SCRIPT = Path(__file__).with_name("in_database.py")
NAMES = (
    "check_migrations_names_no_manager",
    "clear_or_retry",
    "dags_test_connections",
    "form_without_port",
    "killed_before_its_trigger",
    "listeners_before_commit",
    "on_kill_after_takeover",
    "resumed_before_worker_exit",
    "success_event_encodes_twice",
)


@pytest.fixture(scope="module")
def seen(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: MigratedDatabase, warm: Warm
) -> dict[str, Any]:
    """Return what the reproductions showed, by report."""
    home = tmp_path_factory.mktemp("upstream")
    migrated_database.copy_to(home)
    done = warm.run([str(SCRIPT)], env=airflow_environ(home, AIRFLOW__WEBDATA__INBOX="True"))
    line = next((line for line in done.stdout.splitlines() if line.startswith("SEEN ")), None)
    assert line, done.stdout[-2000:] + done.stderr[-4000:]
    found: dict[str, Any] = json.loads(line.removeprefix("SEEN "))
    assert set(found) == set(NAMES)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_it_is_still_there(seen: dict[str, Any], name: str) -> None:
    Report(name).check(seen[name])
