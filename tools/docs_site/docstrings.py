# SPDX-License-Identifier: Apache-2.0
"""Parsing of docstrings into text and fields."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_FIELD = re.compile(r"^:(\w+)(?: ([\w.]+))?: *(.*(?:\n[ \t]+.*)*)", re.MULTILINE)


@dataclass
class Docstring:
    """A docstring in Markdown.

    :param summary: the first paragraph.
    :param body: the other paragraphs.
    :param parameters: the descriptions of parameters, by name.
    :param returns: the description of the result; may be empty.
    :param raises: errors and their conditions.
    """

    summary: str
    body: str
    parameters: dict[str, str] = field(default_factory=dict)
    returns: str = ""
    raises: list[tuple[str, str]] = field(default_factory=list)


def docstring_of(documented: object) -> Docstring:
    """Parse the docstring of a class, function, or module; inherited docstrings are ignored."""
    text = inspect.cleandoc(getattr(documented, "__doc__", None) or "")
    fields = [*_FIELD.finditer(text)]
    prose = text[: fields[0].start()] if fields else text
    summary, _, body = prose.strip().partition("\n\n")
    found = Docstring(" ".join(summary.split()), body.strip())
    for kind, name, value in (match.groups() for match in fields):
        description = " ".join(value.split())
        if kind in ("param", "ivar"):
            found.parameters[name] = description
        elif kind == "raises":
            found.raises.append((name, description))
        elif kind == "return":
            found.returns = description
    return found
