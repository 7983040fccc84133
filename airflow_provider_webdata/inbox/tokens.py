"""Short-lived JSON Web Tokens with which a reader proves to the inbox that it knows the connection's secret.

A token names its connection as the audience and is signed with a key that is derived from the secret, which itself
never travels from a reader to the inbox. The secret is the connection's signing secret, which never travels at all.
Without one, it is the webhook secret: then anyone who sees the headers of a delivery can make tokens.
"""

from __future__ import annotations

import hmac
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

# PyJWT is imported where it is used: a hook that reads no delivery need not pay for it.

DEFAULT_LIFETIME = 300
"""Seconds that a token is good for."""

LONGEST_LIFETIME = 3600
"""Seconds; a token that claims more is refused, whoever signed it."""

LEEWAY = 60
"""Seconds by which the clocks of two machines may differ."""

LONGEST_TOKEN = 8192
"""Characters; the longest id of a connection makes about 4000 of them, each escaped."""

ALGORITHM = "HS256"
_PURPOSE = b"webdata inbox reader, version 1"


def issue(secret: str, conn_id: str, *, lifetime: int = DEFAULT_LIFETIME, now: float | None = None) -> str:
    """Return a token for reading the deliveries of one connection.

    :param secret: the connection's signing secret, or its webhook secret where it has no other.
    :param lifetime: seconds, at most `LONGEST_LIFETIME`.
    :param now: seconds since the epoch; the clock's, if left out.
    """
    import jwt

    expiry = int((time.time() if now is None else now) + lifetime)
    return jwt.encode({"aud": conn_id, "exp": expiry}, _key(secret), algorithm=ALGORITHM)


def verify(token: str, secrets: Iterable[str], conn_id: str) -> bool:
    """Return whether a token allows to read a connection's deliveries now.

    :param token: what the reader sent; anything at all.
    :param secrets: the secrets that may have signed it. All are tried, whichever fits.
    """
    if not token.isascii() or len(token) > LONGEST_TOKEN:
        return False
    claims = [_claims(token, secret, conn_id) for secret in secrets]
    latest = time.time() + LONGEST_LIFETIME + LEEWAY
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
