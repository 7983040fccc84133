"""Files of pages: screenshots, audio and video that the control API gave them, served at signed addresses that expire.

The sandbox cannot take a screenshot or fetch a video. It serves the file that a test or demo sets for a page instead.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

from airflow_provider_webdata.sandbox.reference.urls import canonical

if TYPE_CHECKING:
    from airflow_provider_webdata.sandbox.reference.wire import Json
    from airflow_provider_webdata.sandbox.state.clock import Clock
    from airflow_provider_webdata.sandbox.state.store import Store

LIFETIMES = {"screenshot": 86_400, "audio": 3600, "video": 3600, "recording": 21_600}
"""Seconds an address of each kind can be used (docs/service.md#document-media-expires, #replay-playlist)."""

CONTENT_TYPES = {
    "screenshot": "image/png",
    "audio": "audio/mpeg",
    "video": "video/mp4",
    "recording": "video/mp2t",
}
MOST_BYTES = 1024 * 1024 * 1024


class Media:
    """The files, and their addresses."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        kept = store.get("meta", "media") or {"secret": secrets.token_hex(16)}
        store.put("meta", "media", kept)
        self._secret = kept["secret"].encode()
        self.origin = ""
        """Scheme and host that callers use, as of the last call."""

    def put(
        self,
        url: str,
        kind: str,
        *,
        content: str | None = None,
        size: int | None = None,
        content_type: str | None = None,
    ) -> None:
        """Give a page a file.

        :param kind: ``screenshot``, ``audio``, ``video``, or ``recording`` (a segment of a session's recording).
        :param content: the file, base64.
        :param size: generate a file of this many bytes instead.
        :raises ValueError: when the kind is unknown, or not one of content and size is given.
        """
        if kind not in LIFETIMES:
            raise ValueError(f"unknown kind of file {kind!r}; known are {', '.join(LIFETIMES)}")
        if (content is None) == (size is None):
            raise ValueError("give either content or size")
        if size is not None and not 0 <= size <= MOST_BYTES:
            raise ValueError(f"size must be between 0 and {MOST_BYTES}, not {size}")
        if content is not None:
            base64.b64decode(content, validate=True)
        file = {"content": content, "size": size, "type": content_type or CONTENT_TYPES[kind]}
        key = hashlib.sha256(f"{canonical(url)} {kind}".encode()).hexdigest()[:32]
        self._store.put("media-file", key, file)
        self._store.put("media", f"{canonical(url)} {kind}", {"key": key, "kind": kind})

    def kinds(self) -> frozenset[str]:
        """Return the kinds of which some page has a file."""
        return frozenset(item["kind"] for item in self._store.list("media"))

    def link(self, url: str, kind: str) -> str | None:
        """Return a fresh signed address of a page's file; None when it has none."""
        known = self._store.get("media", f"{canonical(url)} {kind}")
        if known is None:
            return None
        expires = int(self._clock.now()) + LIFETIMES[kind]
        return f"{self.origin}/media/{known['key']}?expires={expires}&signature={self._sign(known['key'], expires)}"

    def has_signed(self, key: str, expires: int, signature: str) -> bool:
        """Return whether the signature is valid for an address with this key and expiry."""
        return hmac.compare_digest(self._sign(key, expires).encode(), signature.encode())

    def has_expired(self, expires: int) -> bool:
        """Return whether that time has passed."""
        return self._clock.now() >= expires

    def file(self, key: str) -> Json | None:
        """Return a file: its ``type``, and its ``content`` (base64) or its ``size``; None when it is gone."""
        return self._store.get("media-file", key)

    def _sign(self, key: str, expires: int) -> str:
        return hmac.new(self._secret, f"{key} {expires}".encode(), hashlib.sha256).hexdigest()[:32]
