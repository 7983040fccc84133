"""Base of the databases for a load."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.results.tables.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from airflow_provider_webdata.results.columns import ColumnType
    from airflow_provider_webdata.results.tables.layout import Layout, TableColumn, TableName

Values = tuple[Any, ...]

_BATCH_CHARACTERS = 2**23


def batches(rows: Iterator[Values], most: int = 10_000) -> Iterator[list[Values]]:
    """Yield rows in lists of at most `most` rows, each of which ends once its texts have 8 Mi characters."""
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


def without_nul(values: Values) -> Values:
    """Replace NUL in texts by U+FFFD, as browsers do: not every database accepts it."""
    if not any(isinstance(value, str) and "\0" in value for value in values):
        return values
    return tuple(value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in values)


@dataclass(frozen=True)
class Existing:
    """A column of a table that is there.

    :param type: as the database calls it.
    :param required: whether a new row must say something for it.
    """

    type: str
    required: bool


@dataclass
class Loaded:
    """What a load did.

    :param rows: that the table has from the file.
    :param deleted: rows whose page is gone.
    :param held_back: rows whose page is said to be gone, where these were too many to delete.
    :param duplicates: rows of the file that a later one with the same key replaced.
    :param columns: that the rows have, with their types.
    """

    rows: int = 0
    deleted: int = 0
    held_back: int = 0
    duplicates: int = 0
    columns: dict[str, str] = field(default_factory=dict)


class Database(ABC):
    """A connection, on which one load is one transaction.

    :param connection: of the hook, for exclusive use.
    """

    types: ClassVar[Mapping[ColumnType, str]]
    """What a new table's columns are."""

    accepted: ClassVar[Mapping[ColumnType, Collection[str]]] = {}
    """Types that hold a column's values, without what is in parentheses; of a kind that is not here, any does."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @abstractmethod
    def begin(self, table: TableName) -> None:
        """Begin a transaction, during which no other load writes to the table."""

    @abstractmethod
    def existing(self, table: TableName) -> dict[str, Existing]:
        """Return a table's columns by name; none where there is no such table."""

    @abstractmethod
    def load(
        self, layout: Layout, rows: Iterator[Values], removed: dict[str, None], *, replace: bool
    ) -> Loaded:
        """Load rows.

        :param layout: of a table that is there and fits.
        :param removed: values of the layout's `removal_key` whose rows are deleted; filled while the rows are read, and
            final after the last one.
        :param replace: whether the former rows of the table are deleted, if there are new rows.
        """

    @abstractmethod
    def delete_pages(self, table: str, column: str, urls: Sequence[str]) -> int:
        """Delete rows by the values of a column, and return how many there were.

        :param table: in SQL.
        :param column: in SQL.
        """

    def execute(self, statement: str, values: Values | None = None) -> Any:
        """Execute a statement and return its cursor."""
        cursor = self.cursor()
        if values is None:
            cursor.execute(statement)
        else:
            cursor.execute(statement, values)
        return cursor

    def cursor(self) -> Any:
        """Return a cursor on this very transaction."""
        return self.connection.cursor()

    def quoted(self, name: str) -> str:
        """Return a name as an identifier that means nothing else."""
        if "\0" in name:
            raise TableError(f"a name in SQL cannot hold the character NUL (given: {name!r})")
        return '"' + name.replace('"', '""') + '"'

    def path_of(self, table: TableName) -> str:
        """Return a table's name in SQL."""
        return ".".join(map(self.quoted, table.parts))

    def listed(self, names: Sequence[str]) -> str:
        """Return names in SQL, with commas between them."""
        return ", ".join(map(self.quoted, names))

    def definition(self, column: TableColumn) -> str:
        """Return a column as SQL defines it."""
        return f"{self.quoted(column.name)} {self.types[column.type]}"

    def create_statement(self, layout: Layout) -> str:
        """Return the statement that makes the table."""
        parts = [
            self.definition(column) + (" NOT NULL" if column.name in layout.key else "")
            for column in layout.columns
        ]
        if layout.key:
            parts.append(f"PRIMARY KEY ({self.listed(layout.key)})")
        return f"CREATE TABLE {self.path_of(layout.table)} ({', '.join(parts)})"

    def add_statement(self, table: TableName, column: TableColumn) -> str:
        """Return the statement that adds a column."""
        return f"ALTER TABLE {self.path_of(table)} ADD COLUMN {self.definition(column)}"

    def check_key(self, layout: Layout) -> None:  # noqa: B027 - not every kind needs it
        """Check that the key distinguishes rows.

        :raises TableError: no unique constraint or index is on these columns.
        """

    def commit(self) -> None:
        """End the transaction well."""
        self.connection.commit()

    def rollback(self) -> None:
        """Undo the transaction."""
        self.connection.rollback()


class StagingDatabase(Database):
    """A database that takes the rows into a temporary table first, and from there into the table by one statement."""

    row_number: ClassVar[str]
    """The hidden column that says which of two rows came later."""

    stage = "webdata_rows_of_one_load"
    stage_ends = ""

    @abstractmethod
    def fill_stage(self, layout: Layout, rows: Iterator[Values]) -> int:
        """Put the rows into the temporary table, and return how many there are."""

    def upsert_statement(self, layout: Layout) -> str:
        """Return the statement that takes over what is in the temporary table."""
        names = self.listed(layout.names)
        # SQLite takes ON for part of a join if there is no WHERE.
        insert = (
            f"INSERT INTO {self.path_of(layout.table)} ({names}) SELECT {names} FROM {self.stage} WHERE true"
        )
        if not layout.key:
            return insert
        updates = ", ".join(
            f"{name} = excluded.{name}"
            for name in (self.quoted(name) for name in layout.names if name not in layout.key)
        )
        action = f"UPDATE SET {updates}" if updates else "NOTHING"
        return f"{insert} ON CONFLICT ({self.listed(layout.key)}) DO {action}"

    def check_key(self, layout: Layout) -> None:
        if not layout.key:
            return
        key = self.listed(layout.key)
        table = self.path_of(layout.table)
        try:
            # It changes nothing, but is refused where the real one would be.
            self.execute(
                f"INSERT INTO {table} ({key}) SELECT {key} FROM {table} WHERE 1 = 0 ON CONFLICT ({key}) DO NOTHING"
            )
        except Exception as error:
            if "constraint" not in str(error).lower():
                raise
            raise TableError(
                f"The table {layout.table} has no unique constraint on its key ({', '.join(layout.key)}), which "
                f"upserts need: CREATE UNIQUE INDEX ON {table} ({key}), or name another key"
            ) from error

    def load(
        self, layout: Layout, rows: Iterator[Values], removed: dict[str, None], *, replace: bool
    ) -> Loaded:
        table = self.path_of(layout.table)
        names = self.listed(layout.names)
        self.execute(
            f"CREATE TEMPORARY TABLE {self.stage}{self.stage_ends} AS SELECT {names} FROM {table} WHERE 1 = 0"
        )
        count = self.fill_stage(layout, rows)
        loaded = Loaded()
        if removed and layout.removal_key is not None:
            column = self.quoted(layout.removal_key)
            # Such a page came first, and its end later.
            count -= self.delete_pages(self.stage, column, [*removed])
            loaded.deleted = self.delete_pages(table, column, [*removed])
        if layout.key:
            loaded.duplicates = self._drop_duplicates(layout)
        if replace and count:
            self.execute(f"DELETE FROM {table}")
        self.execute(self.upsert_statement(layout))
        self.execute(f"DROP TABLE {self.stage}")
        loaded.rows = count - loaded.duplicates
        return loaded

    def _drop_duplicates(self, layout: Layout) -> int:
        key, number = self.listed(layout.key), self.row_number
        [[duplicates]] = self.execute(
            f"SELECT count(*) - (SELECT count(*) FROM (SELECT 1 FROM {self.stage} GROUP BY {key}) AS keys) "
            f"FROM {self.stage}"
        ).fetchall()
        if duplicates:
            self.execute(
                f"DELETE FROM {self.stage} WHERE {number} IN (SELECT number FROM (SELECT {number} AS number, "
                f"row_number() OVER (PARTITION BY {key} ORDER BY {number} DESC) AS age FROM {self.stage}) AS ranked "
                "WHERE age > 1)"
            )
        return int(duplicates)
