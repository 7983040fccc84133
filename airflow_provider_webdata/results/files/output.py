# SPDX-License-Identifier: Apache-2.0
"""Files of results in any format, written item by item and published atomically."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.results.columns import row_maker
from airflow_provider_webdata.results.files.formats import format_of, is_compressed, rejected_url
from airflow_provider_webdata.results.files.storage import WholeFile, check_file, compressed, storage_path
from airflow_provider_webdata.results.tombstones import marked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Self

    from airflow_provider_webdata.results.columns import Column
    from airflow_provider_webdata.results.files.formats import FormatWriter


def check_output(url: str) -> None:
    """Check that a file can be written, where possible in advance; see `storage.check_file`.

    :raises OutputError: the format or storage is unsupported on this worker, a package is missing, or the file can
        never be written.
    :raises StorageError: the file temporarily cannot be written.
    """
    format_of(url).check()
    check_file(url)


class OutputFile:
    """A file of items; it appears under its name when the `with` block ends without an error.

    :param url: destination; see `storage_path`.
    :param columns: the columns of a table (`columns.columns_of`); a format without columns writes the items unchanged.
    :param judged: True if `reject` may be called; see `storage.WholeFile`.
    :ivar url: path or URL of the file.
    :ivar format: format of the file, by its suffix.
    :ivar count: number of items written so far.
    :raises OutputError: the format or storage is unsupported on this worker, or a package is missing.
    """

    def __init__(self, url: str, columns: Iterable[Column], *, judged: bool = False) -> None:
        self.url = url
        self.format = format_of(url)
        self.columns = tuple(columns)
        self.count = 0
        self._is_compressed = is_compressed(url)
        self._file = WholeFile(storage_path(url), movable=judged)
        self._open = self._opened()
        self._writer: FormatWriter | None = None
        self._row = row_maker(self.columns) if self.format.columns else None

    @property
    def bytes(self) -> int:
        """Current size of the file in bytes; final once the `with` block has ended."""
        return self._file.bytes

    def __enter__(self) -> Self:
        """Open the file."""
        self._writer = self._open.__enter__()
        return self

    @contextmanager
    def _opened(self) -> Iterator[FormatWriter]:
        with self._file as file:
            target = compressed(file) if self._is_compressed else None
            writer: FormatWriter = self.format.load("writer")(target or file, self.columns)
            yield writer
            writer.finish()
            # Not after an error: `finish` would write to a storage that may be down.
            if target is not None:
                target.close()

    def write(self, items: Iterable[Any]) -> None:
        """Write items, JSON objects as the service sent them, one by one as the iterable yields them."""
        if self._writer is None:
            raise ValueError(f"{self.url} is not open")
        records = map(marked, items)
        for record in records if self._row is None else map(self._row, records):
            self._writer.write(record)
            self.count += 1

    def reject(self) -> None:
        """Write the file beside its destination, when the `with` block ends."""
        self.url = rejected_url(self.url)
        self._file.path = storage_path(self.url)

    def __exit__(self, *error: Any) -> None:
        """Publish the file; after an error, drop it."""
        self._writer = None
        self._open.__exit__(*error)
