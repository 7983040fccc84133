"""The envelope of a delivery (docs/service.md#webhooks). Its shape is open: what cannot be read counts as missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from airflow_provider_webdata.common.surrogates import escape_halves

from .outline import outline_of, text_of

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
            outline = outline_of(escape_halves(body))
        except ValueError as error:
            raise NotJSONError(str(error)) from None
        if outline is None:
            return cls()
        outer, data, page = outline
        event = text_of(outer.type, LONGEST_TEXT)
        operation, name = split_event(event) if event else (None, None)
        urls = (text_of(url, LONGEST_URL) for url in (data.url, page.sourceURL, page.url))
        return cls(
            event=event,
            operation=operation,
            name=name,
            job_id=text_of(outer.id, LONGEST_TEXT) or text_of(data.checkId, LONGEST_TEXT),
            monitor_id=text_of(data.monitorId, LONGEST_TEXT),
            webhook_id=text_of(outer.webhookId, LONGEST_TEXT),
            success={b"true": True, b"false": False}.get(bytes(outer.success)),
            page_url=next(filter(None, urls), None),
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
