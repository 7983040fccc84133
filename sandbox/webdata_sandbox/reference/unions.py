# SPDX-License-Identifier: Apache-2.0
"""Issues inside unions: items that are one of several kinds, such as formats and actions."""

from __future__ import annotations

from dataclasses import replace

from .wire import Issue

UNION_ITEMS = frozenset({"formats", "parsers", "actions"})
"""Fields whose items are one of several kinds. An issue in an item is reported as one of the item."""

UNION_LISTS = frozenset({"sources", "categories"})
"""Fields of a search that are a list of names or of objects. An issue in an item is reported as one of the list."""


def nest(issues: list[Issue], lists: frozenset[str] = frozenset()) -> list[Issue]:
    """Return the issues as the service reports them: those inside a union are nested in one issue of the union.

    :param lists: fields whose whole list is the union.
    """
    found: list[Issue] = []
    nested: dict[tuple[str | int, ...], list[Issue]] = {}
    for issue in issues:
        depth = _union_depth(issue, lists)
        if depth is None:
            found.append(issue)
        else:
            nested.setdefault(issue.path[:depth], []).append(replace(issue, path=issue.path[depth:]))
    for path, inner in nested.items():
        errors = [[issue.to_wire() for issue in option] for option in _options(inner)]
        found.append(Issue(path, "Invalid input", "invalid_union", {"errors": errors}))
    return found


def _union_depth(issue: Issue, lists: frozenset[str]) -> int | None:
    """Return the length of the path of the union that an issue is in, or None."""
    for index, name in enumerate(issue.path[:-1]):
        if name in lists:
            return index + 1
        if name in UNION_ITEMS and isinstance(issue.path[index + 1], int):
            # The service knows the item's kind then, and reports the issue itself.
            own = issue.code == "custom" or (name == "formats" and issue.code in ("too_small", "too_big"))
            return None if own else index + 2
    return None


def _options(issues: list[Issue]) -> list[list[Issue]]:
    """Return the issues by option of a union: one option for each accepted value, if only the value is wrong."""
    first = issues[0]
    if len(issues) > 1 or first.code != "invalid_value":
        return [issues]
    return [[replace(first, facts={"values": [value]})] for value in first.facts["values"]]
