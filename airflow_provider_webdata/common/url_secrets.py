"""Passwords and tokens in URLs, to mask them in logs, rendered arguments, and pages."""

from __future__ import annotations

import re
from urllib.parse import unquote, unquote_plus

_PASSWORD = re.compile(r"(?<=://)([^\s/?#@:'\"<>]*):([^\s/?#'\"<>]+)@")
_NAMES = (
    r"[\w.-]*(?:token|secret|passw(?:or)?d|pwd|api[_-]?key|access[_-]?key|signature|credential|jwt)|sig|auth"
)
_PARAMETER = re.compile(rf"([?&;#](?:{_NAMES})=)([^\s&;#'\"<>]+)", re.IGNORECASE)

MASK = "***"


def url_secrets(text: str) -> list[str]:
    """Return the passwords and tokens in the URLs of a text, as written and decoded."""
    if "://" not in text:
        return []
    written = [match[2] for pattern in (_PASSWORD, _PARAMETER) for match in pattern.finditer(text)]
    return list(
        dict.fromkeys(form for secret in written for form in (secret, unquote(secret), unquote_plus(secret)))
    )


def without_secrets(text: str) -> str:
    """Return a text with `***` in place of the passwords and tokens in its URLs."""
    if "://" not in text:
        return text
    return _PARAMETER.sub(rf"\1{MASK}", _PASSWORD.sub(rf"\1:{MASK}@", text))
