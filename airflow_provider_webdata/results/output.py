"""Files of results: JSON Lines, plain or compressed, and Parquet, written item by item, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from airflow_provider_webdata.results.compression import compressed
from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.storage import WholeFile, check_file, storage_path
from airflow_provider_webdata.results.tombstones import marked

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from typing_extensions import Self

    from airflow_provider_webdata.results.columns import Column

FileFormat = Literal["jsonl", "jsonl.gz", "parquet"]

FORMATS: tuple[FileFormat, ...] = ("jsonl", "jsonl.gz", "parquet")


def format_of(url: str) -> FileFormat:
    """Return the format that the suffix of a file's URL names.

    :raises OutputError: it names none.
    """
    for known in FORMATS:
        if url.endswith(f".{known}") and not url.endswith(f"/.{known}"):
            return known
    endings = ", ".join(f".{known}" for known in FORMATS)
    raise OutputError(f"output must be a path or URL that ends in one of {endings} (given: {url!r})")


def check_output(url: str) -> None:
    """Check that a file can be written, as far as that can be tried beforehand; see `storage.check_file`.

    :raises OutputError: its format or its storage is unknown here, a package is missing, or it can never be written.
    :raises OSError: it cannot be written now.
    """
    if format_of(url) == "parquet":
        from airflow_provider_webdata.results.parquet import require_pyarrow

        require_pyarrow()
    check_file(url)


class ItemWriter(Protocol):
    """Writes items in one format to a file that is open."""

    def write(self, item: Any) -> None:
        """Write an item."""

    def finish(self) -> None:
        """Write what is still buffered."""


class Output:
    """A file of items; it appears under its name when the `with` block ends without an error.

    :param url: its destination; see `storage_path`.
    :param columns: the columns of a table (`columns.columns_of`); JSON Lines keep the items unchanged.
    :ivar url: its destination.
    :ivar format: `jsonl`, `jsonl.gz` or `parquet`.
    :ivar count: items written so far.
    :raises OutputError: its format or its storage is unknown here, or a package is missing.
    """

    def __init__(self, url: str, columns: Iterable[Column]) -> None:
        self.url = url
        self.format = format_of(url)
        self.columns = tuple(columns)
        self.count = 0
        self._file = WholeFile(storage_path(url))
        self._writer: ItemWriter | None = None

    @property
    def bytes(self) -> int:
        """Bytes of the file so far; the final size once the `with` block has ended."""
        return self._file.bytes

    def __enter__(self) -> Self:
        """Open the file."""
        self._file.__enter__()
        try:
            self._writer = self._made_writer()
        except BaseException as error:
            self._file.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def _made_writer(self) -> ItemWriter:
        if self.format == "parquet":
            from airflow_provider_webdata.results.parquet import ParquetItems

            return ParquetItems(self._file, self.columns)
        return _CompressedLines(self._file) if self.format == "jsonl.gz" else _Lines(self._file)

    def write(self, items: Iterable[Any]) -> None:
        """Write items, JSON objects as the service sent them, one by one as the iterable yields them."""
        self.write_marked(map(marked, items))

    def write_marked(self, items: Iterable[Any]) -> None:
        """Write what `tombstones.marked` returned."""
        if self._writer is None:
            raise ValueError(f"{self.url} is not open")
        for item in items:
            self._writer.write(item)
            self.count += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Publish the file; after an error, drop it."""
        writer, self._writer = self._writer, None
        if kind is None and writer is not None:
            try:
                writer.finish()
            except BaseException as failure:
                self._file.__exit__(type(failure), failure, failure.__traceback__)
                raise
        self._file.__exit__(kind, error, trace)


def open_output(url: str, columns: Iterable[Column]) -> Output:
    """Return a file of items to write in a `with` block; see `Output`.

    :raises OutputError: its format or its storage is unknown here, or a package is missing.
    """
    return Output(url, columns)


class _Lines:
    def __init__(self, file: WholeFile) -> None:
        self._file = file

    def write(self, item: Any) -> None:
        self._file.write(json_text(item).encode() + b"\n")

    def finish(self) -> None:
        pass


class _CompressedLines:
    def __init__(self, file: WholeFile) -> None:
        self._gzip = compressed(file)

    def write(self, item: Any) -> None:
        self._gzip.write(json_text(item).encode() + b"\n")

    def finish(self) -> None:
        self._gzip.close()
