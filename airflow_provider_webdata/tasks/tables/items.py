"""Results files, read as rows: JSON Lines, compressed or not, and Parquet."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.results.columns import EXTRA, TABLES, Column, columns_of, row_maker
from airflow_provider_webdata.results.item_urls import url_of
from airflow_provider_webdata.results.output import format_of
from airflow_provider_webdata.results.storage import storage_path
from airflow_provider_webdata.tasks.failures import TableError
from airflow_provider_webdata.tasks.tables.layout import url_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

    from typing_extensions import Self

_CHANGES = frozenset({"new", "changed", "same", "known", "failed", "removed"})
_LINK = frozenset({"url", "title", "description", "change"})
_FLAT = frozenset({"id", "text", "digest"})
# So many items say what kind they are.
_PROBE = 100
_BATCH_ROWS = 2_000

_TYPES = {column.name: column.type for columns in TABLES.values() for column in columns}
"""A column has one type in all tables."""


@dataclass(frozen=True)
class Removed:
    """A page that is gone.

    :param url: what it is known by, see `layout.url_column`.
    """

    url: str


Row = dict[str, Any]


class ResultsFile:
    """A results file, open for reading; use it as a context manager.

    :param url: path or URL, see `results.storage.storage_path`.
    :param kind: of its items, see `results.columns.columns_of`; None: found from the items, or in Parquet from the
        names of the columns.
    :ivar columns: of its rows; none where nothing says what they would be.
    :raises TableError: it is not there, or no results file.
    """

    def __init__(self, url: str, kind: str | None = None) -> None:
        self.url = url
        self.columns: tuple[Column, ...] = ()
        self._kind = kind
        self._open = ExitStack()
        self._items: Callable[[], Iterator[Row | Removed]] = lambda: iter(())

    def __enter__(self) -> Self:
        """Open it, and find out what its columns are."""
        try:
            path: Any = storage_path(self.url)
            file = self._open.enter_context(path.open("rb"))
        except FileNotFoundError as error:
            raise TableError(
                f"path: {self.url} is not there; name a file that output= has written"
            ) from error
        if format_of(self.url) == "parquet":
            self._open_parquet(file)
        else:
            self._open_lines(file)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self._open.close()

    def rows(self) -> Iterator[Row | Removed]:
        """Yield its rows and removed pages, in the file's order, once."""
        return self._items()

    def _open_lines(self, file: Any) -> None:
        if self.url.endswith(".gz"):
            file = self._open.enter_context(gzip.GzipFile(fileobj=file))
        items = self._lines(file)
        first = [*islice(items, _PROBE)]
        kind = self._kind or kind_of(first)
        if kind is not None:
            self.columns = columns_of(kind)
        self._items = lambda: _rows_of(chain(first, items), self.columns)

    def _lines(self, file: Iterable[bytes]) -> Iterator[Any]:
        import msgspec

        decode = msgspec.json.Decoder().decode
        number = 0
        try:
            for line in file:
                try:
                    item = decode(line)
                except msgspec.MsgspecError:
                    # Numbers beyond all limits, and halves of characters.
                    item = json.loads(line)
                number += 1
                yield item
        except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise TableError(f"path: {self.url} is no results file: after line {number}: {error}") from error

    def _open_parquet(self, file: Any) -> None:
        from airflow_provider_webdata.results.parquet import require_pyarrow

        pa = require_pyarrow()
        from pyarrow import parquet

        try:
            table = self._open.enter_context(parquet.ParquetFile(file))
        except (pa.ArrowInvalid, OSError) as error:
            raise TableError(f"path: {self.url} is no Parquet file: {error}") from error
        self.columns = tuple(_column(field, pa.types) for field in table.schema_arrow)
        self._items = lambda: _rows_of_batches(table.iter_batches(_BATCH_ROWS), self.columns)


def kind_of(items: Sequence[Any]) -> str | None:
    """Return the kind of items as operators write them to JSON Lines, or None where there are none.

    :param items: the first ones of a file.
    """
    objects = [item for item in items if isinstance(item, Mapping)]
    present = [item for item in objects if not _is_tombstone(item)]
    if not items or (objects and not present and len(objects) == len(items)):
        return None
    if not present:
        return "generic"
    if all(item.keys() >= _FLAT for item in present):
        return "retrieval"
    if any("url" not in item and isinstance(item.get("metadata"), Mapping) for item in present):
        return "document"
    if all(isinstance(item.get("url"), str) for item in present):
        return "link" if all(item.keys() <= _LINK for item in present) else "search"
    return "generic"


def _is_tombstone(item: Mapping[str, Any]) -> bool:
    return item.get("change") == "removed" and url_of(item) is not None


def _rows_of(items: Iterable[Any], columns: tuple[Column, ...]) -> Iterator[Row | Removed]:
    known = url_column([column.name for column in columns])
    # An item of any shape may have a key of that name.
    has_changes = columns != (EXTRA,)
    made = row_maker(columns)
    for item in items:
        change = None
        if has_changes and isinstance(item, Mapping) and item.get("change") in _CHANGES:
            if _is_tombstone(item):
                yield Removed(str(url_of(item)))
                continue
            change = item["change"]
            item = {name: value for name, value in item.items() if name not in ("change", "lastSeen")}
        values = made(item)
        if change is not None:
            values["change"] = change
        yield _known_by(values, known)


def _rows_of_batches(batches: Iterable[Any], columns: tuple[Column, ...]) -> Iterator[Row | Removed]:
    known = url_column([column.name for column in columns])
    for batch in batches:
        for values in batch.to_pylist():
            if known is not None and (url := _removed_url(values, known)) is not None:
                yield Removed(url)
            else:
                yield _known_by(values, known)


def _removed_url(values: Row, known: str) -> str | None:
    """Return the URL of a row that is a tombstone; where there is no column for it, `extra` has what it says."""
    extra = values.get(EXTRA.name) or ""
    if values.get("change") == "removed":
        return values[known] or values.get("url")
    if '"change":"removed"' not in extra:
        return None
    item = json.loads(extra)
    if not isinstance(item, Mapping) or item.get("change") != "removed":
        return None
    return values[known] or values.get("url") or url_of(item)


def _known_by(values: Row, known: str | None) -> Row:
    if known == "source_url" and values["source_url"] is None:
        values["source_url"] = values.get("url")
    return values


def _column(field: Any, types: Any) -> Column:
    if types.is_integer(field.type):
        return Column(field.name, (), "integer")
    if types.is_floating(field.type):
        return Column(field.name, (), "number")
    if types.is_string(field.type) or types.is_large_string(field.type) or types.is_null(field.type):
        return Column(field.name, (), "json" if _TYPES.get(field.name) == "json" else "text")
    raise TableError(
        f"path: the column {field.name!r} has the type {field.type}, which output= does not write"
    )
