# SPDX-License-Identifier: Apache-2.0
"""The first results of a task, shortened, for its page in Airflow's UI."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

ROWS = 5
_MAX_VALUES = 20
_MAX_CHARACTERS = 160


def preview_row(item: Any) -> dict[str, Any]:
    """Return the values of a result with their JSON types, and the URL and title of its metadata.

    :return: at most 20 values. Text has at most 160 characters. Lists and objects are empty.
    """
    if not isinstance(item, Mapping):
        return {"value": _text(item) if isinstance(item, list) else _short(item)}
    metadata = item.get("metadata")
    page = metadata if isinstance(metadata, Mapping) else {}
    values = {name: page[name] for name in ("title", "statusCode") if name in page} | dict(item)
    if url := item.get("url") or page.get("sourceURL") or page.get("url"):
        values = {"url": url} | values | {"url": url}
    return {_text(name): _short(value) for name, value in islice(values.items(), _MAX_VALUES)}


def _short(value: Any) -> Any:
    # XCom in PostgreSQL cannot store NaN.
    if value is None or (isinstance(value, (int, float)) and -(2**63) <= value < 2**63):
        return value
    return {} if isinstance(value, Mapping) else [] if isinstance(value, list) else _text(value)


def _text(value: Any) -> str:
    # XCom cannot store lone surrogates or, on PostgreSQL, NUL.
    text = str(value)[: 2 * _MAX_CHARACTERS].encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    text = " ".join(text.split())
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
