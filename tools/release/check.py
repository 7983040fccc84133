# SPDX-License-Identifier: Apache-2.0
"""Checks of the distributions' metadata."""

from __future__ import annotations

import re
import subprocess
import sys

from tools.release.place import ROOT, ReleaseError, files, version

_BEST = 10
# The authors have a name, and no address: SECURITY.md says how to reach them.
_SKIPPED = "AuthorEmail"


def check() -> None:
    """Run `twine check --strict` on the files, and pyroma on both projects.

    :raises ReleaseError: pyroma rates a project below 10 of 10.
    """
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files())], check=True)
    for path in files():
        if path.suffix == ".gz":
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pyroma",
                    "--min",
                    str(_BEST),
                    "--skip-tests",
                    _SKIPPED,
                    "--file",
                    str(path),
                ],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise ReleaseError(f"pyroma rates {path.name} below {_BEST}:\n{done.stdout}{done.stderr}")
            print(f"pyroma rates {path.name} {_BEST} of {_BEST}")


def check_tag(tag: str) -> None:
    """Compare a tag with the version, and the version with the changelog.

    :raises ReleaseError: they differ, or the version has no date.
    """
    wanted = f"v{version()}"
    if tag != wanted:
        raise ReleaseError(f"The tag is {tag!r}, and the version of the package needs {wanted!r}")
    if is_unreleased((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version()):
        raise ReleaseError(
            f"Give the section {version()} of CHANGELOG.md its date, and record the stored forms"
        )


def is_unreleased(changelog: str, release: str) -> bool:
    """Return whether the section of a version has no date yet."""
    return not re.search(rf"^## {re.escape(release)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE)


def notes(changelog: str, release: str) -> str:
    """Return the section of a version, without its heading."""
    found = re.search(rf"^## {re.escape(release)} .*?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ReleaseError(f"CHANGELOG.md has no section {release}")
    return found[1].strip() + "\n"
