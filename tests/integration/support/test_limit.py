# SPDX-License-Identifier: Apache-2.0
"""The limit of each test, as `pyproject.toml` sets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.snippets import ROOT

HANGING = """
import threading

def test_waits_for_ever():
    threading.Event().wait()

def test_goes_on():
    pass
"""


def test_a_test_that_waits_for_ever_fails_where_it_waits(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    assert float(pytestconfig.getini("timeout")) == 120
    (tmp_path / "test_hanging.py").write_text(HANGING)
    options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "--timeout", "0.5"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert "threading.Event().wait()" in done.stdout
    assert "Failed: Timeout (>0.5s) from pytest-timeout." in done.stdout
    assert "1 failed, 1 passed" in done.stdout
