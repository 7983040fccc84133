# SPDX-License-Identifier: Apache-2.0
"""Lone surrogates, which JSON can contain but UTF-8 cannot. JavaScript produces them when it cuts an emoji."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST, _SECOND = rb"u[dD][89abAB][0-9a-fA-F]{2}", rb"u[dD][c-fC-F][0-9a-fA-F]{2}"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# The pattern starts with a literal character, for which `re` has a fast search.
_HALF = re.compile(rb"\\(?:(?=%b(?!\\%b))|(?<!\\%b\\)(?=%b))" % (_FIRST, _SECOND, _FIRST, _SECOND))
_SECOND_HALF = re.compile(rb"\\%b" % _SECOND)
_PIECE = 2**18

# UTF-8 never contains this byte. While it replaces escaped backslashes, each remaining backslash starts an escape.
_BACKSLASHES = b"\xff\xff"


def is_utf8(text: str) -> bool:
    """Return whether UTF-8 can encode the text, which means that it contains no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def escape_halves(json: bytes) -> bytes:
    r"""Convert the escape of a lone surrogate, such as `\ud83d`, into literal text, so that every parser accepts it.

    The value then contains those six characters, so nothing is lost. Everything else is unchanged.

    :param json: JSON text; input that is not UTF-8 is returned unchanged.
    """
    if _SURROGATE.search(json) is None or _BACKSLASHES[:1] in json:
        return json
    marked = json.replace(rb"\\", _BACKSLASHES)
    escaped = b"".join(_HALF.sub(rb"\\\\", piece) for piece in _pieces(marked))
    return escaped.replace(_BACKSLASHES, rb"\\")


def _pieces(marked: bytes) -> Iterator[bytes]:
    """Yield JSON in pieces without splitting surrogate pairs; other threads can run between pieces."""
    start = 0
    while start < len(marked):
        end = marked.find(b"\\", start + _PIECE)
        if end < 0:
            end = len(marked)
        elif _SECOND_HALF.match(marked, end):
            end += len(rb"\udc00")
        yield marked[start:end]
        start = end
