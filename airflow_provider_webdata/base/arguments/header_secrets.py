# SPDX-License-Identifier: Apache-2.0
"""Masking of secrets in an operator's arguments, before Airflow stores the rendered arguments: the values of headers,
and passwords and tokens in URLs.

In responses, the models replace the values of headers.
"""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.log import mask_secret

from airflow_provider_webdata.common.url_secrets import url_secrets

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
"""Headers whose values are not secret; masking `en-US` would redact large parts of a log."""


def mask_secrets(arguments: Mapping[str, Any]) -> None:
    """Mask the secret header values, passwords, and tokens in rendered arguments."""
    if values := [*header_values(arguments), *secrets_in_urls(arguments)]:
        mask_secret(values)


def secrets_in_urls(arguments: Any) -> list[JsonValue]:
    """Return the passwords and tokens in the URLs of rendered arguments, at any depth."""
    found: dict[JsonValue, None] = {}
    values = [arguments]
    for value in values:
        if isinstance(value, str):
            found.update(dict.fromkeys(url_secrets(value)))
        elif isinstance(value, Mapping):
            values += value.values()
        elif isinstance(value, (list, tuple, set)):
            values += value
    return [*found]


def header_values(arguments: Any) -> list[JsonValue]:
    """Return the secret header values in rendered arguments: those of every mapping named `headers`, at any depth."""
    found: list[JsonValue] = []
    values = [arguments]
    # The loop appends nested values to the list it iterates over.
    for given in values:
        value = _parsed(given) if isinstance(given, str) and "headers" in given.lower() else given
        if isinstance(value, Mapping):
            for name, inner in value.items():
                is_headers = str(name).lower() == "headers"
                headers = _parsed(inner) if is_headers else None
                if isinstance(headers, Mapping):
                    found += [
                        str(text)
                        for header, text in headers.items()
                        if str(header).lower() not in _PUBLIC_HEADERS and text not in (None, "")
                    ]
                else:
                    values.append(headers if is_headers else inner)
        elif isinstance(value, (list, tuple, set)):
            values += value
    return found


def _parsed(value: Any) -> Any:
    # A template may have rendered an argument to JSON text.
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return json.loads(value)
        # Without native rendering, a template renders a mapping as its Python repr.
        if value.lstrip()[:1] in {"{", "["}:
            with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                return ast.literal_eval(value.strip())
    return value
