"""Whether the links of the built site lead somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The links and the ids of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: set[str] = set()
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Take up an element."""
        for name, value in attributes:
            if value and name in ("href", "src") and tag in ("a", "img", "link", "script"):
                self.links.add(value)
            elif value and name == "id":
                self.ids.add(value)


def dead_links(site: Path) -> Iterator[str]:
    """Yield each link of a site that leads to no file or no id; other hosts are not asked.

    :param site: folder of the built HTML.
    """
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            fragment = unquote(parts.fragment)
            if not target.exists() or (fragment and target in pages and fragment not in pages[target].ids):
                yield f"{path.relative_to(site)}: {link} leads nowhere"
