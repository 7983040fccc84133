# SPDX-License-Identifier: Apache-2.0
"""Validation issues of a failed response as short text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from airflow_provider_webdata.common.clean_text import trimmed

_PATHS, _MESSAGES = ("path", "loc", "field"), ("message", "msg")
"""Names of an issue's path and message. Other servers than the service use the later ones."""
_MAX_ISSUES = 5
_MAX_BRANCHES = 50
_DEEPEST_UNION = 4


class _Issue(NamedTuple):
    path: tuple[str | int, ...]
    message: str
    values: tuple[str, ...] = ()
    """Accepted values, as JSON, of an issue inside a union."""


def issues_text(issues: Sequence[Any], reason: str | None = None) -> str:
    """Return the first issues with their paths, separated by semicolons. See sandbox/docs/service.md#error-details.

    Of a union, the text has only the alternatives that are closest to the request.

    :param reason: the response's error text. An issue that repeats it is reduced to its path.
    """
    return "; ".join(filter(None, (_text(issue, reason) for issue in issues[:_MAX_ISSUES])))


def _text(issue: Any, reason: str | None) -> str:
    grouped: dict[tuple[str | int, ...], list[_Issue]] = {}
    for found in _closest(issue):
        grouped.setdefault(found.path, []).append(found)
    return trimmed("; ".join(_line(path, group, reason) for path, group in grouped.items()), 200)


def _line(path: tuple[str | int, ...], group: Sequence[_Issue], reason: str | None) -> str:
    values = dict.fromkeys(value for found in group for value in found.values)
    message = (
        f"expected {', '.join(values)}" if values else " or ".join(dict.fromkeys(f.message for f in group))
    )
    place = ".".join(map(str, path))
    return place if trimmed(message) == reason else f"{place}: {message}".strip(": ")


def _closest(issue: Any, above: tuple[str | int, ...] = (), depth: int = 0) -> list[_Issue]:
    """Return the issue, or of a union the issues of the closest alternatives."""
    if not isinstance(issue, Mapping):
        return [_Issue(above, str(issue))]
    path = _first(issue, _PATHS)
    parts = path if isinstance(path, list) else [path] if path else []
    here = (*above, *map(_part, parts))
    branches = issue.get("errors")
    if isinstance(branches, list) and depth < _DEEPEST_UNION:
        alternatives = [
            [found for inner in branch[:_MAX_ISSUES] for found in _closest(inner, here, depth + 1)]
            for branch in branches[:_MAX_BRANCHES]
            if isinstance(branch, list) and branch
        ]
        if alternatives:
            return _best(alternatives, len(here))
    values = issue.get("values") if depth else None
    accepted = tuple(map(json.dumps, values)) if isinstance(values, list) else ()
    return [_Issue(here, str(_first(issue, _MESSAGES) or ""), accepted)]


def _first(issue: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((issue[name] for name in names if name in issue), None)


def _part(part: Any) -> str | int:
    return part if isinstance(part, int) else str(part)


def _best(alternatives: Sequence[list[_Issue]], depth: int) -> list[_Issue]:
    least = min(_distance(issues, depth) for issues in alternatives)
    nearest = [issues for issues in alternatives if _distance(issues, depth) == least]
    if least == 0:
        return min(nearest, key=len)
    found = [issue for issues in nearest for issue in issues]
    return [issue for issue in found if issue.values] or found


def _distance(issues: Sequence[_Issue], depth: int) -> int:
    """Return 0 for the alternative that the request means, 1 for one with other values, and 2 for another type."""
    if any(len(issue.values) == 1 for issue in issues):
        # The field that selects an alternative accepts one value.
        return 1
    if all(any(isinstance(part, str) for part in issue.path[depth:]) for issue in issues):
        return 0
    return 1 if any(issue.values for issue in issues) else 2
