# SPDX-License-Identifier: Apache-2.0
"""Literal arguments, which are final when the DAG file is parsed, so that a task can start in the triggerer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

_TEMPLATE_MARKS = ("{{", "{%", "{#")
_ONE_VALUE = r"\s*\{\{(?:(?!\}\}).)*\}\}\s*"


def is_template(value: Any) -> bool:
    """Return whether a value is a template."""
    return isinstance(value, str) and any(mark in value for mark in _TEMPLATE_MARKS)


def is_literal(value: Any) -> bool:
    """Return whether an argument is literal: it contains no template and no value that is only known at run time.

    The triggerer cannot render an argument from XCom; the task would stay deferred forever.
    """
    if value is None or isinstance(value, (bool, int, float, date, timedelta)):
        return True
    if isinstance(value, str):
        return not is_template(value)
    if isinstance(value, Mapping):
        return all(is_literal(part) for pair in value.items() for part in pair)
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(is_literal(part) for part in value)
    # An XComArg, a callable, or another value that is resolved later.
    return False


def templates_of_none(written: Any, rendered: Any) -> Iterator[str]:
    """Yield the single-value templates that rendered to the text `None`.

    :param written: the argument before rendering.
    """
    if isinstance(written, str):
        if rendered == "None" and re.fullmatch(_ONE_VALUE, written, re.DOTALL):
            yield written.strip()
    elif isinstance(written, Mapping) and isinstance(rendered, Mapping):
        for key, part in written.items():
            yield from templates_of_none(part, rendered.get(key))
    elif isinstance(written, (list, tuple)) and isinstance(rendered, (list, tuple)):
        for before, after in zip(written, rendered, strict=False):
            yield from templates_of_none(before, after)
