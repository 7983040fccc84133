# SPDX-License-Identifier: Apache-2.0
"""Check the density of the users' pages: words in all, in each paragraph, and in each table cell.

    python -m tools.docs_density    list what is too long, and exit with 1 if there is anything

Generated tables, code, and the pages for contributors do not count.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_WORDS = 35_000
MAX_PARAGRAPH = 80
MAX_CELL = 40
MAX_WORDS_OF = {"CONTRIBUTING.md": 700}
"""Limits of single pages."""
NOT_COUNTED = (
    "docs/benchmarks.md",
    "docs/errors.md",
    "docs/contributing/",
    "docs/reference/",
)
"""Pages for contributors, and pages that are looked up, not read."""

GENERATED = re.compile(
    r"^<!-- (?P<what>arguments of (?P<name>\w+)|fields of the connection|codes) -->\n"
    r"(?:.*?^)?<!-- end(?: of \w+)? -->$",
    re.MULTILINE | re.DOTALL,
)
"""A generated part of a page; `tools.reference_pages` writes it."""
_CODE = re.compile(r"^[ \t]*```.*?^[ \t]*```$", re.MULTILINE | re.DOTALL)
_BLANK = re.compile(r"\n\s*\n")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.MULTILINE)
_CELL = re.compile(r"(?<!\\)\|")


def main() -> int:
    """List what is too long."""
    found: list[str] = []
    total = 0
    for page in user_pages():
        text = written_text(page.read_text(encoding="utf-8"))
        total += len(text.split())
        found += [f"{page.relative_to(ROOT)}: {problem}" for problem in problems(text)]
    if total > MAX_WORDS:
        found.append(f"the users' pages have {total:,} words, above {MAX_WORDS:,}: shorten the longest ones")
    for name, most in MAX_WORDS_OF.items():
        words = len(written_text((ROOT / name).read_text(encoding="utf-8")).replace("|", " ").split())
        if words > most:
            found.append(f"{name} has {words} words, above {most}")
    print(*(found or [f"{total:,} words"]), sep="\n")
    return 1 if found else 0


def user_pages() -> list[Path]:
    """Return the README and the pages of docs/ that users read."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [
        ROOT / "README.md",
        *(page for page in pages if not page.relative_to(ROOT).as_posix().startswith(NOT_COUNTED)),
    ]


def written_text(text: str) -> str:
    """Return a page's text without generated tables and code."""
    return _CODE.sub("", GENERATED.sub("", text))


def problems(text: str) -> Iterator[str]:
    """Yield the paragraphs, items of lists, and table cells that are too long.

    :param text: a page's text without code.
    """
    for block in _BLANK.split(text):
        is_table = block.lstrip().startswith("|")
        most, kind = (MAX_CELL, "table cell") if is_table else (MAX_PARAGRAPH, "paragraph")
        parts = _CELL.split(block) if is_table else _ITEM.split(block)
        for words in map(str.split, parts):
            if len(words) > most:
                yield f"a {kind} has {len(words)} words, above {most}: '{' '.join(words[:8])} ...'"


if __name__ == "__main__":
    sys.exit(main())
