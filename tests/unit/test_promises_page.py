# SPDX-License-Identifier: Apache-2.0
"""Each promise has tests, each test on the page of promises exists, and each benefit of the README is a promise."""

from __future__ import annotations

import re
from functools import cache

from tests.support.snippets import ROOT

PAGE = (ROOT / "docs" / "contributing" / "promises.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("| ---", "| Promise |", "| # |"))
]
"""The cells of each row. The last one has the tests."""
TEST = re.compile(r"`((?:sandbox/)?tests/[\w/.]+)::(\w+)`")


@cache
def source(path: str) -> str:
    file = ROOT / path
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def test_each_benefit_of_the_readme_is_a_promise() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    benefits = re.findall(r"^- (.+)$", readme.split("## What you get\n")[1].split("\n## ")[0], re.MULTILINE)
    plain = {re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", benefit) for benefit in benefits}
    assert plain
    assert plain - {row[0] for row in ROWS} == set()


def test_each_promise_has_tests() -> None:
    """Nothing but tests is in the last cell."""
    assert [row[0] for row in ROWS if not row[-1] or TEST.sub("", row[-1]).replace("<br>", "")] == []


def test_each_test_exists() -> None:
    tests = {found for row in ROWS for found in TEST.findall(row[-1])}
    assert sorted(f"{path}::{name}" for path, name in tests if f"def {name}(" not in source(path)) == []
