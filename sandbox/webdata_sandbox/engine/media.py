# SPDX-License-Identifier: Apache-2.0
"""Media files of pages, served at signed URLs that expire.

The sandbox cannot take a screenshot or download a video. It serves the file that a test or demo sets for the page.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

from webdata_sandbox.reference.urls import canonical

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.clock import Clock
    from webdata_sandbox.state.store import Store

LIFETIMES = {"screenshot": 86_400, "audio": 3600, "video": 3600, "recording": 21_600}
"""Seconds until a URL expires, by kind (sandbox/docs/service.md#document-media-expires, #replay-playlist)."""

CONTENT_TYPES = {
    "screenshot": "image/png",
    "audio": "audio/mpeg",
    "video": "video/mp4",
    "recording": "video/mp2t",
}
MAX_BYTES = 1024 * 1024 * 1024


class Media:
    """The media files and their signed URLs."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        stored = store.get("meta", "media") or {"secret": secrets.token_hex(16)}
        store.put("meta", "media", stored)
        self._secret = stored["secret"].encode()
        self.origin = ""
        """Scheme and host of the last request."""

    def put(
        self,
        url: str,
        kind: str,
        *,
        content: str | None = None,
        size: int | None = None,
        content_type: str | None = None,
    ) -> None:
        """Set a page's file of a kind.

        :param kind: ``screenshot``, ``audio``, ``video``, or ``recording`` (a segment of a session's recording).
        :param content: the file as base64.
        :param size: bytes of a generated file, in place of ``content``; 0 to 1 GiB.
        :raises ValueError: the kind is unknown, the size is out of range, or ``content`` and ``size`` are both set or
            both missing.
        """
        if kind not in LIFETIMES:
            raise ValueError(f"unknown kind of file {kind!r}. Kinds: {', '.join(LIFETIMES)}")
        if (content is None) == (size is None):
            raise ValueError("set either content or size")
        if size is not None and not 0 <= size <= MAX_BYTES:
            raise ValueError(f"size must be between 0 and {MAX_BYTES} bytes, not {size}")
        if content is not None:
            base64.b64decode(content, validate=True)
        file = {"content": content, "size": size, "type": content_type or CONTENT_TYPES[kind]}
        key = hashlib.sha256(f"{canonical(url)} {kind}".encode()).hexdigest()[:32]
        self._store.put("media-file", key, file)
        self._store.put("media", f"{canonical(url)} {kind}", {"key": key, "kind": kind})

    def kinds(self) -> frozenset[str]:
        """Return the kinds of files that exist."""
        return frozenset(item["kind"] for item in self._store.list("media"))

    def link(self, url: str, kind: str) -> str | None:
        """Return a new signed URL of a page's file, or None if the page has no such file."""
        known = self._store.get("media", f"{canonical(url)} {kind}")
        if known is None:
            return None
        expires = int(self._clock.now()) + LIFETIMES[kind]
        return f"{self.origin}/media/{known['key']}?expires={expires}&signature={self._sign(known['key'], expires)}"

    def has_signed(self, key: str, expires: int, signature: str) -> bool:
        """Return whether the signature is valid for this key and expiry."""
        return hmac.compare_digest(self._sign(key, expires).encode(), signature.encode())

    def has_expired(self, expires: int) -> bool:
        """Return whether this time (seconds since the epoch) has passed."""
        return self._clock.now() >= expires

    def file(self, key: str) -> Json | None:
        """Return a file with ``type`` and ``content`` (base64) or ``size``, or None if it does not exist."""
        return self._store.get("media-file", key)

    def _sign(self, key: str, expires: int) -> str:
        return hmac.new(self._secret, f"{key} {expires}".encode(), hashlib.sha256).hexdigest()[:32]
