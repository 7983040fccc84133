# SPDX-License-Identifier: Apache-2.0
"""Streaming upload of a file as multipart form data, without loading the file into memory.

httpx encodes the form with an empty file, and the file's bytes are inserted. httpx's own file upload is no substitute:
it blocks the event loop, ignores the file's current position, fails on pipes and iterables, has no size limit, and
reports a file that changes during the upload as a broken connection.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import Protocol, runtime_checkable
from urllib.parse import quote

from airflow_provider_webdata.api.errors import InvalidRequestError, UploadError, UploadTooLargeError
from airflow_provider_webdata.common.http_library import httpx

BLOCK_BYTES = 256 * 1024
"""Bytes of a file that are in memory at a time."""

_END = object()


@runtime_checkable
class Readable(Protocol):
    """The required interface of a binary file. A seekable file can be sent again in a retry."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, or empty bytes at the end."""
        ...


FileSource = Readable | Iterable[bytes] | AsyncIterable[bytes]
"""An open binary file or an iterable of bytes. An asynchronous iterable requires the asynchronous client."""


def safe_name(filename: str) -> str:
    """Return a file name that is safe in a header: without directories, quotes, line breaks, or control characters.

    :param filename: a name, a path of any operating system, or the last segment of a URL.
    """
    name = filename.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return "".join(
        "_" if character == '"' or not character.isprintable() else character for character in name
    )


class Upload:
    """A file to upload, validated while it is read.

    The upload starts at the file's current position. A seekable file, or an iterable that can be iterated again, can
    be sent any number of times; other sources can be sent once.

    :param operation: name of the operation in errors.
    :param file: open binary file, or iterable of bytes; it is not closed.
    :param filename: name of the file; directories and characters that are invalid in a header are removed.
    :param size: size in bytes. Default: the size of a seekable file; for other sources, the upload uses chunked
        transfer encoding.
    :param max_bytes: maximum number of bytes to send.
    :raises InvalidRequestError: the file has no name, is not binary, is empty, or is too large.
    """

    def __init__(
        self, operation: str, file: FileSource, filename: str, size: int | None = None, *, max_bytes: int
    ) -> None:
        self._operation = operation
        self._max_bytes = max_bytes
        self._source = _checked_source(operation, file)
        self._started = False
        self._start, measured = _measured(file)
        self.name = safe_name(filename)
        self.size = measured if size is None else size
        problems = []
        if not self.name:
            problems.append(f"filename: must name a file (given: {filename!r})")
        if self.size is not None and self.size < 1:
            problems.append("file: it is empty, or was already read to its end")
        if self.size is not None and self.size > max_bytes:
            problems.append(f"file: must have at most {max_bytes} bytes (given: {self.size})")
        if problems:
            raise InvalidRequestError(operation, problems)

    @property
    def can_start(self) -> bool:
        """Whether the file can be sent now, for the first time or again."""
        is_used_up = isinstance(self._source, (Readable, Iterator, AsyncIterator))
        return not self._started or self._start is not None or not is_used_up

    def blocks(self) -> Iterator[bytes]:
        """Return the file's bytes in blocks, from the start.

        :raises InvalidRequestError: the file is an asynchronous iterable; nothing was read.
        :raises UploadError: while iterating: the file's size or type is wrong.
        """
        source = self._source
        if isinstance(source, AsyncIterable) and not isinstance(source, Iterable):
            raise InvalidRequestError(
                self._operation, ["file: an asynchronous iterable needs the asynchronous client"]
            )
        return self._read(source)

    def _read(self, source: Readable | Iterable[bytes]) -> Iterator[bytes]:
        self._rewind()
        count = _Count(self._operation, self.size, self._max_bytes)
        for block in _pieces(source):
            yield count.checked(block)
        count.finish()

    async def ablocks(self) -> AsyncIterator[bytes]:
        """Yield the file's bytes in blocks, from the start, without blocking the event loop; see `blocks`."""
        count = _Count(self._operation, self.size, self._max_bytes)
        if isinstance(self._source, AsyncIterable):
            self._rewind()
            async for block in self._source:
                yield count.checked(block)
        else:
            await asyncio.to_thread(self._rewind)
            pieces = iter(_pieces(self._source))
            while (piece := await asyncio.to_thread(next, pieces, _END)) is not _END:
                yield count.checked(piece)
        count.finish()

    def _rewind(self) -> None:
        if self._started and self._start is not None:
            self._source.seek(self._start)  # type: ignore[union-attr]
        self._started = True


class _Count:
    """Counts the bytes of a file, and enforces its size."""

    def __init__(self, operation: str, size: int | None, max_bytes: int) -> None:
        self._operation = operation
        self._size = size
        self._max_bytes = max_bytes
        self._taken = 0

    def checked(self, block: object) -> bytes:
        if not isinstance(block, (bytes, bytearray, memoryview)):
            raise UploadError(
                self._operation, f"the file returns {type(block).__name__}, not bytes; open it in binary mode"
            )
        block = bytes(block)
        self._taken += len(block)
        if self._size is not None and self._taken > self._size:
            raise UploadError(self._operation, f"the file has more than the expected {self._size} bytes")
        if self._taken > self._max_bytes:
            raise UploadTooLargeError(self._operation, f"the file has more than {self._max_bytes} bytes")
        return block

    def finish(self) -> None:
        if self._size is not None and self._taken < self._size:
            raise UploadError(
                self._operation,
                f"the file ended after {self._taken} of the expected {self._size} bytes",
            )
        if not self._taken:
            raise UploadError(self._operation, "the file is empty")


def _checked_source(operation: str, file: object) -> FileSource:
    if isinstance(file, io.TextIOBase):
        raise InvalidRequestError(operation, ["file: it is open in text mode; open it in binary mode ('rb')"])
    if getattr(file, "closed", False):
        raise InvalidRequestError(operation, ["file: it is closed"])
    if isinstance(file, (str, bytes, bytearray, memoryview, Mapping)) or not isinstance(
        file, (Readable, Iterable, AsyncIterable)
    ):
        raise InvalidRequestError(
            operation,
            [f"file: must be an open binary file or an iterable of bytes (given: {type(file).__name__})"],
        )
    return file


def _measured(file: object) -> tuple[int | None, int | None]:
    """Return a file's position and the number of bytes after it, or None for both if it is not seekable.

    This calls `seek`, because some streams report that they are seekable but fail.
    """
    seekable = getattr(file, "seekable", None)
    if isinstance(file, AsyncIterable) or not callable(seekable) or not seekable():
        return None, None
    try:
        start = int(file.tell())  # type: ignore[attr-defined]
        end = int(file.seek(0, os.SEEK_END))  # type: ignore[attr-defined]
        file.seek(start)  # type: ignore[attr-defined]
    except (OSError, ValueError):
        return None, None
    return start, end - start


def _pieces(source: Readable | Iterable[bytes]) -> Iterable[bytes]:
    if isinstance(source, Readable):
        return iter(lambda: source.read(BLOCK_BYTES), b"")
    return source


class MultipartBody:
    """A multipart request body with text fields and one file (RFC 7578).

    :param upload: the file, in the part named `file`.
    :param fields: the text fields, before the file.
    """

    def __init__(self, upload: Upload, fields: Mapping[str, str]) -> None:
        self.upload = upload
        form = httpx.Request(
            "POST",
            "http://localhost",
            data=fields,
            files={"file": (upload.name, b"", "application/octet-stream")},
        )
        empty = form.read()
        end = empty.rindex(b"\r\n--")
        self.content_type = form.headers["content-type"]
        head, self._tail = empty[:end], empty[end:]
        if not upload.name.isascii():
            # The public server reads `filename` as Latin-1. See sandbox/docs/service.md#parse-file-name.
            before, type_of_part, after = head.rpartition(b"\r\nContent-Type:")
            head = before + b"; filename*=UTF-8''" + quote(upload.name).encode() + type_of_part + after
        self._head = head

    @property
    def headers(self) -> dict[str, str]:
        """The headers of this body: its content type, and its length if the file's size is known."""
        headers = {"content-type": self.content_type}
        if self.upload.size is not None:
            headers["content-length"] = str(len(self._head) + self.upload.size + len(self._tail))
        return headers

    def chunks(self) -> Iterator[bytes]:
        """Return the body in chunks, for a blocking client; see `Upload.blocks`."""
        return self._framed(self.upload.blocks())

    def _framed(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        yield self._head
        yield from blocks
        yield self._tail

    async def achunks(self) -> AsyncIterator[bytes]:
        """Yield the body in chunks, for an asynchronous client; see `Upload.ablocks`."""
        yield self._head
        async for block in self.upload.ablocks():
            yield block
        yield self._tail
