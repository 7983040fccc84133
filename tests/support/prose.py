# SPDX-License-Identifier: Apache-2.0
"""The sentences that users read: pages, docstrings, messages, metadata, and drawings, in units that stand alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support.snippets import ROOT

_ITEM = re.compile(r"(?=^ *(?:[-*|]|\d+\.) )|(?=^ *\|)|(?=^ *:\w+ ?\w*:)", re.MULTILINE)
_ELEMENTS = re.compile(r"<g>.*?</g>", re.DOTALL)


class Unit(NamedTuple):
    """A paragraph, a list item, a row of a table, or a message.

    :param place: path from the root of the repository.
    :param text: on one line.
    """

    place: str
    text: str


@cache
def units() -> tuple[Unit, ...]:
    """Return every unit of the repository that a user reads."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    code = [
        path
        for folder in ("airflow_provider_webdata", "example_dags", "demo", "docs")
        for path in (ROOT / folder).rglob("*.py")
    ]
    found = [Unit(_name(page), text) for page in pages for text in _of_page(page.read_text("utf-8"))]
    found += [Unit(_name(path), text) for path in code for text in _of_code(path.read_text("utf-8"))]
    for drawing in (ROOT / "docs").rglob("*.svg"):
        for group in _ELEMENTS.findall(drawing.read_text("utf-8")):
            found.append(Unit(_name(drawing), _one_line(re.sub(r"<[^>]+>", " ", group))))
    described = re.search(
        r'^description = "(.+)"', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE
    )
    assert described is not None
    return (*found, Unit("pyproject.toml", described[1]))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _of_page(text: str) -> Iterator[str]:
    # A heading stands over what follows it.
    text = re.sub(r"^(#+ .*)\n\n(?=\w)", r"\1: ", text, flags=re.MULTILINE)
    yield from _of_text(text)


def _of_code(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    inside = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            yield from _of_text("".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield from _of_text(node.value)


def _of_text(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        for item in _ITEM.split(paragraph):
            if line := _one_line(item):
                yield line


def _one_line(text: str) -> str:
    return " ".join(text.split())
