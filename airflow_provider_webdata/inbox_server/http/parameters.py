# SPDX-License-Identifier: Apache-2.0
"""Parameters of readers: query parameters, and the fields of a search's body.

Validated manually: for query strings, pydantic accepts ` 1`, `1_0`, and, as a date, seconds; in strict mode it rejects
the `5.0` of a JSON body.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qsl

from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.inbox.envelope import NotJSONError, parse_json
from airflow_provider_webdata.inbox.wire import LISTS, MAX_VALUES
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_WAIT = 30.0
"""Maximum seconds of a long poll."""

DEFAULT_LIMIT, MAX_LIMIT = 200, 1000

_TEXT = re.compile("[^\\u0000-\\u001f\\u007f]{1,255}")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]{1,18}")
_LIMIT_RULE = f"limit: must be a whole number from 1 to {MAX_LIMIT}"


class ParameterError(Exception):
    """A parameter is invalid; the message names the parameter and the rule."""


@dataclass(frozen=True)
class DeliveryQuery:
    """A reader's request for a page of deliveries.

    :param wait: seconds to wait for the first delivery.
    """

    wanted: DeliveryFilter
    after: int | Literal["end"] | None
    limit: int
    wait: float = 0.0


def delivery_id_of(part: str) -> int | None:
    """Parse the id of a delivery; None if it is invalid."""
    return int(part) if _WHOLE.fullmatch(part) else None


def query_of(query: bytes) -> DeliveryQuery:
    """Parse a URL's query.

    :param query: encoded, without the question mark.
    :raises ParameterError: a parameter is invalid.
    """
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_VALUES
        )
    except ValueError:
        raise ParameterError(
            f"the query must have at most {MAX_VALUES} fields, in URL-encoded UTF-8"
        ) from None
    lists: dict[str, list[str]] = {name: [] for name in LISTS.values()}
    single: dict[str, str] = {}
    for name, value in pairs:
        if name in LISTS:
            lists[LISTS[name]].append(value)
        elif name not in {"after", "wait", "limit", "received_after"}:
            raise ParameterError(f"unknown parameter {name[:50]!r}")
        elif name in single:
            raise ParameterError(f"{name}: must not be repeated")
        else:
            single[name] = value
    after = single.get("after")
    return DeliveryQuery(
        _filter(lists, single.get("received_after")),
        "end" if after == "end" else _cursor(after),
        _limit(single.get("limit")),
        _wait(single.get("wait")),
    )


def search_of(body: bytes) -> DeliveryQuery:
    """Parse the body of a search.

    :raises ParameterError: the body is invalid.
    """
    try:
        given = parse_json(body)
    except NotJSONError:
        raise ParameterError("the body must be JSON") from None
    if not isinstance(given, dict):
        raise ParameterError("the body must be a JSON object")
    if unknown := given.keys() - {*LISTS.values(), "after", "limit", "received_after"}:
        raise ParameterError(f"unknown field {min(unknown)[:50]!r}")
    lists = {name: [] if given.get(name) is None else given[name] for name in LISTS.values()}
    for name, values in lists.items():
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ParameterError(f"{name}: must be an array of strings")
    return DeliveryQuery(
        _filter(lists, given.get("received_after")),
        _cursor(given.get("after")),
        _limit(_whole(given.get("limit"))),
    )


def _whole(given: object) -> int | None:
    """Return a JSON number as an integer; 5.0 counts as 5."""
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    if isinstance(given, float) and given.is_integer():
        return int(given)
    raise ParameterError(_LIMIT_RULE)


def _filter(lists: Mapping[str, Sequence[str]], received_after: object) -> DeliveryFilter:
    if sum(map(len, lists.values())) > MAX_VALUES:
        raise ParameterError(f"at most {MAX_VALUES} keys, ids, and events in total")
    for name, values in lists.items():
        if not all(map(_TEXT.fullmatch, values)):
            raise ParameterError(f"{name}: each must have 1 to 255 characters, without control characters")
    given = {name: tuple(values) for name, values in lists.items()}
    return DeliveryFilter(**given, received_after=_moment(received_after))  # type: ignore[arg-type]


def _moment(text: object) -> datetime | None:
    if text is None:
        return None
    with suppress(OverflowError):
        if isinstance(text, str) and (found := moment(text)) is not None:
            return found.astimezone(timezone.utc)
    raise ParameterError(
        "received_after: must be an ISO 8601 date-time, for example 2026-01-31T08:00:00+00:00"
    )


def _cursor(given: object) -> int | None:
    if given is None:
        return None
    if isinstance(given, str) and _WHOLE.fullmatch(given):
        return int(given)
    raise ParameterError(
        'after: must be a cursor from an earlier response (or "end", for requests that can wait)'
    )


def _limit(given: str | int | None) -> int:
    if given is None:
        return DEFAULT_LIMIT
    number = int(given) if _WHOLE.fullmatch(str(given)) else 0
    if not 1 <= number <= MAX_LIMIT:
        raise ParameterError(_LIMIT_RULE)
    return number


def _wait(given: str | None) -> float:
    if given is None:
        return 0.0
    seconds = float(given) if _NUMBER.fullmatch(given) else -1.0
    if not 0 <= seconds <= MAX_WAIT:
        raise ParameterError(f"wait: must be 0 to {MAX_WAIT:g} seconds")
    return seconds
