# SPDX-License-Identifier: Apache-2.0
"""Splitting of long texts at paragraph boundaries."""

from __future__ import annotations

_ENDS = ("\n\n", "\n", ". ", " ")


def part_of(text: str, offset: int, max_chars: int) -> tuple[str, int | None]:
    """Return the part of a text at an offset, and the offset of the next part, or None after the last one.

    The part ends after a paragraph, otherwise a line, a sentence, or a word, if one ends in its second half.

    :param offset: characters to skip.
    :param max_chars: maximum length of the part, at least 1.
    """
    end = offset + max_chars
    if end >= len(text):
        return text[offset:], None
    for mark in _ENDS:
        found = text.rfind(mark, offset + max_chars // 2, end)
        if found >= 0:
            end = found + len(mark)
            break
    return text[offset:end], end
