# SPDX-License-Identifier: Apache-2.0
"""Where a release is built, and its version."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "release"
DIST = FOLDER / "dist"
"""The two wheels and the two sdists, and nothing else: what is published."""
SBOM = FOLDER / "sbom.cdx.json"
PROVENANCE = FOLDER / "provenance.intoto.json"
SITE = FOLDER / "site"
PROVIDER = "airflow-provider-webdata"
SANDBOX = "airflow-provider-webdata-sandbox"


class ReleaseError(Exception):
    """A stage refuses the release."""


def version() -> str:
    """Return the version of both distributions."""
    text = (ROOT / "airflow_provider_webdata" / "__init__.py").read_text(encoding="utf-8")
    (found,) = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(found)


def git(*arguments: str) -> str:
    """Return the output of a command of Git in the repository."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def files() -> list[Path]:
    """Return the built distributions.

    :raises ReleaseError: one is missing.
    """
    stems = (PROVIDER.replace("-", "_"), SANDBOX.replace("-", "_"))
    found = [DIST / f"{stem}-{version()}{end}" for stem in stems for end in ("-py3-none-any.whl", ".tar.gz")]
    if missing := [path.name for path in found if not path.is_file()]:
        raise ReleaseError(f"{DIST} lacks {', '.join(missing)}. Run first: make release-dry STAGES=build")
    return found
