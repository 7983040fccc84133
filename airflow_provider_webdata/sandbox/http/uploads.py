"""Files sent to the service as ``multipart/form-data``: received part by part, large ones on disk."""

from __future__ import annotations

import hashlib
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from airflow_provider_webdata.sandbox.operations.call import Upload

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from starlette.datastructures import FormData

MAX_FILE = 50 * 1024 * 1024
"""Bytes of the largest file that is taken."""

# Room for the options and the lines around the parts; a body beyond both holds a file that is too large.
_AROUND = 1024 * 1024
_BLOCK = 256 * 1024
_IN_MEMORY = 1024 * 1024
TOO_LARGE = "File size exceeds the maximum of 50MB"


class _TooLargeError(Exception):
    """The body is larger than any accepted file."""


async def receive_upload(headers: Mapping[str, str], chunks: AsyncIterator[bytes]) -> Upload:
    """Read a form. An invalid form is returned with its ``error``, so the caller still gets an answer.

    :param chunks: the body, which is always read to its end.
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
    upload = _read(form)
    if upload.content is None:
        await form.close()
    return upload


async def receive_raw(headers: Mapping[str, str], chunks: AsyncIterator[bytes]) -> Upload:
    """Read a body that is a file, or a form with one."""
    if headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return await receive_upload(headers, chunks)
    file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - the upload closes it
    size, digest = 0, hashlib.sha256()
    async for chunk in chunks:
        size += len(chunk)
        digest.update(chunk)
        file.write(chunk)
    file.seek(0)
    return Upload(content=file, size=size, sha256=digest.hexdigest())


def _read(form: FormData) -> Upload:
    file, options = form.get("file"), form.get("options", "{}")
    if isinstance(options, UploadFile):
        # The published contract declares the part as JSON; one sent with a file name is no plain field.
        return Upload(error="options must be a plain form field")
    if not isinstance(file, UploadFile) or not (file.filename or "").strip():
        return Upload(error="No file was uploaded: the part `file` with a file name is missing")
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
