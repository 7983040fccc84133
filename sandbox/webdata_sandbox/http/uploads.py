# SPDX-License-Identifier: Apache-2.0
"""Uploads as ``multipart/form-data`` or raw bodies; large files are spooled to disk."""

from __future__ import annotations

import hashlib
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from webdata_sandbox.operations.call import Upload

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from starlette.datastructures import FormData

MAX_FILE = 50 * 1024 * 1024
"""Maximum file size in bytes."""

# Allowance for the options and the multipart framing.
_FORM_OVERHEAD = 1024 * 1024
_BLOCK = 256 * 1024
_MAX_IN_MEMORY = 1024 * 1024
TOO_LARGE = "File size exceeds the maximum of 50MB"


class _TooLargeError(Exception):
    """The body exceeds the maximum file size."""


async def receive_upload(headers: Mapping[str, str], chunks: AsyncIterator[bytes]) -> Upload:
    """Read a form. An invalid form sets ``error`` instead of raising.

    :param chunks: the body; it is always read completely.
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
    upload = _to_upload(form)
    if upload.content is None:
        await form.close()
    return upload


async def receive_raw(headers: Mapping[str, str], chunks: AsyncIterator[bytes]) -> Upload:
    """Read a file from a raw body or a form."""
    if headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return await receive_upload(headers, chunks)
    file = SpooledTemporaryFile(max_size=_MAX_IN_MEMORY)  # noqa: SIM115 - the upload closes it
    size, digest = 0, hashlib.sha256()
    async for chunk in chunks:
        size += len(chunk)
        digest.update(chunk)
        file.write(chunk)
    file.seek(0)
    return Upload(content=file, size=size, sha256=digest.hexdigest())


def _name(file: UploadFile) -> str:
    """Return a file's name: in `filename`, the service reads UTF-8 as Latin-1."""
    name = (file.filename or "").strip()
    is_extended = "filename*=" in file.headers.get("content-disposition", "").lower()
    return name if is_extended else name.encode().decode("latin-1")


def _to_upload(form: FormData) -> Upload:
    file, options = form.get("file"), form.get("options", "{}")
    if isinstance(options, UploadFile):
        # The published contract declares the part as JSON, but a part with a file name is not a plain field.
        return Upload(error="options must be a plain form field")
    if not isinstance(file, UploadFile) or not (name := _name(file)):
        return Upload(error="No file was uploaded: send a `file` part with a file name")
    size, digest = 0, hashlib.sha256()
    while block := file.file.read(_BLOCK):
        size += len(block)
        digest.update(block)
    file.file.seek(0)
    return Upload(
        filename=name,
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
        if size > MAX_FILE + _FORM_OVERHEAD:
            raise _TooLargeError
        yield chunk


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the rest of the body: an earlier response would reset the connection of a client that still sends."""
    async for _ in chunks:
        pass
