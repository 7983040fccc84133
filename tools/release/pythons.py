# SPDX-License-Identifier: Apache-2.0
"""Interpreters of the supported versions of Python.

They are searched for in `PYTHONS` (paths separated by spaces), on the PATH, and among those of pyenv and uv.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
_INSTALLED = ("~/.pyenv/versions/{0}.*/bin/python", "~/.local/share/uv/python/cpython-{0}.*/bin/python{0}")


def candidates(version: str) -> Iterator[str]:
    """Yield candidate interpreters of a version, such as `3.12`; a shim on the PATH may run another version."""
    yield from os.environ.get("PYTHONS", "").split()
    for folder in os.get_exec_path():
        yield str(Path(folder) / f"python{version}")
    for pattern in _INSTALLED:
        home = Path(pattern.format(version)).expanduser()
        yield from map(str, sorted(Path(home.anchor).glob(str(home.relative_to(home.anchor))), reverse=True))
    # The running interpreter, which may have any name.
    yield sys.executable


def find(version: str) -> str | None:
    """Return an interpreter of a version, or None."""
    return next((path for path in candidates(version) if _version_of(path) == version), None)


def _version_of(path: str) -> str | None:
    if not os.access(path, os.X_OK):
        return None
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
