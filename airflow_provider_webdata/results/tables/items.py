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
from airflow_provider_webdata.results.errors import TableError
from airflow_provider_webdata.results.item_urls import url_of
from airflow_provider_webdata.results.manifest.comparison import CHANGES
from airflow_provider_webdata.results.manifest.urls import is_canonical
from airflow_provider_webdata.results.output import format_of
from airflow_provider_webdata.results.parquet import JSON_COLUMN
from airflow_provider_webdata.results.storage import storage_path
from airflow_provider_webdata.results.tables.layout import url_column
from airflow_provider_webdata.results.tombstones import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from airflow_provider_webdata.results.result_schema import ResultSchema

_LINK = frozenset({"url", "title", "description", "change", "page"})
_FLAT = frozenset({"id", "text", "digest"})
# So many items say what kind they are.
_PROBE = 100
_BATCH_ROWS = 2_000


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
    :param kind: of its items, see `results.columns.columns_of`; None: found from the items, or in Parquet from the
        names of the columns.
    :param schema: what the items of JSON Lines were validated by; its properties become columns.
    :ivar columns: of its rows; none where nothing says what they would be.
    :raises TableError: it is not there, or no results file.
    """

    def __init__(self, url: str, kind: str | None = None, schema: ResultSchema | None = None) -> None:
        self.url = url
        self.columns: tuple[Column, ...] = ()
        self._kind = kind
        self._schema = schema
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
        of_pages = any(isinstance(item, Mapping) and ("json" in item or MARK in item) for item in first)
        if first and self._kind is None and self._schema is not None and not of_pages:
            # What was extracted may have a url as well.
            kind = "generic"
        if kind is not None:
            self.columns = columns_of(kind) if self._schema is None else self._schema.columns(kind)
        # An item of any shape may have a key of that name.
        has_changes = kind != "generic"
        self._items = lambda: self._rows_of(chain(first, items), has_changes=has_changes)

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
        self._items = lambda: self._rows_of_batches(table.iter_batches(_BATCH_ROWS))

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

    def _rows_of_batches(self, batches: Iterable[Any]) -> Iterator[Row | Removed]:
        known = url_column([column.name for column in self.columns])
        rows = chain.from_iterable(batch.to_pylist() for batch in batches)
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
    """Return the kind of items as operators write them to JSON Lines, or None where there are none.

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


def _column(field: Any, types: Any) -> Column:
    if types.is_integer(field.type):
        return Column(field.name, (), "integer")
    if types.is_floating(field.type):
        return Column(field.name, (), "number")
    if types.is_boolean(field.type):
        return Column(field.name, (), "boolean")
    is_json = (field.metadata or {}).items() >= JSON_COLUMN.items()
    if types.is_string(field.type) or types.is_large_string(field.type) or types.is_null(field.type):
        return Column(field.name, (), "json" if is_json else "text")
    raise TableError(
        f"path: the column {field.name!r} has the type {field.type}, which output= does not write"
    )
