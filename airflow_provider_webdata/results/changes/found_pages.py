# SPDX-License-Identifier: Apache-2.0
"""The pages that a run found, sorted by key in bounded memory."""

from __future__ import annotations

import heapq
import tempfile
from contextlib import ExitStack
from operator import attrgetter
from typing import IO, TYPE_CHECKING

import msgspec

from airflow_provider_webdata.results.changes.pages import Found

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Self

_CHUNK = 100_000
_BATCH = 1_000
_BLOCK = 2**18
_LISTED = -1

_encode = msgspec.json.Encoder().encode_lines
_decode = msgspec.json.Decoder(Found).decode_lines
_key = attrgetter("key")


class FoundPages:
    """The pages that a run found; use it as a context manager.

    :ivar repeats: by the number of an item whose page an earlier one has, the number of that, once all are sorted.
    """

    def __init__(self) -> None:
        self.repeats: dict[int, int] = {}
        self._count = 0
        self._pages: list[Found] = []
        self._files: list[IO[bytes]] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the temporary files."""
        self._open.close()

    def __len__(self) -> int:
        """Return the number of pages that were added."""
        return self._count

    def add(self, key: str, digest: str | None, index: int, read: int | None = None) -> None:
        """Add a page that the run read; see `Found`."""
        self._count += 1
        self._pages.append(Found(key, digest, index, read))
        if len(self._pages) == _CHUNK:
            self._spill()

    def add_listed(self, keys: Iterable[str]) -> None:
        """Add pages that the site listed, and that the run did not request; after those that it read."""
        for key in keys:
            self.add(key, None, _LISTED)

    def sorted(self) -> Iterator[Found]:
        """Yield each page once, the first of those that have the same key."""
        # Both are stable.
        self._pages.sort(key=_key)
        streams = [*map(_read, self._files), iter(self._pages)]
        last = None
        for page in heapq.merge(*streams, key=_key) if len(streams) > 1 else streams[0]:
            if last is None or page.key != last.key:
                last = page
                yield page
            elif page.index >= 0:
                self.repeats[page.index] = last.index

    def _spill(self) -> None:
        self._pages.sort(key=_key)
        file = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        for start in range(0, len(self._pages), _BATCH):
            file.write(_encode(self._pages[start : start + _BATCH]))
        self._files.append(file)
        self._pages = []


def _read(file: IO[bytes]) -> Iterator[Found]:
    file.seek(0)
    while block := file.read(_BLOCK):
        yield from _decode(block + file.readline())
