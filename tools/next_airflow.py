# SPDX-License-Identifier: Apache-2.0
"""`make test-next`: run the tests that depend on Airflow with its newest prerelease.

python -m tools.next_airflow FOLDER [PYTEST ARGUMENT ...]

`constraints.txt` determines all versions except those of Airflow, its providers, and its SDK.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?")


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


def _order(version: re.Match[str]) -> tuple[int, int, int, str, int]:
    major, minor, patch, stage, number = version.groups()
    # A release is newer than its prereleases.
    return int(major), int(minor), int(patch), stage or "release", int(number or 0)


def constraints(pins: str, version: str) -> str:
    """Return constraints for a version of Airflow: the existing pins, except those of Airflow's packages.

    :param pins: the lines of `constraints.txt`.
    """
    others = [line for line in pins.splitlines() if not line.startswith(("#", "apache-airflow"))]
    return "\n".join([*others, f"apache-airflow=={version}", ""])


def main() -> int:
    """Create the environment and run pytest in it."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder, arguments = Path(sys.argv[1]), sys.argv[2:]
    own = str(folder / "bin" / "python")
    if not Path(own).exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    command = [own, "-m", "pip", "index", "versions", "apache-airflow", "--pre"]
    version = newest_prerelease(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if version is None:
        print("== no tests: Airflow has no prerelease that is newer than its newest release")
        return 0
    limits = folder / "constraints.txt"
    limits.write_text(constraints((ROOT / "constraints.txt").read_text(), version))
    make = [str(ROOT / "tools" / "make-venv"), sys.executable, str(folder), str(limits), "", "dev", "pip"]
    subprocess.run(make, cwd=ROOT, check=True)
    print(f"== tests that depend on Airflow, on Airflow {version}", flush=True)
    return subprocess.run([own, "-m", "pytest", *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
