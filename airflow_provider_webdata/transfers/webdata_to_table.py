# SPDX-License-Identifier: Apache-2.0
"""The operator that loads results files into a database table."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.sdk import BaseOperator

from airflow_provider_webdata.base.arguments.checked_arguments import (
    is_from_mapped,
    is_in_mapped_group,
    naming_unknown,
)
from airflow_provider_webdata.base.arguments.literal_text import LiteralText
from airflow_provider_webdata.base.failures import reporting_failures
from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.options import one_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import jinja2
    from airflow.sdk import Context
    from airflow.sdk.definitions.mappedoperator import OperatorPartial


class WebDataToTableOperator(LiteralText, BaseOperator):
    """Load files of results into a table of PostgreSQL, SQLite, or DuckDB.

    One transaction creates the table or checks its columns, loads the rows in bulk, and upserts them by key. An attempt
    that fails or is killed changes nothing, and loads are idempotent. The service is not called.

    Rows of a task with `changes` are keyed by `page`, and have `webdata_version`, `webdata_removed_at`, and
    `webdata_source`. The newest version wins, in any order of loads. The rows of removed pages are marked:
    `where webdata_removed_at is null` selects the others.

    A failed page (with an error, or a status of 400 or above) is not loaded. Of a search result whose page failed, only
    the result is loaded. A format that a page did not return does not replace the value of an earlier load.

    XCom: a mapping with `table`, `loaded` (rows loaded from the files), `removed` (rows marked as removed), `outdated`
    (rows of which the table has a newer version), `duplicates` (items that a later one with the same key replaced),
    `files` (their number), `failed_pages` (failed pages that were not loaded), and `refused` (rows that were not
    loaded, because their key is missing, or too long for an index of the database). Asset events of the outlets contain
    the same.

    :param path: path or URL of a file of results, or the XCom of a task with `save_to`, such as `crawl.output`. Several
        of these are loaded together (templated).
    :param table: name of the table, or `schema.name` (templated). Names are quoted; letter case counts if the database
        distinguishes it.
    :param conn_id: id of the database's connection, of the type `postgres`, `sqlite`, or `duckdb` (templated).
    :param kind: kind of the items: `document`, `search`, `link`, ... (the kinds in `results.columns`). Default: found
        from the first 100 items; Parquet files state it.
    :param result_schema: schema by which the items were validated, as given to the operator that wrote them; its
        properties become columns. Parquet files state it.
    :param key: column or columns of the file that identify a row; omit it for files of a task with `changes`. Default:
        `source_url` of pages, `url` of links and search results, `id` of flat documents.
    :param columns: columns of the file to load, or a mapping of these to column names in the table; in JSON Lines also
        fields of the items that are in `extra`. Default: all except `change` and `last_seen`, which describe a run.
    :param create_table: create the table if it is missing, with the key as its primary key. Default: true.
    :param add_columns: add columns that the table lacks. Default: false; missing columns are then an error.
    :param mode: `upsert` rows by their key, `replace` the entire content of the table (not in a mapped task), or
        `append` rows. `append` adds `run_id`, `load_id` (DAG, task, run, and map index), and `loaded_at` (ISO 8601,
        UTC; of the first load) to the rows, and replaces only the rows of the same `load_id`, and of instances that the
        run does not have any more; `key` is optional and unique within a load. Files without items change nothing,
        except that `append` deletes these rows.
    :param allow_incomplete: let `replace` delete the rows of pages that failed, or that the file lacks otherwise (XCom
        `incomplete` of the task directly upstream that wrote it). Default: false; the load is then refused.
    :param kwargs: arguments of `BaseOperator`.
    """

    template_fields: Sequence[str] = ("path", "table", "conn_id")
    ui_color = "#d9ecf2"

    _run_path: ClassVar[str] = "airflow_provider_webdata.runs.load:LoadRun"

    _run: Any = None

    def __init__(
        self,
        *,
        path: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]],
        table: str,
        conn_id: str,
        kind: str | None = None,
        result_schema: Mapping[str, Any] | type | str | None = None,
        key: str | Sequence[str] | None = None,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        create_table: bool = True,
        add_columns: bool = False,
        mode: Literal["upsert", "replace", "append"] = "upsert",
        allow_incomplete: bool = False,
        **kwargs: Any,
    ) -> None:
        with naming_unknown(type(self), kwargs):
            super().__init__(**kwargs)
        self.path = path
        self.table = table
        self.conn_id = conn_id
        self.kind = kind
        self.result_schema = result_schema
        self.key = key
        self.columns = columns
        self.create_table = create_table
        self.add_columns = add_columns
        self.mode = mode
        self.allow_incomplete = allow_incomplete
        self._check_arguments()

    @classmethod
    def partial(cls, **kwargs: Any) -> OperatorPartial:
        """Begin a mapped task; see `BaseOperator.partial`.

        :raises ArgumentError: each instance would replace the rows of the others.
        """
        _check_mapped(kwargs.get("mode"))
        return super().partial(**kwargs)

    def _check_arguments(self) -> None:
        """Check the arguments while the DAG file is parsed, unless they are known at run time only."""
        if is_from_mapped(self):
            return
        if is_in_mapped_group(self):
            _check_mapped(self.mode)
        self._check_values()

    def _check_values(self) -> None:
        """Check the arguments, while the DAG file is parsed, and in each attempt.

        :raises ArgumentError: an argument is invalid.
        """
        one_of("mode", self.mode, ("upsert", "replace", "append"))
        for name in ("key", "columns"):
            if isinstance(given := getattr(self, name), str):
                as_list(name, given)
        if self.kind is not None:
            from airflow_provider_webdata.results.columns import TABLES

            one_of("kind", self.kind, TABLES)
        if is_literal(self.path):
            self._paths()

    def execute(self, context: Context) -> dict[str, Any]:
        """Load the files, and return the counts.

        :param context: the task's context.
        :raises AirflowFailException: an argument or a file is invalid, or the table does not match.
        """
        with reporting_failures(self, context):
            self._run = resolve_name(self._run_path)(self, context)
            loaded: dict[str, Any] = self._run.execute()
            return loaded

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        with reporting_failures(self, context):
            super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any | None:  # noqa: ARG002
        """Return the lineage: files and table. The OpenLineage listener calls this if it is installed."""
        return None if self._run is None else self._run.lineage()

    def _paths(self) -> list[str]:
        """Return the paths to load.

        :raises ArgumentError: a path is not a results file, or the list is empty.
        """
        from airflow_provider_webdata.results.files.formats import SUFFIXES
        from airflow_provider_webdata.results.files.paths import check_path

        given = [None] if self.path is None else as_list("path", self.path)
        paths = [str(one.get("path") if isinstance(one, dict) else one) for one in given]
        if "None" in paths:
            sources = ", ".join(sorted(self.upstream_task_ids)) or "this value"
            raise ArgumentError(
                f"path: {sources} has no file; set it to a path, or to the result of a task with save_to='s3://bucket/*.jsonl'"
            )
        if wrong := [path for path in paths if not path.endswith(SUFFIXES)]:
            raise ArgumentError(
                f"path must name a file that ends in one of {', '.join(SUFFIXES)} (given: {wrong[0]!r})"
            )
        if isinstance(self.path, str) and not self.path.strip():
            raise ArgumentError("path is empty after rendering; pass the path of a file written by save_to=")
        for path in paths:
            check_path("path", path)
        return paths


def _check_mapped(mode: Any) -> None:
    if mode == "replace":
        from airflow_provider_webdata.results.tables.errors import REPLACING_INSTANCES

        raise ArgumentError(REPLACING_INSTANCES)
