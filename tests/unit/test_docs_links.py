# SPDX-License-Identifier: Apache-2.0
"""Links between the repository's pages lead to files and headings that exist, as a code host shows them."""

from __future__ import annotations

import re

from tests.support.links import dead, links
from tests.support.snippets import ROOT, name_of

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "sandbox").rglob("*.md")])


def test_links_lead_somewhere() -> None:
    problems = []
    for page in PAGES:
        within = [link for link in links(page.read_text(encoding="utf-8")) if not re.match(r"[a-z]+:", link)]
        # A link without a path leads to a heading of the page itself.
        found = [f"{page.name}{link}" if link.startswith("#") else link for link in within]
        problems += [f"{name_of(page)}: {problem}" for link in found if (problem := dead(link, page.parent))]
    assert problems == []
    assert len(PAGES) > 40
