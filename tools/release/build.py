# SPDX-License-Identifier: Apache-2.0
"""Reproducible builds of both distributions, from the files of the commit."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tools.release.place import DIST, ROOT, ReleaseError, files, git

CHECKSUMS = "SHA256SUMS"


def build() -> None:
    """Build from two copies of the commit, and keep the files if both builds have the same bytes.

    :raises ReleaseError: the bytes differ, or the working tree has changes that the commit lacks.
    """
    if changed := git("status", "--porcelain"):
        raise ReleaseError(
            f"The release is built from a commit. Commit or remove these changes first:\n{changed}"
        )
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        _build(Path(first), DIST)
        _build(Path(second), Path(second) / "dist")
        compare(digests(DIST), digests(Path(second) / "dist"))
    files()
    lines = [f"{digest}  {name}\n" for name, digest in sorted(digests(DIST).items())]
    (DIST.parent / CHECKSUMS).write_text("".join(lines), encoding="utf-8")
    print("".join(lines), end="")


def _build(folder: Path, out: Path) -> None:
    archive, tree = folder / "tree.tar", folder / "tree"
    subprocess.run(["git", "archive", "--output", str(archive), "HEAD"], cwd=ROOT, check=True)
    with tarfile.open(archive) as tar:
        tar.extractall(tree, filter="data")
    environ = {**os.environ, "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct")}
    for project in (tree, tree / "sandbox"):
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(project)]
        subprocess.run(command, cwd=folder, env=environ, stdout=subprocess.DEVNULL, check=True)


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 digest of each file."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def compare(first: dict[str, str], second: dict[str, str]) -> None:
    """Compare the digests of two builds.

    :raises ReleaseError: a file differs, or only one build has it.
    """
    names = sorted(first.keys() | second.keys())
    if different := [name for name in names if first.get(name) != second.get(name)]:
        raise ReleaseError(f"Two builds of the same commit differ: {', '.join(different)}")
