"""Atomic loads of files into a table."""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from airflow_provider_webdata.common.arguments import as_list, removal_limit
from airflow_provider_webdata.common.links import docs_link
from airflow_provider_webdata.results.columns import type_of_values
from airflow_provider_webdata.results.result_schema import ResultSchema
from airflow_provider_webdata.results.tables.database import Loaded
from airflow_provider_webdata.results.tables.duckdb import DuckDB
from airflow_provider_webdata.results.tables.errors import TableError, database_errors
from airflow_provider_webdata.results.tables.fit import fit
from airflow_provider_webdata.results.tables.items import Removed, ResultsFile
from airflow_provider_webdata.results.tables.layout import LOAD_ID, LOADED_AT, OF_A_RUN, layout
from airflow_provider_webdata.results.tables.postgresql import PostgreSQL
from airflow_provider_webdata.results.tables.returned import FAILED, PARTIAL, has_failed, parts_of
from airflow_provider_webdata.results.tables.sqlite import SQLite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_provider_webdata.results.columns import Column
    from airflow_provider_webdata.results.tables.database import Database, Values
    from airflow_provider_webdata.results.tables.layout import Layout, TableName

_DATABASES: Mapping[str, type[Database]] = {"postgres": PostgreSQL, "sqlite": SQLite, "duckdb": DuckDB}
"""The databases by the type of their connections."""


def hook_of(connection: Any) -> Any:
    """Return the hook of an Airflow connection to a supported database.

    :raises TableError: the connection is of another type, or its provider is missing.
    """
    conn_id, conn_type = connection.conn_id, connection.conn_type
    if conn_type not in _DATABASES:
        raise TableError(
            f"conn_id: the connection {conn_id!r} has the type {conn_type!r}. Only PostgreSQL, SQLite, and DuckDB "
            f"(types {', '.join(_DATABASES)}) are supported; {docs_link('cookbook/into_snowflake_or_bigquery.md')} "
            "loads the file into another database with dlt"
        )
    try:
        return connection.get_hook()
    except (AirflowException, ImportError) as error:
        raise TableError(
            f"conn_id: Airflow has no hook for the type {conn_type!r} of the connection {conn_id!r}; install the "
            "provider of that database on the workers"
        ) from error


def dataset_of_table(connection: Any, table: TableName) -> tuple[str, str]:
    """Return OpenLineage's namespace and name of a table, as the hook's operators report it.

    If the hook does not support OpenLineage, the namespace is the connection's type, host, and port. May query the
    database for the default schema.
    """
    hook = hook_of(connection)
    info = getattr(hook, "get_openlineage_database_info", lambda _: None)(connection)
    if info is None:
        port = f":{connection.port}" if connection.port else ""
        namespace = f"{connection.conn_type}://{connection.host or ''}{port}"
        return namespace, ".".join(filter(None, (connection.schema, *table.parts)))
    namespace = f"{info.scheme}://{info.authority}" if info.authority else info.scheme
    schema = table.schema or hook.get_openlineage_default_schema()
    return namespace, ".".join(filter(None, (info.database, schema, table.table)))


def database_of(connection: Any) -> Database:
    """Connect to the database of an Airflow connection, and return its loader.

    :raises TableError: see `hook_of`.
    :raises LoadError: the database is unavailable.
    """
    hook = hook_of(connection)
    with database_errors(lambda: f"The connection {connection.conn_id!r} cannot be opened"):
        return _DATABASES[connection.conn_type](hook.get_conn())


@dataclass(frozen=True)
class Source:
    """Results files of one kind, and their rows in a table.

    Fields of items that have no column, and are in `extra`, have one if `columns` names them.

    :param kind: kind of the items, see `results.columns.columns_of`; None: detected from the items.
    :param result_schema: schema by which the items were validated; its properties become columns.
    :param key: column or columns that identify a row; see `layout.layout`.
    :param columns: columns to load, or their names in the table; see `layout.layout`.
    :param replace: whether the rows of the files replace all rows of the table.
    :param stamp: values of columns that are added to all rows, which are then appended; `load_id` identifies the load,
        whose earlier rows are replaced.
    """

    paths: Sequence[str]
    table: TableName
    kind: str | None = None
    result_schema: Mapping[str, Any] | type | str | None = None
    key: str | Sequence[str] | None = None
    columns: Sequence[str] | Mapping[str, str] | None = None
    replace: bool = False
    stamp: Mapping[str, str] | None = None

    @property
    def _columns(self) -> Sequence[str] | Mapping[str, str] | None:
        return as_list("columns", self.columns) if isinstance(self.columns, str) else self.columns

    @contextmanager
    def open(self) -> Iterator[list[ResultsFile]]:
        """Open the files.

        :raises TableError: a file is not a results file.
        :raises OutputError: `result_schema` is invalid.
        """
        schema = None if self.result_schema is None else ResultSchema.of(self.result_schema)
        with ExitStack() as stack:
            files = (ResultsFile(path, self.kind, schema) for path in self.paths)
            opened = [*map(stack.enter_context, files)]
            fields = {
                name: type_of_values(values)
                for name in self._columns or ()
                if (values := [value for file in opened for value in file.values_of(name)])
            }
            for file in opened:
                file.add_fields(fields)
            yield opened

    def layout(self, files: Sequence[ResultsFile]) -> Layout | None:
        """Return the layout of the open files; None if they have no items.

        :raises TableError: the files do not fit `key`, `columns`, or each other.
        """
        found = columns_of_all(files)
        key = None if self.key is None else as_list("key", self.key)
        if not found:
            return None
        return layout(
            self.table, found, key, self._columns, replace=self.replace, stamps=[*(self.stamp or ())]
        )


def load_files(
    database: Database,
    source: Source,
    log: Any,
    *,
    create_table: bool = True,
    add_columns: bool = False,
    max_removed: float | None = None,
) -> Loaded:
    """Load files of one kind into a table, in one transaction; the table is unchanged if anything fails.

    :param database: the database, closed afterwards.
    :param create_table: whether a missing table is created.
    :param add_columns: whether missing columns are added to the table.
    :param max_removed: maximum rows of removed pages to delete, see `removal_limit`; if there are more, no row is
        deleted.
    :raises TableError: a file is not a results file, the table is incompatible, or the database rejects a row.
    :raises LoadError: the database failed.
    """
    table, replace = source.table, source.replace
    done: list[str] = []

    def load(*, delete: bool) -> Loaded:
        done.clear()
        with source.open() as files, _transaction(database, table):
            made = source.layout(files)
            existing = database.existing(table)
            stamp = dict(source.stamp or {})
            if stamp and {LOAD_ID, LOADED_AT} <= existing.keys():
                again, first = database.delete_load(table, stamp[LOAD_ID])
                if first is not None:
                    # A repeated load produces the same table.
                    stamp[LOADED_AT] = first
                    done.append(f"Replaced {again} rows that this load had appended at {first}")
            if made is None:
                return Loaded()
            database.check_names(made)
            if existing:
                done.extend(fit(database, made, existing, add_columns=add_columns))
            else:
                statement = database.create_statement(made)
                if not create_table:
                    raise TableError(
                        f"The table {table} does not exist, and create_table=False; create it, for example with: "
                        f"{statement}"
                    )
                database.execute(statement)
                done.append(f"Created the table {table} with {len(made.columns)} columns")
            removed: dict[str, None] = {}
            rows = values_of(files, made, removed, delete=delete)
            if stamp:
                ending, place = tuple(stamp.values()), len(made.columns) - len(stamp)
                # A mark follows the columns.
                rows = ((*values[:place], *ending, *values[place:]) for values in rows)
            loaded = database.load(made, rows, removed, replaces=replace)
            # A replaced table has only the file's rows anyway.
            if loaded.deleted and not (replace and loaded.rows):
                [[left]] = database.execute(f"SELECT count(*) FROM {database.path_of(table)}").fetchall()
                known = int(left) + loaded.deleted
                if loaded.deleted > (most := removal_limit(max_removed, known)):
                    raise _TooManyDeletesError(loaded.deleted, known, most)
            loaded.columns = {column.name: column.type for column in made.columns}
            loaded.items = sum(file.read for file in files)
            loaded.failed_pages = sum(file.failed for file in files)
            return loaded

    with closing(database.connection):
        try:
            loaded = load(delete=True)
        except _TooManyDeletesError as error:
            warn_held_back(log, table, *error.args)
            # The transaction was rolled back. The number of rows to delete is known only after the delete.
            loaded = load(delete=False)
            loaded.held_back = error.args[0]
    for change in done:
        log.info("%s", change)
    return loaded


def warn_held_back(log: Any, table: TableName, count: int, known: int, most: int) -> None:
    """Warn that no row is deleted, because `count` of `known` rows exceed the limit `most`."""
    log.warning(
        "No row is deleted: %d of %d rows of %s belong to removed pages, but max_removed allows %d",
        *(count, known, table, most),
    )
    log.warning(
        "Check the site and the files. If the pages are gone, raise max_removed and clear this load: later files "
        "do not mark them again"
    )


class _TooManyDeletesError(Exception):
    """A load would delete too many rows. The arguments are the rows to delete, all rows, and the limit."""


@contextmanager
def _transaction(database: Database, table: TableName) -> Iterator[None]:
    def failed() -> str:
        row = f"the row with {database.rejected}" if database.rejected else "the rows"
        return f"{database.name} cannot load {row} into the table {table}"

    with database_errors(failed, lambda: database.step):
        try:
            database.begin(table)
            yield
        except BaseException as error:
            # Raise the original error. Closing the connection also rolls back.
            with suppress(Exception):
                database.rollback()
                database.step = database.step_after(error, table)
            raise
        database.commit()


def columns_of_all(files: Sequence[ResultsFile]) -> tuple[Column, ...]:
    """Return the columns of open files of one kind; none if no file has items."""
    known = [file for file in files if file.columns]
    if not known:
        return ()
    first, *others = known
    # Files of items may also have the fields of a run.
    names = {*OF_A_RUN, *(column.name for column in first.columns)}
    for other in others:
        if more := [column.name for column in other.columns if column.name not in names]:
            raise TableError(
                f"path: {other.url} has the column {more[0]!r}, but {first.url} does not; load only files of one kind "
                "together, or set kind"
            )
    return first.columns


def values_of(
    files: Sequence[ResultsFile], made: Layout, removed: dict[str, None], *, delete: bool
) -> Iterator[Values]:
    """Yield the rows of files with values in the layout's order, without those of `stamps`, and their mark, if any.

    Rows of removed and failed pages are omitted. A search result whose page failed has no values of the page. `removed`
    is complete after the last row.

    :param removed: filled with the values of the layout's `removal_key` whose rows are deleted.
    :param delete: whether rows of removed pages are deleted.
    """
    columns = [column for column in made.columns if column.name not in made.stamps]
    sources = [column.source for column in columns]
    names = {column.name: column.source for column in columns}
    key = [names[name] for name in made.key if name in names]
    known = None if made.removal_key is None else names[made.removal_key]
    for file in files:
        parts = parts_of({column.name for column in file.columns})
        for number, row in enumerate(file.rows(), 1):
            if isinstance(row, Removed):
                # Appended rows are history.
                if made.stamps:
                    continue
                value = None if known is None else row.known_by.get(known)
                # Without a key, the files replace the table, so no row is deleted by a column.
                if key and value is None:
                    by = " or ".join(row.known_by)
                    raise TableError(
                        f"key: item {number} of {file.url} identifies a removed page by its {by}, but the key is "
                        f"{', '.join(key)}. Rows are deleted only by key. Use {by} in key, and load only files of one "
                        "kind"
                    )
                if delete and value is not None:
                    removed[value] = None
                continue
            file.read += 1
            mark = 0
            if parts is not None:
                if has_failed(row):
                    file.failed += 1
                    if not parts.page or not parts.of_failed.isdisjoint(key):
                        continue
                    row.update(dict.fromkeys(parts.of_failed))
                    mark = FAILED
                elif parts.together and not row[parts.sign]:
                    mark = PARTIAL
            for name in key:
                if row.get(name) is None:
                    raise TableError(
                        f"key: item {number} of {file.url} has no {name}. Set another key, or use mode='replace' "
                        "without a key"
                    )
            # The page reappeared after its removal.
            if removed and known is not None:
                removed.pop(row.get(known), None)  # type: ignore[arg-type]
            values = tuple(map(row.get, sources))
            yield (*values, mark) if made.unreturned else values
