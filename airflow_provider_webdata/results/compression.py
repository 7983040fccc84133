"""Gzip files whose bytes follow from what is in them alone."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_webdata.results.storage import WholeFile

# JSON of pages shrinks to about a quarter; more effort saves little and takes long.
_LEVEL = 6


def compressed(file: WholeFile) -> gzip.GzipFile:
    """Return a gzip file that writes to another one, which is open; without a name and a time in it."""
    return gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=_Target(file), mtime=0)


class _Target:
    """The file interface that gzip needs."""

    def __init__(self, file: WholeFile) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        return self._file.write(data)

    def flush(self) -> None:
        pass
