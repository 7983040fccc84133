# SPDX-License-Identifier: Apache-2.0
"""Comparison of an existing table with the rows to load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.results.columns import SOURCE, VERSION
from airflow_provider_webdata.results.tables.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.results.columns import ColumnType
    from airflow_provider_webdata.results.tables.database import Database, Existing
    from airflow_provider_webdata.results.tables.layout import Layout, TableColumn

_HELD: Mapping[ColumnType, str] = {
    "text": "text of any length unchanged",
    "json": "JSON unchanged",
    "integer": "64-bit integers",
    "number": "64-bit floating-point numbers",
    "boolean": "booleans",
}


def fit(
    database: Database, made: Layout, existing: Mapping[str, Existing], *, add_columns: bool
) -> list[str]:
    """Check that a table is compatible with the rows; add missing columns if `add_columns` is set, and name them.

    :raises TableError: the table is incompatible. The message has all problems, and the statements that fix them.
    """
    folded, table = database.folded, made.table
    known = {folded(name): column for name, column in existing.items()}
    # The row of a removed page has no other values.
    given = {*map(folded, (*made.key, VERSION, SOURCE) if made.has_versions else made.names)}
    missing = [column for column in made.columns if folded(column.name) not in known]
    problems: list[str] = []
    retyped: list[TableColumn] = []
    nullable: list[str] = []
    is_fixable = True
    for column in made.columns:
        there = known.get(folded(column.name))
        if there is None or there.type.partition("(")[0].strip() in database.accepted[column.type]:
            continue
        problems.append(
            f"the column {column.name!r} has the type {there.type}, which cannot store {_HELD[column.type]}"
        )
        retyped.append(column)
        is_fixable &= database.retypes_keys or not there.is_key
    for name, there in existing.items():
        if not there.required or folded(name) in given:
            continue
        lacking = "rows of removed pages have" if made.has_versions else "the file has"
        problems.append(f"the column {name!r} must not be null, but {lacking} no values for it")
        nullable.append(name)
        is_fixable &= database.drops_not_null and not there.is_key
    key_problem = database.key_problem(made, known.keys())
    problems += [] if key_problem is None else [key_problem[0]]
    if missing and (problems or not add_columns):
        names = ", ".join(repr(column.name) for column in missing)
        problems.insert(0, f"it has no column{'s' if len(missing) > 1 else ''} {names}")
    if not problems:
        for statement in database.mending(table, missing, [], []):
            database.execute(statement)
        return [f"Added the column {column.name} to the table {table}" for column in missing]
    if is_fixable:
        key_statements = [] if key_problem is None else [key_problem[1]]
        statements = [*database.mending(table, missing, retyped, nullable), *key_statements]
    else:
        statements = [database.rename_statement(table), database.create_statement(made)]
    # Readers of the table see none of its rows until they are copied.
    copied = "" if is_fixable else "It must be created again; copy the rows that you need. "
    remedies = [
        f"Run: {'; '.join(statements)}",
        *(["set add_columns=True"] if missing and len(problems) == 1 else []),
        *(["list only the columns to load in columns"] if missing or retyped else []),
        *([f"add a default to {', '.join(map(repr, nullable))}"] if nullable else []),
    ]
    raise TableError(
        f"The table {table} does not fit the file: {'; '.join(problems)}. {copied}{'; or '.join(remedies)}"
    )
