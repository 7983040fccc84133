# SPDX-License-Identifier: Apache-2.0
"""The registry of the file formats of results.

This module is imported during DAG parsing, so writers and readers are import paths, imported when a file is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, Protocol

from airflow_provider_webdata.common.extras import install_command
from airflow_provider_webdata.results.errors import OutputError

if TYPE_CHECKING:
    from airflow_provider_webdata.results.columns import Column

_ROOM = "airflow_provider_webdata.results.files"


class OutputStream(Protocol):
    """An open file to write, compressed or not."""

    def write(self, data: Any, /) -> int:
        """Write bytes and return their number."""


class FormatWriter(Protocol):
    """Writes records to a file that the caller opens and closes."""

    def write(self, record: Any) -> None:
        """Write an item, or in a format with columns a row: a value for each column, by name."""

    def finish(self) -> None:
        """Flush buffered records."""


@dataclass
class Content:
    """Content of an open file to read.

    :param records: items, or in a format with columns rows. Iteration raises ValueError if the file is damaged.
    :param columns: the columns of rows; empty for items.
    """

    records: Iterator[Any]
    columns: tuple[Column, ...] = ()


ColumnsOf = Callable[[Iterable[str]], "tuple[Column, ...]"]
"""Returns the columns of a file that contains only their names."""


@dataclass(frozen=True)
class Format:
    """A file format.

    :param name: its name in messages.
    :param suffix: such as `.jsonl`.
    :param writer: import path of a callable that returns a `FormatWriter`, called with an `OutputStream` and columns.
    :param reader: import path of a callable that returns a `Content`, called with an open file and a `ColumnsOf`. It
        raises ValueError if the file is damaged.
    :param columns: None: a file contains the unchanged items. `typed`: it contains rows, with the names and types of
        their columns (`columns.columns_of`). `named`: it contains rows, with only the names.
    :param gzip: True if the format can be compressed, with the suffix `.gz` appended.
    :param package: required module, if any.
    :param extra: extra of this distribution that installs the package, if one is required.
    """

    name: str
    suffix: str
    writer: str
    reader: str
    columns: Literal["typed", "named"] | None = None
    gzip: bool = False
    package: str | None = None
    extra: str = ""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of the format's files."""
        return (self.suffix, f"{self.suffix}.gz") if self.gzip else (self.suffix,)

    def load(self, part: Literal["writer", "reader"]) -> Callable[..., Any]:
        """Import the writer or the reader.

        :raises MissingFormatError: a package is missing.
        """
        self.check()
        loaded: Callable[..., Any] = resolve_name(getattr(self, part))
        return loaded

    def check(self) -> None:
        """Check that the required package is installed.

        :raises MissingFormatError: the package is missing; the message has the command that installs it.
        """
        if self.package is None:
            return
        try:
            import_module(self.package)
        except ImportError as error:
            from airflow_provider_webdata.results.files.missing_format import MissingFormatError

            others = ", ".join(suffix for suffix in SUFFIXES if FORMATS[suffix].package is None)
            raise MissingFormatError(
                f"{self.name} needs the package {self.package} on the workers: {install_command(self.extra)}, "
                f"or use a format without it ({others})"
            ) from error


FORMATS = {
    suffix: known
    for known in (
        Format(
            "JSON Lines",
            ".jsonl",
            writer=f"{_ROOM}.json_lines:LineWriter",
            reader=f"{_ROOM}.json_lines:read_lines",
            gzip=True,
        ),
        Format(
            "Parquet",
            ".parquet",
            writer=f"{_ROOM}.parquet:ParquetWriter",
            reader=f"{_ROOM}.parquet:read_parquet",
            columns="typed",
            package="pyarrow",
            extra="parquet",
        ),
        Format(
            "CSV",
            ".csv",
            writer=f"{_ROOM}.csv_rows:CsvWriter",
            reader=f"{_ROOM}.csv_rows:read_csv",
            columns="named",
            gzip=True,
        ),
    )
    for suffix in known.suffixes
}
"""The formats by suffix."""

SUFFIXES = tuple(FORMATS)


def rejected_url(url: str) -> str:
    """Return the URL of the file for rejected results, beside that of an output.

    Readers of folders skip it, because its name begins with `_`.
    """
    folder, slash, name = url.rpartition("/")
    return f"{folder}{slash}_{name}.rejected"


def suffix_of(url: str) -> str:
    """Return the format suffix of a file's URL.

    :raises OutputError: the URL has no known suffix.
    """
    for suffix in SUFFIXES:
        if url.endswith(suffix) and not url.endswith(f"/{suffix}"):
            return suffix
    raise OutputError(
        f"output must be a path or URL that ends in one of {', '.join(SUFFIXES)} (given: {url!r})"
    )


def format_of(url: str) -> Format:
    """Return the format of a file by its URL's suffix.

    :raises OutputError: the URL has no known suffix.
    """
    return FORMATS[suffix_of(url)]


def is_compressed(url: str) -> bool:
    """Return whether a file in one of the formats is compressed with gzip."""
    return url.endswith(".gz")
