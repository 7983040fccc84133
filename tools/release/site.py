# SPDX-License-Identifier: Apache-2.0
"""The documentation of all versions as one site.

The newest state is at the root, each release in a folder of its version, and the newest release also in `stable`. A
release keeps its pages as an archive, so that the site is assembled from archives without a build of old versions.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

from tools.release.place import FOLDER, ROOT, SITE, ReleaseError, version

BUILT = ROOT / "build" / "docs" / "html"
_ARCHIVE = re.compile(r"docs-(\d+\.\d+\.\d+)\.tar\.gz")


def write_site() -> None:
    """Build the pages of this version, archive them, and assemble a site that has them.

    :raises ReleaseError: `stable` is not this version, or has a dead link.
    """
    subprocess.run([sys.executable, "-m", "tools.docs_site"], cwd=ROOT, check=True)
    archive = FOLDER / f"docs-{version()}.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(BUILT, ".")
    assemble(BUILT, FOLDER.glob("docs-*.tar.gz"), SITE)
    stable, own = SITE / "stable", SITE / version()
    if (stable / "index.html").read_bytes() != (own / "index.html").read_bytes():
        raise ReleaseError(f"{stable} is not {version()}")
    # Imported here: only this stage needs Sphinx.
    from tools.docs_site.links import dead_links

    if dead := [*dead_links(stable)]:
        raise ReleaseError("\n".join(dead))
    print(f"{archive.name} has {sum(1 for _ in own.rglob('*.html'))} pages, which are also {stable.name}")


def fetch_archives() -> None:
    """Download the archive of each release, with the command line of the repository's host.

    :raises subprocess.CalledProcessError: a download failed.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    gh = ["gh", "release"]
    listed = [*gh, "list", "--limit", "1000", "--json", "tagName", "--jq", ".[].tagName"]
    tags = subprocess.run(listed, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    for tag in tags:
        wanted = ["--pattern", "docs-*.tar.gz", "--dir", str(FOLDER), "--clobber"]
        subprocess.run([*gh, "download", tag, *wanted], cwd=ROOT, check=True)


def assemble(newest: Path, archives: Iterable[Path], site: Path) -> None:
    """Write a site with the newest pages, and those of each archive.

    :param newest: the folder of the newest pages.
    :param archives: files such as `docs-0.1.0.tar.gz`; without any, the site has no `stable`.
    :param site: the folder to write; existing files are deleted.
    :raises ReleaseError: an archive's name has no version.
    """
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(newest, site)
    versions = {_version_of(archive): archive for archive in archives}
    for release, archive in versions.items():
        with tarfile.open(archive) as tar:
            tar.extractall(site / ".".join(map(str, release)), filter="data")
    if versions:
        stable = ".".join(map(str, max(versions)))
        shutil.copytree(site / stable, site / "stable")


def _version_of(archive: Path) -> tuple[int, ...]:
    found = _ARCHIVE.fullmatch(archive.name)
    if found is None:
        raise ReleaseError(f"{archive.name} should have a name such as docs-0.1.0.tar.gz")
    return tuple(map(int, found[1].split(".")))
