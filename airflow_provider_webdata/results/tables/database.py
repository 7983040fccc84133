# SPDX-License-Identifier: Apache-2.0
"""Base class of databases for loads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.results.columns import REMOVED_AT, SOURCE, VERSION
from airflow_provider_webdata.results.tables.errors import TableError, is_rejection, state_of
from airflow_provider_webdata.results.tables.layout import LOAD_ID, LOADED_AT, OF_VERSIONS, TableColumn, shown
from airflow_provider_webdata.results.tables.returned import FAILED, OUTDATED, REMOVED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set

    from airflow_provider_webdata.results.columns import ColumnType
    from airflow_provider_webdata.results.tables.layout import Layout, TableName

Values = tuple[Any, ...]

_BATCH_CHARACTERS = 2**23
_NO_ARBITER = "42P10"
"""PostgreSQL's state for an upsert whose key has no unique constraint."""
_MARK = TableColumn("", "webdata_unreturned", "integer")
"""Column of the temporary table with the marks of rows; see `returned`."""


def batches(rows: Iterator[Values], most: int = 10_000) -> Iterator[list[Values]]:
    """Yield rows in lists of at most `most` rows. A list ends early when its texts reach 8 Mi characters."""
    batch: list[Values] = []
    held = 0
    for values in rows:
        batch.append(values)
        held += sum(len(value) for value in values if isinstance(value, str))
        if held >= _BATCH_CHARACTERS or len(batch) == most:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


@dataclass(frozen=True)
class Existing:
    """A column of an existing table.

    :param type: the database's name of the type.
    :param required: whether a new row must have a value.
    :param is_key: whether the column is in the primary key, or another index or constraint that fixes its type.
    """

    type: str
    required: bool
    is_key: bool


@dataclass
class Loaded:
    """The outcome of a load.

    :param rows: number of the file's rows in the table.
    :param removed: number of rows that are marked as those of removed pages.
    :param outdated: number of the file's rows of which the table has a newer version.
    :param duplicates: number of the file's rows that a later row with the same key replaced.
    :param columns: columns of the rows, with their types.
    """

    rows: int = 0
    removed: int = 0
    outdated: int = 0
    duplicates: int = 0
    columns: dict[str, str] = field(default_factory=dict)


class Database(ABC):
    """A database connection for one load in one transaction.

    Rows are loaded into a temporary table first, and from there into the table with one statement.

    :param connection: the hook's connection, for exclusive use.
    :ivar rejected: key of the row that the database rejected, if known.
    :ivar step: the next step after an error, if known.
    """

    types: ClassVar[Mapping[ColumnType, str]]
    """SQL types of a new table's columns."""

    accepted: ClassVar[Mapping[ColumnType, Collection[str]]]
    """Accepted SQL types of existing columns, without parameters in parentheses."""

    mark: str = "?"
    """Placeholder of a value in a statement."""

    row_number: ClassVar[str]
    """The hidden column that orders rows by insertion."""

    stage = "webdata_rows_of_one_load"
    stage_ends = ""

    reserved: ClassVar[Collection[str]]
    """Names, in lower case, that a column cannot have."""

    retypes_keys: ClassVar[bool] = False
    """Whether a statement can change the type of a column that `Existing.is_key`."""

    drops_not_null: ClassVar[bool] = True
    """Whether a statement can drop NOT NULL from a column."""

    has_savepoints: ClassVar[bool] = True
    """Whether a transaction can continue after an error."""

    max_key_bytes: int | None = None
    """Maximum size of a key, if the database's index has one."""

    ignores_case: bool = False
    """Whether column names that differ only in the case of ASCII letters are the same."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.rejected = ""
        self.step = ""

    @property
    def name(self) -> str:
        """The database's name in messages."""
        return type(self).__name__

    def folded(self, name: str) -> str:
        """Return a column's name as the database compares it."""
        if not self.ignores_case:
            return name
        return "".join(letter.lower() if letter.isascii() else letter for letter in name)

    def check_names(self, layout: Layout) -> None:
        """Check that the columns have different and usable names.

        :raises TableError: a name is reserved, or two names are the same in the database.
        """
        names: dict[str, str] = {}
        for name in layout.names:
            if self.folded(name) in self.reserved:
                raise TableError(
                    f"columns: {name!r} is the name of a hidden column in {self.name}; rename it in columns"
                )
            if (other := names.setdefault(self.folded(name), name)) != name:
                raise TableError(
                    f"columns: {other!r} and {name!r} are the same name in {self.name}; rename one in columns"
                )

    @abstractmethod
    def begin(self, table: TableName) -> None:
        """Begin a transaction that excludes other loads into the table."""

    @abstractmethod
    def existing(self, table: TableName) -> dict[str, Existing]:
        """Return a table's columns by name, empty if the table does not exist."""

    @abstractmethod
    def fill_stage(self, layout: Layout, rows: Iterator[Values]) -> int:
        """Insert the rows into the temporary table, and return their number."""

    def delete_load(self, table: TableName, load_id: str) -> tuple[int, str | None]:
        """Delete the rows that a load appended; return their number, and their earliest `loaded_at`."""
        path, which = self.path_of(table), f"{LOAD_ID} = {self.mark}"
        if self.mark == "%s":
            path = path.replace("%", "%%")
        query = f"SELECT count(*), min({LOADED_AT}) FROM {path} WHERE {which}"
        [[count, first]] = self.execute(query, (load_id,)).fetchall()
        if count:
            self.execute(f"DELETE FROM {path} WHERE {which}", (load_id,))
        return int(count), None if first is None else str(first)

    def loads(self, table: TableName, beginning: str) -> list[str]:
        """Return the ids of the loads whose appended rows the table has, if they begin with a text."""
        path = self.path_of(table)
        if self.mark == "%s":
            path = path.replace("%", "%%")
        query = f"SELECT DISTINCT {LOAD_ID} FROM {path} WHERE substr({LOAD_ID}, 1, {len(beginning)}) = {self.mark}"
        return [load_id for [load_id] in self.execute(query, (beginning,)).fetchall()]

    def execute(self, statement: str, values: Values | None = None) -> Any:
        """Execute a statement and return its cursor."""
        cursor = self.cursor()
        if values is None:
            cursor.execute(statement)
        else:
            cursor.execute(statement, values)
        return cursor

    def cursor(self) -> Any:
        """Return a cursor of this transaction."""
        return self.connection.cursor()

    def quoted(self, name: str) -> str:
        """Return a name as a quoted identifier."""
        if "\0" in name:
            raise TableError(f"a name in SQL cannot hold the character NUL (given: {name!r})")
        return '"' + name.replace('"', '""') + '"'

    def path_of(self, table: TableName) -> str:
        """Return a table's quoted name."""
        return ".".join(map(self.quoted, table.parts))

    def listed(self, names: Sequence[str]) -> str:
        """Return quoted names, separated by commas."""
        return ", ".join(map(self.quoted, names))

    def definition(self, column: TableColumn) -> str:
        """Return a column's definition in SQL."""
        return f"{self.quoted(column.name)} {self.types[column.type]}"

    def create_statement(self, layout: Layout) -> str:
        """Return the statement that creates the table."""
        parts = [
            self.definition(column) + (" NOT NULL" if column.name in layout.key else "")
            for column in layout.columns
        ]
        if layout.key:
            parts.append(f"PRIMARY KEY ({self.listed(layout.key)})")
        return f"CREATE TABLE {self.path_of(layout.table)} ({', '.join(parts)})"

    def rename_statement(self, table: TableName) -> str:
        """Return the statement that sets a table aside."""
        return f"ALTER TABLE {self.path_of(table)} RENAME TO {self.quoted(f'{table.table}_former')}"

    def mending(
        self,
        table: TableName,
        missing: Sequence[TableColumn],
        retyped: Sequence[TableColumn],
        nullable: Sequence[str],
    ) -> list[str]:
        """Return the statements that add columns, change the types of others, and let others be null."""
        changes = [
            *(f"ADD COLUMN {self.definition(column)}" for column in missing),
            *(f"ALTER COLUMN {self.quoted(column.name)} TYPE {self.retyping(column)}" for column in retyped),
            *(f"ALTER COLUMN {self.quoted(name)} DROP NOT NULL" for name in nullable),
        ]
        return [f"ALTER TABLE {self.path_of(table)} {change}" for change in self.together(changes)]

    def retyping(self, column: TableColumn) -> str:
        """Return a column's new type, and how its values become that."""
        return self.types[column.type]

    def together(self, changes: Sequence[str]) -> Sequence[str]:
        """Return the changes of a table, as each statement can have them."""
        return changes

    def unique_index_statement(self, layout: Layout) -> str:
        """Return the statement that makes the key unique."""
        name = self.quoted(f"{layout.table.table}_webdata_key")
        return f"CREATE UNIQUE INDEX {name} ON {self.path_of(layout.table)} ({self.listed(layout.key)})"

    def commit(self) -> None:
        """Commit the transaction."""
        self.connection.commit()

    def rollback(self) -> None:
        """Roll the transaction back."""
        self.connection.rollback()

    def step_after(self, error: BaseException, table: TableName) -> str:  # noqa: ARG002
        """Return the next step after an error whose transaction was rolled back; empty if only its text has one."""
        return ""

    def upsert_statements(
        self, layout: Layout, mark: int | None = None, which: str = "true"
    ) -> Iterator[str]:
        """Yield the statements that upsert the rows of the temporary table.

        :param mark: upsert only the rows with this mark, see `returned`; None: all rows, which have no marks.
        :param which: a condition of these rows.
        """
        if mark is not None:
            which = f"{which} AND {_MARK.name} = {mark}"
            if mark >= OUTDATED:
                yield from self._fill_statements(layout, mark - OUTDATED, which)
                return
        names = (*layout.key, *OF_VERSIONS) if mark == REMOVED else layout.names
        unchanged = {*layout.key, *layout.unreturned.get(mark or 0, ())}
        updates = (self._update(name, layout) for name in names if name not in unchanged)
        yield self._upsert_statement(layout, names, updates, which)

    def _update(self, name: str, layout: Layout) -> str:
        quoted = self.quoted(name)
        if name in layout.formats:
            return f"{quoted} = coalesce(excluded.{quoted}, kept.{quoted})"
        return f"{quoted} = excluded.{quoted}"

    def _fill_statements(self, layout: Layout, mark: int, which: str) -> Iterator[str]:
        """Yield the statements by which outdated rows fill what the newer rows lack.

        These are the formats that a page did not return, and all data of a page that was removed before it was loaded.
        """
        if mark == REMOVED:
            return
        is_bare = [f"kept.{REMOVED_AT} IS NOT NULL", *map(self._is_empty, layout.data)]
        groups: list[tuple[Iterable[str], list[str]]] = [(layout.data, is_bare)]
        for lacking, lacked in layout.unreturned.items():
            if mark < lacking and lacked:
                had = lacked - layout.unreturned.get(mark, frozenset())
                groups.append((had, [*map(self._is_empty, layout.signs[lacking])]))
        for names, conditions in groups:
            updates = (f"{quoted} = excluded.{quoted}" for quoted in map(self.quoted, names))
            yield self._upsert_statement(layout, layout.names, updates, which, " AND ".join(conditions))
        if mark != FAILED:
            updates = (
                f"{quoted} = coalesce(kept.{quoted}, excluded.{quoted})"
                for quoted in map(self.quoted, layout.formats)
            )
            yield self._upsert_statement(layout, layout.names, updates, which)

    def _is_empty(self, name: str) -> str:
        return f"coalesce(CAST(kept.{self.quoted(name)} AS {self.types['text']}), '') = ''"

    def _upsert_statement(
        self, layout: Layout, names: Sequence[str], updates: Iterable[str], which: str, condition: str = ""
    ) -> str:
        # Without WHERE, SQLite would parse ON as part of a join.
        insert = (
            f"INSERT INTO {self.path_of(layout.table)} AS kept ({self.listed(names)}) "
            f"SELECT {self.listed(names)} FROM {self.stage} WHERE {which}"
        )
        if not layout.key:
            return insert
        changes = ", ".join(updates)
        action = f"UPDATE SET {changes}{condition and ' WHERE '}{condition}" if changes else "NOTHING"
        return f"{insert} ON CONFLICT ({self.listed(layout.key)}) DO {action}"

    def key_problem(self, layout: Layout, existing: Set[str]) -> tuple[str, str] | None:
        """Return why the key does not identify rows, and the statement that fixes it; None if it does.

        :param existing: folded names of the table's columns.
        """
        if not layout.key or (existing >= {*map(self.folded, layout.key)} and self._has_unique_key(layout)):
            return None
        return (
            f"its key ({', '.join(layout.key)}) has no unique constraint, which upserts need (delete duplicates first, "
            "or name another key)",
            self.unique_index_statement(layout),
        )

    def _has_unique_key(self, layout: Layout) -> bool:
        key, table = self.listed(layout.key), self.path_of(layout.table)
        try:
            # This changes nothing, but fails where the real statement would.
            self.execute(
                f"INSERT INTO {table} ({key}) SELECT {key} FROM {table} WHERE 1 = 0 ON CONFLICT ({key}) DO NOTHING"
            )
        except Exception as error:
            state = state_of(error)
            if (state == _NO_ARBITER) if state else ("constraint" in str(error).lower()):
                return False
            raise
        return True

    def load(self, layout: Layout, rows: Iterator[Values], *, replaces: bool) -> Loaded:
        """Load rows.

        :param layout: layout of an existing, compatible table.
        :param replaces: whether the table's existing rows are deleted, if there are new rows.
        :raises TableError: a row has versions of another source.
        """
        table = self.path_of(layout.table)
        names = self.listed(layout.names)
        staged = layout
        if layout.has_marks:
            staged = replace(layout, columns=(*layout.columns, _MARK))
            names += f", CAST(0 AS bigint) AS {_MARK.name}"
        self.execute(
            f"CREATE TEMPORARY TABLE {self.stage}{self.stage_ends} AS SELECT {names} FROM {table} WHERE 1 = 0"
        )
        count = self.fill_stage(staged, rows)
        loaded = Loaded()
        if layout.has_versions:
            self._check_sources(layout, replaces=replaces)
            if not replaces:
                loaded.outdated = self._mark_outdated(layout)
        if layout.key:
            loaded.duplicates = self._drop_duplicates(layout, has_outdated=loaded.outdated > 0)
        if replaces and count:
            self.execute(f"DELETE FROM {table}")
        loaded.rows = count - loaded.duplicates
        marks: list[int] = []
        if layout.has_marks:
            mark, removed = _MARK.name, f"count({REMOVED_AT})" if layout.has_versions else "0"
            found = self.execute(
                f"SELECT {mark}, count(*), {removed} FROM {self.stage} GROUP BY {mark} ORDER BY {mark} DESC"
            ).fetchall()
            current = [numbers for value, *numbers in found if value < OUTDATED]
            loaded.removed = sum(number for _, number in current)
            loaded.rows = sum(number for number, _ in current) - loaded.removed
            # Outdated rows are first, as if they had been loaded first.
            marks = [value for value, *_ in found]
        self._upsert_or_name(layout, marks if any(marks) else [None])
        self.execute(f"DROP TABLE {self.stage}")
        return loaded

    def _check_sources(self, layout: Layout, *, replaces: bool) -> None:
        """Check that no row that the load may change was written by another task."""
        path, key, stage = self.path_of(layout.table), self.quoted(layout.key[0]), self.stage
        [[number]] = self.execute(f"SELECT count(DISTINCT {SOURCE}) FROM {stage}").fetchall()
        twice = (
            f"SELECT one.{key}, one.{SOURCE}, other.{SOURCE} FROM {stage} AS one JOIN {stage} AS other "
            f"ON one.{key} = other.{key} WHERE one.{SOURCE} < other.{SOURCE} LIMIT 1"
        )
        for page, one, other in self.execute(twice).fetchall() if number > 1 else ():
            raise TableError(
                f"{shown(page)} is in the results of {one} and of {other}. Load them into different tables, or let the "
                "tasks read different pages; a batch search finds each page once"
            )
        if replaces:
            query = (
                f"SELECT kept.{key}, kept.{SOURCE}, loaded.{SOURCE} FROM {path} AS kept, "
                f"(SELECT min({SOURCE}) AS {SOURCE} FROM {stage}) AS loaded WHERE kept.{SOURCE} IS NOT NULL "
                f"AND kept.{SOURCE} NOT IN (SELECT {SOURCE} FROM {stage} WHERE {SOURCE} IS NOT NULL) LIMIT 1"
            )
        else:
            query = (
                f"SELECT kept.{key}, kept.{SOURCE}, loaded.{SOURCE} FROM {stage} AS loaded JOIN {path} AS kept "
                f"ON kept.{key} = loaded.{key} WHERE kept.{SOURCE} <> loaded.{SOURCE} LIMIT 1"
            )
        for page, other, source in self.execute(query).fetchall():
            former, current = (_task_of(one) for one in (other, source))
            is_renamed = former != current and other.removeprefix(former) == source.removeprefix(current)
            owner, value = f"{other}/", "NULL"
            reason = "its pages moved to this task,"
            if is_renamed:
                owner, value = f"{former}/", f"{_literal(current)} || substr({SOURCE}, {len(former) + 1})"
                reason = (
                    "the task was renamed, copy its state (in its folder of changes, from "
                    f"<environment>/{former} to <environment>/{current}), and"
                )
            raise TableError(
                f"The row of {shown(page)} in the table {layout.table} is from {other}, but the file is from "
                f"{source}. Load the results of different tasks into different tables, or let them read different "
                f"pages. If {reason} run: UPDATE {path} SET {SOURCE} = {value} "
                f"WHERE substr({SOURCE} || '/', 1, {len(owner)}) = {_literal(owner)}"
            )

    def _mark_outdated(self, layout: Layout) -> int:
        """Mark the rows of the temporary table of which the table has a newer version, and return their number."""
        key, stage = self.quoted(layout.key[0]), self.stage
        newer = (
            f"SELECT 1 FROM {self.path_of(layout.table)} AS kept "
            f"WHERE kept.{key} = {stage}.{key} AND kept.{VERSION} > {stage}.{VERSION}"
        )
        names = self.listed(layout.names)
        outdated = f"{stage}_outdated"
        self.execute(
            f"CREATE TEMPORARY TABLE {outdated}{self.stage_ends} AS SELECT {names}, "
            f"{_MARK.name} + {OUTDATED} AS {_MARK.name} FROM {stage} WHERE EXISTS ({newer}) ORDER BY {self.row_number}"
        )
        [[count]] = self.execute(f"SELECT count(*) FROM {outdated}").fetchall()
        if count:
            names = f"{names}, {_MARK.name}"
            self.execute(f"DELETE FROM {stage} WHERE EXISTS ({newer})")
            self.execute(
                f"INSERT INTO {stage} ({names}) SELECT {names} FROM {outdated} ORDER BY {self.row_number}"
            )
        self.execute(f"DROP TABLE {outdated}")
        return int(count)

    def upsert(self, layout: Layout, marks: Sequence[int | None], which: str = "true") -> None:
        """Upsert rows of the temporary table, and check all constraints, also deferred ones where possible.

        :param marks: see `upsert_statements`; None: all rows.
        :param which: a condition of the rows.
        """
        for mark in marks:
            for statement in self.upsert_statements(layout, mark, which):
                self.execute(statement)

    def _upsert_or_name(self, layout: Layout, marks: Sequence[int | None]) -> None:
        """Upsert all rows; if the table rejects one, find it."""
        if self.has_savepoints:
            self.execute("SAVEPOINT webdata_rows")
        try:
            self.upsert(layout, marks)
        except Exception as error:
            if self.has_savepoints and is_rejection(error):
                # The original error matters more than that of the search.
                with suppress(Exception):
                    self.rejected = self._rejected_row(layout, marks)
            raise

    def _rejected_row(self, layout: Layout, marks: Sequence[int | None]) -> str:
        """Return the key of the first row that the table rejects after those before it.

        Empty if it rejects even no rows, for example because a right is missing. Each row is upserted about once.
        """
        self.execute("ROLLBACK TO SAVEPOINT webdata_rows")
        number, stage = self.row_number, self.stage
        if self._rejects(layout, marks, "1 = 0"):
            return ""
        rows = [row for [row] in self.execute(f"SELECT {number} FROM {stage} ORDER BY {number}").fetchall()]
        # The rows before `low` are upserted. One before `high` is rejected.
        low, high = 0, len(rows)
        while high - low > 1:
            middle = (low + high) // 2
            if self._rejects(layout, marks, f"{number} BETWEEN '{rows[low]}' AND '{rows[middle - 1]}'"):
                high = middle
            else:
                low = middle
        [values] = self.execute(
            f"SELECT {self.listed(layout.names)} FROM {stage} WHERE {number} = '{rows[low]}'"
        ).fetchall()
        return layout.key_of(values)

    def _rejects(self, layout: Layout, marks: Sequence[int | None], which: str) -> bool:
        self.execute("SAVEPOINT webdata_rows")
        try:
            self.upsert(layout, marks, which)
        except Exception as error:
            if not is_rejection(error):
                raise
            self.execute("ROLLBACK TO SAVEPOINT webdata_rows")
            return True
        return False

    def _drop_duplicates(self, layout: Layout, *, has_outdated: bool) -> int:
        """Leave one row of each key in the temporary table, and return the number of the others.

        :param has_outdated: whether some rows are outdated. Each key then has one of these, too.
        """
        number, stage = self.row_number, self.stage
        key = self.listed(layout.key) + (f", {_MARK.name} >= {OUTDATED}" if has_outdated else "")
        [[duplicates]] = self.execute(
            f"SELECT count(*) - (SELECT count(*) FROM (SELECT 1 FROM {stage} GROUP BY {key}) AS keys) FROM {stage}"
        ).fetchall()
        if not duplicates:
            return 0
        # As if each item were loaded separately: the last one wins, but for what its page did not return.
        newest = f"{VERSION} DESC, {number} DESC" if layout.has_versions else f"{number} DESC"
        marks = [f"min({_MARK.name}) OVER (PARTITION BY {key}) AS {_MARK.name}"] if layout.has_marks else []
        several = f"({key}) IN (SELECT {key} FROM {stage} GROUP BY {key} HAVING count(*) > 1)"
        merged = f"{stage}_merged"
        names = self.listed(layout.names) + (f", {_MARK.name}" if layout.has_marks else "")
        values = (self._last_value(name, layout, key, newest) for name in layout.names)
        self.execute(
            f"CREATE TEMPORARY TABLE {merged}{self.stage_ends} AS SELECT {names} FROM ("
            f"SELECT {', '.join([*values, *marks])}, "
            f"row_number() OVER (PARTITION BY {key} ORDER BY {newest}) AS webdata_age "
            f"FROM {stage} WHERE {several}) AS ranked WHERE webdata_age = 1"
        )
        self.execute(f"DELETE FROM {stage} WHERE {several}")
        self.execute(f"INSERT INTO {stage} ({names}) SELECT {names} FROM {merged}")
        self.execute(f"DROP TABLE {merged}")
        return int(duplicates)

    def _last_value(self, name: str, layout: Layout, key: str, newest: str) -> str:
        """Return the expression of a column's value in the last row of a key that has it."""
        quoted = self.quoted(name)
        lacking = [mark for mark, names in layout.unreturned.items() if name in names]
        if layout.has_versions and name in layout.data:
            lacking.append(REMOVED)
        conditions = [
            *([f"{quoted} IS NULL"] if name in layout.formats else []),
            *([f"{_MARK.name} % {OUTDATED} IN ({', '.join(map(str, lacking))})"] if lacking else []),
        ]
        if not conditions:
            return quoted
        return (
            f"first_value({quoted}) OVER (PARTITION BY {key} "
            f"ORDER BY CASE WHEN {' OR '.join(conditions)} THEN 1 ELSE 0 END, {newest}) AS {quoted}"
        )


def _task_of(source: str) -> str:
    """Return the DAG and the task of a source, without the instance."""
    return "/".join(source.split("/")[:2])


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
