# SPDX-License-Identifier: Apache-2.0
"""Parquet: items as rows of documented columns, in row groups of bounded size."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from airflow_provider_webdata.results.columns import Column
from airflow_provider_webdata.results.files.formats import Content

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.results.columns import ColumnType
    from airflow_provider_webdata.results.files.formats import OutputStream

_ROW_GROUP_BYTES = 8 * 2**20
_ROW_GROUP_ROWS = 10_000
_READ_BYTES = 2**17
_READ_ROWS = 2_000

JSON_COLUMN = {b"webdata.type": b"json"}
"""Metadata of columns with JSON text."""


def arrow_type(type_: ColumnType) -> Any:
    """Return the Arrow type of a column."""
    types = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
    return types.get(type_) or pa.string()


class ParquetWriter:
    """Writes rows; at most one row group is held in memory."""

    def __init__(self, file: OutputStream, columns: tuple[Column, ...]) -> None:
        self._schema = pa.schema(
            [
                pa.field(
                    column.name,
                    arrow_type(column.type),
                    metadata=JSON_COLUMN if column.type == "json" else None,
                )
                for column in columns
            ]
        )
        self._rows: list[dict[str, Any]] = []
        self._held = 0
        self._writer = parquet.ParquetWriter(
            pa.PythonFile(_Sink(file), mode="w"), self._schema, compression="zstd"
        )

    def write(self, row: dict[str, Any]) -> None:
        """Write a row."""
        self._rows.append(row)
        self._held += sum(len(value) for value in row.values() if isinstance(value, str))
        if self._held >= _ROW_GROUP_BYTES or len(self._rows) >= _ROW_GROUP_ROWS:
            self._write_group()

    def finish(self) -> None:
        """Write the last row group and the footer."""
        if self._rows:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._held = [], 0


def read_parquet(file: Any, *_: Any) -> Content:
    """Return the rows of a file.

    :raises ValueError: the file is not Parquet, or has column types that `save_to=` does not write.
    """
    pool = pa.default_memory_pool()
    try:
        # The file keeps the memory pool with which it is opened. Arrow's own pools reserve 25 MB too much.
        pa.set_memory_pool(pa.system_memory_pool())
        # With pre-buffering, Arrow would hold the whole file in memory.
        table = parquet.ParquetFile(file, pre_buffer=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"it is not a Parquet file: {error}") from error
    finally:
        pa.set_memory_pool(pool)
    return Content(_rows(table), tuple(map(_column, table.schema_arrow)))


def _rows(table: Any) -> Iterator[dict[str, Any]]:
    names = table.schema_arrow.names
    for number in range(table.num_row_groups):
        group = table.metadata.row_group(number)
        rows = _READ_BYTES * group.num_rows // max(group.total_byte_size, 1)
        for batch in table.iter_batches(
            min(max(rows, 1), _READ_ROWS), row_groups=[number], use_threads=False
        ):
            for values in zip(*map(_values, batch.columns), strict=True):
                yield dict(zip(names, values, strict=True))


def _values(column: Any) -> list[Any]:
    # Most columns of most files are null, and Arrow converts values individually.
    return [None] * len(column) if column.null_count == len(column) else column.to_pylist()


def _column(field: Any) -> Column:
    if pa.types.is_integer(field.type):
        return Column(field.name, (), "integer")
    if pa.types.is_floating(field.type):
        return Column(field.name, (), "number")
    if pa.types.is_boolean(field.type):
        return Column(field.name, (), "boolean")
    is_json = (field.metadata or {}).items() >= JSON_COLUMN.items()
    if pa.types.is_string(field.type) or pa.types.is_large_string(field.type) or pa.types.is_null(field.type):
        return Column(field.name, (), "json" if is_json else "text")
    raise ValueError(f"the column {field.name!r} has the type {field.type}, which save_to= does not write")


class _Sink(io.RawIOBase):
    """The file interface that Arrow needs for sequential writes."""

    def __init__(self, file: OutputStream) -> None:
        self._file = file
        self._written = 0

    def write(self, data: Any) -> int:
        size = self._file.write(data)
        self._written += size
        return size

    def tell(self) -> int:
        return self._written

    def writable(self) -> bool:
        return True
