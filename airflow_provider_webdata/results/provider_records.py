# SPDX-License-Identifier: Apache-2.0
"""Records of data providers: the rows of a response, and their columns by the contract."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.results.columns import CHANGES, EXTRA, Column, ColumnType, columns_of
from airflow_provider_webdata.results.tagged_items import own_name, tagged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

KIND = "provider_record"
ERROR = "error"
"""Field of the item that represents a failed call."""

LABELS = ("call", "tool")
"""Leading fields of the records of several calls: the index of the call, from 0, and `provider/capability`."""

_TYPES: Mapping[str, ColumnType] = {
    **dict.fromkeys(
        ("string", "text", "date", "datetime", "date-time", "uri", "url", "email", "enum"), "text"
    ),
    **dict.fromkeys(("integer", "int"), "integer"),
    **dict.fromkeys(("number", "float", "double"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
}


def records_of(data: Any, key: str | None, names: Sequence[str] = (), count: int | None = None) -> list[Any]:
    """Return the records of a call's `data`.

    See sandbox/docs/service.md#provider-records.

    :param key: name of the list of records, if the contract defines one.
    :param names: names of a record's fields, if there is a contract.
    :param count: number of records, if the response has it.
    """
    if data is None:
        return []
    if isinstance(data, list):
        return data
    if not isinstance(data, dict):
        return [data]
    if key is not None and key in data:
        found = data[key]
        return found if isinstance(found, list) else [found]
    lists = [value for value in data.values() if isinstance(value, list)]
    if len(lists) == 1 and len(lists[0]) == count and not data.keys() & set(names):
        return lists[0]
    return [data]


def item_of_record(record: Any, labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as an item.

    :param labels: leading fields. The record's own fields with these names, and `error`, are renamed by `own_name`.
    """
    item = record if isinstance(record, dict) else {"value": record}
    own = {own_name(name, (ERROR,)): value for name, value in item.items()}
    return tagged(own, **labels)


def is_error(item: Mapping[str, Any]) -> bool:
    """Return whether an item represents a failed call."""
    return item.keys() - {*LABELS} == {ERROR}


def record_columns(
    fields: Iterable[Sequence[Mapping[str, Any]]], labels: Iterable[str]
) -> tuple[Column, ...]:
    """Return the columns of the records of some calls.

    :param fields: the fields of each call's records, from its contract. A field with two types is JSON text.
    :param labels: leading fields of the records.
    """
    tags = [column for column in columns_of(KIND) if column.name in labels]
    rest = [column for column in columns_of(KIND) if column.name == ERROR]
    taken = {*(column.name for column in (*tags, *rest, *CHANGES)), EXTRA.name}
    types: dict[str, ColumnType] = {}
    for field in chain.from_iterable(fields):
        name, type_ = field["name"], _TYPES.get(str(field.get("type", "")).lower(), "json")
        types[name] = type_ if types.get(name, type_) == type_ else "json"
    named = [
        Column(own_name(name, taken), (own_name(name, (*labels, ERROR)),), type_)
        for name, type_ in types.items()
    ]
    return (*tags, *named, *rest, EXTRA)
