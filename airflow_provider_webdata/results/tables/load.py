# SPDX-License-Identifier: Apache-2.0
"""Atomic loads of files into a table."""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.common.links import docs_link
from airflow_provider_webdata.results.columns import SOURCE, VERSION, type_of_values
from airflow_provider_webdata.results.result_schema import ResultSchema
from airflow_provider_webdata.results.tables.database import Loaded
from airflow_provider_webdata.results.tables.duckdb import DuckDB
from airflow_provider_webdata.results.tables.errors import MissingPackageError, TableError, database_errors
from airflow_provider_webdata.results.tables.fit import fit
from airflow_provider_webdata.results.tables.items import Removed, ResultsFile
from airflow_provider_webdata.results.tables.layout import LOAD_ID, LOADED_AT, layout
from airflow_provider_webdata.results.tables.postgresql import PostgreSQL
from airflow_provider_webdata.results.tables.returned import FAILED, PARTIAL, REMOVED, has_failed, parts_of
from airflow_provider_webdata.results.tables.sqlite import SQLite

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from airflow_provider_webdata.results.columns import Column
    from airflow_provider_webdata.results.tables.database import Database, Values
    from airflow_provider_webdata.results.tables.layout import Layout, TableName

_DATABASES: Mapping[str, type[Database]] = {"postgres": PostgreSQL, "sqlite": SQLite, "duckdb": DuckDB}
"""The databases by the type of their connections."""

_OTHER_KEY = "Set another key, or use mode='replace' without a key"


def hook_of(connection: Any) -> Any:
    """Return the hook of an Airflow connection to a supported database.

    :raises TableError: the connection is of another type.
    :raises MissingPackageError: the provider of the database is missing.
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
        raise MissingPackageError(
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


@dataclass(frozen=True)
class Siblings:
    """The other loads of a DAG run that append rows by the same task.

    :param beginning: the beginning of their `load_id`.
    :param former: returns those whose task instances do not exist any more.
    """

    beginning: str
    former: Callable[[Sequence[str]], Sequence[str]]


@dataclass
class Tally:
    """What a load reads from its files.

    :param items: number of items, without removed pages.
    :param failed_pages: number of these whose page failed, and is not loaded.
    :param refused: number of these that are not loaded because their key is missing or too long.
    :param first_refused: the first of these, as text.
    """

    items: int = 0
    failed_pages: int = 0
    refused: int = 0
    first_refused: str = ""


def load_files(
    database: Database,
    source: Source,
    log: Any,
    *,
    create_table: bool = True,
    add_columns: bool = False,
    complete: Collection[str] = (),
    siblings: Siblings | None = None,
) -> tuple[Loaded, Tally]:
    """Load files of one kind into a table, in one transaction; the table is unchanged if anything fails.

    :param database: the database, closed afterwards.
    :param create_table: whether a missing table is created.
    :param add_columns: whether missing columns are added to the table.
    :param complete: paths of files with versions that have all pages, not only those that changed.
    :param siblings: the loads whose rows are deleted if their task instances do not exist any more.
    :raises TableError: a file is not a results file, the table is incompatible, or the database rejects a row.
    :raises LoadError: the database failed.
    """
    table = source.table
    done: list[str] = []
    loaded, tally = Loaded(), Tally()
    with closing(database.connection), source.open() as files, _transaction(database, table):
        made = source.layout(files)
        existing = database.existing(table)
        stamp = dict(source.stamp or {})
        if stamp and {LOAD_ID, LOADED_AT} <= existing.keys():
            done += _delete_appended(database, table, stamp, siblings)
        if made is not None:
            database.check_names(made)
            rows = values_of(files, made, tally, removed=not source.replace, max_bytes=database.max_key_bytes)
            if first := [*islice(rows, 1)]:
                if not stamp:
                    _check_versions(database, made, existing, source.paths)
                if made.has_versions and source.replace:
                    _check_complete(files, complete)
                if existing:
                    done += fit(database, made, existing, add_columns=add_columns)
                else:
                    done.append(_create(database, made, create_table=create_table))
                rows = chain(first, rows)
                if stamp:
                    ending, place = tuple(stamp.values()), len(made.columns) - len(stamp)
                    # A mark follows the columns.
                    rows = ((*values[:place], *ending, *values[place:]) for values in rows)
                loaded = database.load(made, rows, replaces=source.replace)
            loaded.columns = {column.name: column.type for column in made.columns}
    for change in done:
        log.info("%s", change)
    return loaded, tally


def _delete_appended(
    database: Database, table: TableName, stamp: dict[str, str], siblings: Siblings | None
) -> Iterator[str]:
    """Delete the rows of earlier attempts, whose time is kept, and of former instances; yield what was done."""
    again, first = database.delete_load(table, stamp[LOAD_ID])
    if first is not None:
        # A repeated load produces the same table.
        stamp[LOADED_AT] = first
        yield f"Replaced {again} rows that this load had appended at {first}"
    if siblings is None:
        return
    others = [one for one in database.loads(table, siblings.beginning) if one != stamp[LOAD_ID]]
    for load_id in siblings.former(others) if others else ():
        count, _ = database.delete_load(table, load_id)
        yield f"Deleted {count} rows of {load_id}, whose task instance does not exist any more"


def _create(database: Database, made: Layout, *, create_table: bool) -> str:
    statement = database.create_statement(made)
    if not create_table:
        raise TableError(
            f"The table {made.table} does not exist, and create_table=False; create it, for example with: {statement}"
        )
    database.execute(statement)
    return f"Created the table {made.table} with {len(made.columns)} columns"


def _check_versions(
    database: Database, made: Layout, existing: Collection[str], paths: Sequence[str]
) -> None:
    """Check that rows without versions do not replace rows that have them."""
    if made.has_versions or not {VERSION, SOURCE} <= {*map(database.folded, existing)}:
        return
    path = database.path_of(made.table)
    query = f"SELECT {SOURCE} FROM {path} WHERE {VERSION} IS NOT NULL LIMIT 1"
    for [other] in database.execute(query).fetchall():
        raise TableError(
            f"The table {made.table} has rows with versions, from {other}, but {paths[0]} is of a task without changes "
            "and could replace newer rows. Set changes in that task, or load its file into another table. To begin a "
            f"new table without versions, run: {database.rename_statement(made.table)}"
        )


def _check_complete(files: Sequence[ResultsFile], complete: Collection[str]) -> None:
    for file in files:
        if file.columns and file.url not in complete:
            raise TableError(
                f"mode='replace' would delete the rows of unchanged pages: the XComs of the tasks directly upstream do "
                f"not show that {file.url} has all pages. Use mode='upsert', or set Changes(emit='all') in the task "
                "that writes the file, and set it directly upstream"
            )


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
    names = {column.name for column in first.columns}
    for other in others:
        found = {column.name for column in other.columns}
        if (VERSION in found) != (VERSION in names):
            raise TableError(
                f"path: of {first.url} and {other.url}, only one is of a task with changes; load them separately"
            )
        if more := [column.name for column in other.columns if column.name not in names]:
            raise TableError(
                f"path: {other.url} has the column {more[0]!r}, but {first.url} does not; load only files of one kind "
                "together, or set kind"
            )
    return first.columns


def values_of(
    files: Sequence[ResultsFile],
    made: Layout,
    tally: Tally,
    *,
    removed: bool,
    max_bytes: int | None = None,
) -> Iterator[Values]:
    """Yield the rows of files with values in the layout's order, without those of `stamps`, and their mark, if any.

    Rows of failed pages are omitted. A search result whose page failed has no values of the page.

    :param tally: counts the items that were read.
    :param removed: whether removed pages have rows, if the layout has versions.
    :param max_bytes: maximum size of a key; rows with a longer one are omitted.
    """
    columns = [column for column in made.columns if column.name not in made.stamps]
    sources = [column.source for column in columns]
    names = {column.name: column.source for column in columns}
    key = [names[name] for name in made.key if name in names]
    required = [*key, VERSION] if made.has_versions else key
    for file in files:
        parts = parts_of({column.name for column in file.columns})
        for number, row in enumerate(file.rows(), 1):
            if isinstance(row, Removed):
                if made.has_versions and removed:
                    yield (*map(row.get, sources), REMOVED)
                continue
            tally.items += 1
            mark = 0
            if made.has_versions and row.get("change") == "failed":
                tally.failed_pages += 1
                continue
            if parts is not None:
                if has_failed(row):
                    tally.failed_pages += 1
                    if not parts.page or not parts.of_failed.isdisjoint(key):
                        continue
                    row.update(dict.fromkeys(parts.of_failed))
                    mark = FAILED
                elif parts.together and not row[parts.sign]:
                    mark = PARTIAL
            lacking = next((name for name in required if row.get(name) is None), None)
            if lacking is not None and not made.has_versions:
                raise TableError(f"key: item {number} of {file.url} has no {lacking}. {_OTHER_KEY}")
            values = tuple(map(row.get, sources))
            if lacking is not None or (
                max_bytes is not None and _is_longer([row[name] for name in key], max_bytes)
            ):
                tally.refused += 1
                what = made.key_of(values) if lacking is None else f"item {number} of {file.url}"
                tally.first_refused = tally.first_refused or what
                continue
            yield (*values, mark) if made.has_marks else values


def _is_longer(key: Sequence[Any], most: int) -> bool:
    texts = [value for value in key if isinstance(value, str)]
    # A character has at most four bytes.
    return sum(map(len, texts)) * 4 > most and sum(len(text.encode()) for text in texts) > most
