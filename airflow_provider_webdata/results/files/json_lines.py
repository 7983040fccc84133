# SPDX-License-Identifier: Apache-2.0
"""JSON Lines: one item per line, as the service sent it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.files.formats import Content

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_webdata.results.files.formats import OutputStream

_decode = msgspec.json.Decoder().decode


class LineWriter:
    """Writes items as lines."""

    def __init__(self, file: OutputStream, *_: Any) -> None:
        self._file = file

    def write(self, item: Any) -> None:
        """Write an item."""
        self._file.write(json_text(item).encode() + b"\n")

    def finish(self) -> None:
        """Do nothing: no line is buffered."""


def read_lines(file: Iterable[bytes], *_: Any) -> Content:
    """Return the items of a file."""
    return Content(map(decoded, file))


def decoded(text: str | bytes) -> Any:
    """Return a JSON value.

    :raises ValueError: the text is not JSON.
    """
    try:
        return _decode(text)
    except msgspec.MsgspecError:
        # For numbers out of range and lone surrogates.
        return json.loads(text)
