"""Each promise of the README has a test, and each test on the page of promises exists."""

from __future__ import annotations

import re

from tests.support.snippets import ROOT

PAGE = (ROOT / "docs" / "contributing" / "promises.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+?) \| `(tests/[\w/.]+)::(\w+)` \|$", PAGE, re.MULTILINE)


def test_each_benefit_of_the_readme_has_a_test() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    benefits = re.findall(r"^- (.+)$", readme.split("## What you get\n")[1].split("\n## ")[0], re.MULTILINE)
    plain = {re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", benefit) for benefit in benefits}
    assert plain - {promise for promise, _, _ in ROWS} == set()


def test_each_test_exists() -> None:
    assert len(ROWS) == PAGE.count("`tests/") == PAGE.count("::")
    missing = [
        (path, test)
        for _, path, test in ROWS
        if f"def {test}(" not in (ROOT / path).read_text(encoding="utf-8")
    ]
    assert missing == []
