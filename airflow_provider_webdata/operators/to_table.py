"""The operator that loads results files into a database's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import BaseOperator

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.common.arguments import as_list, count_or_share
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.tasks.checked_arguments import CheckedArguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.tasks.tables.database import Loaded

_MODES = ("upsert", "replace")


class WebDataToTableOperator(BaseOperator, metaclass=CheckedArguments):
    """Load results files that operators wrote with `output` into a table of any database with a hook of common-sql.

    In one transaction: the table is made if it is not there, else its columns are checked; the rows are loaded in
    bulk and upserted by key; rows of pages that a task with a manifest marked as gone are deleted by key. An attempt
    that fails or is killed leaves the table as it was, and a repeated one makes it what it was. It makes no call to the
    service.

    XCom: a mapping with `table`, `loaded` (rows that the table has from the file), `deleted`, `duplicates` (of the
    file's items, those that a later one with the same key replaced) and `files`. Asset events of its outlets have them
    too.

    :param path: path or URL of a file that ends in `.jsonl`, `.jsonl.gz` or `.parquet`, of a list of files of a
        partitioned output (`.files.json`), or several of these, which are loaded together (templated).
    :param table: name of the table, or `schema.name` (templated). Names are quoted, so that case counts where the
        database lets it.
    :param conn_id: id of the database's connection, whose hook derives from `DbApiHook` (templated).
    :param kind: what the items are: `document`, `search`, `link`, ... (the kinds of the table of columns, see
        `results.columns.columns_of`). Default: found from the first 100 items; in Parquet, columns say it themselves.
    :param result_schema: the schema that the items of JSON Lines were validated by, as the operator that wrote them has
        it: its properties become columns. In Parquet they are.
    :param key: the file's column, or columns, that tell rows apart. Default: `source_url` of pages, `url` of links and
        search results, `id` of flat documents.
    :param columns: the file's columns to load, or a mapping of these to names in the table. Default: all but `change`,
        `last_seen` and `page`, which are about a run.
    :param create_table: make the table if it is not there, with the key as its primary key. Default: true.
    :param add_columns: add columns that the table lacks. Default: false, which is an error that says how.
    :param mode: `upsert` (default); or `replace`: the table then holds what the file holds. A file without items leaves
        the table as it is in both.
    :param max_removed: most rows that a load may delete since their pages are gone: a count, or a share of the table's
        rows (0.0 to 1.0). Where there are more, none is deleted, the task warns, and XCom has their number as
        `heldBack`. Default: half of the rows, where these are more than 20.
    :param kwargs: arguments of `BaseOperator`.
    """

    template_fields: Sequence[str] = ("path", "table", "conn_id")
    ui_color = "#d9ecf2"

    _loaded: tuple[Sequence[str], Loaded] | None = None

    def __init__(
        self,
        *,
        path: str | Sequence[str],
        table: str,
        conn_id: str,
        kind: str | None = None,
        result_schema: Mapping[str, Any] | type | str | None = None,
        key: str | Sequence[str] | None = None,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        create_table: bool = True,
        add_columns: bool = False,
        mode: Literal["upsert", "replace"] = "upsert",
        max_removed: float | None = None,
        **kwargs: Any,
    ) -> None:
        if mode not in _MODES:
            raise ArgumentError(f"mode must be one of {', '.join(_MODES)} (given: {mode!r})")
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
        self.max_removed = count_or_share("max_removed", max_removed)

    def check_literals(self) -> None:
        """Fail while the DAG file is read where a literal argument cannot work."""
        if self.kind is not None:
            from airflow_provider_webdata.results.columns import TABLES

            if self.kind not in TABLES:
                raise ArgumentError(f"kind must be one of {', '.join(TABLES)} (given: {self.kind!r})")
        if is_literal(self.path):
            self._paths()

    def execute(self, context: Context) -> dict[str, Any]:
        """Load the files, and return the counts."""
        from airflow.sdk import BaseHook
        from airflow.sdk.exceptions import AirflowFailException

        from airflow_provider_webdata.results.assets import annotate_outlets
        from airflow_provider_webdata.results.errors import OutputError
        from airflow_provider_webdata.results.result_schema import ResultSchema
        from airflow_provider_webdata.tasks.tables.layout import table_name
        from airflow_provider_webdata.tasks.tables.load import database_of, load_files

        try:
            table = table_name(self.table)
            paths = self._files()
            database = database_of(BaseHook.get_connection(self.conn_id))
            loaded = load_files(
                database,
                paths,
                table,
                self.log,
                kind=self.kind,
                schema=None if self.result_schema is None else ResultSchema.of(self.result_schema),
                key=None if self.key is None else as_list(self.key),
                columns=self.columns,
                create_table=self.create_table,
                add_columns=self.add_columns,
                replace=self.mode == "replace",
                max_removed=self.max_removed,
            )
        except (ArgumentError, OutputError) as error:
            # The next attempt would have the same arguments.
            raise AirflowFailException(str(error)) from error
        if loaded.duplicates:
            self.log.warning(
                "%d items have the key of a later one, which replaced them; of these pages the table has the last",
                loaded.duplicates,
            )
        self.log.info(
            "Loaded %d rows into %s, and deleted %d of pages that are gone",
            loaded.rows,
            table,
            loaded.deleted,
        )
        facts = {
            "table": str(table),
            "loaded": loaded.rows,
            "deleted": loaded.deleted,
            "duplicates": loaded.duplicates,
            "files": len(paths),
            **({"heldBack": loaded.held_back} if loaded.held_back else {}),
        }
        annotate_outlets(context, facts)
        self._loaded = paths, loaded
        return facts

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any | None:  # noqa: ARG002
        """Return the files and the table; called by OpenLineage's listener where it is installed."""
        if self._loaded is None:
            return None
        from airflow.sdk import BaseHook

        from airflow_provider_webdata.results.lineage import load_lineage
        from airflow_provider_webdata.tasks.tables.dataset import dataset_of_table
        from airflow_provider_webdata.tasks.tables.layout import table_name

        paths, loaded = self._loaded
        table = dataset_of_table(BaseHook.get_connection(self.conn_id), table_name(self.table))
        return load_lineage(paths, table, loaded.rows, loaded.columns)

    def _paths(self) -> list[str]:
        from airflow_provider_webdata.results.output import FORMATS

        paths = [str(path) for path in as_list(self.path)]
        endings = (*(f".{known}" for known in FORMATS), ".files.json")
        if wrong := [path for path in paths if not path.endswith(endings)]:
            raise ArgumentError(
                f"path must name a file that ends in one of {', '.join(endings)} (given: {wrong[0]!r})"
            )
        if not paths and isinstance(self.path, str):
            raise ArgumentError("path is empty after rendering; name the file that output= has written")
        return paths

    def _files(self) -> list[str]:
        from airflow_provider_webdata.results.partitions import LIST_SUFFIX, files_of

        return [
            file
            for path in self._paths()
            for file in (files_of(path) if path.endswith(LIST_SUFFIX) else [path])
        ]
