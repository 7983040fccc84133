# SPDX-License-Identifier: Apache-2.0
"""Installations of the wheels beside pinned versions of Airflow.

The provider is installed without constraints, as by a user: it must move no package that Airflow was installed with.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.airflow_versions import SUPPORTED, number, pins, prerelease
from tools.release import pythons
from tools.release.place import PROVIDER, SANDBOX, ReleaseError, files

SMOKE = Path(__file__).with_name("smoke.py")
ADDED = {"ada-url", PROVIDER}
"""The packages that the provider adds to an Airflow."""
_EXTRAS = "ai,dlt,parquet"


@dataclass(frozen=True)
class Environment:
    """A virtual environment that uv fills.

    :param folder: its folder.
    :param limits: a file with constraints.
    :param prereleases: whether prereleases of all packages may be installed, as a prerelease of Airflow needs.
    """

    folder: Path
    limits: Path
    prereleases: bool = False

    @property
    def python(self) -> str:
        """The path of its interpreter."""
        return str(self.folder / "bin" / "python")

    def create(self, python: str) -> None:
        """Create it, empty."""
        uv("venv", "--quiet", "--clear", "--python", python, str(self.folder))

    def install(self, *packages: str, pinned: bool = True) -> None:
        """Install packages, with the constraints unless they are not `pinned`."""
        limits = ["--constraint", str(self.limits)] if pinned else []
        if self.prereleases:
            limits += ["--prerelease", "allow"]
        uv("pip", "install", "--quiet", "--python", self.python, *limits, *packages)

    def packages(self) -> dict[str, str]:
        """Return the versions of the installed packages; a wheel of this release has the version ``."""
        lines = uv("pip", "freeze", "--quiet", "--python", self.python).splitlines()
        return {line.partition("==")[0].partition(" @ ")[0]: line.partition("==")[2] for line in lines}


def uv(*arguments: str) -> str:
    """Run uv; return its output."""
    command = [sys.executable, "-m", "uv", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def moved(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return a sentence for each package that an installation changed or removed."""
    return [
        f"{name} {version} became {after.get(name, 'missing')}"
        for name, version in before.items()
        if after.get(name) != version
    ]


def try_wheels(versions: Sequence[str] = (), airflows: Sequence[str] = ()) -> None:
    """Test the wheels on each Python with each Airflow that supports it.

    :param versions: such as `3.12`; default: all supported ones that are found.
    :param airflows: such as `floor`, or `next` for the newest prerelease; default: all supported ones.
    :raises ReleaseError: a test failed, or a requested Python was not found.
    """
    wanted = versions or pythons.VERSIONS
    found = {version: pythons.find(version) for version in wanted}
    missing = [version for version, path in found.items() if path is None]
    wrong = [f"Python {version} was not found: set PYTHONS to its path" for version in missing if versions]
    if missing and not versions:
        print(f"== not tested, because it was not found: Python {', '.join(missing)}", flush=True)
    for version, python in found.items():
        for airflow in airflows or SUPPORTED:
            if python is not None:
                wrong += _tried(version, python, airflow)
    if wrong:
        raise ReleaseError("\n".join(wrong))


def _tried(version: str, python: str, airflow: str) -> list[str]:
    if airflow == "next":
        found = prerelease(sys.executable)
        if found is None:
            print("== Airflow has no prerelease that is newer than its newest release", flush=True)
            return []
        airflow = found
    text = pins(airflow)
    name = f"Python {version} with Airflow {number(text)}"
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        limits = Path(folder) / "constraints.txt"
        limits.write_text(text, encoding="utf-8")
        try:
            added = try_one(python, _environment(Path(folder) / "venv", limits, number(text)), number(text))
        except subprocess.CalledProcessError as error:
            return [f"{name} failed: {' '.join(map(str, error.cmd))}"]
        except ReleaseError as error:
            return [f"{name}: {error}"]
    print(
        f"== {name} works, {time.monotonic() - began:.0f} s; the sandbox adds {', '.join(added)}", flush=True
    )
    return []


def _environment(folder: Path, limits: Path, airflow: str) -> Environment:
    return Environment(folder, limits, prereleases=not airflow.replace(".", "").isdigit())


def try_one(python: str, environment: Environment, airflow: str) -> list[str]:
    """Install Airflow, then both wheels, and run the smoke test; return what the sandbox adds.

    With the newest Airflow, the extras are installed too.

    :raises ReleaseError: a package was moved, or the provider adds others than `ADDED`.
    :raises subprocess.CalledProcessError: an installation or the smoke test failed.
    """
    provider, sandbox = (str(path) for path in files() if path.suffix == ".whl")
    environment.create(python)
    environment.install(f"apache-airflow=={airflow}", "pytest")
    before = environment.packages()
    environment.install(provider, pinned=False)
    alone = environment.packages()
    if changes := moved(before, alone):
        raise ReleaseError(f"the provider moves packages of Airflow: {'; '.join(changes)}")
    if (added := alone.keys() - before.keys()) != ADDED:
        raise ReleaseError(f"the provider adds {', '.join(sorted(added))}, not {', '.join(sorted(ADDED))}")
    environment.install(sandbox, pinned=False)
    both = environment.packages()
    if changes := moved(alone, both):
        raise ReleaseError(f"the sandbox moves packages: {'; '.join(changes)}")
    _smoke(environment)
    if airflow == number(pins("newest")):
        environment.install(f"{provider}[{_EXTRAS}]")
        _smoke(environment, "--complete")
    return sorted(both.keys() - alone.keys() - {SANDBOX})


def _smoke(environment: Environment, *arguments: str) -> None:
    # In another folder, so that the files of the repository are not imported.
    command = [environment.python, "-I", str(SMOKE), *arguments]
    subprocess.run(command, cwd=environment.folder, check=True)
