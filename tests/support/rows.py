# SPDX-License-Identifier: Apache-2.0
"""Rows of tables, and the items that they were made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_provider_webdata.results.columns import EXTRA, Column, row_maker


def row(item: Any, columns: tuple[Column, ...]) -> dict[str, Any]:
    return row_maker(columns)(item)


def item_of(values: Mapping[str, Any], columns: tuple[Column, ...]) -> Any:
    """Return the item that a row was made of; what was null may be missing in it.

    :param values: the row, by column names.
    :param columns: the table's columns.
    """
    left = values.get(EXTRA.name)
    item: Any = {} if left is None else json.loads(left)
    for column in columns:
        value = values.get(column.name)
        if column is EXTRA or column.is_copy or value is None:
            continue
        *outer, last = column.path
        inner = item
        for name in outer:
            inner = inner.setdefault(name, {})
        inner[last] = json.loads(value) if column.type == "json" else value
    return item
