"""Files sent to the service as ``multipart/form-data``: received part by part, large ones on disk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from airflow_provider_webdata.sandbox.reference.wire import Json

MAX_FILE = 50 * 1024 * 1024
"""Bytes of the largest file that is taken (supplement 8)."""

# Room for the options and the lines around the parts; a body beyond both holds a file that is too large.
_AROUND = 1024 * 1024
_BLOCK = 256 * 1024
TOO_LARGE = "File size exceeds the maximum of 50MB"


class _TooLargeError(Exception):
    """The body is larger than any file that is taken."""


@dataclass
class Upload:
    """What a caller sent: the file, the options as text, or what is wrong with the form.

    ``content`` is a file in memory up to 1 MB and on disk beyond; it is gone after :meth:`close`.
    """

    filename: str = ""
    content_type: str = ""
    content: IO[bytes] | None = None
    size: int = 0
    sha256: str = ""
    options: str = "{}"
    error: str | None = None
    _form: FormData = field(default_factory=FormData, repr=False)

    def noted(self) -> Json:
        """Return what the record of requests holds of it: never the file itself."""
        file = {
            "filename": self.filename,
            "contentType": self.content_type,
            "size": self.size,
            "sha256": self.sha256,
        }
        return {"file": file, "options": self.options, "error": self.error}

    async def close(self) -> None:
        """Let go of the file."""
        await self._form.close()


async def receive(headers: Mapping[str, str], chunks: AsyncIterator[bytes]) -> Upload:
    """Read a form; what is wrong with it is told in its ``error``, so that the caller is answered all the same.

    :param chunks: the body, which is read to its end in any case.
    """
    if not headers.get("content-type", "").lower().startswith("multipart/form-data"):
        await _drain(chunks)
        return Upload(error="Request must be multipart/form-data with a file")
    try:
        form = await MultiPartParser(
            Headers({"content-type": headers["content-type"]}),
            _bounded(chunks),
            max_files=1,
            max_fields=20,
        ).parse()
    except MultiPartException as error:
        await _drain(chunks)
        return Upload(error=f"Invalid multipart body: {error.message}")
    except _TooLargeError:
        await _drain(chunks)
        return Upload(error=TOO_LARGE)
    return _read(form)


def _read(form: FormData) -> Upload:
    file, options = form.get("file"), form.get("options", "{}")
    if isinstance(options, UploadFile):
        # The published contract declares the part as JSON; one sent with a file name is no plain field.
        return Upload(error="options must be a plain form field", _form=form)
    if not isinstance(file, UploadFile) or not (file.filename or "").strip():
        return Upload(error="No file was uploaded: the part `file` with a file name is missing", _form=form)
    size, digest = 0, hashlib.sha256()
    while block := file.file.read(_BLOCK):
        size += len(block)
        digest.update(block)
    file.file.seek(0)
    return Upload(
        filename=(file.filename or "").strip(),
        content_type=file.content_type or "",
        content=file.file,
        size=size,
        sha256=digest.hexdigest(),
        options=options,
        error=TOO_LARGE if size > MAX_FILE else None,
        _form=form,
    )


async def _bounded(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > MAX_FILE + _AROUND:
            raise _TooLargeError
        yield chunk


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read on to the end: an answer sent before it would reset the connection under a caller still sending."""
    async for _ in chunks:
        pass
