"""Loading of results files into a database table."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.coded_errors import ArgumentError, CodedError
from airflow_provider_webdata.common.xcom_keys import INCOMPLETE
from airflow_provider_webdata.hooks.connection import ConnectionMissingError
from airflow_provider_webdata.results.assets import annotate_outlets
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.paths import warn_if_relative
from airflow_provider_webdata.results.lineage import load_lineage
from airflow_provider_webdata.results.tables.errors import REPLACING_INSTANCES
from airflow_provider_webdata.results.tables.layout import STAMPS, table_name
from airflow_provider_webdata.results.tables.load import Source, database_of, dataset_of_table, load_files
from airflow_provider_webdata.states.shortfalls import Shortfall, xcom_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Context

    from airflow_provider_webdata.results.tables.database import Loaded
    from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator


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
            loaded = load_files(
                database_of(connection),
                source,
                task.log,
                create_table=task.create_table,
                add_columns=task.add_columns,
                max_removed=task.max_removed,
            )
        except (ArgumentError, OutputError) as error:
            self.explained_error = error
            # A retry would have the same arguments.
            raise AirflowFailException(str(error)) from None
        except CodedError as error:
            # Airflow's log shows the texts of all causes. That of a driver's error contains the row.
            task.log.debug("Cause of the error", exc_info=error)
            raise error from None
        self._log(loaded, str(table))
        self._push_shortfalls(loaded)
        self._lineage = lambda: load_lineage(
            files, dataset_of_table(connection, table), loaded.rows, loaded.columns
        )
        summary = {
            "table": str(table),
            "loaded": loaded.rows,
            "deleted": loaded.deleted,
            "duplicates": loaded.duplicates,
            "files": len(files),
            **({"held_back": loaded.held_back} if loaded.held_back else {}),
            **({"failed_pages": loaded.failed_pages} if loaded.failed_pages else {}),
        }
        annotate_outlets(self.context, summary)
        return summary

    def _push_shortfalls(self, loaded: Loaded) -> None:
        lacks = [
            Shortfall("pages_failed", loaded.failed_pages, loaded.items),
            Shortfall("removals_held_back", loaded.held_back, loaded.held_back),
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

    def _log(self, loaded: Loaded, table: str) -> None:
        log = self.task.log
        if loaded.duplicates:
            log.warning(
                "%d items have the same key as a later item. The table has the last item of each key",
                loaded.duplicates,
            )
        if loaded.failed_pages:
            log.warning(
                "%d failed pages were not loaded into %s. %s",
                loaded.failed_pages,
                table,
                "Their rows are gone, because mode='replace' keeps only the rows of the files"
                if self.task.mode == "replace"
                else "Rows of earlier loads keep their content",
            )
        log.info(
            "Loaded %d rows into %s, and deleted %d rows of removed pages",
            loaded.rows,
            table,
            loaded.deleted,
        )
