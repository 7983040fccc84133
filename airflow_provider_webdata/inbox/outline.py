"""An outline of a delivery's body, read without creating Python objects for the rest.

A body of 16 MB may hold millions of values: as objects they would stop every other request for seconds. Here no single
step holds the interpreter for longer than it takes to pass over the bytes once.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

DEEPEST = 200
"""Levels of arrays and objects in a body: readers parse no deeper ones."""

LONGEST_RAW_TEXT = 2500
"""Bytes of a text that is read at all: 200 characters, each written as two escapes, and quotes."""

LONGEST_RAW_URL = 25_000
"""The same of 2,048 characters."""

_CHUNK = 2**16
_ESCAPE = re.compile(rb"\\*")
_RUN = re.compile(rb"\[+|\]+")
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_ALL_ELSE = bytes(set(range(256)) - set(b'[]{}"'))
_NULL = msgspec.Raw(b"null")


class _Body(msgspec.Struct):
    type: msgspec.Raw = _NULL
    id: msgspec.Raw = _NULL
    webhookId: msgspec.Raw = _NULL  # noqa: N815
    success: msgspec.Raw = _NULL
    data: msgspec.Raw = _NULL


class _Data(msgspec.Struct):
    checkId: msgspec.Raw = _NULL  # noqa: N815
    monitorId: msgspec.Raw = _NULL  # noqa: N815
    url: msgspec.Raw = _NULL
    metadata: msgspec.Raw = _NULL


class _Metadata(msgspec.Struct):
    sourceURL: msgspec.Raw = _NULL  # noqa: N815
    url: msgspec.Raw = _NULL


class _Array(msgspec.Struct, array_like=True):
    first: msgspec.Raw = _NULL


_body = msgspec.json.Decoder(_Body)
_data = msgspec.json.Decoder(_Data)
_metadata = msgspec.json.Decoder(_Metadata)
_array = msgspec.json.Decoder(_Array)
_anything = msgspec.json.Decoder(msgspec.Raw)
_scalar = msgspec.json.Decoder(str | bool | None)


def outline_of(body: bytes) -> dict[str, Any] | None:
    """Return only the fields of a delivery that its envelope needs; None if the body is not an object.

    Values that are neither text nor boolean, and texts too long to be kept, are None.

    :raises ValueError: it is no JSON, no UTF-8, or nested deeper than `DEEPEST`.
    """
    try:
        body.decode()
        outer = _body.decode(body) if body.lstrip()[:1] == b"{" else _anything.decode(body)
        if not _is_shallow(body):
            raise ValueError(f"nested deeper than {DEEPEST}")
        return _fields(outer) if isinstance(outer, _Body) else None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _fields(outer: _Body) -> dict[str, Any]:
    data = bytes(outer.data)
    if data.startswith(b"["):
        data = bytes(_array.decode(data).first)
    inner = _data.decode(data) if data.startswith(b"{") else _Data()
    page = bytes(inner.metadata)
    metadata = _metadata.decode(page) if page.startswith(b"{") else _Metadata()
    return {
        "type": _value(outer.type),
        "id": _value(outer.id),
        "webhookId": _value(outer.webhookId),
        "success": _value(outer.success),
        "data": {
            "checkId": _value(inner.checkId),
            "monitorId": _value(inner.monitorId),
            "url": _value(inner.url, LONGEST_RAW_URL),
            "metadata": {
                "sourceURL": _value(metadata.sourceURL, LONGEST_RAW_URL),
                "url": _value(metadata.url, LONGEST_RAW_URL),
            },
        },
    }


def _value(raw: msgspec.Raw, longest: int = LONGEST_RAW_TEXT) -> str | bool | None:
    written = bytes(raw)
    if len(written) > longest or not written.startswith((b'"', b"t", b"f")):
        return None
    value: str | bool | None = _scalar.decode(written)
    return value


def _is_shallow(body: bytes) -> bool:
    """Return whether valid JSON nests no deeper than `DEEPEST`."""
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return True
    depth = 0
    for run in _RUN.finditer(_brackets(body)):
        length = run.end() - run.start()
        depth += length if run[0].startswith(b"[") else -length
        # The innermost pairs were left out.
        if depth >= DEEPEST:
            return False
    return True


def _brackets(body: bytes) -> bytes:
    """Return the brackets outside of texts, all of them square, without those that hold no other.

    In pieces, between which other threads may run.
    """
    found = []
    inside = start = 0
    while start < len(body):
        # Not in the middle of an escape: a run of backslashes and the character behind it stay together.
        stop = _ESCAPE.match(body, start + _CHUNK).end() + 1  # type: ignore[union-attr]
        piece = body[start:stop].replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.translate(_BRACKETS, _ALL_ELSE).split(b'"')
        found.append(b"".join(parts[inside::2]).replace(b"[]", b""))
        inside = (inside + len(parts) - 1) % 2
        start = stop
    return b"".join(found)
