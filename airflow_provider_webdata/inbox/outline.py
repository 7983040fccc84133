# SPDX-License-Identifier: Apache-2.0
"""An outline of a delivery's body, parsed without creating Python objects for the rest.

A body of 16 MB may contain millions of values. Creating objects for them would block all other requests for seconds.
Here, no step holds the GIL longer than one pass over the bytes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

DEEPEST = 200
"""Maximum nesting of arrays and objects in a body; readers cannot parse deeper ones."""

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
    metadata: msgspec.Raw = _NULL


class _Data(msgspec.Struct):
    checkId: msgspec.Raw = _NULL  # noqa: N815
    monitorId: msgspec.Raw = _NULL  # noqa: N815
    url: msgspec.Raw = _NULL
    status: msgspec.Raw = _NULL
    summary: msgspec.Raw = _NULL
    isMeaningful: msgspec.Raw = _NULL  # noqa: N815
    creditsUsed: msgspec.Raw = _NULL  # noqa: N815
    metadata: msgspec.Raw = _NULL


class _Metadata(msgspec.Struct):
    sourceURL: msgspec.Raw = _NULL  # noqa: N815
    url: msgspec.Raw = _NULL
    statusCode: msgspec.Raw = _NULL  # noqa: N815
    error: msgspec.Raw = _NULL


class _Labels(msgspec.Struct):
    monitor: msgspec.Raw = _NULL
    dag_id: msgspec.Raw = _NULL
    task_id: msgspec.Raw = _NULL


class _Array(msgspec.Struct, array_like=True):
    first: msgspec.Raw = _NULL


_body = msgspec.json.Decoder(_Body)
_data = msgspec.json.Decoder(_Data)
_metadata = msgspec.json.Decoder(_Metadata)
_labels = msgspec.json.Decoder(_Labels)
_array = msgspec.json.Decoder(_Array)
_anything = msgspec.json.Decoder(msgspec.Raw)
_text = msgspec.json.Decoder(str)


class Outline(NamedTuple):
    """The raw, unparsed parts of a delivery that its envelope needs.

    :param data: `data`, or the first of its items.
    :param metadata: of the page in `data`.
    :param labels: the metadata of the webhook.
    """

    body: _Body
    data: _Data
    metadata: _Metadata
    labels: _Labels


def outline_of(body: bytes) -> Outline | None:
    """Return the outline of a delivery; None if the body is not an object.

    :raises ValueError: the body is not JSON, not UTF-8, or nested deeper than `DEEPEST`.
    """
    try:
        body.decode()
        outer = _body.decode(body) if body.lstrip()[:1] == b"{" else _anything.decode(body)
        if not _is_shallow(body):
            raise ValueError(f"nested deeper than {DEEPEST}")
        return _outline(outer) if isinstance(outer, _Body) else None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _outline(body: _Body) -> Outline:
    data = bytes(body.data)
    if data.startswith(b"["):
        data = bytes(_array.decode(data).first)
    inner = _data.decode(data) if data.startswith(b"{") else _Data()
    page, labels = bytes(inner.metadata), bytes(body.metadata)
    return Outline(
        body,
        inner,
        _metadata.decode(page) if page.startswith(b"{") else _Metadata(),
        _labels.decode(labels) if labels.startswith(b"{") else _Labels(),
    )


def text_of(raw: msgspec.Raw, longest: int) -> str | None:
    """Return a value if it is a string of 1 to `longest` printable characters, else None."""
    text = name_of(raw, longest)
    return text if text is not None and text.isprintable() else None


def name_of(raw: msgspec.Raw, longest: int) -> str | None:
    """Return a value if it is a string of 1 to `longest` characters, which may join emoji, else None."""
    written = bytes(raw)
    # A character may be encoded as two escapes.
    if not written.startswith(b'"') or len(written) > 12 * longest + 2:
        return None
    text = _text.decode(written)
    # A database may reject NUL.
    return text if 0 < len(text) <= longest and "\0" not in text else None


def _is_shallow(body: bytes) -> bool:
    """Return whether valid JSON nests no deeper than `DEEPEST`."""
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return True
    depth = 0
    for run in _RUN.finditer(_brackets(body)):
        length = run.end() - run.start()
        depth += length if run[0].startswith(b"[") else -length
        # The innermost pairs were removed.
        if depth >= DEEPEST:
            return False
    return True


def _brackets(body: bytes) -> bytes:
    """Return the brackets outside strings, all as square brackets, without innermost pairs.

    Works in chunks, between which other threads may run.
    """
    found = []
    inside = start = 0
    while start < len(body):
        # Do not split an escape: keep a run of backslashes and the following character together.
        stop = _ESCAPE.match(body, start + _CHUNK).end() + 1  # type: ignore[union-attr]
        piece = body[start:stop].replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.translate(_BRACKETS, _ALL_ELSE).split(b'"')
        found.append(b"".join(parts[inside::2]).replace(b"[]", b""))
        inside = (inside + len(parts) - 1) % 2
        start = stop
    return b"".join(found)
