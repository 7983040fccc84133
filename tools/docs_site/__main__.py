"""Build the documentation site into build/docs/html.

    python -m tools.docs_site [FOLDER]

Fails for any warning of Sphinx, and for any link within the site that leads nowhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.cmd.build import main as build

from tools.docs_site.links import dead_links
from tools.docs_site.pages import ROOT, collected, write
from tools.docs_site.reference import pages


def main(folder: Path) -> int:
    """Build and check the site; return the exit status.

    :param folder: where it is built, below `html`.
    """
    source, site = folder / "source", folder / "html"
    write(collected(pages()), source)
    status = build(
        [
            "-q",
            "-W",
            "--keep-going",
            "-b",
            "html",
            "-c",
            str(ROOT / "docs"),
            "-d",
            str(folder / "doctrees"),
            str(source),
            str(site),
        ]
    )
    if status:
        return status
    if dead := [*dead_links(site)]:
        print("\n".join(dead), file=sys.stderr)
        return 1
    print(f"The site: {site / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build" / "docs"))
