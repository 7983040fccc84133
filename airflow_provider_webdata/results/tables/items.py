"""Results files of any format, read as rows."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.item_urls import url_of
from airflow_provider_webdata.results.columns import CHANGES as RUN_COLUMNS
from airflow_provider_webdata.results.columns import (
    EXTRA,
    TABLES,
    Column,
    columns_of,
    kind_of_names,
    row_maker,
)
from airflow_provider_webdata.results.formats import format_of, is_compressed
from airflow_provider_webdata.results.manifest.comparison import CHANGES
from airflow_provider_webdata.results.manifest.urls import is_canonical
from airflow_provider_webdata.results.partitions import files_of
from airflow_provider_webdata.results.result_schema import ERRORS
from airflow_provider_webdata.results.storage import storage_path
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.layout import url_column
from airflow_provider_webdata.results.tombstones import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from typing_extensions import Self

    from airflow_provider_webdata.results.result_schema import ResultSchema

_LINK = frozenset({"url", "title", "description", "change", "page"})
_FLAT = frozenset({"id", "text", "digest"})
# So many items say what kind they are.
_PROBE = 100
_DAMAGE = (ValueError, EOFError, gzip.BadGzipFile, zlib.error)


@dataclass(frozen=True)
class Removed:
    """A page that is gone.

    :param known_by: values of the file's columns, any of which tells its row from others.
    """

    known_by: Mapping[str, str]


Row = dict[str, Any]


class ResultsFile:
    """A results file, open for reading; use it as a context manager.

    :param url: path or URL, see `results.storage.storage_path`.
    :param kind: of its items, see `results.columns.columns_of`; None: found from the items, or from the names
        of the columns.
    :param schema: what the items were validated by; its properties become columns.
    :ivar columns: of its rows; none where nothing says what they would be.
    :raises TableError: it does not exist, or is no results file.
    """

    def __init__(self, url: str, kind: str | None = None, schema: ResultSchema | None = None) -> None:
        self.url = url
        self.columns: tuple[Column, ...] = ()
        self._kind = kind
        self._schema = schema
        self._open = ExitStack()
        self._rows: Iterator[Row | Removed] = iter(())

    def __enter__(self) -> Self:
        """Open it, and find out what its columns are."""
        try:
            path: Any = storage_path(self.url)
            # The file of `path.open` imports Airflow's hook lineage at the first read, for some 40 MB; a load reports
            # its files to OpenLineage itself.
            file = self._open.enter_context(path.fs.open(path.path, "rb"))
        except FileNotFoundError as error:
            raise TableError(
                f"path: {self.url} does not exist; name a file that output= has written"
            ) from error
        file_format = format_of(self.url)
        read = file_format.load("reader")
        if is_compressed(self.url):
            file = self._open.enter_context(gzip.GzipFile(fileobj=file))
        try:
            content = read(file, self._columns_named)
        except _DAMAGE as error:
            raise self._damaged(error, 0) from error
        records = self._undamaged(content.records)
        if file_format.columns is None:
            self._rows = self._rows_of_items(records)
        else:
            self.columns = content.columns
            self._rows = self._rows_of_columns(records)
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._open.close()

    def rows(self) -> Iterator[Row | Removed]:
        """Yield its rows and removed pages, in the file's order, once."""
        return self._rows

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

    def _damaged(self, error: Exception, read: int) -> TableError:
        return TableError(f"path: {self.url} is no results file: after item {read}: {error}")

    def _rows_of_items(self, items: Iterator[Any]) -> Iterator[Row | Removed]:
        first = [*islice(items, _PROBE)]
        kind = self._kind or kind_of(first)
        of_pages = any(isinstance(item, Mapping) and ("json" in item or MARK in item) for item in first)
        if first and self._kind is None and self._schema is not None and not of_pages:
            # What was extracted may have a url as well.
            kind = "generic"
        if kind is not None:
            self.columns = columns_of(kind) if self._schema is None else self._schema.columns(kind)
        # An item of any shape may have a key of that name.
        has_changes = kind != "generic"
        return self._rows_of(chain(first, items), has_changes=has_changes)

    def _rows_of(self, items: Iterable[Any], *, has_changes: bool) -> Iterator[Row | Removed]:
        known = url_column([column.name for column in self.columns])
        made = row_maker(self.columns)
        for number, item in enumerate(items, 1):
            of_run: Row = {}
            if isinstance(item, Mapping):
                if MARK in item:
                    yield self._removed(item, number)
                    continue
                if has_changes:
                    self._check_unmarked(item, number)
                    of_run = _of_run(item)
                    item = {name: value for name, value in item.items() if name not in of_run}
            values = made(item)
            values.update(of_run)
            yield _known_by(values, known)

    def _rows_of_columns(self, rows: Iterable[Row]) -> Iterator[Row | Removed]:
        known = url_column([column.name for column in self.columns])
        for number, values in enumerate(rows, 1):
            # What has no column, such as the mark, is in `extra`.
            extra = values.get(EXTRA.name) or ""
            item = json.loads(extra) if MARK in extra else None
            if isinstance(item, Mapping) and MARK in item:
                yield self._removed({**values, **item}, number)
                continue
            # Only a manifest has this column.
            self._check_unmarked(values, number)
            yield _known_by(values, known)

    def _removed(self, item: Mapping[str, Any], number: int) -> Removed:
        column = url_column([column.name for column in TABLES.get(str(item[MARK]), ())])
        if column is None or not isinstance(item.get("url"), str):
            raise TableError(
                f"path: item {number} of {self.url} stands for a removed page in a way that is unknown ({MARK}: "
                f"{item[MARK]!r}); upgrade this package on the workers, or run the task that wrote the file again"
            )
        known_by = {"id": item.get("id"), column: item["url"]}
        return Removed({name: value for name, value in known_by.items() if isinstance(value, str)})

    def _check_unmarked(self, item: Mapping[str, Any], number: int) -> None:
        """Check that an item which is no tombstone is not one of an older version either."""
        if item.get("change") == "removed" and self._kind != "generic":
            raise TableError(
                f'path: item {number} of {self.url} has "change": "removed" without the mark of a task with a manifest '
                f"({MARK}), and rows are deleted for marked items alone. If an older version wrote the file, run its "
                "task again; if the field is the item's own, say kind='generic'"
            )


def kind_of(items: Sequence[Any]) -> str | None:
    """Return the kind of items as operators write them to files, or None where there are none.

    :param items: the first ones of a file.
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


def _of_run(item: Mapping[str, Any]) -> Row:
    """Return what a manifest says of an item; nothing where these fields are the item's own."""
    page = item.get("page")
    if item.get("change") not in CHANGES or not (page is None or is_canonical(page, url_of(item))):
        return {}
    return {name: item[name] for name in ("change", "page") if name in item}


def _known_by(values: Row, known: str | None) -> Row:
    if known is not None and values.get("page"):
        values[known] = values["page"]
    elif known == "source_url" and values["source_url"] is None:
        values["source_url"] = values.get("url")
    return values


def urls_of_file(url: str) -> list[str]:
    """Return the URLs of the results in a file, or in the files of a list, without those of removed pages.

    They are those of `item_urls.url_of`: of a page, the requested one.

    :raises OutputError: a file is missing, or no results file.
    """
    urls: list[str] = []
    for one in files_of(url):
        with ResultsFile(one) as file:
            column = url_column([column.name for column in file.columns]) or "url"
            found = (row.get(column) or row.get("url") for row in file.rows() if not isinstance(row, Removed))
            urls += filter(None, found)
    return urls
