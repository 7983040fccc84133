"""A probe tries the way of a delivery: sent with the same secret and signature, and never stored.

Its body is no JSON, so that an inbox that knows no probes refuses it and stores nothing either. The answer holds proofs
that the inbox knows the connection's secret: any server can answer 200.
"""

from __future__ import annotations

import hmac
import re
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX = b"webdata-probe "
_PROBE = re.compile(re.escape(_PREFIX) + rb"[0-9a-f]{32}")
_PURPOSE = b"webdata inbox probe, version 1"


def new_probe() -> bytes:
    """Return the body of a probe, of which there is no second."""
    return _PREFIX + secrets.token_hex(16).encode()


def is_probe(body: bytes) -> bool:
    """Return whether a body is that of a probe."""
    return _PROBE.fullmatch(body) is not None


def proofs_of(probe: bytes, conn_id: str, keys: Iterable[str]) -> list[str]:
    """Return what shows that one knows these secrets, one proof for each.

    :param keys: its signing secrets, or its webhook secrets where it has no others.
    """
    named = _PURPOSE + b"\0" + conn_id.encode() + b"\0" + probe
    return [hmac.new(key.encode(), named, "sha256").hexdigest() for key in keys]


def is_proven(given: object, probe: bytes, conn_id: str, keys: Iterable[str]) -> bool:
    """Return whether the answer to a probe shows that who gave it knows one of these secrets.

    :param given: the answer's `proofs`; anything at all.
    :param keys: as for `proofs_of`.
    """
    return isinstance(given, list) and any(proof in given for proof in proofs_of(probe, conn_id, keys))
