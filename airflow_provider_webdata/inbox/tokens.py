# SPDX-License-Identifier: Apache-2.0
"""Short-lived JSON Web Tokens by which a reader proves to the inbox that it knows the connection's secret.

A token names its connection as the audience and is signed with a key derived from the secret. Readers never send the
secret itself. It is the connection's signing secret, which is never transmitted at all. Without a signing secret, it is
the webhook secret: then anyone who sees the headers of a delivery can issue tokens.
"""

from __future__ import annotations

import hmac
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

# PyJWT is imported lazily, so that hooks that read no deliveries do not load it.

DEFAULT_LIFETIME = 300
"""Seconds for which a token is valid."""

MAX_LIFETIME = 3600
"""Maximum lifetime in seconds; a token with a longer one is rejected even if its signature is valid."""

LEEWAY = 60
"""Maximum clock skew in seconds between two machines."""

MAX_TOKEN = 8192
"""Maximum characters of a token; the longest connection id, fully escaped, results in about 4000."""

ALGORITHM = "HS256"
_PURPOSE = b"webdata inbox reader, version 1"


def issue(secret: str, conn_id: str, *, lifetime: int = DEFAULT_LIFETIME, now: float | None = None) -> str:
    """Return a token for reading the deliveries of one connection.

    :param secret: the connection's signing secret, or its webhook secret if it has none.
    :param lifetime: seconds, at most `MAX_LIFETIME`.
    :param now: seconds since the epoch. Default: the current time.
    """
    import jwt

    expiry = int((time.time() if now is None else now) + lifetime)
    return jwt.encode({"aud": conn_id, "exp": expiry}, _key(secret), algorithm=ALGORITHM)


def verify(token: str, secrets: Iterable[str], conn_id: str) -> bool:
    """Return whether a token currently allows reading a connection's deliveries.

    :param token: the reader's token; untrusted.
    :param secrets: the secrets that may have signed it. All are tried, even after a match.
    """
    if not token.isascii() or len(token) > MAX_TOKEN:
        return False
    claims = [_claims(token, secret, conn_id) for secret in secrets]
    latest = time.time() + MAX_LIFETIME + LEEWAY
    return any(found is not None and found["exp"] <= latest for found in claims)


def _claims(token: str, secret: str, conn_id: str) -> dict[str, Any] | None:
    import jwt

    try:
        return jwt.decode(
            token,
            _key(secret),
            algorithms=[ALGORITHM],
            audience=conn_id,
            leeway=LEEWAY,
            options={"require": ["aud", "exp"], "strict_aud": True},
        )
    except (jwt.InvalidTokenError, RecursionError):
        return None


def _key(secret: str) -> bytes:
    return hmac.digest(secret.encode(), _PURPOSE, "sha256")
