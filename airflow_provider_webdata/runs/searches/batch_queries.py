# SPDX-License-Identifier: Apache-2.0
"""The searches of a batch, parsed from the operator's `queries` and validated before the first is billed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.api.models import SearchRequest
from airflow_provider_webdata.results.columns import Column, ColumnType, columns_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_webdata.api.servers import Server

OPERATION = "batch search"
"""Name of the operation in errors."""

_MAX_PROBLEMS = 10
_TYPES: Mapping[type, ColumnType] = {str: "text", bool: "boolean", int: "integer"}
_KEY_LENGTH = 24


@dataclass(frozen=True)
class BatchQuery:
    """One search of a batch.

    :param key: unique in the batch: a digest of its request, before a price bound is added.
    :param entry: the original item of `queries`.
    :param request: its request, with a price bound if the task has a credit limit.
    """

    key: str
    entry: Any
    request: SearchRequest

    @property
    def text(self) -> str:
        """The search text."""
        return self.request.query


def checked_queries(
    entries: list[Any],
    request_of: Callable[[Any], SearchRequest],
    extra_body: Mapping[str, Any] | None,
    server: Server,
    log: Any,
) -> dict[str, BatchQuery]:
    """Return the searches by key, without duplicates, in the given order.

    :raises InvalidRequestError: a search breaks a documented rule.
    """

    queries: dict[str, BatchQuery] = {}
    problems: list[str] = []
    warnings: dict[str, None] = {}
    notes: dict[str, None] = {}
    for number, item in enumerate(entries, 1):
        if item is None:
            problems.append(
                f"queries, item {number}: is None; the task that returns the list must leave it out"
            )
            continue
        try:
            request = request_of(item)
        except InvalidRequestError as error:
            problems += [f"queries, item {number}: {problem}" for problem in error.problems]
            continue
        warnings.update(dict.fromkeys(request.warnings()))
        notes.update(dict.fromkeys(request.notes(server)))
        text = json.dumps([request.to_wire(), extra_body], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]
        queries.setdefault(key, BatchQuery(key, item, request))
    if problems:
        more = len(problems) - _MAX_PROBLEMS
        shown = problems[:_MAX_PROBLEMS] + ([f"and {more} more"] if more > 0 else [])
        raise InvalidRequestError(OPERATION, shown)
    for warning in warnings:
        log.warning("%s: %s", OPERATION, warning)
    for note in notes:
        log.info("%s: %s", OPERATION, note)
    if len(queries) < len(entries):
        log.info("Skipping %d duplicate searches", len(entries) - len(queries))
    return queries


def label_columns(queries: Mapping[str, BatchQuery], kind: str) -> tuple[Column, ...]:
    """Return columns for the scalar fields that a query of the batch overrides, such as `country`.

    Fields with the name of a column of the results are omitted.
    """
    own = {name for query in queries.values() if isinstance(query.entry, Mapping) for name in query.entry}
    taken = {column.name for column in columns_of(kind)}
    columns = []
    for name, field in SearchRequest.model_fields.items():
        wire = field.alias or name
        if name in taken or not {name, wire} & own:
            continue
        values = (query.request.to_wire().get(wire) for query in queries.values())
        types = {type(value) for value in values if value is not None}
        if len(types) == 1 and (type_ := _TYPES.get(types.pop())) is not None:
            columns.append(Column(name, (wire,), type_))
    return tuple(columns)


def labels_of(query: BatchQuery, columns: tuple[Column, ...]) -> dict[str, Any]:
    """Return the values of `label_columns` in the request of a search, by wire name."""
    wire = query.request.to_wire()
    names = (column.path[0] for column in columns)
    return {name: wire[name] for name in names if name in wire}
