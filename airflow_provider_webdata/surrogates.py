"""Halves of surrogate pairs: JSON may hold one, as JavaScript leaves when it cuts an emoji; UTF-8 cannot."""

from __future__ import annotations

import re

_FIRST, _SECOND = rb"u[dD][89abAB][0-9a-fA-F]{2}", rb"u[dD][c-fC-F][0-9a-fA-F]{2}"
# It begins with a plain character, for which `re` searches at the speed of C.
_HALF = re.compile(rb"\\(?:%b(?!\\%b)|(?<!\\%b\\)%b)" % (_FIRST, _SECOND, _FIRST, _SECOND))

# UTF-8 has no such byte. While it stands for escaped backslashes, each backslash that is left begins an escape.
_NO_TEXT = b"\xff\xff"


def is_utf8(text: str) -> bool:
    """Return whether UTF-8 can encode the text: there is no half of a surrogate pair in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace_halves(json: bytes) -> bytes:
    r"""Return JSON text with each escaped half of a surrogate pair (`\ud83d`) replaced by U+FFFD; all else stays.

    Browsers and JavaScript's `toWellFormed()` do the same: half an emoji says nothing that could be lost.

    :param json: the text, as it came; what is not UTF-8 comes back unchanged.
    """
    if _NO_TEXT[:1] in json:
        return json
    return _HALF.sub(rb"\\ufffd", json.replace(rb"\\", _NO_TEXT)).replace(_NO_TEXT, rb"\\")
