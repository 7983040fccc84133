# SPDX-License-Identifier: Apache-2.0
"""The link targets of a Markdown page."""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

_ATTRIBUTE = re.compile(r"\b(?:href|src|srcset)=\"([^\"]*)\"")


def links(text: str) -> list[str]:
    """Return the targets of a page's links and pictures, of Markdown and of HTML in it, in order."""
    found: list[str] = []
    for token in _tokens(text):
        if token.type in {"html_block", "html_inline"}:
            found += _ATTRIBUTE.findall(token.content)
        else:
            found += [str(value) for name, value in token.attrs.items() if name in {"href", "src"}]
    return found


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: of its headings, as the repository's host makes them, and those in its text."""
    found = set(re.findall(r'<a id="([^"]+)">', text))
    tokens = MarkdownIt("commonmark").parse(text)
    for before, token in itertools.pairwise(tokens):
        if before.type != "heading_open":
            continue
        words = "".join(part.content for part in token.children or [] if part.type in {"text", "code_inline"})
        plain = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        count = 0
        while (anchor := f"{plain}-{count}" if count else plain) in found:
            count += 1
        found.add(anchor)
    return found


def dead(target: str, folder: Path) -> str | None:
    """Return why a link to a file, or to a heading in one, leads nowhere; None if it leads somewhere.

    :param target: path, from the folder, with or without `#anchor`.
    :param folder: where the page is.
    """
    path, _, anchor = target.partition("#")
    place = folder / path
    if not place.exists():
        return f"{target}: there is no such file"
    if anchor and anchor not in _anchors_of(place):
        return f"{target}: there is no such heading"
    return None


@functools.cache
def _anchors_of(page: Path) -> set[str]:
    return anchors(page.read_text(encoding="utf-8"))


def _tokens(text: str) -> list[Token]:
    flat: list[Token] = []
    for token in MarkdownIt("commonmark").parse(text):
        flat += [token, *(token.children or [])]
    return flat
