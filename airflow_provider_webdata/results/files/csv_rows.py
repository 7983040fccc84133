# SPDX-License-Identifier: Apache-2.0
"""CSV by RFC 4180: UTF-8, a header, one row per item, and no cell that a spreadsheet would run as a formula.

Text is quoted, to distinguish empty text from null, which is an empty cell. Numbers are not quoted.
"""

from __future__ import annotations

import codecs
import csv
import re
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.results.files.formats import Content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from airflow_provider_webdata.results.columns import Column, ColumnType
    from airflow_provider_webdata.results.files.formats import ColumnsOf, OutputStream

# Spreadsheets also read full-width signs. Includes leading apostrophes: the reader removes one, which must not be the
# text's own.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_FIELD = re.compile(r'(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r?\n)')


class CsvWriter:
    """Writes rows below a header."""

    def __init__(self, file: OutputStream, columns: tuple[Column, ...]) -> None:
        self._columns = [(column.name, column.type) for column in columns]
        encoder: Any = codecs.getwriter("utf-8")(file)  # type: ignore[arg-type]
        self._csv = csv.writer(encoder, quoting=csv.QUOTE_NONNUMERIC)
        self._csv.writerow([guarded(name) for name, _ in self._columns])

    def write(self, row: Mapping[str, Any]) -> None:
        """Write a row."""
        self._csv.writerow([_cell(row[name], type_) for name, type_ in self._columns])

    def finish(self) -> None:
        """Do nothing: no row is buffered."""


def read_csv(file: Iterable[bytes], columns_of: ColumnsOf) -> Content:
    """Return the rows of a file that `CsvWriter` wrote.

    :raises ValueError: the file is not CSV, or is truncated.
    """
    # Python's csv reader rejects cells above 128 KiB, and does not distinguish null from empty text.
    records = map(_fields, _records(file))
    header = next(records, None)
    if header is None:
        raise ValueError("it has no header")
    columns = columns_of(_unguarded(name or "") for name in header)
    return Content(_rows(records, columns), columns)


class _Null(float):
    """A number without digits: the only value that csv.writer before Python 3.12 leaves empty and unquoted."""

    def __str__(self) -> str:
        return ""


_NULL = _Null()


def _cell(value: Any, type_: ColumnType) -> Any:
    if value is None:
        return _NULL
    if type_ == "text":
        return guarded(value)
    return str(value).lower() if type_ == "boolean" else value


def guarded(text: str) -> str:
    """Return a text with a leading apostrophe if a spreadsheet would run it as a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def _unguarded(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _boolean(cell: str) -> bool:
    if cell not in ("true", "false"):
        raise ValueError(f"{cell!r} is not a boolean")
    return cell == "true"


_VALUES: Mapping[ColumnType, Callable[[str], Any]] = {
    "text": _unguarded,
    "integer": int,
    "number": float,
    "boolean": _boolean,
    "json": str,
}


def _rows(records: Iterable[list[str | None]], columns: tuple[Column, ...]) -> Iterator[dict[str, Any]]:
    readers = [(column.name, column.type == "text", _VALUES[column.type]) for column in columns]
    for cells in records:
        if len(cells) != len(readers):
            raise ValueError(f"a row has {len(cells)} fields, but the header has {len(readers)}")
        yield {
            # A pair of quotes is a row with a single null.
            name: None if cell is None or not (cell or is_text) else value_of(cell)
            for cell, (name, is_text, value_of) in zip(cells, readers, strict=True)
        }


def _records(file: Iterable[bytes]) -> Iterator[str]:
    """Yield the text of each record; a record spans several lines if a cell has line breaks."""
    lines: list[bytes] = []
    quotes = 0
    for line in file:
        lines.append(line)
        quotes += line.count(b'"')
        if quotes % 2 == 0:
            yield b"".join(lines).decode()
            lines, quotes = [], 0
    if lines:
        raise ValueError("the last row is truncated")


def _fields(record: str) -> list[str | None]:
    """Return the cells of a record; None for an empty, unquoted cell."""
    cells: list[str | None] = []
    at, end = 0, ","
    while end == ",":
        found = _FIELD.match(record, at)
        if found is None:
            raise ValueError("a row is truncated, or is not CSV by RFC 4180")
        quoted, plain, end = found.groups()
        cells.append((plain or None) if quoted is None else quoted.replace('""', '"'))
        at = found.end()
    return cells
