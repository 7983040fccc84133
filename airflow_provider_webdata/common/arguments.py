# SPDX-License-Identifier: Apache-2.0
"""Normalization of operator arguments, which may have several forms or be text from a template."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Mapping, MutableSequence, Sequence
from datetime import timedelta
from typing import Any

from airflow_provider_webdata.common.coded_errors import ArgumentError

_BRACKETS = ("[", "(", "{")
_COLLECTIONS = (list, tuple, set, dict)

LIST_AS_TEXT = (
    "a template rendered a list as text. Set render_template_as_native_obj=True of the DAG, or end the template with "
    "`| tojson`"
)
"""The problem of a list argument whose text is no JSON list, and its fix."""


def seconds(name: str, value: float | timedelta, *, least: float | None = None) -> float:
    """Return a time span in seconds.

    :param least: the minimum. Default: any span of more than 0.
    :raises ArgumentError: the value is not a time span, or is too short.
    """
    span = value.total_seconds() if isinstance(value, timedelta) else value
    if (
        isinstance(span, bool)
        or not isinstance(span, (int, float))
        or not (least or 0) <= span < float("inf")
        or (span == 0 and least is None)
    ):
        rule = "more than 0" if least is None else f"at least {least:g}"
        raise ArgumentError(f"{name} must be seconds or a timedelta, {rule} (given: {value!r})")
    return float(span)


def whole_number(name: str, given: Any, least: int = 1) -> int:
    """Return a whole number of at least `least`.

    :raises ArgumentError: the value is not a whole number, or is too small.
    """
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise ArgumentError(f"{name} must be a whole number of at least {least} (given: {given!r})")
    return given


def number(name: str, given: Any, most: float = float("inf")) -> float | None:
    """Return a number of at least 0, or None if the value is None. A template without a value removes no limit.

    :param most: the maximum; infinity itself is never allowed.
    :raises ArgumentError: the value is not a number, or is out of range.
    """
    if given is None:
        return None
    try:
        value = float("nan") if isinstance(given, bool) else float(given)
    except (TypeError, ValueError):
        value = float("nan")
    if not (0 <= value <= most and value < float("inf")):
        limit = "" if most == float("inf") else f" and at most {most:g}"
        raise ArgumentError(f"{name}: must be a number of at least 0{limit} (given: {given!r})")
    return value


def as_list(name: str, given: Any, *, is_code: bool = False) -> list[Any]:
    """Return a list argument as a list, even if it is a single item or text.

    :param given: items, one item, or text: JSON of a list or of an object, or one item.
    :param is_code: whether the text of an item may begin with a bracket.
    :raises ArgumentError: the text is that of a Python list.
    """
    if isinstance(given, str):
        try:
            parsed = from_json_text(given, is_code=is_code)
        except ValueError as error:
            raise ArgumentError(f"{name}: {error}") from None
        given = parsed or ([given] if parsed is None and given.strip() else [])
    if given is None:
        return []
    return items_of(given) if isinstance(given, Collection) and not isinstance(given, Mapping) else [given]


def from_json_text(text: str, *, is_code: bool = False) -> list[Any] | dict[str, Any] | None:
    """Return the JSON list or object in a text; None for any other text.

    :param is_code: whether other text may begin with a bracket.
    :raises ValueError: the text is that of a Python list, as a template renders it. The message omits the text.
    """
    if (text := text.strip())[:1] not in _BRACKETS:
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        if (text[0] in "[{" and not is_code) or isinstance(_literal(text), _COLLECTIONS):
            raise ValueError(
                f"{LIST_AS_TEXT} (given: text of {len(text)} characters, starting with {text[0]!r})"
            ) from None
        return None
    return parsed if isinstance(parsed, (list, dict)) else None


def collection_in(text: str) -> Collection[Any] | None:
    """Return the list or mapping that a template rendered as text, in JSON or Python; None for any other text."""
    if (text := text.strip())[:1] not in _BRACKETS:
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = _literal(text)
    # A DAG may have `[[` as the mark of its templates.
    is_rendered = isinstance(parsed, _COLLECTIONS) and not any(isinstance(item, list) for item in parsed)
    return parsed if is_rendered else None


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def items_of(given: Collection[Any]) -> list[Any]:
    """Return the items of a collection. The results of a mapped task are read in one request."""
    # Unless it is sliced: docs/contributing/upstream/lazy_sequence_requests.md
    is_lazy = isinstance(given, Sequence) and not isinstance(given, MutableSequence)
    return list(given[:] if is_lazy else given)  # type: ignore[index]


def without_sets(value: Any) -> Any:
    """Return a value with its sets as sorted lists: their order differs between the attempts of a task."""
    if isinstance(value, (set, frozenset)):
        return sorted((without_sets(item) for item in value), key=str)
    if type(value) is dict:
        return {name: without_sets(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(without_sets(item) for item in value)
    return value


def checked_text(value: Any) -> str | None:
    """Return a rendered argument as text, or None if it is blank or the text `None`."""
    text = "" if value is None else str(value).strip()
    return None if text in {"", "None"} else text


def monitor_of(given: Any) -> Any:
    """Return the id of the monitor, or of the check's monitor, that a task returned; any other value unchanged."""
    return given.get("monitorId", given.get("id")) if isinstance(given, Mapping) else given
