"""Links between the repository's pages lead to files and headings that exist, as a code host shows them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.links import dead, links
from tests.support.snippets import ROOT, name_of

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    within = [link for link in links(page.read_text(encoding="utf-8")) if not re.match(r"[a-z]+:", link)]
    # A link without a path leads to a heading of the page itself.
    found = [f"{page.name}{link}" if link.startswith("#") else link for link in within]
    assert [problem for link in found if (problem := dead(link, page.parent))] == []
