"""Loads of results files through dlt into any of its destinations."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.arguments import as_list, removal_limit
from airflow_provider_webdata.results.tables.database import Loaded, Values, batches, without_nul
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.layout import TableName
from airflow_provider_webdata.results.tables.load import (
    Source,
    database_of,
    hook_of,
    values_of,
    warn_held_back,
)

try:
    import dlt
    import pyarrow as pa
    from dlt.common.configuration.exceptions import ConfigurationException
    from dlt.common.exceptions import MissingDependencyException
    from dlt.common.libs.utils import load_open_tables
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
    from collections.abc import Collection, Container, Iterator, Mapping, Sequence

    from airflow_provider_webdata.results.tables.layout import Layout

REMOVED = "webdata_removed"
"""The column whose value `true` makes dlt delete a row; it is never true in the destination."""

# By default, dlt sends telemetry for each run, and requests an Airflow variable for each option.
_OFF = ("RUNTIME__DLTHUB_TELEMETRY", "PROVIDERS__ENABLE_AIRFLOW_SECRETS")
_LIBRARY_BY_TABLE_FORMAT = {"delta": "deltalake", "iceberg": "pyiceberg"}
_BY_CONN_TYPE = {"fs": "filesystem", "gcpbigquery": "bigquery"}


@dataclass
class _Keys:
    """The keys of files.

    :param rows: for each key, the number of its last row, the count of its rows, and its value of `removal_key`.
    :param removed: values of the layout's `removal_key` whose rows are deleted.
    :param failed_pages: number of failed pages, which have no row.
    """

    layout: Layout
    rows: dict[Values, tuple[int, int, Any]]
    removed: dict[str, None]
    failed_pages: int = 0

    @property
    def kept(self) -> dict[int, int]:
        """Numbers of the rows to load, with the counts of rows that have the same keys."""
        # The files have the rows of removed pages first, and their removal later.
        return {number: count for number, count, page in self.rows.values() if page not in self.removed}


def _read_keys(source: Source) -> _Keys | None:
    """Read the keys; None if the files have no items."""
    with source.open() as files:
        made = source.layout(files)
        if made is None:
            return None
        _check_names(made)
        key = [made.names.index(name) for name in made.key]
        by_page = None if made.removal_key is None else made.names.index(made.removal_key)
        keys = _Keys(made, {}, {})
        for number, values in enumerate(values_of(files, made, keys.removed, delete=True)):
            known_by = tuple(values[place] for place in key) or (number,)
            _, count, _ = keys.rows.get(known_by, (0, 0, None))
            keys.rows[known_by] = (number, count + 1, None if by_page is None else values[by_page])
        keys.failed_pages = sum(file.omitted for file in files)
    return keys


def _arrow_tables(
    source: Source, made: Layout, kept: Container[int], gone: Sequence[Values]
) -> Iterator[Any]:
    """Yield the rows to load, and one row for each key to delete."""
    fields = [
        pa.field(column.name, arrow_type(column.type), nullable=column.name not in made.key)
        for column in made.columns
    ]
    schema = pa.schema([*fields, pa.field(REMOVED, pa.bool_())])

    def rows() -> Iterator[Values]:
        with source.open() as files:
            for number, values in enumerate(values_of(files, made, {}, delete=False)):
                if number in kept:
                    yield (*without_nul(values), False)
        for key in gone:
            known = dict(zip(made.key, key, strict=True))
            yield (*map(known.get, made.names), True)

    for batch in batches(rows()):
        yield pa.table([*map(pa.array, zip(*batch, strict=True), schema.types)], schema=schema)


def _resource(
    source: Source, made: Layout, kept: Collection[int], gone: Sequence[Values], **hints: Any
) -> Any:
    merge = not (source.replace and kept)
    if merge:
        hints["columns"] = {REMOVED: {"hard_delete": True}}
    return dlt.resource(
        _arrow_tables(source, made, kept, gone),
        name=source.table.table,
        primary_key=[*made.key] or None,
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
    key is yielded once, in Arrow tables of at most 10,000 rows and about 8 MiB of text. The files are read twice: for
    their keys when this function is called, and for their rows when the pipeline runs. See docs/operators/to_table.md.

    :param path: path or URL of a results file, or several.
    :param name: name of the resource and its table.
    :param kind: kind of the items, see `results.columns.columns_of`. Default: detected from the first 100 items.
    :param result_schema: schema by which the items were validated; its properties become columns.
    :param key: column or columns that identify a row. Default: as in `WebDataToTableOperator`.
    :param columns: columns to load, or a mapping of these to names in the table. Default: all but `change`,
        `last_seen`, and `page`.
    :return: a `DltResource` with the write disposition `merge`; None if the files have no items.
    :raises TableError: a file is not a results file, an item has no key, or the key cannot delete a removed page.
    """
    source = Source(as_list(path), TableName(None, name), kind, result_schema, key, columns)
    keys = _read_keys(source)
    if keys is None:
        return None
    if keys.removed and keys.layout.key != (keys.layout.removal_key,):
        raise TableError(
            f"key: dlt deletes rows by the whole key ({', '.join(keys.layout.key)}), but the file identifies removed "
            f"pages only by {keys.layout.removal_key}; use only that column as key"
        )
    return _resource(source, keys.layout, {*keys.kept}, [(page,) for page in keys.removed])


def load_by_dlt(
    connection: Any,
    source: Source,
    log: Any,
    *,
    destination: str | None = None,
    contract: str | None = None,
    create_table: bool = True,
    add_columns: bool = False,
    max_removed: float | None = None,
) -> Loaded:
    """Load files of one kind into a table through dlt; the parameters are those of `load.load_files`, except these.

    :param connection: Airflow's connection.
    :param destination: dlt's name of the destination; None: by the connection's type.
    :param contract: handling of columns that the table lacks; None: `evolve` with `add_columns`, else `freeze`.
    :raises TableError: a file or the table is incompatible, or the destination is not configured.
    """
    for name in _OFF:
        os.environ.setdefault(name, "false")
    keys = _read_keys(source)
    if keys is None:
        return Loaded()
    table, loaded = source.table, Loaded(failed_pages=keys.failed_pages)
    gone: list[Values] = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="webdata-dlt-"))
        try:
            target, dataset, hints = _target(connection, table, destination)
            pipeline = dlt.pipeline(
                "webdata_" + re.sub(r"\W", "_", table.table),
                pipelines_dir=folder,
                destination=target,
                dataset_name=dataset,
            )
            stack.callback(pipeline.deactivate)
            pipeline.sync_destination()
            _check_format(pipeline, table, hints)
            # Without a schema, dlt has not loaded anything yet. A table that is replaced keeps no row.
            if keys.removed and pipeline.default_schema_name and not (source.replace and keys.kept):
                gone, known = _rows_of_pages(pipeline, keys)
                if len(gone) > (most := removal_limit(max_removed, known)):
                    warn_held_back(log, table, len(gone), known, most)
                    loaded.held_back, gone = len(gone), []
                    keys.removed.clear()
            counts = keys.kept
            loaded.duplicates = sum(counts.values()) - len(counts)
            kept = {*counts}
            # Free the keys before the load: they need four times the memory of `kept`.
            del counts
            keys.rows.clear()
            if kept or gone:
                limits = {
                    "tables": "evolve" if create_table else "freeze",
                    "columns": contract or ("evolve" if add_columns else "freeze"),
                    "data_type": "freeze",
                }
                is_iceberg = hints.get("table_format") == "iceberg"
                marked = [] if is_iceberg else gone
                pipeline.run(_resource(source, keys.layout, kept, marked, schema_contract=limits, **hints))
                name = pipeline.default_schema.naming.normalize_table_identifier(table.table)
                loaded.rows = pipeline.last_trace.last_normalize_info.row_counts.get(name, 0) - len(marked)
                if is_iceberg and gone:
                    _delete_from_iceberg(pipeline, keys.layout, gone)
                if discarded := len(kept) - loaded.rows:
                    log.warning("Discarded %d rows with values in columns that %s lacks", discarded, table)
            loaded.deleted = len(gone)
            loaded.columns = {column.name: column.type for column in keys.layout.columns}
            return loaded
        except (ConfigurationException, MissingDependencyException) as error:
            raise TableError(f"conn_id: dlt cannot use the connection: {error}") from error
        except PipelineStepFailed as error:
            if isinstance(error.exception, DataValidationError):
                raise TableError(
                    f"The table {table} is incompatible: {error.exception}. Add columns with schema_contract='evolve', "
                    "or list the columns to load in columns"
                ) from error
            raise


def _check_format(pipeline: Any, table: TableName, hints: Mapping[str, str]) -> None:
    if not pipeline.default_schema_name:
        return
    schema, wanted = pipeline.default_schema, hints.get("table_format")
    existing = schema.tables.get(schema.naming.normalize_table_identifier(table.table), {})
    if wanted and (found := existing.get("table_format", wanted)) != wanted:
        raise TableError(
            f"conn_id: the extra's table_format is {wanted}, but the existing table {table} has format {found}. Set "
            f"table_format to {found}, or load into a table of another name"
        )


def _rows_of_pages(pipeline: Any, keys: _Keys) -> tuple[list[Values], int]:
    """Return the keys of the table's rows that belong to removed pages, and the number of all rows."""
    place = keys.layout.key.index(keys.layout.removal_key)
    gone, known = list[Values](), 0
    for known, row in enumerate(_existing_keys(pipeline, keys.layout), 1):  # noqa: B007
        if row[place] in keys.removed:
            gone.append(row)
    return gone, known


def _existing_keys(pipeline: Any, made: Layout) -> Iterator[Values]:
    name, key = _names(pipeline, made)
    if pipeline.destination.destination_name == "filesystem":
        # dlt would read the table through DuckDB, which downloads an extension for this.
        if table := pipeline.default_schema.tables.get(name):
            opened = load_open_tables(pipeline, table["table_format"], name)[name]
            found = (
                opened.scan(selected_fields=key).to_arrow_batch_reader()
                if table["table_format"] == "iceberg"
                else opened.to_pyarrow_dataset().to_batches(columns=key)
            )
            for batch in found:
                yield from zip(*(column.to_pylist() for column in batch.select(key).columns), strict=True)
        return
    with pipeline.sql_client() as client, suppress(DatabaseUndefinedRelation):
        names = ", ".join(map(client.escape_column_name, key))
        with client.execute_query(f"SELECT {names} FROM {client.make_qualified_table_name(name)}") as cursor:
            while rows := cursor.fetchmany(10_000):
                yield from map(tuple, rows)


def _delete_from_iceberg(pipeline: Any, made: Layout, gone: Sequence[Values]) -> None:
    """Delete the rows of removed pages: dlt's merge into Iceberg ignores `hard_delete`."""
    from pyiceberg.expressions import In

    name, key = _names(pipeline, made)
    place = made.key.index(made.removal_key)
    pages = In(key[place], {row[place] for row in gone})
    load_open_tables(pipeline, "iceberg", name)[name].delete(pages)


def _names(pipeline: Any, made: Layout) -> tuple[str, list[str]]:
    """Return dlt's names of the table and of its key."""
    naming = pipeline.default_schema.naming
    table = naming.normalize_table_identifier(made.table.table)
    return table, [naming.normalize_identifier(column) for column in made.key]


def _target(connection: Any, table: TableName, name: str | None) -> tuple[Any, str, dict[str, str]]:
    """Return dlt's destination of a connection, the dataset, and hints for the table."""
    supported = [name for name in dlt.destinations.__all__ if name not in {"destination", "dummy"}]
    if name is None:
        found = _BY_CONN_TYPE.get(connection.conn_type, connection.conn_type)
        name = found if found in supported else "sqlalchemy"
    elif name not in supported:
        raise TableError(f"destination must be one of {', '.join(supported)} (given: {name!r})")
    extra: dict[str, Any] = dict(connection.extra_dejson)
    options: dict[str, Any] = {"replace_strategy": "insert-from-staging"}
    hints: dict[str, str] = {}
    default = connection.schema
    credentials: Any
    if name == "sqlalchemy":
        credentials = hook_of(connection).get_sqlalchemy_engine()
        if credentials.dialect.name == "sqlite":
            default = "main"
    elif name == "duckdb":
        credentials, default = connection.host, "main"
    elif name == "filesystem":
        table_format = extra.pop("table_format", "delta")
        if table_format not in _LIBRARY_BY_TABLE_FORMAT:
            raise TableError(
                f"conn_id: the extra's table_format must be delta or iceberg (given: {table_format!r})"
            )
        # A missing library fails here; dlt would try the load five times.
        import_module(f"dlt.common.libs.{_LIBRARY_BY_TABLE_FORMAT[table_format]}")
        hints["table_format"] = table_format
        options = {"bucket_url": extra.pop("bucket_url", None) or extra.pop("path", None)}
        credentials = extra
    else:
        fields = {"username": connection.login, "password": connection.password, "host": connection.host}
        fields |= {"port": connection.port, "database": connection.schema}
        credentials = {field: value for field, value in fields.items() if value is not None}
        if name in {"postgres", "redshift"}:
            # Their drivers connect by URL. Its query string has the driver's parameters.
            ignored = hook_of(connection).ignored_extra_options if connection.conn_type == "postgres" else ()
            credentials["query"] = {key: value for key, value in extra.items() if key not in ignored}
        else:
            credentials |= extra
    if name == "postgres" and table.schema is None:
        database = database_of(connection)
        with closing(database.connection):
            [[default]] = database.execute("SELECT current_schema()").fetchall()
    dataset = table.schema or default
    if not dataset:
        raise TableError(f"table must be 'dataset.name' for dlt's {name} (given: {str(table)!r})")
    return getattr(dlt.destinations, name)(credentials=credentials or None, **options), dataset, hints


def _check_names(made: Layout) -> None:
    normalized = dlt.Schema("webdata").naming.normalize_identifier
    names: dict[str, str] = {}
    for name in made.names:
        if normalized(name) == REMOVED:
            raise TableError(f"columns: {name!r} is the name of a hidden column in dlt; rename it in columns")
        if (other := names.setdefault(normalized(name), name)) != name:
            raise TableError(
                f"columns: {other!r} and {name!r} are the same name in dlt; rename one in columns"
            )
