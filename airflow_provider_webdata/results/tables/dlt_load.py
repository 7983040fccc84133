"""Loads through dlt: results files into any destination that dlt supports."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.common.arguments import as_list, removal_limit
from airflow_provider_webdata.results.result_schema import ResultSchema
from airflow_provider_webdata.results.tables.database import Loaded
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.items import ResultsFile
from airflow_provider_webdata.results.tables.layout import TableName, layout
from airflow_provider_webdata.results.tables.load import columns_of_all, hook_of, values_of

try:
    import dlt
    import pyarrow as pa
    from dlt.common.configuration.exceptions import ConfigurationException
    from dlt.common.exceptions import MissingDependencyException
    from dlt.common.schema.exceptions import DataValidationError
    from dlt.destinations.exceptions import DatabaseUndefinedRelation
    from dlt.pipeline.exceptions import PipelineStepFailed
except ImportError as error:
    raise TableError(
        "Loads through dlt need the package dlt: pip install 'airflow-provider-webdata[dlt]' on the workers, and the "
        "driver of the destination"
    ) from error

from airflow_provider_webdata.results.parquet import arrow_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_provider_webdata.results.tables.database import Values
    from airflow_provider_webdata.results.tables.layout import Layout

Contract = Literal["evolve", "freeze", "discard_row"]

REMOVED = "webdata_removed"
"""The column whose value `true` makes dlt delete a row; it is never true in the destination."""

# dlt would report each run to its makers, and look each option up among Airflow's variables, one request each.
_OFF = ("RUNTIME__DLTHUB_TELEMETRY", "PROVIDERS__ENABLE_AIRFLOW_SECRETS")
_BATCH_ROWS = 10_000
_BY_CONN_TYPE = {"fs": "filesystem", "gcpbigquery": "bigquery", "google_cloud_platform": "bigquery"}
# Destinations whose drivers are connected by a URL: the connection's extra is its query.
_WITH_QUERY = ("postgres", "redshift")


@dataclass
class _Content:
    """The items of files that reach the destination.

    :param kept: numbers of the rows: the last one of each key, without those of removed pages.
    :param removed: values of the layout's `removal_key` whose rows are deleted.
    :param duplicates: rows that a later one with the same key replaces.
    """

    layout: Layout
    kept: set[int]
    removed: dict[str, None]
    duplicates: int


@dataclass
class _Source:
    """Files, and the choices by which they are read."""

    paths: Sequence[str]
    table: TableName
    kind: str | None = None
    schema: ResultSchema | None = None
    key: Sequence[str] | None = None
    columns: Sequence[str] | Mapping[str, str] | None = None
    replace: bool = False

    def read(self, *, delete: bool) -> _Content | None:
        """Read the keys; None if the files have no items."""
        with self._files() as files:
            found = columns_of_all(files)
            if not found:
                return None
            made = layout(self.table, found, self.key, self.columns, replace=self.replace)
            _check_names(made)
            key = [made.names.index(name) for name in made.key]
            by_page = None if made.removal_key is None else made.names.index(made.removal_key)
            removed: dict[str, None] = {}
            rows: dict[Values, tuple[int, int, Any]] = {}
            for number, values in enumerate(values_of(files, made, removed, delete=delete)):
                known_by = tuple(values[place] for place in key) or (number,)
                _, count, _ = rows.get(known_by, (0, 0, None))
                rows[known_by] = (number, count + 1, None if by_page is None else values[by_page])
        # Rows of removed pages came first, and their end later.
        kept = [(number, count) for number, count, page in rows.values() if page not in removed]
        duplicates = sum(count - 1 for _, count in kept)
        return _Content(made, {number for number, _ in kept}, removed, duplicates)

    @contextmanager
    def _files(self) -> Iterator[list[ResultsFile]]:
        with ExitStack() as stack:
            yield [stack.enter_context(ResultsFile(path, self.kind, self.schema)) for path in self.paths]

    def arrow_tables(self, content: _Content, gone: Sequence[Values]) -> Iterator[Any]:
        """Yield the rows, and one row for each key that is deleted."""
        made = content.layout
        fields = [
            pa.field(column.name, arrow_type(column.type), nullable=column.name not in made.key)
            for column in made.columns
        ]
        schema = pa.schema([*fields, pa.field(REMOVED, pa.bool_())])

        def rows() -> Iterator[Values]:
            with self._files() as files:
                for number, values in enumerate(values_of(files, made, {}, delete=False)):
                    if number in content.kept:
                        yield (*map(_without_nul, values), False)
            for key in gone:
                known = dict(zip(made.key, key, strict=True))
                yield (*map(known.get, made.names), True)

        found = rows()
        while batch := [*islice(found, _BATCH_ROWS)]:
            columns = zip(zip(*batch, strict=True), schema, strict=True)
            yield pa.Table.from_arrays(
                [pa.array(values, field.type) for values, field in columns], schema=schema
            )

    def resource(self, content: _Content, gone: Sequence[Values], **hints: Any) -> Any:
        """Return the dlt resource of the rows."""
        merge = not (self.replace and content.kept)
        if merge:
            hints["columns"] = {REMOVED: {"hard_delete": True}}
        return dlt.resource(
            self.arrow_tables(content, gone),
            name=self.table.table,
            primary_key=[*content.layout.key] or None,
            write_disposition="merge" if merge else "replace",
            **hints,
        )


def webdata_resource(
    path: str | Sequence[str],
    *,
    name: str = "webdata",
    kind: str | None = None,
    result_schema: Mapping[str, Any] | type | str | None = None,
    key: str | Sequence[str] | None = None,
    columns: Sequence[str] | Mapping[str, str] | None = None,
) -> Any:
    """Return a dlt resource that merges results files by key, for a dlt pipeline.

    Removed pages (see `results.tombstones`) are rows with only their key and `webdata_removed`, which dlt deletes. Each
    key is yielded once, in Arrow tables of at most 10,000 rows. The files are read twice: for their keys when this
    function is called, and for their rows when the pipeline runs. See docs/operators/to_table.md.

    :param path: path or URL of a results file, or several.
    :param name: name of the resource and its table.
    :param kind: kind of the items, see `results.columns.columns_of`. Default: detected from the first 100 items.
    :param result_schema: schema by which the items were validated; its properties become columns.
    :param key: column or columns that identify a row. Default: as in `WebDataToTableOperator`.
    :param columns: columns to load, or a mapping of these to names in the table. Default: all but `change`,
        `last_seen`, and `page`.
    :return: a `DltResource` with the write disposition `merge`; None if the files have no items.
    :raises TableError: a file is no results file, an item has no key, or the key cannot delete a removed page.
    """
    source = _Source(
        as_list(path),
        TableName(None, name),
        kind,
        None if result_schema is None else ResultSchema.of(result_schema),
        None if key is None else as_list(key),
        columns,
    )
    content = source.read(delete=True)
    if content is None:
        return None
    if content.removed and content.layout.key != (content.layout.removal_key,):
        raise TableError(
            f"key: dlt deletes rows by their whole key ({', '.join(content.layout.key)}), and the file names removed "
            f"pages by {content.layout.removal_key} alone; use only that column as key"
        )
    return source.resource(content, [(page,) for page in content.removed])


def load_by_dlt(
    connection: Any,
    paths: Sequence[str],
    table: TableName,
    log: Any,
    *,
    destination: str | None = None,
    contract: Contract | None = None,
    kind: str | None = None,
    schema: ResultSchema | None = None,
    key: Sequence[str] | None = None,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    create_table: bool = True,
    add_columns: bool = False,
    replace: bool = False,
    max_removed: float | None = None,
) -> Loaded:
    """Load files of one kind into a table through dlt; the parameters are those of `load.load_files`, except these.

    :param connection: Airflow's connection.
    :param destination: dlt's name of the destination; None: by the connection's type.
    :param contract: handling of columns that the table lacks; None: `evolve` with `add_columns`, else `freeze`.
    :raises TableError: a file or the table does not fit, or the destination is not configured.
    """
    for name in _OFF:
        os.environ.setdefault(name, "false")
    source = _Source(paths, table, kind, schema, key, columns, replace)
    content = source.read(delete=True)
    if content is None:
        return Loaded()
    loaded = Loaded(duplicates=content.duplicates)
    gone: list[Values] = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="webdata-dlt-"))
        try:
            target, dataset = _target(connection, table, destination)
            pipeline = dlt.pipeline(
                "webdata_" + re.sub(r"\W", "_", table.table),
                pipelines_dir=folder,
                destination=target,
                dataset_name=dataset,
            )
            stack.callback(pipeline.deactivate)
            pipeline.sync_destination()
            # Without a schema, dlt has not loaded anything yet. A table that is replaced keeps no row.
            if content.removed and pipeline.default_schema_name and not (replace and content.kept):
                gone, known = _rows_of_pages(pipeline, content)
                if len(gone) > (most := removal_limit(max_removed, known)):
                    log.warning(
                        "%d of %d rows of %s belong to removed pages, and max_removed allows %d: none is deleted. "
                        "Check the site and the files; if the pages are gone, raise max_removed for one run",
                        *(len(gone), known, table, most),
                    )
                    loaded.held_back, gone = len(gone), []
                    content = source.read(delete=False) or content
            if content.kept or gone:
                limits = {
                    "tables": "evolve" if create_table else "freeze",
                    "columns": contract or ("evolve" if add_columns else "freeze"),
                    "data_type": "freeze",
                }
                hints = {"table_format": "delta"} if target.destination_name == "filesystem" else {}
                pipeline.run(source.resource(content, gone, schema_contract=limits, **hints))
                name = pipeline.default_schema.naming.normalize_table_identifier(table.table)
                loaded.rows = pipeline.last_trace.last_normalize_info.row_counts.get(name, 0) - len(gone)
                if discarded := len(content.kept) - loaded.rows:
                    log.warning("%d rows have values in columns that %s lacks; discarded", discarded, table)
            loaded.deleted = len(gone)
            loaded.columns = {column.name: column.type for column in content.layout.columns}
            return loaded
        except (ConfigurationException, MissingDependencyException) as error:
            raise TableError(f"conn_id: dlt cannot use the connection: {error}") from error
        except PipelineStepFailed as error:
            if isinstance(error.exception, DataValidationError):
                raise TableError(
                    f"The table {table} does not fit: {error.exception}. Add columns with schema_contract='evolve', or "
                    "name the columns to load in columns"
                ) from error
            raise


def _rows_of_pages(pipeline: Any, content: _Content) -> tuple[list[Values], int]:
    """Return the keys of the table's rows that belong to removed pages, and the number of all rows."""
    key, removal_key = content.layout.key, content.layout.removal_key
    place = key.index(removal_key) if removal_key else 0
    gone: list[Values] = []
    known = 0
    for known, row in enumerate(_keys(pipeline, content.layout), 1):  # noqa: B007
        if row[place] in content.removed:
            gone.append(row)
    return gone, known


def _keys(pipeline: Any, made: Layout) -> Iterator[Values]:
    naming = pipeline.default_schema.naming
    name = naming.normalize_table_identifier(made.table.table)
    key = [naming.normalize_identifier(column) for column in made.key]
    if pipeline.destination.destination_name == "filesystem":
        # DuckDB, by which dlt would read the table, downloads an extension for that.
        from dlt.common.libs.deltalake import get_delta_tables

        if name in pipeline.default_schema.tables:
            for batch in get_delta_tables(pipeline, name)[name].to_pyarrow_dataset().to_batches(columns=key):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return
    with pipeline.sql_client() as client, suppress(DatabaseUndefinedRelation):
        names = ", ".join(map(client.escape_column_name, key))
        with client.execute_query(f"SELECT {names} FROM {client.make_qualified_table_name(name)}") as cursor:
            while rows := cursor.fetchmany(_BATCH_ROWS):
                yield from map(tuple, rows)


def _target(connection: Any, table: TableName, name: str | None) -> tuple[Any, str]:
    """Return dlt's destination of a connection, and the dataset."""
    supported = dlt.destinations.__all__
    if name is None:
        found = _BY_CONN_TYPE.get(connection.conn_type, connection.conn_type)
        name = found if found in supported else "sqlalchemy"
    elif name not in supported:
        raise TableError(f"destination must be one of {', '.join(supported)} (given: {name!r})")
    extra: dict[str, Any] = dict(connection.extra_dejson)
    options: dict[str, Any] = {"replace_strategy": "insert-from-staging"}
    default = connection.schema
    credentials: Any
    if name == "sqlalchemy":
        credentials = hook_of(connection).get_sqlalchemy_engine()
        if credentials.dialect.name == "sqlite":
            default = "main"
    elif name == "duckdb":
        credentials, default = connection.host, "main"
    elif name == "filesystem":
        options = {"bucket_url": extra.pop("bucket_url", None) or extra.pop("path", None)}
        credentials = extra
    else:
        fields = {
            "username": connection.login,
            "password": connection.password,
            "host": connection.host,
            "port": connection.port,
            "database": connection.schema,
        }
        credentials = {field: value for field, value in fields.items() if value is not None}
        if name in _WITH_QUERY:
            credentials["query"] = extra
        else:
            credentials |= extra
    if name == "postgres" and table.schema is None:
        [default] = hook_of(connection).get_first("SELECT current_schema()")
    dataset = table.schema or default
    if not dataset:
        raise TableError(f"table must be 'dataset.name' for dlt's {name} (given: {str(table)!r})")
    return getattr(dlt.destinations, name)(credentials=credentials or None, **options), dataset


def _check_names(made: Layout) -> None:
    naming = dlt.Schema("webdata").naming
    names: dict[str, str] = {}
    for column in made.columns:
        other = names.setdefault(naming.normalize_identifier(column.name), column.name)
        if other != column.name:
            raise TableError(
                f"columns: {other!r} and {column.name!r} are one name to dlt; rename one in columns"
            )


def _without_nul(value: Any) -> Any:
    # Not every destination accepts it in texts; browsers, too, read it as U+FFFD.
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value
