# SPDX-License-Identifier: Apache-2.0
"""The skeleton of a new operation, in a copy of the source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.new_operation import PACKAGE, ROOT, write

PATHS = (
    *(PACKAGE, "docs", "sandbox", "tests", "tools"),
    *("conftest.py", "pyproject.toml", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"),
)
SUMMARY = "the rank of pages on a subject"
TESTS = (
    "tests/unit/test_contract.py",
    "tests/integration/api/test_calls_once.py",
    "tests/integration/operators/test_every_operator.py",
    "tests/integration/operators/test_page_rank_operator.py",
    "tests/unit/test_models_and_sandbox.py",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path in PATHS:
        if (ROOT / path).is_dir():
            # With its bytecode, which is valid for the copies.
            shutil.copytree(ROOT / path, tmp_path / path)
        else:
            shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


def run(tree: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'sandbox'}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_skeleton_passes_its_tests(tree: Path) -> None:
    """The rules for all operations cover it without a change to their tests."""
    listed = run(tree, "tools.new_operation", "page_rank", SUMMARY, "--path", "/v2/pages/rank").split()
    assert {f"{PACKAGE}/operators/page_rank.py", "sandbox/docs/service.md"} <= {*listed}
    selected = "page_rank or pages.rank or PageRank or contract"
    assert " passed" in run(tree, "pytest", "-q", "-p", "no:cacheprovider", "-k", selected, *TESTS)


def test_what_cannot_be_written_changes_nothing(tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("# Changelog\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    for name, words in {
        "parse": "is in use",
        "PageRank": "not a name in snake case",
        "class": "not a name in snake case",
        "page_rank": r"CHANGELOG\.md: no text matches",
    }.items():
        with pytest.raises(ValueError, match=words):
            write(name, SUMMARY, folder=tree)
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before
