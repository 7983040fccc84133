# SPDX-License-Identifier: Apache-2.0
"""Passwords and tokens in URLs, to mask them in logs, rendered arguments, and pages."""

from __future__ import annotations

import re
from functools import cache
from urllib.parse import unquote, unquote_plus

_USERINFO = r"(?<=://)([^\s/?#@:'\"<>]*):([^\s/?#'\"<>]+)@"
# A long user name without a password is a token, as in the addresses of code hosts.
_USER = r"(?<=://)([\w.~%-]{20,})(?=(?::[^\s/?#'\"<>]*)?@)"
_NAMES = (
    r"(?:[\w.\[-]|%5B)*(?:token|secret|passw(?:or)?d|passphrase|pwd|signature|credential|jwt"
    r"|(?:api|access|auth|private|subscription|function|license|app)[_-]?key|session[_-]?id)"
    r"|key|sig|sid|(?:[\w.-]+(?:\[|%5B))?(?:auth|pass|pw)"
)
# As in `user[password]` and `tokens[]`.
_END = r"(?:\]|%5D)?(?:\[\]|%5B%5D)?"
_PARAMETER = rf"([?&;#](?:{_NAMES}){_END}=)([^\s&;#'\"<>]+)"
# In a URL that is a parameter of another, such as the target of a redirect.
_NESTED = rf"((?:%3F|%26|%23)(?:{_NAMES}){_END}%3D)((?:(?!%26|%23)[^\s&;#'\"<>])+)"

MASK = "***"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a compiled pattern: DAG files import this module, and seldom need one."""
    return re.compile(pattern, re.IGNORECASE)


def url_secrets(text: str) -> list[str]:
    """Return the passwords and tokens in the URLs of a text, as written and decoded."""
    if "://" not in text:
        return []
    written = [match[1] for match in _compiled(_USER).finditer(text)]
    written += [
        match[2]
        for pattern in (_USERINFO, _PARAMETER, _NESTED)
        for match in _compiled(pattern).finditer(text)
    ]
    return list(
        dict.fromkeys(form for secret in written for form in (secret, unquote(secret), unquote_plus(secret)))
    )


def without_secrets(text: str) -> str:
    """Return a text with `***` in place of the passwords and tokens in its URLs."""
    if "://" not in text:
        return text
    text = _compiled(_USERINFO).sub(rf"\1:{MASK}@", _compiled(_USER).sub(MASK, text))
    text = _compiled(_PARAMETER).sub(rf"\1{MASK}", text)
    return _compiled(_NESTED).sub(rf"\1{MASK}", text)
