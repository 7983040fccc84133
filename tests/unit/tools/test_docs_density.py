# SPDX-License-Identifier: Apache-2.0
"""Paragraphs, items, and table cells of the users' pages have a limit; code and generated tables do not."""

from __future__ import annotations

from tools.docs_density import problems, written_text

LONG, LONG_CELL = "word " * 81, "word " * 41


def test_what_is_too_long() -> None:
    table = f"| Field | Meaning |\n| --- | --- |\n| `a` | {LONG_CELL}|"
    text = written_text(f"# Page\n\n{LONG}\n\n- short\n- {LONG}\n\n{table}\n")
    assert [problem.partition(":")[0] for problem in problems(text)] == [
        "a paragraph has 81 words, above 80",
        "a paragraph has 81 words, above 80",
        "a table cell has 41 words, above 40",
    ]


def test_code_and_generated_tables_have_no_limit() -> None:
    generated = f"<!-- codes -->\n\n| {LONG_CELL} |\n\n<!-- end of codes -->"
    text = written_text(f"Text.\n\n  ```python\n{LONG}\n  ```\n\n{generated}\n")
    assert text.split() == ["Text."]
    assert list(problems(text)) == []
