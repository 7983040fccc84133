"""JSON that is always valid: no billed result is lost to an odd character."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_provider_webdata.common.surrogates import is_utf8

# json.dumps would create one for each call.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def json_text(value: Any) -> str:
    """Return a JSON value as one line of JSON text that UTF-8 can hold.

    Text stays readable, unless it holds half a surrogate pair, which UTF-8 cannot encode: then everything outside
    ASCII is escaped. NaN and infinities, which JSON does not have, become null.
    """
    try:
        text = _encode(value)
    except ValueError:
        text = _encode(_finite(value))
    return text if is_utf8(text) else json.dumps(json.loads(text), separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return value
