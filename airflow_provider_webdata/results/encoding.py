# SPDX-License-Identifier: Apache-2.0
"""JSON encoding that always succeeds, so that no character makes a billed result fail."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_provider_webdata.common.surrogates import is_utf8

# json.dumps would create an encoder for each call.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def json_text(value: Any) -> str:
    """Encode a JSON value as one line of JSON text, valid in UTF-8.

    Text stays readable, unless it contains a lone surrogate, which UTF-8 cannot encode: then all non-ASCII characters
    are escaped. NaN and infinities, which JSON does not support, become null.
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
