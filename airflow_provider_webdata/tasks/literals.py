"""Whether an argument is final when the DAG file is read: only then may a task start in the triggerer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

_TEMPLATE_MARKS = ("{{", "{%", "{#")


def is_literal(value: Any) -> bool:
    """Return whether an argument needs no worker: no template, nothing that is only known at run time.

    An argument that is rendered from XCom cannot be rendered in the triggerer: the task would stay deferred for ever.
    """
    if value is None or isinstance(value, (bool, int, float, date, timedelta)):
        return True
    if isinstance(value, str):
        return not any(mark in value for mark in _TEMPLATE_MARKS)
    if isinstance(value, Mapping):
        return all(is_literal(part) for pair in value.items() for part in pair)
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(is_literal(part) for part in value)
    # XComArg, a callable, a query builder: whatever resolves itself later.
    return False
