# SPDX-License-Identifier: Apache-2.0
"""A large file on its way takes little memory, however it is given."""

from __future__ import annotations

import socket
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.models.parse import MAX_FILE_BYTES
from airflow_provider_webdata.api.multipart import BLOCK_BYTES, Upload
from tests.support.fault_server import Caller, answer

SIZE = 40 * 2**20
PARSED = answer(body='{"success": true, "data": {"markdown": "x"}}', headers={"connection": "close"})


class Sink:
    """Takes a request whose body ends with the boundary, and keeps nothing of it but its size."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.seen = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            buffer = bytearray(65536)
            end = b""
            while not end.endswith(b"--\r\n\r\n0\r\n\r\n") and not end.endswith(b"--\r\n"):
                count = connection.recv_into(buffer)
                assert count
                self.seen += count
                end = end[-16:] + bytes(buffer[:count][-16:])
            PARSED(connection)

    def close(self) -> None:
        self._thread.join(30)
        self._listener.close()


@pytest.fixture
def sink() -> Iterator[Sink]:
    made = Sink()
    yield made
    made.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.pdf"
    with path.open("wb") as file:
        for number in range(SIZE // 2**20):
            file.write(bytes([number]) * 2**20)
    return path


class Unsized:
    """A stream that tells neither its size nor where it stands."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int) -> Any:
        return self._file.read(size)


@pytest.mark.parametrize("known", [True, False], ids=["size known", "size unknown"])
async def test_a_large_file_is_never_held_whole(caller: Caller, sink: Sink, large: Path, known: bool) -> None:
    with large.open("rb") as file:
        upload = Upload("parse", file if known else Unsized(file), large.name, max_bytes=MAX_FILE_BYTES)
        assert upload.size == (SIZE if known else None)
        tracemalloc.start()
        try:
            options = models.ParseOptions(formats=["markdown"])
            await caller.call(sink.url, endpoints.PARSE, body=options, upload=upload)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert sink.seen > SIZE
    # A few blocks are under way at a time; the client's own modules and buffers take the rest.
    assert peak < 16 * BLOCK_BYTES, peak
