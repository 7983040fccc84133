# SPDX-License-Identifier: Apache-2.0
"""The Python that the documentation shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
PAGES = sorted(
    {ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "operators").glob("*.md")}
    # Its blocks are parts of the files beside it, which have a separate test.
    - {TUTORIAL}
)


@dataclass(frozen=True)
class Snippet:
    """A block of code on a page.

    :param page: the page, from the root of the repository.
    :param line: of the block's first line of code.
    :param code: verbatim.
    """

    page: str
    line: int
    code: str

    @property
    def defines_dag(self) -> bool:
        """True if it is a whole DAG file."""
        return re.search(r"\bDAG\(|@dag\b", self.code) is not None

    @property
    def has_tasks(self) -> bool:
        """True if it holds tasks for a DAG."""
        return re.search(r"\bWebData\w+(Operator|Sensor)\b|@task\b", self.code) is not None


def name_of(page: Path) -> str:
    """Return the page's path from the root of the repository."""
    return page.relative_to(ROOT).as_posix()


def snippets(page: Path, language: str = "python") -> list[Snippet]:
    """Return the blocks of a page that are in a language, in order."""
    text = page.read_text(encoding="utf-8")
    blocks = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Snippet(name_of(page), text.count("\n", 0, block.start()) + 2, block[1]) for block in blocks]
