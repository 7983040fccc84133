"""The searches of a batch, parsed from the operator's `queries` and validated before the first is billed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_webdata.api.models import SearchRequest

OPERATION = "batch search"
"""Name of the operation in errors."""

_MOST_PROBLEMS = 10
_KEY_LENGTH = 24


@dataclass(frozen=True)
class BatchQuery:
    """One search of a batch.

    :param key: unique in the batch: a digest of its request, before a price bound is added.
    :param given: the original item of `queries`.
    :param request: its request, with a price bound if the task has a credit limit.
    """

    key: str
    given: Any
    request: SearchRequest

    @property
    def text(self) -> str:
        """The search text."""
        return self.request.query


def checked_queries(
    given: list[Any],
    request_of: Callable[[Any], SearchRequest],
    extra_body: Mapping[str, Any] | None,
    log: Any,
) -> dict[str, BatchQuery]:
    """Return the searches by key, without duplicates, in the given order.

    :raises InvalidRequestError: `queries` is empty, or a search breaks a documented rule.
    """

    queries: dict[str, BatchQuery] = {}
    problems: list[str] = []
    warnings: dict[str, None] = {}
    notes: dict[str, None] = {}
    for number, item in enumerate(given, 1):
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
        notes.update(dict.fromkeys(request.notes()))
        text = json.dumps([request.to_wire(), extra_body], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]
        queries.setdefault(key, BatchQuery(key, item, request))
    if not given:
        problems.append("queries: at least one is required")
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        shown = problems[:_MOST_PROBLEMS] + ([f"and {more} more"] if more > 0 else [])
        raise InvalidRequestError(OPERATION, shown)
    for warning in warnings:
        log.warning("%s: %s", OPERATION, warning)
    for note in notes:
        log.info("%s: %s", OPERATION, note)
    if len(queries) < len(given):
        log.info("Skipping %d duplicate searches", len(given) - len(queries))
    return queries
