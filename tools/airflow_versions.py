# SPDX-License-Identifier: Apache-2.0
"""Run pytest with another version of Airflow.

python -m tools.airflow_versions FOLDER VERSION [PYTEST ARGUMENT ...]

FOLDER is that of the environment. VERSION is `floor`, `newest`, `next` (the newest prerelease), or a number such as
3.3.0. The constraints files have the versions of all packages; a number that is in none of them changes only Airflow,
its providers, and its SDK.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = {"floor": ROOT / "constraints-floor.txt", "newest": ROOT / "constraints.txt"}
"""The constraints of the oldest and the newest supported version."""
SUPPORTED = ("floor", "3.3.0", "newest")
"""The versions that a release is tested with."""
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?")


def pins(version: str) -> str:
    """Return the constraints for a version of Airflow.

    :param version: `floor`, `newest`, or a number.
    """
    texts = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}
    for name, text in texts.items():
        if version in (name, number(text)):
            return text
    if not _VERSION.fullmatch(version):
        raise SystemExit(
            f"{version!r} is no version of Airflow: use floor, newest, next, or a number such as 3.3.0"
        )
    return constraints(texts["newest"], version)


def number(text: str) -> str:
    """Return the version of Airflow in constraints."""
    return re.findall(r"^apache-airflow==(\S+)$", text, re.MULTILINE)[0]


def newest_prerelease(versions: str) -> str | None:
    """Return the newest version if it is a prerelease.

    :param versions: the output of `pip index versions apache-airflow --pre`.
    """
    listed = re.search(r"Available versions: (.*)", versions)
    found = [match for text in listed[1].split(", ") if (match := _VERSION.fullmatch(text))] if listed else []
    if not found:
        raise SystemExit(f"pip lists no version of apache-airflow:\n{versions}")
    newest = max(found, key=_order)
    return newest[0] if newest[4] else None


def prerelease(python: str) -> str | None:
    """Return Airflow's newest version if it is a prerelease.

    :param python: the path of an interpreter with pip.
    """
    command = [python, "-m", "pip", "index", "versions", "apache-airflow", "--pre"]
    return newest_prerelease(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _order(version: re.Match[str]) -> tuple[int, int, int, str, int]:
    major, minor, patch, stage, number = version.groups()
    # A release is newer than its prereleases.
    return int(major), int(minor), int(patch), stage or "release", int(number or 0)


def constraints(text: str, version: str) -> str:
    """Return constraints for a version of Airflow: the existing pins, except those of Airflow's packages.

    Airflow 3.3.0 also needs an older aiosqlite.

    :param text: the lines of `constraints.txt`.
    """
    others = [line for line in text.splitlines() if not line.startswith(("#", "apache-airflow", "aiosqlite"))]
    return "\n".join([*others, f"apache-airflow=={version}", ""])


def main() -> int:
    """Create the environment and run pytest in it."""
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    folder, version, arguments = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    own = str(folder / "bin" / "python")
    if not Path(own).exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    if version == "next":
        found = prerelease(own)
        if found is None:
            print("== no tests: Airflow has no prerelease that is newer than its newest release")
            return 0
        version = found
    text = pins(version)
    limits = folder / "constraints.txt"
    limits.write_text(text, encoding="utf-8")
    # uv installs no prereleases of packages that it was not asked for.
    installer = ["pip"] if re.search(r"[a-z]", number(text)) else []
    make = [
        str(ROOT / "tools" / "make-venv"),
        sys.executable,
        str(folder),
        str(limits),
        "",
        "dev",
        *installer,
    ]
    subprocess.run(make, cwd=ROOT, check=True)
    print(f"== tests on Airflow {number(text)} and Python {sys.version.split()[0]}", flush=True)
    return subprocess.run([own, "-m", "pytest", *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
