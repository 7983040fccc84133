# SPDX-License-Identifier: Apache-2.0
"""Dead links of the built site."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lxml import html

_LINKS = "//a/@href | //img/@src | //link/@href | //script/@src"


def dead_links(site: Path) -> Iterator[str]:
    """Yield a message for each link to a missing file or id; links to other hosts are ignored.

    :param site: folder of the built HTML.
    """
    files = {path.relative_to(site).as_posix() for path in site.rglob("*")}
    links: dict[str, set[str]] = {}
    ids: dict[str, set[str]] = {}
    for name in sorted(name for name in files if name.endswith(".html")):
        page = html.parse(site / name)
        links[name] = set(filter(None, page.xpath(_LINKS)))
        ids[name] = set(page.xpath("//@id"))
    for name, found in links.items():
        for link in sorted(found):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            folder = posixpath.dirname(name)
            target = posixpath.normpath(posixpath.join(folder, unquote(parts.path))) if parts.path else name
            fragment = unquote(parts.fragment)
            if target not in files or (fragment and target in ids and fragment not in ids[target]):
                yield f"{name}: the target of {link} does not exist"
