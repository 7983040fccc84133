# SPDX-License-Identifier: Apache-2.0
"""docs/reference/columns.md lists the columns of each kind, and their types."""

from __future__ import annotations

import re
from pathlib import Path

from airflow_provider_webdata.results.columns import TABLES

PAGE = (Path(__file__).parents[3] / "docs/reference/columns.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in row.strip("|").split("|")] for row in PAGE.splitlines() if row.startswith("|")
]
GROUPS = {row[0].strip("*"): re.findall(r"`(\w+)`", row[1]) for row in ROWS if row[0].startswith("*")}
TYPES = {"int64": "integer", "float64": "number", "boolean": "boolean", "JSON text": "json"}


def test_the_columns_of_each_kind() -> None:
    listed = {
        row[0].strip("`"): [
            column
            for name, group in re.findall(r"`(\w+)`|\*(\w+)\*", row[2])
            for column in ([name] if name else GROUPS[group])
        ]
        for row in ROWS
        if len(row) == 3 and row[0].startswith("`")
    }
    assert listed == {kind: [column.name for column in columns] for kind, columns in TABLES.items()}


def test_the_type_of_each_column() -> None:
    # A column of two types is listed with the kind that it belongs to.
    listed = {
        (name, kind): TYPES[row[0]]
        for row in ROWS
        if row[0] in TYPES
        for name, kind in re.findall(r"`(\w+)`(?: of `(\w+)`)?", row[1])
    }
    for kind, columns in TABLES.items():
        for column in columns:
            found = listed.pop((column.name, kind), None) or listed.get((column.name, ""), "text")
            assert found == column.type, (kind, column.name)
    assert {name for name, kind in listed if kind} == set()
    assert {name for name, _ in listed} <= {column.name for columns in TABLES.values() for column in columns}
