# SPDX-License-Identifier: Apache-2.0
"""Uploads: the multipart body, refused files, repeated sending, and reading outside of the event loop."""

from __future__ import annotations

import io
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartParser

from airflow_provider_webdata.api import multipart
from airflow_provider_webdata.api.errors import InvalidRequestError, UploadError, UploadTooLargeError
from airflow_provider_webdata.api.multipart import MultipartBody, Upload, safe_name

MANY = 2**20


def upload(file: Any, filename: str = "a.pdf", size: int | None = None, max_bytes: int = MANY) -> Upload:
    return Upload("parse", file, filename, size, max_bytes=max_bytes)


async def collected(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


async def read(body: MultipartBody, sent: bytes) -> tuple[dict[str, str], str | None, bytes]:
    """Parse a body with another library: the fields, the file's name, and the file."""

    async def stream() -> AsyncIterator[bytes]:
        yield sent

    form = await MultiPartParser(Headers(body.headers), stream(), max_part_size=2**24).parse()
    found = form["file"]
    assert isinstance(found, UploadFile)
    fields = {name: value for name, value in form.items() if isinstance(value, str)}
    return fields, found.filename, await found.read()


@pytest.mark.parametrize(
    "given_name, sent_name",
    [
        ("report.pdf", "report.pdf"),
        ("/var/secret/place/report.pdf", "report.pdf"),
        ("C:\\Users\\me\\report.pdf", "report.pdf"),
        ("../../report.pdf", "report.pdf"),
        ('re"port.pdf', "re_port.pdf"),
        ('x"; name="options', "x_; name=_options"),
        ("a\r\nX-Evil: 1\r\n\r\n.pdf", "a__X-Evil: 1____.pdf"),
        ("a\0b\x7f\x85\u2028.pdf", "a_b___.pdf"),
        ("Übersicht 2026 (final).pdf", "Übersicht 2026 (final).pdf"),
        ("\udcff.pdf", "_.pdf"),
    ],
)
async def test_names_are_safe(given_name: str, sent_name: str) -> None:
    assert safe_name(given_name) == sent_name
    body = MultipartBody(upload(io.BytesIO(b"x"), given_name), {})
    assert await read(body, b"".join(body.chunks())) == ({}, sent_name, b"x")


@pytest.mark.rule("parse-file", "parse-options-part")
@given(
    name=st.text(min_size=1),
    blocks=st.lists(
        st.binary(max_size=40) | st.sampled_from([b"\r\n--", b"--webdata-", b"\r\n"]), min_size=1
    ),
    fields=st.dictionaries(st.sampled_from(["options", "other"]), st.text(st.characters(codec="utf-8"))),
)
async def test_another_library_reads_the_same_parts(
    name: str, blocks: list[bytes], fields: dict[str, str]
) -> None:
    content = b"".join(blocks) + b"."
    known = MultipartBody(upload(io.BytesIO(content), f"{name}.pdf"), fields)
    sent = b"".join(known.chunks())
    assert known.headers["content-length"] == str(len(sent))
    assert await read(known, sent) == (fields, safe_name(f"{name}.pdf"), content)
    assert b"".join(known.chunks()) == sent
    assert await collected(known.achunks()) == sent

    unknown = MultipartBody(upload([*blocks, b"."], f"{name}.pdf"), fields)
    assert "content-length" not in unknown.headers
    assert await read(unknown, b"".join(unknown.chunks())) == (fields, safe_name(f"{name}.pdf"), content)


def test_boundaries_are_never_the_same() -> None:
    assert len({MultipartBody(upload([b"x"]), {}).content_type for _ in range(50)}) == 50


class Gone:
    """A stream that can be read only once, of unknown size."""

    def __init__(self, *blocks: Any) -> None:
        self.blocks = list(blocks)

    def read(self, size: int) -> Any:
        return self.blocks.pop(0) if self.blocks else b""


class Boaster(Gone):
    """A stream that claims to be seekable, as those of some remote file systems do, and is not."""

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return 0

    def seek(self, offset: int, whence: int = 0) -> int:
        raise ValueError("Cannot seek streaming HTTP file")


class Anew:
    """An iterable that starts over each time, for blocking and asynchronous callers."""

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"ab", b"", bytearray(b"c"), memoryview(b"d")])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for block in self:
            yield block


class AsynchronousFile:
    """A file of an asynchronous library, whose methods are coroutines."""

    closed = False

    def __init__(self) -> None:
        self.blocks = [b"ab", b"cd"]

    async def read(self, size: int) -> bytes:
        raise AssertionError("iterated, not read")

    async def seekable(self) -> bool:
        return True

    def __aiter__(self) -> AsynchronousFile:
        return self

    async def __anext__(self) -> bytes:
        if not self.blocks:
            raise StopAsyncIteration
        return self.blocks.pop(0)


def generated() -> Iterator[bytes]:
    yield b"ab"
    yield b"cd"


async def agenerated() -> AsyncIterator[bytes]:
    yield b"ab"
    yield b"cd"


@pytest.mark.parametrize(
    "make, size, again, blocking",
    [
        (lambda: io.BytesIO(b"abcd"), 4, True, True),
        (lambda: io.BufferedReader(io.BytesIO(b"abcd")), 4, True, True),
        (lambda: Gone(b"ab", b"cd"), None, False, True),
        (lambda: Boaster(b"ab", b"cd"), None, False, True),
        (lambda: [b"ab", b"cd"], None, True, True),
        (Anew, None, True, True),
        (generated, None, False, True),
        (agenerated, None, False, False),
        (AsynchronousFile, None, False, False),
    ],
)
async def test_sources(make: Any, size: int | None, again: bool, blocking: bool) -> None:
    first = upload(make())
    assert first.size == size
    assert first.can_start
    assert await collected(first.ablocks()) == b"abcd"
    assert first.can_start is again
    if again:
        assert await collected(first.ablocks()) == b"abcd"

    other = upload(make())
    if not blocking:
        with pytest.raises(InvalidRequestError, match="asynchronous client"):
            other.blocks()
        assert other.can_start
        return
    assert b"".join(other.blocks()) == b"abcd"
    assert other.can_start is again


def test_a_refused_file_goes_out_again_from_where_it_stood() -> None:
    file = io.BytesIO(b"skip:content")
    file.seek(5)
    found = upload(file)
    assert found.size == 7
    half_way = found.blocks()
    assert next(half_way) == b"content"
    assert b"".join(found.blocks()) == b"content"


def test_a_file_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"x" * 10)
    with path.open("rb") as file:
        found = upload(file)
        assert found.size == 10
        assert b"".join(found.blocks()) == b"x" * 10
    with pytest.raises(InvalidRequestError, match="it is closed"):
        upload(file)
    with path.open() as text, pytest.raises(InvalidRequestError, match="binary mode"):
        upload(text)


@pytest.mark.parametrize("file", ["a.pdf", b"abc", bytearray(b"abc"), {"a": 1}, None, Path("a.pdf")])
def test_what_is_not_a_file(file: Any) -> None:
    with pytest.raises(InvalidRequestError, match="open binary file"):
        upload(file)


@pytest.mark.parametrize("name", ["", "\\"])
def test_a_file_has_a_name(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="filename: must name a file"):
        upload(io.BytesIO(b"x"), name)


@pytest.mark.rule("parse-size")
def test_up_to_the_limit() -> None:
    content = b"x" * 100
    for found in (
        upload(io.BytesIO(content), max_bytes=100),
        upload(Gone(content), max_bytes=100),
        upload(Gone(content), size=100, max_bytes=100),
    ):
        assert b"".join(found.blocks()) == content


@pytest.mark.rule("parse-size")
@pytest.mark.parametrize("size", [None, 101])
def test_over_the_limit_nothing_is_read(size: int | None) -> None:
    file = io.BytesIO(b"x" * 101)
    with pytest.raises(InvalidRequestError, match="at most 100 bytes"):
        upload(file, size=size, max_bytes=100)
    assert file.tell() == 0


@pytest.mark.parametrize("file, size", [(io.BytesIO(b""), None), (io.BytesIO(b"x"), 0), (Gone(b"x"), -1)])
def test_an_empty_file_is_refused(file: Any, size: int | None) -> None:
    with pytest.raises(InvalidRequestError, match="it is empty"):
        upload(file, size=size)


@pytest.mark.parametrize(
    "make, size, error, text",
    [
        (lambda: Gone(b"x" * 60, b"y" * 41), None, UploadTooLargeError, "more than 100 bytes"),
        (lambda: Gone(b"x" * 60, b"y" * 41), 60, UploadError, "more than the expected 60 bytes"),
        (lambda: io.BytesIO(b"x" * 60), 61, UploadError, "ended after 60 of the expected 61 bytes"),
        (Gone, None, UploadError, "empty"),
        (lambda: Gone("text"), None, UploadError, "returns str, not bytes"),
        (lambda: Gone(b"x", None), None, UploadError, "returns NoneType, not bytes"),
        (lambda: ["text"], None, UploadError, "returns str, not bytes"),
    ],
)
async def test_a_file_that_differs_from_its_announcement(
    make: Any, size: int | None, error: type[UploadError], text: str
) -> None:
    """The body is never completed, so that no server accepts it."""

    async def drain(body: MultipartBody, asynchronous: bool, sent: io.BytesIO) -> None:
        if asynchronous:
            async for chunk in body.achunks():
                sent.write(chunk)
        else:
            for chunk in body.chunks():
                sent.write(chunk)

    for asynchronous in (False, True):
        body = MultipartBody(upload(make(), size=size, max_bytes=100), {})
        sent = io.BytesIO()
        with pytest.raises(UploadError, match=text) as caught:
            await drain(body, asynchronous, sent)
        assert type(caught.value) is error
        assert caught.value.operation == "parse"
        boundary = body.content_type.partition("boundary=")[2].encode()
        assert b"--" + boundary + b"--" not in sent.getvalue()


class Watched(io.BytesIO):
    """A file that records the sizes and the threads of its reads."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.asked: list[int] = []
        self.threads: set[int] = set()

    def read(self, size: int | None = -1, /) -> bytes:
        self.asked.append(-1 if size is None else size)
        self.threads.add(threading.get_ident())
        return super().read(size)


async def test_a_file_is_read_in_blocks_and_not_in_the_event_loop() -> None:
    file = Watched(b"x" * (2 * multipart.BLOCK_BYTES + 1))
    found = upload(file)
    assert [len(block) async for block in found.ablocks()] == [multipart.BLOCK_BYTES] * 2 + [1]
    assert set(file.asked) == {multipart.BLOCK_BYTES}
    assert threading.get_ident() not in file.threads
