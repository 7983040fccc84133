# SPDX-License-Identifier: Apache-2.0
"""`make test-pythons`: install and test both wheels on every supported Python version.

python -m tools.pythons FOLDER [VERSION ...]

Interpreters are searched for in `PYTHONS` (paths separated by spaces), on the PATH, and among those of pyenv and uv. A
missing interpreter fails the command after the other versions have been tested.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
SMOKE = Path(__file__).with_name("smoke.py")
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


def smoke_test(python: str, folder: Path) -> None:
    """Install both wheels into a separate environment and test them there, outside this clone.

    :param python: the interpreter.
    :param folder: the environment's folder; an existing environment is reused.
    :raises subprocess.CalledProcessError: the installation or the test failed.
    """
    own = str(folder / "bin" / "python")
    if _version_of(own) != _version_of(python):
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [own, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    with tempfile.TemporaryDirectory() as empty:
        projects = [str(ROOT), str(ROOT / "sandbox")]
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", empty, *projects], check=True)
        provider, sandbox = sorted(Path(empty).glob("*.whl"))
        # Otherwise, pip would keep installed wheels of the same version.
        installed = ("airflow-provider-webdata", "airflow-provider-webdata-sandbox")
        subprocess.run([*pip, "uninstall", "--yes", *installed], check=True)
        limits = str(ROOT / "constraints.txt")
        # The smoke test also imports the pytest plugin.
        wanted = [f"{provider}[ai,parquet,sandbox]", str(sandbox), "pytest"]
        subprocess.run([*pip, "install", "--constraint", limits, *wanted], check=True)
        subprocess.run([own, "-I", str(SMOKE)], cwd=empty, check=True)


def try_all(
    versions: Sequence[str],
    folder: Path,
    find: Callable[[str], str | None] = find,
    try_one: Callable[[str, Path], None] = smoke_test,
) -> list[str]:
    """Test each version; return a message for each failure.

    :param folder: the folder of the environments.
    :param find: returns the interpreter of a version, or None.
    :param try_one: tests an interpreter in an environment.
    """
    wrong = []
    for version in versions:
        python = find(version)
        if python is None:
            wrong.append(
                f"Python {version} was not found. Install it, or set its path: "
                f"make test-pythons PYTHONS=/path/to/python{version}"
            )
            continue
        print(f"== Python {version}: {python}", flush=True)
        began = time.monotonic()
        try:
            try_one(python, folder / version)
        except subprocess.CalledProcessError as error:
            wrong.append(f"Python {version} failed: {' '.join(map(str, error.cmd))}")
            continue
        print(f"== Python {version} works, {time.monotonic() - began:.0f} s", flush=True)
    return wrong


def main() -> int:
    """Test the versions of the command line, or all."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    wrong = try_all(sys.argv[2:] or VERSIONS, Path(sys.argv[1]).absolute())
    for message in wrong:
        print(f"== {message}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
