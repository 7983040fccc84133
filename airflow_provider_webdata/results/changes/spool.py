"""The items of a run, in a temporary file until each one's change is known."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.files.json_lines import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from typing_extensions import Self

_encode = msgspec.json.Encoder().encode


class SpooledItem(NamedTuple):
    """An item of a run.

    :param key: key of its page, or of a record; None if it has none.
    :param has_failed: whether its page failed.
    """

    key: str | None
    has_failed: bool
    item: Mapping[str, Any]


class Spool:
    """The items of a run, in their order; use it as a context manager."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self.count = 0

    def __enter__(self) -> Self:
        """Open the temporary file."""
        self._file = self._open.enter_context(tempfile.TemporaryFile())
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the temporary file."""
        self._open.close()

    def add(self, item: SpooledItem) -> int:
        """Add an item, and return its number, from 0."""
        try:
            line = _encode(item)
        except (UnicodeEncodeError, OverflowError):
            line = json_text(item).encode()
        self._file.write(line + b"\n")
        self.count += 1
        return self.count - 1

    def items(self) -> Iterator[SpooledItem]:
        """Yield the items."""
        self._file.seek(0)
        for line in self._file:
            yield SpooledItem(*decoded(line))
