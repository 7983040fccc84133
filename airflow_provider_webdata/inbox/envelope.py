"""The envelope of a delivery (docs/service.md#webhooks). Its shape is open: what cannot be read counts as missing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_TEXT = 200
"""Characters; the service has no longer names and ids."""

OPERATIONS = ("batch_scrape", "crawl", "extract", "agent", "monitor")
"""What an event's name may begin with, before the first dot."""

_LEADING, _TRAILING = rb"u[dD][89abAB][0-9a-fA-F]{2}", rb"u[dD][c-fC-F][0-9a-fA-F]{2}"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE_SURROGATE = re.compile(
    rb"\\(?:(?=%b(?!\\%b))|(?<!\\%b\\)(?=%b))" % (_LEADING, _TRAILING, _LEADING, _TRAILING)
)
_SECOND_HALF = re.compile(rb"\\%b" % _TRAILING)
_PIECE = 2**18
# UTF-8 has no such byte. While it stands for escaped backslashes, every backslash that is left begins an escape.
_BACKSLASHES = b"\xff\xff"


class NotJSONError(ValueError):
    """The body of a delivery is no JSON."""


@dataclass(frozen=True)
class Envelope:
    """What a delivery says about itself; None for all that is missing or odd.

    :param event: `type` as it came.
    :param operation: what the event's name begins with, such as `monitor`.
    :param name: the event without its operation, such as `check.completed`.
    :param job_id: `id`: of the job, for monitors of the check.
    :param monitor_id: `data.monitorId`.
    :param webhook_id: the id of the event, the same on every redelivery.
    :param success: as it came; false for a page or check that failed.
    """

    event: str | None = None
    operation: str | None = None
    name: str | None = None
    job_id: str | None = None
    monitor_id: str | None = None
    webhook_id: str | None = None
    success: bool | None = None

    @classmethod
    def read(cls, body: bytes) -> Envelope:
        """Read the envelope of a delivery.

        :param body: the body as it came.
        :raises NotJSONError: it is no JSON. JSON of any shape is fine.
        """
        return cls.of(parse_body(body))

    @classmethod
    def of(cls, payload: Any) -> Envelope:
        """Read the envelope of a parsed delivery.

        :param payload: any JSON value.
        """
        if not isinstance(payload, dict):
            return cls()
        event = _text(payload.get("type"))
        operation, name = split_event(event) if event else (None, None)
        first = first_of(payload)
        success = payload.get("success")
        return cls(
            event=event,
            operation=operation,
            name=name,
            job_id=_text(payload.get("id")) or _text(first.get("checkId")),
            monitor_id=_text(first.get("monitorId")),
            webhook_id=_text(payload.get("webhookId")),
            success=success if isinstance(success, bool) else None,
        )


def parse_body(body: bytes) -> Any:
    """Return the value of a delivery's body, lone surrogates as `readable` gives them.

    :param body: the body as it came.
    :raises NotJSONError: it is no JSON, no UTF-8, or nested beyond measure.
    """
    try:
        return from_json(readable(body), allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        raise NotJSONError(str(error)) from None


def readable(body: bytes) -> bytes:
    """Return JSON of the same values that every parser takes and UTF-8 can encode.

    JavaScript that cuts an emoji in two writes half of it as an escape such as `\\ud83d`: legal JSON, but no character.
    Its escape becomes text, those six characters, so that nothing is lost.

    :param body: JSON as it came; what is no JSON stays none.
    """
    if _SURROGATE.search(body) is None or _BACKSLASHES[:1] in body:
        return body
    marked = body.replace(rb"\\", _BACKSLASHES)
    escaped = b"".join(_LONE_SURROGATE.sub(rb"\\\\", piece) for piece in _pieces(marked))
    return escaped.replace(_BACKSLASHES, rb"\\")


def _pieces(marked: bytes) -> Iterator[bytes]:
    """Yield JSON in pieces that part no pair: between two of them, other threads may run."""
    start = 0
    while start < len(marked):
        end = marked.find(b"\\", start + _PIECE)
        if end < 0:
            end = len(marked)
        elif _SECOND_HALF.match(marked, end):
            end += len(rb"\udc00")
        yield marked[start:end]
        start = end


def first_of(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what `data` holds: the object itself or the first of an array, else an empty one.

    :param payload: a delivery's body.
    """
    data = payload.get("data")
    if isinstance(data, list):
        data = data[0] if data else None
    return data if isinstance(data, dict) else {}


def split_event(event: str) -> tuple[str | None, str]:
    """Return operation and name of an event; the operation is None where the event does not say it.

    :param event: for example `monitor.check.completed`, or `check.completed`.
    """
    operation, dot, name = event.partition(".")
    return (operation, name) if dot and operation in OPERATIONS else (None, event)


def same_event(one: str, other: str) -> bool:
    """Return whether two names mean the same event: one of them may lack the operation.

    :param one: the name of an event.
    :param other: another one.
    """
    (operation, name), (other_operation, other_name) = split_event(one), split_event(other)
    return name == other_name and (
        operation is None or other_operation is None or operation == other_operation
    )


def _text(value: Any) -> str | None:
    if not isinstance(value, str) or not value or len(value) > LONGEST_TEXT:
        return None
    # A database may refuse NUL.
    return value if value.isprintable() else None
