# SPDX-License-Identifier: Apache-2.0
"""The example of a wait, as users copy it, in a real Airflow with a real inbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.dag_runner import connection
from tests.support.standing_check import standing_check

EXAMPLE = Path(__file__).parents[3] / "example_dags" / "webdata_wait.py"


def test_search_monitor_wait_and_branch(airflow, sandbox, inbox):
    """The first check reports all pages as new, the next one nothing, and the last one a changed page."""
    source = EXAMPLE.read_text().replace("\nwebdata_wait()\n", "\ndag = webdata_wait()\n")

    def run() -> Any:
        with standing_check(sandbox.control):
            done = airflow.run(source, AIRFLOW_CONN_WEBDATA_DEFAULT=connection(sandbox, **inbox.extra))
        assert done.run["state"] == "success", done.log[-4000:]
        assert "reported by webhook" in done.log
        return done

    first = run()
    pages = first.xcom["pages_to_watch.return_value"]
    assert len(pages) > 1
    assert sorted(first.xcom["report_changes.return_value"].splitlines()) == [f"new: {url}" for url in pages]
    assert first.state("report_nothing") == "skipped"

    second = run()
    assert second.state("report_changes") == "skipped"
    assert second.xcom["report_nothing.return_value"] == f"nothing new on {len(pages)} pages"
    assert second.xcom["keep_monitor.monitor_id"] == first.xcom["keep_monitor.monitor_id"]

    sandbox.control.set_page(pages[0], "<p>The price of coffee is 15 EUR now.</p>")
    (line,) = run().xcom["report_changes.return_value"].splitlines()
    assert line.startswith(f"changed: {pages[0]} ")

    (monitor,) = sandbox.control.state()["monitors"]
    assert monitor["webhook"]["url"].startswith(f"{inbox.url}/webdata/inbox/webdata_default/")
    assert [delivery["status"] for delivery in sandbox.control.deliveries()] == ["delivered"] * 3
