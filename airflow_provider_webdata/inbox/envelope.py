"""The envelope of a delivery (docs/service.md#webhooks). Its shape is open: what cannot be read counts as missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from airflow_provider_webdata.common.surrogates import escape_halves

from .outline import outline_of

LONGEST_TEXT = 200
"""Characters; the service has no longer names and ids."""

LONGEST_URL = 2048
"""Characters of a page's URL; of a page with a longer one, none is kept."""

OPERATIONS = ("batch_scrape", "crawl", "extract", "agent", "monitor")
"""What an event's name may begin with, before the first dot."""


class NotJSONError(ValueError):
    """The body of a delivery is no JSON."""


@dataclass(frozen=True)
class Envelope:
    """The envelope of a delivery. Fields that are missing or malformed are None.

    :param event: `type`, unchanged.
    :param operation: prefix of the event's name, such as `monitor`.
    :param name: the event without its operation, such as `check.completed`.
    :param job_id: `id`: of the job, for monitors of the check.
    :param monitor_id: `data.monitorId`.
    :param webhook_id: the id of the event, the same on every redelivery.
    :param success: unchanged; false for a page or check that failed.
    :param page_url: URL of the page: the requested one, else the one after redirects.
    """

    event: str | None = None
    operation: str | None = None
    name: str | None = None
    job_id: str | None = None
    monitor_id: str | None = None
    webhook_id: str | None = None
    success: bool | None = None
    page_url: str | None = None

    @classmethod
    def read(cls, body: bytes) -> Envelope:
        """Read the envelope of a delivery.

        :raises NotJSONError: it is no JSON. JSON of any shape is fine.
        """
        try:
            return cls.of(outline_of(escape_halves(body)))
        except ValueError as error:
            raise NotJSONError(str(error)) from None

    @classmethod
    def of(cls, payload: Any) -> Envelope:
        """Read the envelope of a parsed delivery."""
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
            page_url=_page_url(first),
        )


def parse_body(body: bytes) -> Any:
    """Return the value of a delivery's body, with surrogate halves as `escape_halves` returns them.

    :raises NotJSONError: it is no JSON, no UTF-8, or nested beyond measure.
    """
    try:
        return from_json(escape_halves(body), allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        raise NotJSONError(str(error)) from None


def first_of(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what `data` holds: the object itself or the first of an array, else an empty one."""
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
    """Return whether two names mean the same event: one of them may lack the operation."""
    (operation, name), (other_operation, other_name) = split_event(one), split_event(other)
    return name == other_name and (
        operation is None or other_operation is None or operation == other_operation
    )


def _page_url(first: dict[str, Any]) -> str | None:
    metadata = first.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    urls = (first.get("url"), metadata.get("sourceURL"), metadata.get("url"))
    return next(filter(None, (_text(url, LONGEST_URL) for url in urls)), None)


def _text(value: Any, longest: int = LONGEST_TEXT) -> str | None:
    if not isinstance(value, str) or not value or len(value) > longest:
        return None
    # A database may refuse NUL.
    return value if value.isprintable() else None
