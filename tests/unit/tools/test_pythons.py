# SPDX-License-Identifier: Apache-2.0
"""Each Python is found, tried in its own environment, and named if it is missing or fails."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import pythons

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


def test_one_that_is_missing_or_fails_is_named_and_the_others_are_tried(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = []

    def try_one(python: str, folder: Path) -> None:
        tried.append((python, folder))
        if python == "/3.11":
            raise subprocess.CalledProcessError(1, [python, "smoke.py"])

    found = {"3.11": "/3.11", "3.12": "/3.12"}
    wrong = pythons.try_all(["3.10", "3.11", "3.12"], home, found.get, try_one)
    assert tried == [("/3.11", home / "3.11"), ("/3.12", home / "3.12")]
    assert wrong == [
        "Python 3.10 was not found. Install it, or set its path: make test-pythons PYTHONS=/path/to/python3.10",
        "Python 3.11 failed: /3.11 smoke.py",
    ]
    assert "Python 3.12 works" in capsys.readouterr().out


def test_the_command_fails_where_one_is_missing(home: Path) -> None:
    root = Path(pythons.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "tools.pythons", str(home / "venvs"), "3.99"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("== Python 3.99 was not found")


def test_all_that_the_package_names_are_tried() -> None:
    project = (Path(pythons.__file__).parents[1] / "pyproject.toml").read_text()
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert set(named) <= set(pythons.VERSIONS)
    assert f'requires-python = ">={pythons.VERSIONS[0]}"' in project
