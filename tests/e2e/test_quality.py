# SPDX-License-Identifier: Apache-2.0
"""Results that fail their checks on a real Airflow: held back, billed once, and accepted by hand."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.run import Run
from tests.support.stack import Stack
from webdata_sandbox.control import SandboxControl

SITE = "https://checked.example/"
CHALLENGE = "<title>Just a moment...</title><p>Verifying you are human. This may take a few seconds.</p>"


@pytest.fixture
def folder(stack: Stack, tmp_path: Path) -> Path:
    database = tmp_path / "pages.db"
    sqlite3.connect(database).close()
    stack.api.add_connection({"connection_id": "checked_table", "conn_type": "sqlite", "host": str(database)})
    return tmp_path


def rows(folder: Path) -> dict[str, str]:
    with contextlib.closing(sqlite3.connect(folder / "pages.db")) as connection:
        today = "SELECT page, markdown FROM pages WHERE webdata_removed_at IS NULL"
        return dict(connection.execute(today).fetchall())


def test_results_that_fail_are_held_back_until_they_are_accepted(
    stack: Stack, start: Callable[..., Run], sandbox: SandboxControl, folder: Path
) -> None:
    conf = {"folder": str(folder)}
    pages = [SITE, *(f"{SITE}{number}" for number in range(9))]
    sandbox.set_site("checked.example", sitemap=pages)
    for url in pages:
        sandbox.set_page(url, f"<title>{url}</title><p>A kettle of steel, found at {url}.</p>")
    run = start("e2e_quality", conf)
    run.succeed()
    first = rows(folder)
    assert run.xcom("crawl", "quality")["items"] == len(first) == 10

    for url in pages[5:]:
        sandbox.delete_page(url)
    sandbox.set_page(pages[1], CHALLENGE)
    sandbox.set_site("checked.example", sitemap=pages[:5])
    sandbox.clear_requests()
    run = start("e2e_quality", conf)
    assert run.wait_until_ended() == "failed"
    task = run.task("crawl")
    log = run.log(task)
    assert (
        "2 of 4 conditions failed: drop_vs_last: expected at least 7, because the previous run had 10, got 5"
        in log
    )
    assert f"blocked: expected at most 0.1, got 0.2 (1 of 5), such as {pages[1]}" in log
    assert task["try_number"] == 1
    assert len(sandbox.requests("/v2/crawl$", "POST")) == 1
    assert run.xcom("crawl", "quality_rejected")["blocked"] == {"challenge": 1}
    assert rows(folder) == first

    path = Path(run.xcom("crawl", "path"))
    rejected = path.with_name(f"_{path.name}.rejected")
    assert f"{path} is unchanged, and the results are in {rejected}" in log
    rejected.replace(path)
    stack.api.call(
        "PATCH", f"/dags/e2e_quality/dagRuns/{run.id}/taskInstances/crawl", json={"new_state": "success"}
    )
    run.end("load")
    accepted = rows(folder)
    assert accepted.keys() == first.keys(), "a page is removed by age"
    assert {url for url in first if accepted[url] != first[url]} == {pages[1]}
    body = {"dry_run": False, "dag_run_id": run.id, "task_ids": ["load"], "only_failed": False}
    stack.api.call("POST", "/dags/e2e_quality/clearTaskInstances", json=body | {"reset_dag_runs": True})
    run.succeed()
    assert rows(folder) == accepted

    # Later runs emit the page again, also as it was before.
    sandbox.set_page(pages[1], f"<title>{pages[1]}</title><p>A kettle of steel, found at {pages[1]}.</p>")
    for url in pages[5:]:
        sandbox.set_page(url, f"<title>{url}</title><p>A kettle of steel, found at {url}.</p>")
    sandbox.set_site("checked.example", sitemap=pages)
    run = start("e2e_quality", conf)
    run.succeed()
    assert rows(folder) == first
