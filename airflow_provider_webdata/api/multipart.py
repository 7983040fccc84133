"""Streaming upload of a file as multipart form data, never held whole in memory.

httpx writes the form, of an empty file; the file's bytes go in between. Its own reading of files is no substitute: it
blocks the event loop, starts at the beginning, fails on pipes and iterables, has no limit, and reports a file that
changed meanwhile as a broken connection.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import Protocol, runtime_checkable

from airflow_provider_webdata.api.errors import InvalidRequestError, UploadError, UploadTooLargeError
from airflow_provider_webdata.common.http_library import httpx

BLOCK_BYTES = 256 * 1024
"""How much of a file is in memory at a time."""

_END = object()


@runtime_checkable
class Readable(Protocol):
    """The part of a binary file that is needed; one that can also seek can be sent again after a refusal."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        ...


FileSource = Readable | Iterable[bytes] | AsyncIterable[bytes]
"""An open binary file, or something that gives bytes; of these only the last needs the asynchronous client."""


def safe_name(filename: str) -> str:
    """Return a file's name as it may stand in a header: no directories, quotes, line breaks or control characters.

    :param filename: the name, a path of any system, or the last part of a URL.
    """
    name = filename.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return "".join(
        "_" if character == '"' or not character.isprintable() else character for character in name
    )


class Upload:
    """A file to send, checked while it is read.

    It is sent from where it stands, so that a file that can seek, or an iterable that starts anew, can be sent any
    number of times; all else once.

    :param operation: what errors call the call.
    :param file: open binary file, or iterable of bytes; it is not closed here.
    :param filename: its name; directories and what a header cannot carry are taken out.
    :param size: bytes, where known. Left out, it is asked of the file; if that cannot tell, the upload goes out in
        chunks of unannounced total.
    :param max_bytes: most bytes that may be sent.
    :raises InvalidRequestError: this cannot be sent: no name, no binary file, empty or too large.
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
            problems.append("file: it is empty, or was read to its end before")
        if self.size is not None and self.size > max_bytes:
            problems.append(f"file: at most {max_bytes} bytes are taken (given: {self.size})")
        if problems:
            raise InvalidRequestError(operation, problems)

    @property
    def can_start(self) -> bool:
        """Whether the file can be sent, for the first time or again."""
        is_used_up = isinstance(self._source, (Readable, Iterator, AsyncIterator))
        return not self._started or self._start is not None or not is_used_up

    def blocks(self) -> Iterator[bytes]:
        """Return the file's bytes in pieces, from the start.

        :raises InvalidRequestError: it gives its bytes to asynchronous callers only; nothing was read.
        :raises UploadError: while iterating: the file is not what it was said to be.
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
            yield count.take(block)
        count.finish()

    async def ablocks(self) -> AsyncIterator[bytes]:
        """Yield the file's bytes in pieces, from the start, without blocking the event loop; see `blocks`."""
        count = _Count(self._operation, self.size, self._max_bytes)
        if isinstance(self._source, AsyncIterable):
            self._rewind()
            async for block in self._source:
                yield count.take(block)
        else:
            await asyncio.to_thread(self._rewind)
            pieces = iter(_pieces(self._source))
            while (piece := await asyncio.to_thread(next, pieces, _END)) is not _END:
                yield count.take(piece)
        count.finish()

    def _rewind(self) -> None:
        if self._started and self._start is not None:
            self._source.seek(self._start)  # type: ignore[union-attr]
        self._started = True


class _Count:
    """Counts what a file gives and holds it to what was said of it."""

    def __init__(self, operation: str, size: int | None, max_bytes: int) -> None:
        self._operation = operation
        self._size = size
        self._max_bytes = max_bytes
        self._taken = 0

    def take(self, block: object) -> bytes:
        if not isinstance(block, (bytes, bytearray, memoryview)):
            raise UploadError(
                self._operation, f"the file gives {type(block).__name__}, not bytes; open it in binary mode"
            )
        block = bytes(block)
        self._taken += len(block)
        if self._size is not None and self._taken > self._size:
            raise UploadError(
                self._operation, f"the file has more than the {self._size} bytes that it had before"
            )
        if self._taken > self._max_bytes:
            raise UploadTooLargeError(self._operation, f"the file has more than {self._max_bytes} bytes")
        return block

    def finish(self) -> None:
        if self._size is not None and self._taken < self._size:
            raise UploadError(
                self._operation,
                f"the file ended after {self._taken} of the {self._size} bytes that it had before",
            )
        if not self._taken:
            raise UploadError(self._operation, "the file is empty")


def _checked_source(operation: str, file: object) -> FileSource:
    if isinstance(file, io.TextIOBase):
        raise InvalidRequestError(operation, ["file: it is open as text; open it in binary mode ('rb')"])
    if getattr(file, "closed", False):
        raise InvalidRequestError(operation, ["file: it is closed"])
    if isinstance(file, (str, bytes, bytearray, memoryview, Mapping)) or not isinstance(
        file, (Readable, Iterable, AsyncIterable)
    ):
        raise InvalidRequestError(
            operation,
            [f"file: an open binary file or an iterable of bytes is expected (given: {type(file).__name__})"],
        )
    return file


def _measured(file: object) -> tuple[int | None, int | None]:
    """Return where a file stands and how many bytes follow, or None for both if it cannot go back there.

    It is tried, because some streams claim that they can seek and fail when they are to do it.
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
    """A request body of plain fields and one file, as RFC 7578 has it.

    :param upload: the file, in the part named `file`.
    :param fields: the plain fields, in front of it.
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
        self._head, self._tail = empty[:end], empty[end:]

    @property
    def headers(self) -> dict[str, str]:
        """The headers that announce this body; its length is among them where the file's size is known."""
        headers = {"content-type": self.content_type}
        if self.upload.size is not None:
            headers["content-length"] = str(len(self._head) + self.upload.size + len(self._tail))
        return headers

    def chunks(self) -> Iterator[bytes]:
        """Return the body in pieces, for a blocking client; see `Upload.blocks`."""
        return self._framed(self.upload.blocks())

    def _framed(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        yield self._head
        yield from blocks
        yield self._tail

    async def achunks(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces, for an asynchronous client; see `Upload.ablocks`."""
        yield self._head
        async for block in self.upload.ablocks():
            yield block
        yield self._tail
