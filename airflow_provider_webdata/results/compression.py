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
    return gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=file, mtime=0)
