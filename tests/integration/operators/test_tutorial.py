# SPDX-License-Identifier: Apache-2.0
"""The tutorial: its page shows the code of its steps, and each step runs and finds something, on a real Airflow."""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import textwrap
import threading
import time
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from tests.support.dag_runner import Airflow, Outcome, connection
from tests.support.inbox_server import InboxServer
from tests.support.snippets import TUTORIAL, snippets
from tests.support.standing_check import standing_check
from tests.support.waiting import today
from webdata_sandbox.server import SandboxServer

STEPS = [TUTORIAL.with_suffix("") / f"step_{number}.py" for number in range(1, 7)]


def test_the_page_shows_what_is_new_in_each_step() -> None:
    text = TUTORIAL.read_text()
    headings = [text.count("\n", 0, found.start()) for found in re.finditer(r"^## \d\. ", text, re.MULTILINE)]
    assert len(headings) == len(STEPS)
    shown: dict[int, list[str]] = {number: [] for number in range(1, 7)}
    for block in snippets(TUTORIAL):
        shown[sum(block.line > line for line in headings)].append(block.code)
    before = ""
    for (number, blocks), step in zip(shown.items(), STEPS, strict=True):
        code = step.read_text()
        assert blocks, f"step {number} shows nothing"
        for block in blocks:
            forms = [textwrap.indent(block, " " * depth) for depth in (0, 4, 8)]
            assert any(form in code for form in forms), f"step {number} has no such lines:\n{block}"
            assert not any(form in before for form in forms), (
                f"step {number} has these lines already:\n{block}"
            )
        before = code


@contextlib.contextmanager
def messages() -> Iterator[tuple[str, list[str]]]:
    """The address of a server that accepts messages as a chat does, and the messages."""
    found: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", found
        server.shutdown()


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    return tmp_path / "tables"


@pytest.fixture
def this_day() -> date:
    """Today, for as long as the steps run; the tutorial's monitor runs no scheduled check meanwhile."""
    now = datetime.now(timezone.utc)
    scheduled = now.replace(hour=5, minute=0, second=5)
    if timedelta(0) < scheduled - now < timedelta(seconds=300):
        time.sleep((scheduled - now).total_seconds())
    return today(300)


@pytest.mark.timeout(600)
@pytest.mark.says("the task's XCom is the list of web results", "the log says `reported by webhook`")
def test_each_step_runs(
    this_day: date, airflow: Airflow, sandbox: SandboxServer, inbox: InboxServer, tables: Path
) -> None:
    """In their order, as the tutorial has them: the monitor of one step is found by the next."""
    with messages() as (alert_url, sent):
        environ = {
            "AIRFLOW_CONN_WEBDATA_DEFAULT": connection(sandbox, **inbox.extra),
            "AIRFLOW_VAR_RIVER_FOLDER": f"file://{tables}",
            "AIRFLOW_VAR_ALERT_URL": alert_url,
        }

        def run(number: int, *dates: date | None) -> Outcome:
            """By default as `airflow dags trigger` does: without logical date and data interval."""
            when = [day and f"{day}T12:00:00+00:00" for day in dates or (None,)]
            code = re.sub(
                r"^river_watch\(\)$", "dag = river_watch()", STEPS[number - 1].read_text(), flags=re.MULTILINE
            )
            return airflow.run(f"{code}\nlogical_dates = {when!r}\n", **environ)

        found = run(1)
        assert found.run["state"] == "success", found.log[-3000:]
        results = found.xcom["search.return_value"]
        assert results

        found = run(2)
        assert found.run["state"] == "success", found.log[-3000:]
        assert pages_in(tables / f"{this_day}.parquet") == sorted(result["url"] for result in results)

        found = run(3)
        assert found.run["state"] == "success", found.log[-3000:]
        [monitor] = sandbox.control.state()["monitors"]
        assert monitor["name"] == "River watch"
        assert "Created monitor " in found.log

        with standing_check(sandbox.control):
            found = run(4)
        assert found.run["state"] == "success", found.log[-3000:]
        assert "reported by webhook" in found.log
        assert [page["status"] for page in found.xcom["check.return_value"]["pages"]] == ["new", "new"]
        assert [kept["id"] for kept in sandbox.control.state()["monitors"]] == [monitor["id"]]

        step_5(run, sandbox, tables, this_day)

        sandbox.control.set_page(
            "https://weather.example/levels", "<p>The river rises to 7 m</p>", title="Levels"
        )
        found = run(6)
        assert found.run["state"] == "success", found.log[-3000:]
        assert [text.partition(" ")[0] for text in sent] == ["changed:"]
        assert sent[0].startswith("changed: https://weather.example/levels ")

        sandbox.control.configure(credits=5)
        found = run(6)
        assert found.run["state"] == "failed"
        assert found.state("search") == "upstream_failed"
        assert sent[1].startswith("river_watch.enough_credits failed: ")
        assert len(sent) == 2


def step_5(run: Any, sandbox: SandboxServer, tables: Path, this_day: date) -> None:
    """A run is for the day before it; one without a logical date for its own day."""
    for file in tables.iterdir():
        file.unlink()
    sandbox.control.clear_requests()
    earlier = this_day - timedelta(days=4)

    found = run(5, earlier + timedelta(days=1), None)

    assert [one["state"] for one in found.runs] == ["success"] * 2, found.log[-3000:]
    asked = [request["body"]["tbs"] for request in sandbox.control.requests("/v2/search", "POST")]
    assert asked == [f"cdr:1,cd_min:{day:%m/%d/%Y},cd_max:{day:%m/%d/%Y}" for day in (earlier, this_day)]
    # A page that was published four days before the sandbox was started.
    assert pages_in(tables / f"{earlier}.parquet") == ["https://river.example/market"]


def pages_in(file: Path) -> list[str]:
    return sorted(parquet.read_table(file, columns=["source_url"])["source_url"].to_pylist())
