# SPDX-License-Identifier: Apache-2.0
"""The bill of materials: the packages with which the release is tested, as CycloneDX."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.airflow_versions import FILES
from tools.release.place import PROVIDER, ROOT, SANDBOX, SBOM, ReleaseError, files, git, version
from tools.release.wheels import Environment


def write_sbom() -> None:
    """Install both wheels with the pins of the newest Airflow, and list what is installed.

    :raises ReleaseError: the list lacks an installed package.
    """
    wheels = [str(path) for path in files() if path.suffix == ".whl"]
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder) / "venv", FILES["newest"])
        environment.create(sys.executable)
        environment.install(*wheels)
        command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--validate"]
        project = ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library"]
        environ = {**os.environ, "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct")}
        subprocess.run(
            [*command, *project, "--output-file", str(SBOM), environment.python], env=environ, check=True
        )
        installed = {*environment.packages()}
    bom = json.loads(SBOM.read_text(encoding="utf-8"))
    # The version is dynamic in pyproject.toml.
    bom["metadata"]["component"]["version"] = version()
    SBOM.write_text(json.dumps(bom, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if lacking := installed - names(bom):
        raise ReleaseError(f"{SBOM.name} lacks {', '.join(sorted(lacking))}")
    print(f"{SBOM.name} lists {len(bom['components'])} packages")


def names(bom: dict[str, Any]) -> set[str]:
    """Return the normalized names of the packages, and check that the release is the main one.

    :raises ReleaseError: the main component is another package or version.
    """
    main = bom["metadata"]["component"]
    if (main["name"], main["version"]) != (PROVIDER, version()):
        raise ReleaseError(f"{SBOM.name} describes {main['name']} {main['version']}")
    found = {re.sub(r"[-_.]+", "-", one["name"]).lower() for one in (main, *bom["components"])}
    if SANDBOX not in found:
        raise ReleaseError(f"{SBOM.name} lacks {SANDBOX}")
    return found
