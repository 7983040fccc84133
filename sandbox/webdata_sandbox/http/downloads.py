# SPDX-License-Identifier: Apache-2.0
"""Page files, served at signed URLs."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response, StreamingResponse

from webdata_sandbox.reference.wire import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

    from webdata_sandbox.engine.media import Media

CHUNK = 64 * 1024

# A client that stores a file may check its first bytes.
_MAGIC = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "audio/mpeg": b"ID3\x04",
    "video/mp4": b"\x00\x00\x00\x18ftypmp42",
    "video/mp2t": b"\x47\x40\x00\x10",
    "video/webm": b"\x1a\x45\xdf\xa3",
}


class Downloads:
    """Handles ``GET /media/{key}``."""

    def __init__(self, media: Media) -> None:
        self._media = media

    async def serve(self, request: Request) -> Response:
        """Return a file: 403 if the URL is invalid or expired, 404 if the file does not exist."""
        key, query = request.path_params["key"], request.query_params
        expires = whole_number(query.get("expires", ""))
        if expires is None or not self._media.has_signed(key, expires, query.get("signature", "")):
            return JSONResponse({"error": "SignatureDoesNotMatch"}, status_code=403)
        if self._media.has_expired(expires):
            return JSONResponse({"error": "ExpiredToken"}, status_code=403)
        file = self._media.file(key)
        if file is None:
            return JSONResponse({"error": "NoSuchKey"}, status_code=404)
        if file["content"] is not None:
            return Response(base64.b64decode(file["content"]), media_type=file["type"])
        headers = {"content-length": str(file["size"])}
        magic = _MAGIC.get(file["type"], b"")
        return StreamingResponse(_generated(file["size"], magic), media_type=file["type"], headers=headers)


def _generated(size: int, magic: bytes) -> Iterator[bytes]:
    yield magic[:size]
    size -= len(magic)
    while size > 0:
        yield bytes(min(size, CHUNK))
        size -= CHUNK
