"""Build the documentation site into build/docs/html.

    python -m tools.docs_site [FOLDER]

Fails for any warning of Sphinx, and for any link within the site that leads nowhere.
"""

from __future__ import annotations

import shutil
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
    source, site, state = folder / "source", folder / "html", folder / "doctrees"
    write(collected(pages()), source)
    strict = ["-b", "html", "-q", "-W", "--keep-going"]
    failed = build([*strict, *map(str, ("-c", ROOT / "docs", "-d", state, source, site))])
    dead = [] if failed else [*dead_links(site)]
    if failed or dead:
        # Sphinx warns of a page when it reads it: the next build reads them all again.
        shutil.rmtree(state, ignore_errors=True)
        print("\n".join(dead), file=sys.stderr)
        return 1
    print(f"The site: {site / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build" / "docs"))
