# SPDX-License-Identifier: Apache-2.0
"""Results files of any format, as rows."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.item_urls import site_failed
from airflow_provider_webdata.results.changes.pages import CHANGES
from airflow_provider_webdata.results.columns import CHANGES as RUN_COLUMNS
from airflow_provider_webdata.results.columns import (
    EXTRA,
    OF_A_RUN,
    REMOVED_AT,
    SOURCE,
    TABLES,
    VERSION,
    Column,
    columns_of,
    kind_of_names,
    row_maker,
)
from airflow_provider_webdata.results.files.formats import format_of, is_compressed
from airflow_provider_webdata.results.files.storage import storage_error, storage_errors, storage_path
from airflow_provider_webdata.results.result_schema import ERRORS
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.layout import url_column
from airflow_provider_webdata.results.tombstones import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from typing_extensions import Self

    from airflow_provider_webdata.results.columns import ColumnType
    from airflow_provider_webdata.results.result_schema import ResultSchema

_LINK = frozenset({"url", "title", "description", *OF_A_RUN})
_FLAT = frozenset({"id", "text", "digest"})
_EMITTED = frozenset(OF_A_RUN) - {REMOVED_AT}
_OF_A_PAGE = frozenset({"sourceURL", "statusCode", "scrapeId"})
# Number of items from which the kind is detected.
_PROBE = 100
_DAMAGE = (ValueError, EOFError, gzip.BadGzipFile, zlib.error)


Row = dict[str, Any]


class Removed(Row):
    """The row of a removed page: `page`, and the columns of versions."""


class ResultsFile:
    """A results file, open for reading; use it as a context manager.

    :param url: path or URL, see `results.files.storage.storage_path`.
    :param kind: kind of the items, see `results.columns.columns_of`; None: detected from the items, or from the names
        of the columns.
    :param schema: schema by which the items were validated; its properties become columns.
    :ivar columns: columns of the rows, with those of a task with `changes`; empty if unknown, because the file has no
        items.
    :raises TableError: the file does not exist, or is not a results file.
    """

    def __init__(
        self,
        url: str,
        kind: str | None = None,
        schema: ResultSchema | None = None,
    ) -> None:
        self.url = url
        self.columns: tuple[Column, ...] = ()
        self._kind = kind
        self._schema = schema
        self._fields: frozenset[str] = frozenset()
        self._first: Sequence[Any] = ()
        self._open = ExitStack()
        self._rows: Iterator[Row | Removed] = iter(())

    def __enter__(self) -> Self:
        """Open the file, and detect its columns."""
        try:
            path: Any = storage_path(self.url)
            # The file of `path.open` imports Airflow's hook lineage at the first read, which needs about 40 MB. A load
            # reports its files to OpenLineage itself.
            with storage_errors(self.url, "read"):
                file = self._open.enter_context(path.fs.open(path.path, "rb"))
        except FileNotFoundError as error:
            raise TableError(
                f"path: {self.url} does not exist; specify a file that a task with save_to= has written"
            ) from error
        file_format = format_of(self.url)
        read = file_format.load("reader")
        if is_compressed(self.url):
            file = self._open.enter_context(gzip.GzipFile(fileobj=file))
        try:
            content = read(file, self._columns_named)
        except _DAMAGE as error:
            raise self._damaged(error, 0) from error
        except OSError as error:
            raise storage_error(self.url, error, "read") from error
        records = self._undamaged(content.records)
        if file_format.columns is None:
            self._rows = self._rows_of_items(records)
        else:
            self.columns = content.columns
            self._rows = self._rows_of_columns(records)
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._open.close()

    def rows(self) -> Iterator[Row | Removed]:
        """Yield the rows and removed pages in the file's order. Can be iterated only once."""
        return self._rows

    def values_of(self, name: str) -> list[Any]:
        """Return the values of a field that no column has, from the first items, without null.

        Files of a format with columns have no such fields.
        """
        if any(name in (column.name, *column.path[:1]) for column in self.columns):
            return []
        items = (item for item in self._first if isinstance(item, Mapping) and MARK not in item)
        return [item[name] for item in items if item.get(name) is not None]

    def add_fields(self, fields: Mapping[str, ColumnType]) -> None:
        """Add columns for fields that no column has, before the rows are read."""
        if self._first:
            self.columns += tuple(Column(name, (name,), type_) for name, type_ in fields.items())
            self._fields = frozenset(fields)

    def _columns_named(self, names: Iterable[str]) -> tuple[Column, ...]:
        """Return the columns of a file that states only their names."""
        names = [*names]
        kind = self._kind or kind_of_names(names)
        found = columns_of(kind) if self._schema is None else self._schema.columns(kind)
        known = {column.name: column for column in (*found, *RUN_COLUMNS, ERRORS)}
        return tuple(known.get(name) or Column(name, (), "text") for name in names)

    def _undamaged(self, records: Iterator[Any]) -> Iterator[Any]:
        read = 0
        try:
            for record in records:
                read += 1
                yield record
        except _DAMAGE as error:
            raise self._damaged(error, read) from error
        except OSError as error:
            raise storage_error(self.url, error, "read") from error

    def _damaged(self, error: Exception, read: int) -> TableError:
        return TableError(f"path: {self.url} is not a results file: after item {read}: {error}")

    def _rows_of_items(self, items: Iterator[Any]) -> Iterator[Row | Removed]:
        self._first = first = [*islice(items, _PROBE)]
        kind = self._kind or kind_of(first)
        of_pages = any(map(_is_of_a_page, first))
        if first and self._kind is None and self._schema is not None and not of_pages:
            # Extracted data may also have a `url`.
            kind = "generic"
        if kind is not None:
            self.columns = columns_of(kind) if self._schema is None else self._schema.columns(kind)
        of_changes = are_of_changes(first)
        if of_changes:
            self.columns += RUN_COLUMNS
        return self._rows_of(chain(first, items), of_changes=of_changes)

    def _rows_of(self, items: Iterable[Any], *, of_changes: bool) -> Iterator[Row | Removed]:
        # An item's own field with the name of another one of a run is data.
        of_run = RUN_COLUMNS if of_changes else ()
        made = row_maker(tuple(column for column in self.columns if column not in of_run))
        tags: Row = {}
        for number, item in enumerate(items, 1):
            if of_changes:
                if isinstance(item, Mapping) and MARK in item:
                    yield self._removed(item, number)
                    continue
                if not _is_of_changes(item):
                    raise TableError(
                        f"path: item {number} of {self.url} is not of a task with changes, but those before it are"
                    )
                tags = {column.name: item.get(column.name) for column in of_run if column.name in _EMITTED}
                item = {name: value for name, value in item.items() if name not in _EMITTED}
            values = made(item)
            for name in self._fields:
                if values[name] is None and isinstance(item, Mapping) and item.get(name) is not None:
                    raise TableError(
                        f"columns: item {number} of {self.url} has a {name!r} of another type than the first {_PROBE} "
                        "items; declare it in result_schema"
                    )
            values.update(tags)
            yield _with_source_url(values)

    def _rows_of_columns(self, rows: Iterable[Row]) -> Iterator[Row | Removed]:
        if not any(column.name == VERSION for column in self.columns):
            yield from map(_with_source_url, rows)
            return
        for number, values in enumerate(rows, 1):
            # Fields without a column, such as the tombstone's mark, are in `extra`.
            extra = values.get(EXTRA.name) or ""
            if MARK in extra and isinstance(item := json.loads(extra), Mapping) and MARK in item:
                yield self._removed(values, number)
                continue
            # Only a removed page has it.
            values[REMOVED_AT] = None
            yield _with_source_url(values)

    def _removed(self, item: Mapping[str, Any], number: int) -> Removed:
        row = Removed({name: item.get(name) for name in OF_A_RUN if name != "change"})
        if type(row[VERSION]) is not int or not all(
            isinstance(row[name], str) for name in ("page", REMOVED_AT, SOURCE)
        ):
            raise TableError(
                f"path: item {number} of {self.url} is a removed page of an unknown form; upgrade this package on the "
                "workers, or rerun the task that wrote the file"
            )
        return row


def are_of_changes(items: Sequence[Any]) -> bool:
    """Return whether a task with `changes` wrote these items, the first ones of a file."""
    if not items or not all(
        isinstance(item, Mapping) and (MARK in item or _is_of_changes(item)) for item in items
    ):
        return False
    # Other items may have a field `change`. Of a task with `changes`, failed pages may be the only ones.
    return any(MARK in item or VERSION in item for item in items) or all(map(_is_failed, items))


def _is_of_changes(item: Any) -> bool:
    if not isinstance(item, Mapping) or item.get("change") not in CHANGES:
        return False
    if VERSION not in item:
        return item["change"] in ("failed", "new")
    return type(item[VERSION]) is int and all(isinstance(item.get(name), str) for name in ("page", SOURCE))


def _is_failed(item: Mapping[str, Any]) -> bool:
    metadata = item.get("metadata")
    has_failed = "error" in item or (isinstance(metadata, Mapping) and site_failed(metadata))
    return item["change"] == "failed" and has_failed


def kind_of(items: Sequence[Any]) -> str | None:
    """Return the kind of items that an operator wrote, or None without items.

    :param items: the first items of a file.
    """
    if not items:
        return None
    present = [item for item in items if isinstance(item, Mapping)]
    if marks := [mark for item in present if (mark := str(item.get(MARK))) in TABLES]:
        return marks[0]
    if not present:
        return "generic"
    if all(item.keys() >= _FLAT for item in present):
        return "retrieval"
    if any("url" not in item and isinstance(item.get("metadata"), Mapping) for item in present):
        return "document"
    if all(isinstance(item.get("url"), str) for item in present):
        return "link" if all(item.keys() <= _LINK for item in present) else "search"
    return "generic"


def _is_of_a_page(item: Any) -> bool:
    """Return whether an item with a schema is a page, or the mark of a removed one, and not extracted data itself."""
    if not isinstance(item, Mapping):
        return False
    metadata = item.get("metadata")
    is_page = isinstance(metadata, Mapping) and not _OF_A_PAGE.isdisjoint(metadata)
    return is_page or "json" in item or MARK in item


def _with_source_url(values: Row) -> Row:
    if "source_url" in values and values["source_url"] is None and "page_url" not in values:
        values["source_url"] = values.get("url")
    return values


def urls_of_file(url: str) -> list[str]:
    """Return the URLs of the results in a file, without removed pages.

    The URL of an item is that of `item_urls.url_of`; for a page, the requested one.

    :raises OutputError: the file is missing, or is not a results file.
    """
    with ResultsFile(url) as file:
        column = url_column([column.name for column in file.columns]) or "url"
        found = (row.get(column) or row.get("url") for row in file.rows() if not isinstance(row, Removed))
        return [*filter(None, found)]
