# SPDX-License-Identifier: Apache-2.0
"""Loading of results files into a database table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.coded_errors import ArgumentError, CodedError
from airflow_provider_webdata.common.logs import task_logger
from airflow_provider_webdata.common.xcom_keys import INCOMPLETE
from airflow_provider_webdata.hooks.connection import ConnectionMissingError
from airflow_provider_webdata.results.assets import annotate_outlets
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.paths import warn_if_relative
from airflow_provider_webdata.results.lineage import load_lineage
from airflow_provider_webdata.results.tables.errors import REPLACING_INSTANCES
from airflow_provider_webdata.results.tables.layout import STAMPS, table_name
from airflow_provider_webdata.results.tables.load import (
    Siblings,
    Source,
    database_of,
    dataset_of_table,
    load_files,
)
from airflow_provider_webdata.states.shortfalls import Shortfall, shortfalls, xcom_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.results.tables.database import Loaded
    from airflow_provider_webdata.results.tables.load import Tally
    from airflow_provider_webdata.states.shortfalls import ShortfallKind
    from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator


_INSTANCE = 4
"""Length of the identity of a task instance that is not an iteration of a loop."""

_ROWS_MISSING: frozenset[ShortfallKind] = frozenset(
    (
        *("pages_failed", "pages_missing", "entries_skipped", "calls_failed", "searches_failed"),
        *("searches_not_started", "over_credit_limit", "sitemaps_not_read", "pages_lost", "failures_unknown"),
    )
)
"""What a file lacks whose rows may be those of a table that it replaces."""


def connection_of(conn_id: str) -> Any:
    """Return the connection of a database.

    :raises ConnectionMissingError: it does not exist.
    """
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise ConnectionMissingError(
            f"Connection {conn_id!r} does not exist. Create it in Airflow under Admin, Connections, with the type of "
            "the database"
        ) from None


class LoadRun:
    """One attempt of a load.

    :ivar explained_error: the error whose text Airflow's exception contains.
    """

    def __init__(self, task: WebDataToTableOperator, context: Context) -> None:
        self.task = task
        self.context = context
        self.explained_error: CodedError | None = None
        self._log = task_logger(task)
        self._lineage: Callable[[], Any | None] = lambda: None

    def execute(self) -> dict[str, Any]:
        """Load the files, and return the counts.

        :raises AirflowFailException: the arguments, a file, or the table is unsuitable.
        """
        task = self.task
        try:
            task._check_values()
            if task.mode == "replace" and Attempt(self.context).is_mapped:
                raise ArgumentError(REPLACING_INSTANCES)
            table = table_name(task.table)
            files = task._paths()
            for file in files:
                warn_if_relative("path", file)
            connection = connection_of(task.conn_id)
            stamp = self._stamp() if task.mode == "append" else None
            source = Source(
                *(files, table, task.kind, task.result_schema, task.key, task.columns),
                replace=task.mode == "replace",
                stamp=stamp,
            )
            complete = self._complete_files(files) if task.mode == "replace" else ()
            loaded, tally = load_files(
                database_of(connection),
                source,
                self._log,
                create_table=task.create_table,
                add_columns=task.add_columns,
                complete=complete,
                siblings=self._siblings(),
            )
        except (ArgumentError, OutputError) as error:
            self.explained_error = error
            # A retry would have the same arguments.
            raise AirflowFailException(str(error)) from None
        except CodedError as error:
            # Airflow's log shows the texts of all causes. That of a driver's error contains the row.
            self._log.debug("Cause of the error", exc_info=error)
            raise error from None
        self._report(loaded, tally, str(table))
        self._push_shortfalls(tally)
        self._lineage = lambda: load_lineage(
            files, dataset_of_table(connection, table), loaded.rows, loaded.columns
        )
        summary = {
            "table": str(table),
            "loaded": loaded.rows,
            "removed": loaded.removed,
            "outdated": loaded.outdated,
            "duplicates": loaded.duplicates,
            "files": len(files),
            **({"failed_pages": tally.failed_pages} if tally.failed_pages else {}),
            **({"refused": tally.refused} if tally.refused else {}),
        }
        annotate_outlets(self.context, summary)
        return summary

    def _complete_files(self, files: Sequence[str]) -> set[str]:
        """Return the files of which an XCom shows that they have all pages.

        :raises ArgumentError: a file is incomplete.
        """
        complete: set[str] = set()
        for xcom, incomplete in self._xcoms():
            if (path := str(xcom.get("path"))) not in files:
                continue
            lacks = [one.text() for one in shortfalls(incomplete) if one.kind in _ROWS_MISSING]
            if lacks and not self.task.allow_incomplete:
                raise ArgumentError(
                    f"mode='replace' would delete rows that {path} lacks: {'; '.join(dict.fromkeys(lacks))}. Use "
                    "mode='upsert', clear the task that wrote the file, or set allow_incomplete=True"
                )
            changes = xcom.get("changes")
            if isinstance(changes, Mapping) and changes.get("emit") == "all":
                complete.add(path)
        return complete

    def _xcoms(self) -> Iterator[tuple[Mapping[str, Any], Any]]:
        """Yield results of tasks and their `incomplete`: those given as `path`, and those of the tasks upstream."""
        for given in as_list("path", self.task.path):
            if isinstance(given, Mapping):
                yield given, given.get(INCOMPLETE)
        if (ti := self.context.get("ti")) is None:
            return
        for task_id in sorted(self.task.upstream_task_ids):
            pulled = (ti.xcom_pull(key=key, task_ids=[task_id]) for key in ("return_value", INCOMPLETE))
            # Of a mapped task, those of all instances; a task may return a list.
            results, incomplete = (
                [one for value in values for one in (value if isinstance(value, list) else [value])]
                for values in pulled
            )
            yield from ((one, incomplete) for one in results if isinstance(one, Mapping))

    def _siblings(self) -> Siblings | None:
        """Return the loads of the other instances of this task that append rows; None in other modes."""
        ti: Any = self.context.get("ti")
        instance = Attempt(self.context).instance
        if self.task.mode != "append" or ti is None or len(instance) > _INSTANCE:
            return None
        dag_id, run_id, task_id, own = map(str, instance)
        beginning = f"{dag_id}/{task_id}/{run_id}/"

        def former(load_ids: Sequence[str]) -> list[str]:
            found = ti.get_task_states(dag_id=dag_id, task_ids=[task_id], run_ids=[run_id])
            existing = {name for name, state in found.get(run_id, {}).items() if state != "removed"}
            names = {load_id: _state_name(task_id, load_id.removeprefix(beginning)) for load_id in load_ids}
            if _state_name(task_id, own) not in existing:
                return []
            return [load_id for load_id, name in names.items() if name is not None and name not in existing]

        return Siblings(beginning, former)

    def _push_shortfalls(self, tally: Tally) -> None:
        lacks = [
            Shortfall("pages_failed", tally.failed_pages, tally.items),
            Shortfall("rows_refused", tally.refused, tally.items),
        ]
        found = xcom_of(one for one in lacks if one.number)
        if found and self.task.do_xcom_push and (ti := self.context.get("ti")) is not None:
            ti.xcom_push(INCOMPLETE, found)

    def _stamp(self) -> dict[str, str]:
        dag_id, run_id, task_id, *index = map(str, Attempt(self.context).instance)
        load_id = "/".join((dag_id, task_id, run_id, *index))
        return dict(zip(STAMPS, (run_id, load_id, datetime.now(timezone.utc).isoformat()), strict=True))

    def lineage(self) -> Any | None:
        """Return the files and the table for OpenLineage; None before the load."""
        # Computed on request: an error must not fail a completed load.
        return self._lineage()

    def _report(self, loaded: Loaded, tally: Tally, table: str) -> None:
        log = self._log
        if loaded.duplicates:
            log.warning(
                "%d items have the same key as a later item. The table has the last item of each key",
                loaded.duplicates,
            )
        if tally.failed_pages:
            log.warning(
                "%d failed pages were not loaded into %s. %s",
                tally.failed_pages,
                table,
                "Their rows are gone, because mode='replace' keeps only the rows of the files"
                if self.task.mode == "replace" and loaded.rows
                else "Rows of earlier loads keep their content",
            )
        if tally.refused:
            log.warning(
                "%d rows were not loaded into %s, because their key is missing, or too long for an index. The first is "
                "%s",
                *(tally.refused, table, tally.first_refused),
            )
            log.warning(
                "A task with changes shortens long keys. Without a key, a row can be loaded with mode='append'"
            )
        log.info("Loaded %d rows into %s, and marked %d rows as removed", loaded.rows, table, loaded.removed)
        if loaded.outdated:
            log.info("%d rows were skipped, because the table has newer versions of them", loaded.outdated)


def _state_name(task_id: str, index: str) -> str | None:
    """Return Airflow's name of a task instance in a run; None if the text is no map index."""
    if index == "-1":
        return task_id
    return f"{task_id}_{index}" if index.isdecimal() else None
