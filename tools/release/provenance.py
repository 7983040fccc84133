# SPDX-License-Identifier: Apache-2.0
"""The provenance of the distributions: an in-toto statement with SLSA's predicate, unsigned.

The workflow's own attestation is signed. This one shows what it states, and can be written without credentials.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version as version_of
from typing import Any

from tools.release.build import digests
from tools.release.place import DIST, PROVENANCE, ReleaseError, files, git

REPOSITORY = "https://github.com/airflow-provider-webdata/airflow-provider-webdata"
_BUILT_BY = ("build", "hatchling", "hatch-fancy-pypi-readme")


def write_provenance() -> None:
    """Write the statement, and compare its digests with the files.

    :raises ReleaseError: a file has another digest.
    """
    files()
    PROVENANCE.write_text(json.dumps(statement(), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    written = json.loads(PROVENANCE.read_text(encoding="utf-8"))
    if {one["name"]: one["digest"]["sha256"] for one in written["subject"]} != digests(DIST):
        raise ReleaseError(f"{PROVENANCE.name} has other digests than {DIST}")
    print(f"{PROVENANCE.name} names {len(written['subject'])} files")


def statement() -> dict[str, Any]:
    """Return the statement: what was built, from which commit, and with what."""
    commit = git("rev-parse", "HEAD")
    source = {"uri": f"git+{REPOSITORY}@{commit}", "digest": {"gitCommit": commit}}
    tools = [{"name": name, "annotations": {"version": version_of(name)}} for name in _BUILT_BY]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": name, "digest": {"sha256": digest}} for name, digest in sorted(digests(DIST).items())
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{REPOSITORY}/blob/{commit}/tools/release/build.py",
                "externalParameters": {"source": source["uri"]},
                "internalParameters": {
                    "python": sys.version.split()[0],
                    "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct"),
                },
                "resolvedDependencies": [source, *tools],
            },
            "runDetails": {"builder": {"id": f"{REPOSITORY}/blob/{commit}/tools/release"}},
        },
    }
