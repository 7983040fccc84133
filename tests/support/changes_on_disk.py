# SPDX-License-Identifier: Apache-2.0
"""The player's world on the real step, snapshots in a folder, results files, and a table in SQLite."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.results.changes.snapshots import SnapshotFolder
from airflow_provider_webdata.results.columns import CHANGES, columns_of
from airflow_provider_webdata.results.files.output import OutputFile
from airflow_provider_webdata.results.tables.layout import TableName
from airflow_provider_webdata.results.tables.load import Source, load_files
from airflow_provider_webdata.results.tables.sqlite import SQLite
from airflow_provider_webdata.runs.publishing.detect_changes import DetectChanges
from airflow_provider_webdata.runs.publishing.step import Results
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.support.changes_player import REMOVED_AFTER, How, World

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_webdata.results.changes.pages import Page

SITE = "https://site.example/"
_BEGINNING = datetime(2026, 1, 1, tzinfo=timezone.utc)
_COLUMNS = (*columns_of("document"), *CHANGES)


class DiskWorld(World):
    """A world in a folder.

    :param home: an empty folder.
    """

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._home = home
        self._written: dict[int, DetectChanges] = {}
        with DAG("shop", schedule=None):
            path = str(home / "*.jsonl")
            crawl = WebDataCrawlOperator(
                task_id="crawl", url=SITE, changes=str(home / "state"), save_to=path, attach_webhook=False
            )
            output: Any = crawl.output
            WebDataToTableOperator(task_id="load", path=output, table="pages", conn_id="warehouse")
        self._crawl = crawl

    def rows(self) -> dict[str, str]:
        with sqlite3.connect(self._home / "pages.db") as connection:
            found = connection.execute(
                "SELECT page, markdown FROM pages WHERE webdata_removed_at IS NULL"
            ).fetchall()
        return {page.removeprefix(SITE): text for page, text in found}

    def begin(self, run: int, how: How, *, alone: bool = False, where: str = "here") -> None:
        if where == "here" and not alone:
            self.loads.pop(run, None)
            self.being_read.pop(run, None)
        self.night += 1
        step = self._step(run, how, where)
        items, known = self._read(step, how)
        summary = {"status": "completed" if how.is_complete else "cancelled"}
        emitted = [*step.transform(Results(items, "document", summary, known=known, site=SITE)).items]
        self.emitted = len([item for item in emitted if item["change"] != "failed"])
        draft = self._home / f"{where}-{run}.draft.jsonl"
        with OutputFile(str(draft), _COLUMNS) as file:
            file.write(emitted)
        self.steps[run] = [("file", draft), ("snapshot", step), ("delete", ()), ("success", None)]
        if where != "here":
            self.steps[run] = self.steps[run][1:3]

    def step(self, run: int) -> None:
        what, value = self.steps[run].pop(0)
        if what == "file":
            value.replace(self._file(run))
            self.files[run] = self._file(run)
        elif what == "snapshot":
            value.written()

    def load(self, run: int, *, applies: bool, succeeds: bool) -> None:
        path = self.being_read.pop(run, None) or self._file(run)
        if applies:
            connection = sqlite3.connect(self._home / "pages.db")
            source = Source([str(path)], TableName(None, "pages"))
            load_files(SQLite(connection), source, self._crawl.log)
        self.loads[run] = "success" if succeeds else "failed"

    def _file(self, run: int) -> Path:
        return self._home / f"{run}.jsonl"

    def do(self, event: Any) -> None:
        if event[0] == "read":
            # The load has read the file before a later attempt replaces it.
            run = event[1]
            copy = self._home / f"{run}-{self.night}.read.jsonl"
            copy.write_bytes(self._file(run).read_bytes())
            self.loads[run], self.being_read[run] = "running", copy
        else:
            super().do(event)

    def _step(self, run: int, how: How, where: str) -> DetectChanges:
        changes = Changes(
            str(self._home / "state"),
            emit="all" if how.emits_all else "changed",
            removed_after=timedelta(days=REMOVED_AFTER),
        )
        loads = {"success": "success", "failed": "failed", "running": "running"}
        states = {number: loads[state] for number, state in self.loads.items()} if where == "here" else {}

        def states_of(task_ids: list[str], run_ids: list[str], **_: Any) -> dict[str, dict[str, str]]:
            state = states.get(int(run_ids[0]), "scheduled")
            return {run_ids[0]: {"load": "success" if where != "here" else state}}

        ti = SimpleNamespace(
            task=self._crawl,
            dag_id="shop",
            task_id="crawl",
            run_id=str(run),
            map_index=-1,
            get_task_states=states_of,
        )
        dag_run = SimpleNamespace(run_after=_BEGINNING + timedelta(days=self.night))
        context: Any = {"ti": ti, "dag_run": dag_run}
        step = DetectChanges(
            changes, self._crawl, context, lambda: {"scrapeOptions": {"formats": [how.request]}}, None
        )
        if where != "here":
            # The name of an Airflow is a part of the path.
            step.folder = SnapshotFolder(f"{self._home}/state/{where}/shop/crawl")
        return step

    def _read(self, step: DetectChanges, how: How) -> tuple[list[dict[str, Any]], int]:
        """Return the items of a run, and the number of pages that it did not request."""
        listed: list[str] = []
        if how.is_incremental:
            with step.known() as state:
                known = {page.key: page for page in state.pages()}
            listed = [
                SITE + key
                for key, content in self.site.pages.items()
                if (page := known.get(SITE + key)) is not None
                and page.digest is not None
                and not state.is_open(page)
                and page.missed is None
                and page.request == step.request
                and self._is_current(page, content)
            ]
            step.record_listed(listed)
        items = []
        for key, content in self.site.pages.items():
            if (url := SITE + key) in listed:
                continue
            metadata = {"sourceURL": url, "statusCode": 503 if key in self.site.down else 200}
            items.append({"markdown": content, "metadata": metadata})
        return items, len(listed)

    def _is_current(self, page: Page, content: str) -> bool:
        # As the dates of a sitemap show.
        from airflow_provider_webdata.results.changes.content import digest

        return page.digest == digest({"markdown": content}, "content", "document")
