# SPDX-License-Identifier: Apache-2.0
"""`make test-lowest`: run the unit tests with the oldest declared version of each dependency.

python -m tools.lowest FOLDER [PYTEST ARGUMENT ...]

The dependencies of both distributions and of the extras have their lower bounds, or the oldest versions that the other
lower bounds allow. All other packages are the newest.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECTS = ("pyproject.toml", "sandbox/pyproject.toml")
EXTRAS = ("ai", "dlt", "parquet")


def direct(resolution: str) -> str:
    """Return the lines of the packages that a project names, as constraints.

    :param resolution: the output of `uv pip compile --annotation-style line`, which names who requires each package.
    """
    named = [line.partition("#") for line in resolution.splitlines() if "pyproject.toml)" in line]
    return "".join(f"{pin.strip()}\n" for pin, _, _ in named)


def main() -> int:
    """Create the environment and run pytest in it."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder, arguments = Path(sys.argv[1]), sys.argv[2:]
    own = str(folder / "bin" / "python")
    if not Path(own).exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    subprocess.run([own, "-m", "pip", "install", "--quiet", "uv"], check=True)
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    style = ["--quiet", "--no-header", "--annotation-style", "line"]
    resolve = [own, "-m", "uv", "pip", "compile", "--resolution", "lowest-direct", *style, *extras, *PROJECTS]
    resolution = subprocess.run(resolve, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    limits = folder / "constraints.txt"
    limits.write_text(direct(resolution), encoding="utf-8")
    make = [str(ROOT / "tools" / "make-venv"), sys.executable, str(folder), str(limits), "", "test"]
    subprocess.run(make, cwd=ROOT, check=True)
    print(f"== unit tests with the lower bounds, on Python {sys.version.split()[0]}", flush=True)
    return subprocess.run([own, "-m", "pytest", *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
