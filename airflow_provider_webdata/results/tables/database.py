"""Base class of databases for loads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.results.tables.errors import TableError, is_rejection, state_of
from airflow_provider_webdata.results.tables.layout import LOAD_ID, LOADED_AT, TableColumn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence, Set

    from airflow_provider_webdata.results.columns import ColumnType
    from airflow_provider_webdata.results.tables.layout import Layout, TableName

Values = tuple[Any, ...]

_BATCH_CHARACTERS = 2**23
_NO_ARBITER = "42P10"
"""PostgreSQL's state for an upsert whose key has no unique constraint."""
_MARK = TableColumn("", "webdata_unreturned", "integer")
"""Column of the temporary table with the marks of rows; see `Layout.unreturned`."""


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


def _noted(rows: Iterator[Values], marks: set[int]) -> Iterator[Values]:
    """Yield the rows, and add their marks to a set."""
    for values in rows:
        marks.add(values[-1])
        yield values


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
    :param deleted: number of deleted rows of removed pages.
    :param held_back: number of rows of removed pages that were not deleted, because there were too many.
    :param duplicates: number of the file's rows that a later row with the same key replaced.
    :param items: number of the file's items, without removed pages.
    :param failed_pages: number of these whose page failed, and is not loaded.
    :param columns: columns of the rows, with their types.
    """

    rows: int = 0
    deleted: int = 0
    held_back: int = 0
    duplicates: int = 0
    items: int = 0
    failed_pages: int = 0
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

    @abstractmethod
    def delete_pages(self, table: str, column: str, urls: Sequence[str]) -> int:
        """Delete rows by the values of a column, and return their number.

        :param table: quoted name of the table.
        :param column: quoted name of the column.
        """

    def delete_load(self, table: TableName, load_id: str) -> tuple[int, str | None]:
        """Delete the rows that a load appended; return their number, and their earliest `loaded_at`."""
        path = self.path_of(table)
        bound = path.replace("%", "%%") if self.mark == "%s" else path
        [[first]] = self.execute(
            f"SELECT min({LOADED_AT}) FROM {bound} WHERE {LOAD_ID} = {self.mark}", (load_id,)
        ).fetchall()
        if first is None:
            return 0, None
        return self.delete_pages(path, LOAD_ID, [load_id]), str(first)

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

    def upsert_statement(self, layout: Layout, mark: int | None = None, which: str = "true") -> str:
        """Return the statement that upserts the rows of the temporary table.

        :param mark: upsert only the rows with this mark; see `Layout.unreturned`.
        :param which: a condition of these rows.
        """
        names = self.listed(layout.names)
        # Without WHERE, SQLite would parse ON as part of a join.
        which = which if mark is None else f"{which} AND {_MARK.name} = {mark}"
        insert = (
            f"INSERT INTO {self.path_of(layout.table)} AS kept ({names}) "
            f"SELECT {names} FROM {self.stage} WHERE {which}"
        )
        if not layout.key:
            return insert
        unchanged = {*layout.key, *layout.unreturned.get(mark or 0, ())}
        updates = ", ".join(
            f"{quoted} = coalesce(excluded.{quoted}, kept.{quoted})"
            if name in layout.formats
            else f"{quoted} = excluded.{quoted}"
            for name, quoted in ((name, self.quoted(name)) for name in layout.names)
            if name not in unchanged
        )
        action = f"UPDATE SET {updates}" if updates else "NOTHING"
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

    def load(
        self, layout: Layout, rows: Iterator[Values], removed: dict[str, None], *, replaces: bool
    ) -> Loaded:
        """Load rows.

        :param layout: layout of an existing, compatible table.
        :param removed: values of the layout's `removal_key` whose rows are deleted; filled while the rows are read, and
            complete after the last row.
        :param replaces: whether the table's existing rows are deleted, if there are new rows.
        """
        table = self.path_of(layout.table)
        names = self.listed(layout.names)
        staged, marks = layout, set[int]()
        if layout.unreturned:
            staged = replace(layout, columns=(*layout.columns, _MARK))
            names += f", CAST(0 AS bigint) AS {_MARK.name}"
            rows = _noted(rows, marks)
        self.execute(
            f"CREATE TEMPORARY TABLE {self.stage}{self.stage_ends} AS SELECT {names} FROM {table} WHERE 1 = 0"
        )
        count = self.fill_stage(staged, rows)
        loaded = Loaded()
        if removed and layout.removal_key is not None:
            column = self.quoted(layout.removal_key)
            # The file has the page first, and its removal later.
            count -= self.delete_pages(self.stage, column, [*removed])
            loaded.deleted = self.delete_pages(table, column, [*removed])
        if layout.key:
            loaded.duplicates = self._drop_duplicates(layout)
        if replaces and count:
            self.execute(f"DELETE FROM {table}")
        self._upsert_or_name(layout, sorted(marks) if any(marks) else [None])
        self.execute(f"DROP TABLE {self.stage}")
        loaded.rows = count - loaded.duplicates
        return loaded

    def upsert(self, layout: Layout, marks: Sequence[int | None], which: str = "true") -> None:
        """Upsert rows of the temporary table, and check all constraints, also deferred ones where possible.

        :param marks: see `upsert_statement`; None: all rows.
        :param which: a condition of the rows.
        """
        for mark in marks:
            self.execute(self.upsert_statement(layout, mark, which))

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

    def _drop_duplicates(self, layout: Layout) -> int:
        """Leave one row of each key in the temporary table, and return the number of the others."""
        key, number, stage = self.listed(layout.key), self.row_number, self.stage
        [[duplicates]] = self.execute(
            f"SELECT count(*) - (SELECT count(*) FROM (SELECT 1 FROM {stage} GROUP BY {key}) AS keys) FROM {stage}"
        ).fetchall()
        if not duplicates:
            return 0
        # As if each item were loaded separately: the last one wins, but for what its page did not return.
        marks = [f"min({_MARK.name}) OVER (PARTITION BY {key}) AS {_MARK.name}"] if layout.unreturned else []
        several = f"({key}) IN (SELECT {key} FROM {stage} GROUP BY {key} HAVING count(*) > 1)"
        merged = f"{stage}_merged"
        names = self.listed(layout.names) + (f", {_MARK.name}" if layout.unreturned else "")
        self.execute(
            f"CREATE TEMPORARY TABLE {merged}{self.stage_ends} AS SELECT {names} FROM ("
            f"SELECT {', '.join([*(self._last_value(name, layout) for name in layout.names), *marks])}, "
            f"row_number() OVER (PARTITION BY {key} ORDER BY {number} DESC) AS webdata_age "
            f"FROM {stage} WHERE {several}) AS ranked WHERE webdata_age = 1"
        )
        self.execute(f"DELETE FROM {stage} WHERE {several}")
        self.execute(f"INSERT INTO {stage} ({names}) SELECT {names} FROM {merged}")
        self.execute(f"DROP TABLE {merged}")
        return int(duplicates)

    def _last_value(self, name: str, layout: Layout) -> str:
        """Return the expression of a column's value in the last row of a key that has it."""
        quoted = self.quoted(name)
        lacking = [mark for mark, names in layout.unreturned.items() if name in names]
        conditions = [
            *([f"{quoted} IS NULL"] if name in layout.formats else []),
            *([f"{_MARK.name} IN ({', '.join(map(str, lacking))})"] if lacking else []),
        ]
        if not conditions:
            return quoted
        return (
            f"first_value({quoted}) OVER (PARTITION BY {self.listed(layout.key)} "
            f"ORDER BY CASE WHEN {' OR '.join(conditions)} THEN 1 ELSE 0 END, {self.row_number} DESC) AS {quoted}"
        )
