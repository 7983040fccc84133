# SPDX-License-Identifier: Apache-2.0
"""The items of a run, in a temporary file until each one's change is known."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.files.json_lines import decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Self

_encode = msgspec.json.Encoder().encode


class Spool:
    """The items of a run with their keys, in their order; use it as a context manager."""

    def __init__(self) -> None:
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Open the temporary file."""
        self._file = self._open.enter_context(tempfile.TemporaryFile())
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the temporary file."""
        self._open.close()

    def add(self, key: str | None, item: Mapping[str, Any]) -> None:
        """Add an item.

        :param key: key of its page, or of a record; None if it has none.
        """
        try:
            line = _encode((key, item))
        except (UnicodeEncodeError, OverflowError):
            line = json_text((key, item)).encode()
        self._file.write(line + b"\n")

    def items(self, is_wanted: Callable[[int], bool]) -> Iterator[tuple[int, str | None, dict[str, Any]]]:
        """Yield the number of each wanted item, from 0, its key, and the item."""
        self._file.seek(0)
        for number, line in enumerate(self._file):
            if is_wanted(number):
                key, item = decoded(line)
                yield number, key, item
