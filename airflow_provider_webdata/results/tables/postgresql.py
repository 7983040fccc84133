# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL: loads rows into a temporary table with `COPY`, and upserts from there with `ON CONFLICT`."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.results.tables.database import Database, Existing, Values
from airflow_provider_webdata.results.tables.errors import TableError, lacks_rights, state_of
from airflow_provider_webdata.results.tables.layout import TableName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set

    from airflow_provider_webdata.results.columns import ColumnType
    from airflow_provider_webdata.results.tables.layout import Layout, TableColumn

_CHUNK_CHARACTERS = 2**19
_NAME_BYTES = 63
# The line of a row in the context of an error of COPY, in any language.
_LINE = re.compile(rf"^COPY {Database.stage}\D*(\d+)", re.MULTILINE)
# A surrogate pair, an escape that `jsonb` rejects (the group), or another one.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2}))|\\."
)
_TEXTS = ("text", "character varying", "citext")
_COLUMNS = """
SELECT attname, format_type(atttypid, NULL), attnotnull AND NOT atthasdef AND attidentity = '',
  EXISTS (SELECT FROM pg_catalog.pg_index WHERE indrelid = attrelid AND indisprimary AND attnum = ANY (indkey))
FROM pg_catalog.pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
"""
# The deferrable constraints on a key, with their columns in any order.
_DEFERRABLE = """
SELECT quote_ident(conname), contype FROM pg_catalog.pg_constraint
WHERE conrelid = to_regclass(%s) AND contype IN ('p', 'u') AND condeferrable AND (
  SELECT array_agg(attname::text ORDER BY attname::text) FROM pg_catalog.pg_attribute
  WHERE attrelid = conrelid AND attnum = ANY (conkey)
) = (SELECT array_agg(name ORDER BY name) FROM unnest(%s::text[]) AS name)
"""
_NO_SCHEMA = "3F000"
# The catalog is readable for every role. The table's schema may be closed to the role, or not exist.
_RIGHTS = """
SELECT quote_ident(current_user), quote_ident(current_database()), quote_ident(n.nspname),
  has_database_privilege(current_database(), 'TEMPORARY'),
  has_schema_privilege(n.oid, 'USAGE'), has_schema_privilege(n.oid, 'CREATE'),
  t.oid IS NOT NULL, has_table_privilege(t.oid, 'SELECT'), has_table_privilege(t.oid, 'INSERT'),
  has_table_privilege(t.oid, 'UPDATE'), has_table_privilege(t.oid, 'DELETE'),
  quote_ident(pg_get_userbyid(t.relowner)), pg_has_role(t.relowner, 'USAGE')
FROM pg_catalog.pg_namespace n
LEFT JOIN pg_catalog.pg_class t ON t.relnamespace = n.oid AND t.relname = %s
WHERE n.nspname = coalesce(%s, current_schema(), 'public')
"""
# The lock's name contains the schema even if the DAG does not specify it.
_LOCK = """
SELECT pg_advisory_xact_lock(hashtext('webdata table ' || coalesce(
  %s::text,
  (SELECT nspname::text FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
   WHERE t.oid = to_regclass(%s)),
  current_schema()::text
) || '.' || %s::text))
"""


class PostgreSQL(Database):
    """PostgreSQL, by psycopg2 or psycopg 3."""

    # `json` stores the service's JSON verbatim; `jsonb` rejects some of it.
    types: ClassVar[Mapping[ColumnType, str]] = {
        "text": "text",
        "json": "json",
        "integer": "bigint",
        "number": "double precision",
        "boolean": "boolean",
    }
    accepted: ClassVar[Mapping[ColumnType, Collection[str]]] = {
        "text": _TEXTS,
        "json": ("json", "jsonb", *_TEXTS),
        "integer": ("bigint", "integer", "numeric"),
        "number": ("double precision", "numeric"),
        "boolean": ("boolean",),
    }
    mark = "%s"
    reserved = frozenset({"ctid", "cmax", "cmin", "tableoid", "xmax", "xmin"})
    row_number = "ctid"
    # An entry of an index has at most 2,704 bytes, with its headers.
    max_key_bytes = 2_600
    retypes_keys = True
    stage_ends = " ON COMMIT DROP"

    def quoted(self, name: str) -> str:
        # PostgreSQL would truncate the name, which could make two columns the same.
        if len(name.encode()) > _NAME_BYTES:
            raise TableError(f"a name in PostgreSQL has at most {_NAME_BYTES} bytes (given: {name!r})")
        return super().quoted(name)

    def begin(self, table: TableName) -> None:
        self.connection.autocommit = False
        # A stricter level, which a role or a database may set, would not see what the load before this one committed.
        self.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        # Loads into the same table wait for each other; readers and other writers do not.
        self.execute(_LOCK, (table.schema, self.path_of(table), table.table))

    def existing(self, table: TableName) -> dict[str, Existing]:
        found = self.execute(_COLUMNS, (self.path_of(table),)).fetchall()
        return {name: Existing(*column) for name, *column in found}

    def retyping(self, column: TableColumn) -> str:
        # PostgreSQL has no cast between some types, but each has one from and to text.
        type_ = self.types[column.type]
        return f"{type_} USING {self.quoted(column.name)}::text::{type_}"

    def together(self, changes: Sequence[str]) -> Sequence[str]:
        return [", ".join(changes)] if changes else []

    def key_problem(self, layout: Layout, existing: Set[str]) -> tuple[str, str] | None:
        path, key = self.path_of(layout.table), self.listed(layout.key)
        for name, kind in self.execute(_DEFERRABLE, (path, [*layout.key])).fetchall():
            # An upsert fails at its first row even if the key also has an index that is not deferrable.
            type_ = "PRIMARY KEY" if kind == "p" else "UNIQUE"
            return (
                f"its constraint {name} on the key is deferrable, which upserts do not support",
                f"ALTER TABLE {path} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} {type_} ({key})",
            )
        return super().key_problem(layout, existing)

    def step_after(self, error: BaseException, table: TableName) -> str:
        if state_of(error) == _NO_SCHEMA:
            if table.schema is None:
                return (
                    f"The role may use no schema of its search_path. Name the schema in table ('schema.{table}'), "
                    "then clear the task"
                )
            return f"Create the schema, then clear the task: CREATE SCHEMA {self.quoted(table.schema)}"
        if not lacks_rights(error):
            return ""
        [found] = self.execute(_RIGHTS, (table.table, table.schema)).fetchall()
        role, database, schema, may_stage, may_use, may_create, exists, *may, owner, owns = found
        names = [
            name for name, has in zip(("SELECT", "INSERT", "UPDATE", "DELETE"), may, strict=True) if not has
        ]
        path = f"{schema}.{self.quoted(table.table)}"
        statements = [
            *([] if may_stage else [f"GRANT TEMPORARY ON DATABASE {database} TO {role}"]),
            *([] if may_use else [f"GRANT USAGE ON SCHEMA {schema} TO {role}"]),
            *([] if exists or may_create else [f"GRANT CREATE ON SCHEMA {schema} TO {role}"]),
            *([f"GRANT {', '.join(names)} ON {path} TO {role}"] if exists and names else []),
        ]
        if not statements and exists and not owns:
            return (
                f"Only {owner}, the owner of the table, may add columns. Set add_columns=False: the error then has the "
                "statement for the owner"
            )
        if not statements:
            return ""
        return f"As an owner or administrator, run: {'; '.join(statements)}. Then clear the task"

    def fill_stage(self, layout: Layout, rows: Iterator[Values]) -> int:
        # The temporary table has the types of the table.
        types = self.existing(TableName(None, self.stage))
        binary = {place for place, name in enumerate(layout.names) if types[name].type == "jsonb"}
        if binary:
            rows = (
                tuple(
                    _for_jsonb(value) if place in binary and value is not None else value
                    for place, value in enumerate(values)
                )
                for values in rows
            )
        return self._copy(self.stage, rows, layout)

    def upsert(self, layout: Layout, marks: Sequence[int | None], which: str = "true") -> None:
        super().upsert(layout, marks, which)
        # At the commit, no row could be named.
        self.execute("SET CONSTRAINTS ALL IMMEDIATE")

    def cursor(self) -> Any:
        # Rows must be tuples, even if the connection's settings specify another cursor.
        if type(self.connection).__module__.startswith("psycopg2"):
            from psycopg2.extensions import cursor as plain

            return self.connection.cursor(cursor_factory=plain)
        from psycopg.rows import tuple_row

        return self.connection.cursor(row_factory=tuple_row)

    def _copy(self, table: str, rows: Iterable[Values], layout: Layout | None = None) -> int:
        statement = f"COPY {table} FROM STDIN WITH (FORMAT text, ENCODING 'UTF8')"
        cursor = self.cursor()
        copied = 0
        for chunk, chunk_rows in _chunks(rows):
            try:
                if hasattr(cursor, "copy_expert"):
                    cursor.copy_expert(statement, io.BytesIO(chunk), 2**20)
                else:
                    with cursor.copy(statement) as copy:
                        copy.write(chunk)
            except Exception as error:
                line = _LINE.search(getattr(getattr(error, "diag", None), "context", None) or "")
                if layout is not None and line is not None:
                    self.rejected = layout.key_of(chunk_rows[int(line[1]) - 1])
                raise
            copied += cursor.rowcount
        return copied


def _chunks(rows: Iterable[Values]) -> Iterator[tuple[bytes, list[Values]]]:
    """Yield rows in the text format of COPY, half a MiB at a time, and these rows."""
    lines: list[str] = []
    held, chunk_rows = 0, list[Values]()
    for values in rows:
        line = "\t".join(["\\N" if value is None else _escaped(value) for value in values])
        lines.append(line)
        chunk_rows.append(values)
        held += len(line)
        if held > _CHUNK_CHARACTERS:
            yield _encoded(lines), chunk_rows
            lines, held, chunk_rows = [], 0, []
    if lines:
        yield _encoded(lines), chunk_rows


def _for_jsonb(text: str) -> str:
    """Replace what `jsonb` rejects in JSON text, NUL and lone surrogates, by U+FFFD."""
    if "\\u" not in text:
        return text
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], text)


def _encoded(lines: Sequence[str]) -> bytes:
    # PostgreSQL rejects NUL in text. Browsers also read it as U+FFFD.
    return ("\n".join(lines) + "\n").replace("\0", "\ufffd").encode()


def _escaped(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    # Escape backslashes first, because the others add some. A loop over the four takes twice as long.
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if "\n" in text:
        text = text.replace("\n", "\\n")
    if "\t" in text:
        text = text.replace("\t", "\\t")
    return text.replace("\r", "\\r") if "\r" in text else text
