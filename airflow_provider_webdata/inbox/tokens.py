"""Short-lived tokens with which a reader shows the inbox that it knows the connection's secret.

A token says for which connection it is and when it ends, signed with a key that is derived from the secret: the
secret itself never travels from a reader to the inbox, and what a delivery carries cannot be used to read.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_LIFETIME = 300
"""Seconds that a token is good for."""

LONGEST_LIFETIME = 3600
"""Seconds; a token that claims more is refused, whoever signed it."""

CLOCK_SKEW = 60
"""Seconds by which the clocks of two machines may differ."""

_SCHEME = "wd1"
_PURPOSE = b"webdata inbox reader, version 1"


def issue(secret: str, conn_id: str, *, lifetime: int = DEFAULT_LIFETIME, now: float | None = None) -> str:
    """Return a token for reading the deliveries of one connection.

    :param secret: the connection's webhook secret, or its signing secret where it has no other.
    :param conn_id: id of the connection.
    :param lifetime: seconds, at most `LONGEST_LIFETIME`.
    :param now: seconds since the epoch; the clock's, if left out.
    """
    end = int((time.time() if now is None else now) + lifetime)
    claims = base64.urlsafe_b64encode(json.dumps([conn_id, end]).encode()).decode().rstrip("=")
    return f"{_SCHEME}.{claims}.{_signature(secret, claims)}"


def verify(token: str, secrets: Iterable[str], conn_id: str, *, now: float | None = None) -> bool:
    """Return whether a token allows to read a connection's deliveries now.

    :param token: what the reader sent; anything at all.
    :param secrets: the secrets that may have signed it. All are tried, for the same time whichever fits.
    :param conn_id: id of the connection.
    :param now: seconds since the epoch; the clock's, if left out.
    """
    moment = time.time() if now is None else now
    scheme, _, rest = token.partition(".")
    claims, _, signature = rest.partition(".")
    given = signature.encode("utf-8", "surrogatepass")
    genuine = False
    for secret in secrets:
        genuine |= hmac.compare_digest(given, _signature(secret, claims).encode())
    if not genuine or scheme != _SCHEME:
        return False
    # Only a holder of the secret can have written these, so that they can be read as we write them.
    holder, end = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    return bool(holder == conn_id and moment - CLOCK_SKEW < end <= moment + LONGEST_LIFETIME + CLOCK_SKEW)


def _signature(secret: str, claims: str) -> str:
    key = hmac.new(secret.encode(), _PURPOSE, hashlib.sha256).digest()
    return hmac.new(key, claims.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
