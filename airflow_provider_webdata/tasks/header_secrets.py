"""Secret header values in an operator's arguments, for Airflow's masker, before the rendered arguments are stored.

In answers, the models replace such values.
"""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.log import mask_secret

if TYPE_CHECKING:
    from pydantic import JsonValue

_PUBLIC_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "content-type",
        "referer",
        "user-agent",
    }
)
"""Headers whose values nobody hides; masking `en-US` would blot out half a log."""


def mask_header_values(arguments: Mapping[str, Any]) -> None:
    """Mask the secret header values in rendered arguments."""
    values: list[JsonValue] = [*header_values(arguments)]
    if values:
        mask_secret(values)


def header_values(value: Any) -> Iterator[str]:
    """Yield the secret header values in a rendered argument: those of every mapping called `headers`, at any depth."""
    if isinstance(value, Mapping):
        for name, given in value.items():
            is_headers = str(name).lower() == "headers"
            inner = _parsed(given) if is_headers else given
            if is_headers and isinstance(inner, Mapping):
                for header, text in inner.items():
                    if str(header).lower() not in _PUBLIC_HEADERS and text not in (None, ""):
                        yield str(text)
            else:
                yield from header_values(inner)
    elif isinstance(value, (list, tuple, set)):
        for inner in value:
            yield from header_values(inner)
    elif isinstance(value, str) and "headers" in value.lower():
        parsed = _parsed(value)
        yield from header_values(None if isinstance(parsed, str) else parsed)


def _parsed(value: Any) -> Any:
    # A template may have rendered an argument to JSON text.
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return json.loads(value)
        # Where templates are not rendered as native objects, a mapping becomes its Python text.
        if value.lstrip()[:1] in {"{", "["}:
            with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                return ast.literal_eval(value.strip())
    return value
