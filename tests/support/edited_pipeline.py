# SPDX-License-Identifier: Apache-2.0
"""A pipeline over nights while its author edits it: a task with `changes`, its load, and the record of their states."""

from __future__ import annotations

import copy
import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG

from airflow_provider_webdata.hooks.environment import environment
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.support import direct
from tests.support.direct import StateStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.support.direct import Outcome
    from webdata_sandbox.control.client import SandboxControl

HOME = "https://corner.example/"
OTHER = "https://other.example/"
THIRD = "https://third.example/"
_WAITING: dict[str, Any] = {"deferrable": False, "poll_interval": 1}
_OF_A_FETCH = frozenset(
    {"webdata_version", "scrape_id", "cache_state", "cached_at", "proxy_used", "page_credits_used"}
)
"""Columns that differ between two fetches of the same page."""
_STATEMENTS = re.compile(r"[Rr]un: (.+?)(?:\.?$|; or )", re.MULTILINE)
_COPIED = re.compile(r"from <environment>/(\S+) to <environment>/(\S+)\)")


class Site:
    """The sites of the pipeline."""

    def __init__(self, control: SandboxControl, sites: Sequence[str]) -> None:
        self._control, self._sites = control, sites
        self._night = 0
        for site in sites:
            for name in ("a", "b", "c"):
                self._show(site, name, f"first {name}", 1)
            self._link(site, ["a", "b", "c"])

    def change(self, *, deletes: bool = True) -> None:
        """Change one page, add one, and delete one: first an old page, then the page that was added before."""
        self._night += 1
        night = self._night
        for site in self._sites:
            self._show(site, "a", f"as of night {night}", night)
            self._show(site, f"n{night}", f"new in night {night}", night)
            if deletes:
                self._control.delete_page(site + ("b" if night == 1 else f"n{night - 1}"))
            existing = {page["url"].removeprefix(site) for page in self._control.pages()}
            self._link(site, ["a", "b", "c", *(name for name in sorted(existing) if name[:1] == "n")])

    def _show(self, site: str, name: str, text: str, price: int) -> None:
        html = f"<nav>menu</nav><main><p>{text}</p><a href='/{name}#{price}'>here</a></main>"
        data = {"price": price, "stock": 10 * price}
        self._control.set_page(site + name, html, title=f"Title of {name} at {price}", json=data)

    def _link(self, site: str, names: list[str]) -> None:
        # A link to a page that does not exist is a failed page of each run.
        links = "".join(f'<a href="/{name}">{name}</a> ' for name in (*names, "dead"))
        self._control.set_page(site, f"<main>{links}</main>", title="Home", json={"price": 0, "stock": 0})


@dataclass
class Setup:
    """What the DAG file says.

    :param sites: the URLs over which the crawl is mapped; None: it crawls `HOME`.
    :param is_load_mapped: whether the load is mapped over the results of the crawl.
    """

    dag_id: str = "d"
    task_id: str = "crawl"
    sites: list[str] | None = None
    is_load_mapped: bool = False
    has_changes: bool = True
    crawl: dict[str, Any] = field(default_factory=dict)
    scrape: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    load: dict[str, Any] = field(default_factory=dict)
    folder: str = "results"
    name: str = "*.jsonl"
    state: str = "state"
    table: str = "pages"


@dataclass
class Run:
    """A DAG run.

    :ivar results: the return values of the crawl's instances, once all have succeeded.
    :ivar incomplete: their XComs `incomplete`.
    """

    day: datetime
    results: list[dict[str, Any]] = field(default_factory=list)
    incomplete: list[Any] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)


class Pipeline:
    """The tasks of a `Setup`, run as Airflow would.

    :param home: a folder for files, state, and the database of the connection `warehouse`.
    :param place: where in `home` the state and the files are; a full reload has a place of its own.
    :ivar said: what refused tasks said, in order.
    """

    def __init__(
        self, control: SandboxControl, home: Path, setup: Setup, site: Site, place: str = ""
    ) -> None:
        self.setup, self.site = setup, site
        self.home = home
        self.said: list[str] = []
        self.way_out: Callable[[Pipeline, str], None] | None = None
        self._control = control
        self._place = home / place
        self._states: dict[str, dict[str, str | None] | None] = {}

    def night(self, run: Run) -> None:
        """Run the crawl, and then the load."""
        self.crawl(run)
        self.load(run)

    def crawl(self, run: Run, *, alone: bool = False) -> None:
        """Run the crawl; if it is refused, take the way out of the message and clear it.

        :param alone: whether the tasks downstream keep their states.
        """
        for outcome in self._until_accepted(lambda: self.attempt(run, alone=alone)):
            assert outcome.state in ("success", "skipped"), outcome.error

    def attempt(self, run: Run, *, alone: bool = False) -> Outcome:
        """Run all instances of the crawl once, and return the first one that failed, else the last one."""
        run_id = direct.run_id_of(run.day)
        crawl, load = self._tasks()
        instances = (
            [("", -1)] if self.setup.sites is None else [*zip(self.setup.sites, range(9), strict=False)]
        )
        names = [f"load_{index}" for _, index in instances] if self.setup.is_load_mapped else ["load"]
        if not alone:
            self._states[run_id] = dict.fromkeys(names)
        run.outcomes = []
        for site, index in instances:
            task = crawl if index < 0 else crawl.unmap({"url": site})
            before = len(self._control.jobs("crawl"))
            outcome = direct.run(task, StateStore(), day=run.day, states=self._states, map_index=index)
            self._check_billed(outcome, self._control.jobs("crawl")[before:])
            run.outcomes.append(outcome)
        failed = [one for one in run.outcomes if one.state == "failed"]
        published = [] if failed else [one for one in run.outcomes if one.state == "success"]
        if len(published) < len(run.outcomes) and load.trigger_rule == "all_success":
            # Airflow skips a task if one of the tasks, or instances, upstream was skipped.
            published = []
        run.results = [one.value for one in published]
        run.incomplete = [one.xcom.get("incomplete") for one in published]
        return (failed or run.outcomes)[0]

    def load(self, run: Run) -> None:
        """Run the load, unless Airflow skips it; if it is refused, execute the message's statement, and clear it."""
        states = self._states_of(run)
        if not run.results:
            states.update(dict.fromkeys(states, "skipped"))
            return
        instances = [(-1, run.results)]
        if self.setup.is_load_mapped:
            instances = [(index, [one]) for index, one in enumerate(run.results)]
        for index, results in instances:

            def attempt(index: int = index, results: Any = results) -> Outcome:
                before = self.rows(all_rows=True)
                _, load = self._tasks()
                task: Any = load.unmap({"path": results[0]}) if index >= 0 else copy.copy(load)
                if index < 0:
                    # As Airflow renders the XComs.
                    task.path = results if self.setup.sites is not None else results[0]
                earlier = {"return_value": run.results, "incomplete": run.incomplete}
                outcome = direct.run(task, StateStore(), day=run.day, earlier=earlier, map_index=index)
                assert outcome.state == "success" or self.rows(all_rows=True) == before
                return outcome

            for outcome in self._until_accepted(attempt):
                assert outcome.state == "success", outcome.error
            states["load" if index < 0 else f"load_{index}"] = "success"

    def fail_load(self, run: Run) -> None:
        """Let the load fail before it connects to the database."""
        states = self._states_of(run)
        states.update(dict.fromkeys(states, "failed"))

    def delete_run(self, run: Run) -> None:
        """Delete a DAG run in Airflow."""
        self._states[direct.run_id_of(run.day)] = None

    def forget(self, site: str) -> None:
        """Delete the rows of a site that is no longer in the list, and its state."""
        with closing(sqlite3.connect(self.home / "pages.db")) as connection:
            query = f"SELECT webdata_source FROM {self.setup.table} WHERE page = ?"
            for [source] in connection.execute(query, (site,)).fetchall():
                connection.execute(f"DELETE FROM {self.setup.table} WHERE webdata_source = ?", (source,))
                shutil.rmtree(self._place / self.setup.state / environment() / source)
            connection.commit()

    def rows(self, *, all_rows: bool = False) -> dict[str, dict[str, Any]]:
        """Return the rows of the table by page, without removed ones."""
        with closing(sqlite3.connect(self.home / "pages.db")) as connection:
            connection.row_factory = sqlite3.Row
            if not connection.execute(
                "SELECT 1 FROM sqlite_master WHERE name = ?", (self.setup.table,)
            ).fetchone():
                return {}
            found = [dict(row) for row in connection.execute(f'SELECT * FROM "{self.setup.table}"')]
        current = [row for row in found if all_rows or row.get("webdata_removed_at") is None]
        rows = {row["page"] if "page" in row else row["source_url"]: row for row in current}
        assert len(rows) == len(current)
        return rows

    def emitted(self, run: Run) -> int:
        """Return the number of pages that a run emitted, without removed ones."""
        counts = [one["changes"] for one in run.results]
        return sum(one["new"] + one["changed"] + one["emitted_again"] for one in counts)

    def reload(self, run: Run) -> dict[str, dict[str, Any]]:
        """Return the rows of a full reload: the same pipeline with a fresh state, into a fresh table."""
        setup = copy.deepcopy(self.setup)
        setup.table = "reloaded"
        with closing(sqlite3.connect(self.home / "pages.db")) as connection:
            connection.execute("DROP TABLE IF EXISTS reloaded")
        fresh = Pipeline(self._control, self.home, setup, self.site, "reload")
        fresh.night(Run(run.day))
        return fresh.rows()

    def check(self, run: Run) -> None:
        """Check that the table equals a full reload."""
        expected, rows = self.reload(run), self.rows()
        assert sorted(rows) == sorted(expected)
        for page, values in expected.items():
            own = {name: value for name, value in values.items() if name not in _OF_A_FETCH}
            # A format that is no longer requested keeps its values.
            own = {name: value for name, value in own.items() if value is not None}
            assert {name: rows[page][name] for name in own} == own

    def _states_of(self, run: Run) -> dict[str, str | None]:
        states = self._states[direct.run_id_of(run.day)]
        assert states is not None, "the run is deleted"
        return states

    def _until_accepted(self, attempt: Callable[[], Outcome]) -> Iterator[Outcome]:
        for _ in range(3):
            outcome = attempt()
            if outcome.state != "failed":
                break
            text = str(outcome.error)
            self.said.append(text)
            if (copied := _COPIED.search(text)) is not None:
                former, current = (
                    self._place / self.setup.state / environment() / name for name in copied.groups()
                )
                shutil.copytree(former, current, dirs_exist_ok=True)
            if (found := _STATEMENTS.search(text)) is not None:
                self._execute(found[1])
            elif self.way_out is not None:
                self.way_out(self, text)
            else:
                break
        yield outcome

    def _execute(self, statements: str) -> None:
        with closing(sqlite3.connect(self.home / "pages.db")) as connection:
            try:
                connection.executescript(statements)
            except sqlite3.Error as error:
                raise AssertionError(self.said[-1]) from error

    def _check_billed(self, outcome: Outcome, jobs: list[Any]) -> None:
        """Check that each billed page is accounted for, and that a refused task has none."""
        fetched = sum(job["taken"] for job in jobs)
        counts: Mapping[str, int] = outcome.xcom.get("changes", {})
        told = sum(counts[name] for name in ("new", "changed", "same", "failed")) if counts else 0
        if counts or outcome.state == "failed":
            assert fetched == told, outcome.error or outcome.xcom

    def _tasks(self) -> tuple[Any, Any]:
        setup = self.setup
        changes = {"removed_after": timedelta(days=1), **setup.changes}
        crawl = {
            "task_id": setup.task_id,
            "scrape_options": {"max_age": 0, **setup.scrape},
            "changes": Changes(str(self._place / setup.state), **changes) if setup.has_changes else None,
            "save_to": str(self._place / setup.folder / setup.name),
            **_WAITING,
            **setup.crawl,
        }
        load = {"task_id": "load", "table": setup.table, "conn_id": "warehouse", **setup.load}
        with DAG(setup.dag_id, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)) as dag:
            if setup.sites is None:
                pages: Any = WebDataCrawlOperator(url=HOME, **crawl)
            else:
                pages = WebDataCrawlOperator.partial(**crawl).expand(url=setup.sites)
            if setup.is_load_mapped:
                WebDataToTableOperator.partial(**load).expand(path=pages.output)
            else:
                WebDataToTableOperator(path=pages.output, **load)
        return dag.get_task(setup.task_id), dag.get_task("load")


def connection_of(home: Path) -> str:
    """Create the database, and return its connection."""
    path = home / "pages.db"
    sqlite3.connect(path).close()
    return json.dumps({"conn_type": "sqlite", "host": str(path)})
