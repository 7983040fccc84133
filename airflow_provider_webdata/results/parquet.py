"""Parquet: items become rows of documented columns, in row groups of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.results.columns import row_maker
from airflow_provider_webdata.results.errors import OutputError

if TYPE_CHECKING:
    from airflow_provider_webdata.results.columns import Column, ColumnType
    from airflow_provider_webdata.results.storage import WholeFile

ROW_GROUP_BYTES = 16 * 2**20
ROW_GROUP_ROWS = 10_000


def require_pyarrow() -> Any:
    """Return the module `pyarrow`.

    :raises OutputError: it is not installed; the message names the extra that brings it.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise OutputError(
            "Parquet needs the package pyarrow: pip install 'airflow-provider-webdata[parquet]' on the workers, "
            "or write .jsonl or .jsonl.gz"
        ) from error
    return pyarrow


JSON_COLUMN = {b"webdata.type": b"json"}
"""Metadata of the columns whose text is JSON."""


def arrow_type(type_: ColumnType) -> Any:
    """Return the type of a column in Arrow.

    :raises OutputError: pyarrow is not installed.
    """
    pa = require_pyarrow()
    types = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
    return types.get(type_) or pa.string()


class ParquetItems:
    """Writes items as rows; at most one row group is held in memory."""

    def __init__(self, file: WholeFile, columns: tuple[Column, ...]) -> None:
        pa = require_pyarrow()
        from pyarrow import parquet

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
        self._row = row_maker(columns)
        self._rows: list[dict[str, Any]] = []
        self._held = 0
        self._table_of = pa.Table.from_pylist
        self._writer = parquet.ParquetWriter(
            pa.PythonFile(_Sink(file), mode="w"), self._schema, compression="zstd"
        )

    def write(self, item: Any) -> None:
        """Write an item."""
        made = self._row(item)
        self._rows.append(made)
        self._held += sum(len(value) for value in made.values() if isinstance(value, str))
        if self._held >= ROW_GROUP_BYTES or len(self._rows) >= ROW_GROUP_ROWS:
            self._write_group()

    def finish(self) -> None:
        """Write the last row group and the footer."""
        if self._rows:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        self._writer.write_table(self._table_of(self._rows, schema=self._schema))
        self._rows, self._held = [], 0


class _Sink:
    """The file interface that Arrow needs to write from start to end."""

    closed = False

    def __init__(self, file: WholeFile) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def tell(self) -> int:
        return self._file.bytes

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
