# SPDX-License-Identifier: Apache-2.0
"""Run stages of a release.

    python -m tools.release [--tag TAG] [--python VERSION] ... [--airflow VERSION] ... [STAGE ...]

Without stages, all run except `tag`, which needs a tag, `archives`, which downloads the pages of all releases, and
`assemble`, which adds them to the built site. The wheels are tested with all supported versions of Airflow, and on all
of Python that are found.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from tools.release.build import build
from tools.release.check import check, check_tag, notes
from tools.release.place import FOLDER, ROOT, SITE, ReleaseError, version
from tools.release.provenance import write_provenance
from tools.release.sbom import write_sbom
from tools.release.site import BUILT, assemble, fetch_archives, write_site
from tools.release.wheels import try_wheels

ALL = ("build", "check", "wheels", "sbom", "provenance", "site", "notes")


def stages(options: argparse.Namespace) -> dict[str, Callable[[], None]]:
    """Return the stages by their names."""
    return {
        "tag": lambda: check_tag(options.tag),
        "build": build,
        "check": check,
        "wheels": lambda: try_wheels(options.python, options.airflow),
        "sbom": write_sbom,
        "provenance": write_provenance,
        "site": write_site,
        "notes": write_notes,
        "archives": fetch_archives,
        "assemble": lambda: assemble(BUILT, FOLDER.glob("docs-*.tar.gz"), SITE),
    }


def write_notes() -> None:
    """Write the release notes: the section of the changelog, and the checksums."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sums = (FOLDER / "SHA256SUMS").read_text(encoding="utf-8")
    (FOLDER / "notes.md").write_text(f"{notes(changelog, version())}\n```text\n{sums}```\n", encoding="utf-8")
    print("notes.md is written")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the stages in their order until one fails."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.release",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tag", default="")
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--airflow", action="append", default=[])
    parser.add_argument("stages", nargs="*", metavar="STAGE")
    options = parser.parse_args(arguments)
    known = stages(options)
    if unknown := [name for name in options.stages if name not in known]:
        parser.error(f"unknown stages: {', '.join(unknown)}. Use {', '.join(known)}")
    for name in options.stages or ALL:
        print(f"== {name}", flush=True)
        began = time.monotonic()
        try:
            known[name]()
        except (ReleaseError, subprocess.CalledProcessError) as error:
            print(f"== {name} failed: {error}", file=sys.stderr)
            return 1
        print(f"== {name}: passed, {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
