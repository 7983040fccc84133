"""The first results of a task as short strings, for its page in Airflow's UI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PREVIEW = "preview"
"""XCom key of the first rows of a task that writes its results to a file."""

ROWS = 5
_MOST_VALUES = 20
_MOST_CHARACTERS = 160


def preview_row(item: Any) -> dict[str, str]:
    """Return the scalar values of a result as strings, with the URL and title of its metadata.

    :return: at most 20 values of at most 160 characters each.
    """
    if not isinstance(item, Mapping):
        return {"value": _text(item)}
    metadata = item.get("metadata")
    page = metadata if isinstance(metadata, Mapping) else {}
    values = {
        **{name: page.get(name) for name in ("title", "statusCode")},
        **item,
        "url": item.get("url") or page.get("sourceURL") or page.get("url"),
    }
    plain = {
        _text(name): _text(value)
        for name, value in values.items()
        if isinstance(value, (str, int, float)) and value != ""
    }
    return dict([*plain.items()][:_MOST_VALUES])


def _text(value: Any) -> str:
    # XCom cannot store lone surrogates or, on PostgreSQL, NUL.
    text = str(value)[: 2 * _MOST_CHARACTERS].encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    text = " ".join(text.split())
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
