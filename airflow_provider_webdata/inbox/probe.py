# SPDX-License-Identifier: Apache-2.0
"""Probes of the delivery path: sent with the secret and signature of a delivery, but never stored.

A probe's body is not JSON, so that an older inbox without probe support rejects it instead of storing it. The response
contains proofs that the inbox knows the connection's secret, since any server can respond with 200.
"""

from __future__ import annotations

import hmac
import re
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX = b"webdata-probe "
LENGTH = len(_PREFIX) + 32
"""Length of a probe in bytes, which is less than that of any delivery."""
_PROBE = re.compile(re.escape(_PREFIX) + rb"[0-9a-f]{32}")
_PURPOSE = b"webdata inbox probe, version 1"


def new_probe() -> bytes:
    """Return the body of a unique probe."""
    return _PREFIX + secrets.token_hex(16).encode()


def is_probe(body: bytes) -> bool:
    """Return whether a body is a probe."""
    return _PROBE.fullmatch(body) is not None


def proofs_of(probe: bytes, conn_id: str, keys: Iterable[str]) -> list[str]:
    """Return proofs of knowing these secrets, one for each.

    :param keys: the connection's signing secrets, or its webhook secrets if it has none.
    """
    named = _PURPOSE + b"\0" + conn_id.encode() + b"\0" + probe
    return [hmac.new(key.encode(), named, "sha256").hexdigest() for key in keys]


def is_proven(given: object, probe: bytes, conn_id: str, keys: Iterable[str]) -> bool:
    """Return whether a probe's response proves knowledge of one of these secrets.

    :param given: the response's `proofs`; untrusted.
    :param keys: see `proofs_of`.
    """
    return isinstance(given, list) and any(proof in given for proof in proofs_of(probe, conn_id, keys))
