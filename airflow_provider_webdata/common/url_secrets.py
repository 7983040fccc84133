"""Passwords and tokens in URLs, to mask them in logs, rendered arguments, and pages."""

from __future__ import annotations

import re
from urllib.parse import unquote, unquote_plus

_PASSWORD = re.compile(r"(?<=://)([^\s/?#@:'\"<>]*):([^\s/?#'\"<>]+)@")
# A long user name without a password is a token, as in the addresses of code hosts.
_USER = re.compile(r"(?<=://)([\w.~%-]{20,})(?=(?::[^\s/?#'\"<>]*)?@)")
_NAMES = (
    r"[\w.-]*(?:token|secret|passw(?:or)?d|passphrase|pwd|signature|credential|jwt"
    r"|(?:api|access|auth|private|subscription|function|license|app)[_-]?key|session[_-]?id)"
    r"|key|sig|auth|pass|pw|sid"
)
_PARAMETER = re.compile(rf"([?&;#](?:{_NAMES})=)([^\s&;#'\"<>]+)", re.IGNORECASE)

MASK = "***"


def url_secrets(text: str) -> list[str]:
    """Return the passwords and tokens in the URLs of a text, as written and decoded."""
    if "://" not in text:
        return []
    written = [match[1] for match in _USER.finditer(text)]
    written += [match[2] for pattern in (_PASSWORD, _PARAMETER) for match in pattern.finditer(text)]
    return list(
        dict.fromkeys(form for secret in written for form in (secret, unquote(secret), unquote_plus(secret)))
    )


def without_secrets(text: str) -> str:
    """Return a text with `***` in place of the passwords and tokens in its URLs."""
    if "://" not in text:
        return text
    text = _PASSWORD.sub(rf"\1:{MASK}@", _USER.sub(MASK, text))
    return _PARAMETER.sub(rf"\1{MASK}", text)
