# SPDX-License-Identifier: Apache-2.0
"""Build the documentation site into build/docs/html.

    python -m tools.docs_site [FOLDER]

Only changed pages are rebuilt, unless a change may affect other pages. Sphinx warnings and dead links within the site
are errors.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

from sphinx.cmd.build import main as build

from tools.docs_site.links import dead_links
from tools.docs_site.pages import ROOT, Pages, collected, write
from tools.docs_site.reference import pages, place_of_class

BUILT_BY = ("docutils", "furo", "markdown-it-py", "myst-parser", "pygments", "sphinx", "sphinx-copybutton")


def main(folder: Path) -> int:
    """Build and check the site; return the exit status.

    :param folder: output folder; the site is in its subfolder `html`.
    """
    source, site, state = folder / "source", folder / "html", folder / "doctrees"
    stamp = folder / "shared"
    site_pages = collected(pages())
    shared = shared_by_pages(site_pages)
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != shared:
        shutil.rmtree(site, ignore_errors=True)
        shutil.rmtree(state, ignore_errors=True)
    # After an interrupted build, the missing stamp forces a full build.
    stamp.unlink(missing_ok=True)
    write(site_pages, source)
    strict = ["-b", "html", "-q", "-W", "--keep-going"]
    failed = build([*strict, *map(str, ("-c", ROOT / "docs", "-d", state, source, site))])
    dead = [] if failed else [*dead_links(site)]
    if failed or dead:
        print("\n".join(dead), file=sys.stderr)
        return 1
    stamp.write_text(shared, encoding="utf-8")
    print(f"Built {site / 'index.html'}")
    return 0


def shared_by_pages(site_pages: Pages) -> str:
    """Return a digest of the content that pages share.

    Sphinx rebuilds a page only when its text or the configuration changes. Titles in the sidebar, links to classes, the
    theme, and this program affect other pages too.
    """
    titles = {
        name: next((line for line in text.splitlines() if line.startswith("# ")), "")
        for name, text in site_pages.items()
    }
    parts = [
        repr(sorted(titles.items())),
        site_pages["index.md"],
        repr(sorted(place_of_class().items())),
        *(f"{name} {version(name)}" for name in (*BUILT_BY, "airflow-provider-webdata")),
        *(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build" / "docs"))
