# SPDX-License-Identifier: Apache-2.0
"""The sandbox's web: pages from a directory, from the control API, and generated ones.

The directory contains one directory per host with one file per page: ``index.html`` is the front page, ``a/b.html`` is
``https://host/a/b``, and ``a/b.pdf.md`` is the text of the PDF ``https://host/a/b.pdf``, with its pages separated by
form feeds. ``ago:36h`` or ``ago:3d`` in a page is replaced with the time that long before the start or reset of the
sandbox.
"""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webdata_sandbox.reference.timestamps import iso
from webdata_sandbox.reference.urls import canonical

from .page import Page, compose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.state.clock import Clock
    from webdata_sandbox.state.store import Store

    from .sites import Sites

BUILT_IN = Path(__file__).parents[1] / "web"

_AGO = re.compile(r"ago:(\d+)([hd])")


class Web:
    """All pages: the built-in ones, those of a directory and of the control API, and generated ones.

    Iteration omits generated pages.
    """

    def __init__(self, store: Store, clock: Clock, sites: Sites, directory: str | None = None) -> None:
        self._store, self._clock = store, clock
        self.sites = sites
        self._directories = (BUILT_IN, *([Path(directory)] if directory else []))
        self.reset()
        for change in store.list("page"):
            self._apply(change)

    def __iter__(self) -> Iterator[Page]:
        return iter(self._pages.values())

    def get(self, url: str) -> Page | None:
        """Return the page at a URL, or None."""
        return self._pages.get(canonical(url)) or self.sites.page(url)

    def generates(self, url: str) -> bool:
        """Return whether the page at a URL is generated and need not be stored."""
        return canonical(url) not in self._pages and self.sites.generates(url)

    def knows_host(self, host: str) -> bool:
        """Return whether the host has pages."""
        return self.sites.knows(host) or any(page.host == host for page in self._pages.values())

    def put(self, page: Page) -> None:
        """Create or replace a page."""
        change = asdict(page)
        self._store.put("page", page.url, change)
        self._apply(change)

    def remove(self, url: str) -> bool:
        """Remove a page; return whether it existed."""
        url = canonical(url)
        known = url in self._pages
        self._store.put("page", url, {"url": url, "removed": True})
        self._pages.pop(url, None)
        return known

    def reset(self) -> None:
        """Restore the pages of the directories; their ``ago:`` times count from now."""
        now = self._clock.datetime()
        self._pages = {page.url: page for directory in self._directories for page in load(directory, now)}

    def _apply(self, change: dict[str, Any]) -> None:
        if change.get("removed"):
            self._pages.pop(change["url"], None)
        else:
            self._pages[change["url"]] = Page(**change)


def load(directory: Path, now: datetime) -> Iterator[Page]:
    """Read all pages of a directory and replace ``ago:`` times relative to ``now``.

    :raises NotADirectoryError: the directory does not exist.
    """
    if not directory.is_dir():
        raise NotADirectoryError(f"the directory of pages does not exist: {directory}")
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.name.endswith((".html", ".pdf.md")):
            yield _read(path, directory, now)


def _read(path: Path, directory: Path, now: datetime) -> Page:
    host, *rest = path.relative_to(directory).parts
    name = "/".join(rest)
    text = _AGO.sub(lambda match: _before(now, match), path.read_text(encoding="utf-8"))
    if name.endswith(".pdf.md"):
        page = compose(f"https://{host}/{name.removesuffix('.md')}", markdown=text, title=_heading(text))
        return replace(page, content_type="application/pdf")
    location = "" if name == "index.html" else name.removesuffix(".html").removesuffix("/index")
    return Page(canonical(f"https://{host}/{location}"), text)


def _heading(text: str) -> str:
    return text.lstrip().split("\n", 1)[0].lstrip("# ")


def _before(now: datetime, match: re.Match[str]) -> str:
    amount = int(match[1])
    span = timedelta(hours=amount) if match[2] == "h" else timedelta(days=amount)
    return iso(now - span)
