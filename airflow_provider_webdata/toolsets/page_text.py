"""Parts of a long text, cut where a paragraph ends."""

from __future__ import annotations

_ENDS = ("\n\n", "\n", ". ", " ")


def part_of(text: str, offset: int, max_chars: int) -> tuple[str, int | None]:
    """Return the part of a text from an offset on, and the offset of the next part, or None where there is none.

    It ends after a paragraph, else a line, a sentence or a word, as far as one ends in its second half.

    :param offset: characters to leave out.
    :param max_chars: most characters of the part, at least 1.
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
