"""Links between the repository's pages lead to files and headings that exist, as a code host shows them."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from tests.support.snippets import ROOT, name_of
from tools.coverage_page import slug
from tools.docs_site.pages import TO_COME

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PARSER = MarkdownIt("commonmark").enable("table")


@cache
def anchors(page: Path) -> set[str]:
    text = page.read_text(encoding="utf-8")
    found, tokens = set(re.findall(r'<a id="([^"]+)">', text)), PARSER.parse(text)
    for token, inside in pairwise(tokens):
        if token.type == "heading_open":
            title = "".join(
                part.content for part in inside.children or () if part.type in ("text", "code_inline")
            )
            # A second heading of the same words gets a number.
            name = next(n for i in range(100) if (n := slug(title) + (f"-{i}" if i else "")) not in found)
            found.add(name)
    return found


def links(page: Path) -> list[str]:
    tokens = PARSER.parse(page.read_text(encoding="utf-8"))
    inline = [part for token in tokens for part in token.children or ()]
    return [
        str(part.attrs.get("href") or part.attrs.get("src"))
        for part in inline
        if part.type in ("link_open", "image")
    ]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    dead = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / unquote(path)).resolve() if path else page
        to_come = name_of(page) == "docs/index.md" and path.removeprefix("../").lower() in TO_COME
        if not (target.exists() or to_come) or (
            fragment and target.suffix == ".md" and fragment not in anchors(target)
        ):
            dead.append(link)
    assert dead == []
