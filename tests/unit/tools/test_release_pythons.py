# SPDX-License-Identifier: Apache-2.0
"""Where the interpreters that a release is tested with are found."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tools.release import pythons

HERE = "{}.{}".format(*sys.version_info[:2])


def interpreter(path: Path, version: str, status: int = 0) -> Path:
    """Make what answers as a Python of this version would."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("PYTHONS", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "place",
    [
        "bin/python3.99",
        ".pyenv/versions/3.99.4/bin/python",
        ".local/share/uv/python/cpython-3.99.0-linux-x86_64-gnu/bin/python3.99",
    ],
)
def test_where_a_python_is_found(home: Path, place: str) -> None:
    assert pythons.find("3.99") is None
    made = interpreter(home / place, "3.99")
    assert pythons.find("3.99") == str(made)


def test_a_shim_that_does_not_run_is_passed_over(home: Path) -> None:
    """As pyenv has them for all versions, whichever of them are on."""
    interpreter(home / "bin/python3.99", "", status=127)
    made = interpreter(home / ".pyenv/versions/3.99.4/bin/python", "3.99")
    assert pythons.find("3.99") == str(made)


def test_a_python_may_be_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, made = interpreter(home / "a", "3.98"), interpreter(home / "b", "3.99")
    monkeypatch.setenv("PYTHONS", f"{other} {made}")
    assert pythons.find("3.99") == str(made)


def test_the_one_that_runs_this_is_found_under_any_name(home: Path) -> None:
    assert pythons.find(HERE) == sys.executable


def test_all_that_the_package_names_are_tried() -> None:
    project = (Path(pythons.__file__).parents[2] / "pyproject.toml").read_text()
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert set(named) <= set(pythons.VERSIONS)
    assert f'requires-python = ">={pythons.VERSIONS[0]}"' in project
