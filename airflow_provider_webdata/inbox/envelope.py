# SPDX-License-Identifier: Apache-2.0
"""A delivery's envelope (sandbox/docs/service.md#webhooks). Its schema is open: unreadable fields count as missing."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic_core import from_json, to_json

from airflow_provider_webdata.common.item_urls import was_fetched
from airflow_provider_webdata.common.job_kinds import DELIVERED_KINDS
from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.common.surrogates import escape_halves

from .outline import name_of, outline_of, text_of

if TYPE_CHECKING:
    from msgspec import Raw

    from .outline import Outline

MAX_TEXT = 200
"""Maximum characters of event names and ids at the service."""

MAX_MONITOR_NAME = 256
"""Maximum characters of a monitor's name at the service."""

MAX_DAG_ID = 250
"""Maximum characters of a DAG's or task's id in Airflow."""

MAX_URL = 2048
"""Maximum characters of a page's URL; a longer URL is dropped."""

_MAX_FACT = 16 * 1024
_MAX_DIGITS = 4000
_CHANGED = (b'"changed"', b'"new"')
_CHECK_COMPLETED, _JOB_COMPLETED = "check.completed", "completed"
# Precedes what Airflow may reject in JSON: NUL, numbers beyond a float, and integers of more than 64 bits.
_SUSPECT = re.compile(rb"\\u0000|[0-9][eE]|[0-9]{19}")

OPERATIONS = (*DELIVERED_KINDS, "monitor")
"""Operations: the part of an event's name before the first dot."""


class NotJSONError(ValueError):
    """The body of a delivery is not JSON."""


@dataclass(frozen=True)
class Envelope:
    """The envelope of a delivery. Missing or malformed fields are None.

    :param event: `type`, unchanged.
    :param operation: prefix of the event's name, such as `monitor`.
    :param name: the event without its operation, such as `check.completed`.
    :param job_id: `id`: the job's id, or for monitors the check's.
    :param monitor_id: `data.monitorId`.
    :param webhook_id: the id of the event, the same in every redelivery.
    :param success: `success`; false for a failed page or check, also if the service reports a page that was not
        fetched as a success.
    :param page_url: URL of the page: the requested URL, or else the URL after redirects.
    :param monitor_name: the monitor's name, which a managed webhook reports.
    :param dag_id: the DAG of the task that started the job or declared the monitor, which a managed webhook reports.
    :param task_id: that task.
    :param is_meaningful: of a monitor's changed or new page: its change was judged meaningful.
    :param facts: of a completed check or job, JSON: `status` and `summary`, or `creditsUsed` and `metadata`. A fact of
        more than 16 KiB is null.
    """

    event: str | None = None
    operation: str | None = None
    name: str | None = None
    job_id: str | None = None
    monitor_id: str | None = None
    webhook_id: str | None = None
    success: bool | None = None
    page_url: str | None = None
    monitor_name: str | None = None
    dag_id: str | None = None
    task_id: str | None = None
    is_meaningful: bool | None = None
    facts: bytes | None = field(default=None, repr=False)

    @classmethod
    def read(cls, body: bytes) -> Envelope:
        """Parse the envelope of a delivery.

        :raises NotJSONError: the body is not JSON. JSON of any shape is valid.
        """
        try:
            outline = outline_of(escape_halves(body))
        except ValueError as error:
            raise NotJSONError(str(error)) from None
        if outline is None:
            return cls()
        outer, data, page, labels = outline
        event = text_of(outer.type, MAX_TEXT)
        operation, name = split_event(event) if event else (None, None)
        success = {b"true": True, b"false": False}.get(bytes(outer.success))
        if success and name == "page" and not was_fetched(_facts(page.statusCode, page.error)):
            success = False
        monitor_id = text_of(data.monitorId, MAX_TEXT)
        is_meaningful = None
        if name == "page" and monitor_id and bytes(data.status) in _CHANGED:
            is_meaningful = bool(success) and bytes(data.isMeaningful) == b"true"
        urls = (text_of(url, MAX_URL) for url in (data.url, page.sourceURL, page.url))
        return cls(
            event=event,
            operation=operation,
            name=name,
            job_id=text_of(outer.id, MAX_TEXT) or text_of(data.checkId, MAX_TEXT),
            monitor_id=monitor_id,
            webhook_id=text_of(outer.webhookId, MAX_TEXT),
            success=success,
            page_url=next(filter(None, urls), None),
            monitor_name=name_of(labels.monitor, MAX_MONITOR_NAME),
            dag_id=name_of(labels.dag_id, MAX_DAG_ID),
            task_id=name_of(labels.task_id, MAX_DAG_ID),
            is_meaningful=is_meaningful,
            facts=_facts_of(name, outline),
        )


def _facts_of(name: str | None, outline: Outline) -> bytes | None:
    if name == _CHECK_COMPLETED:
        facts = {"status": outline.data.status, "summary": outline.data.summary}
    elif name == _JOB_COMPLETED:
        facts = {"creditsUsed": outline.data.creditsUsed, "metadata": outline.body.metadata}
    else:
        return None
    return to_json({key: _value_of(raw) for key, raw in facts.items()})


def _value_of(raw: Raw) -> Any:
    return parse_body(bytes(raw)) if len(bytes(raw)) <= _MAX_FACT else None


def _facts(status: Raw, error: Raw) -> dict[str, Any]:
    """Return the metadata of a page that decide whether it was fetched."""
    written = bytes(error)
    # Whatever is false in Python is short: null, false, 0, "", [], {}.
    return {
        "statusCode": bytes(status).decode().strip('"'),
        "error": len(written) > 8 or bool(parse_json(written)),
    }


def parse_body(body: bytes) -> Any:
    """Parse a delivery's body into values that Airflow can store, as `storable` replaces them.

    Lone surrogates are escaped by `escape_halves`.

    :raises NotJSONError: the body is not JSON, not UTF-8, or too deeply nested.
    """
    parsed = parse_json(body)
    return storable(parsed) if _SUSPECT.search(body) else parsed


def parse_json(body: bytes) -> Any:
    """Parse JSON; lone surrogates are escaped by `escape_halves`.

    :raises NotJSONError: the body is not JSON, not UTF-8, or too deeply nested.
    """
    escaped = escape_halves(body)
    try:
        return from_json(escaped, allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        with suppress(ValueError, RecursionError):
            return json.loads(escaped.decode(), parse_int=_integer, parse_constant=_refuse)
        raise NotJSONError(str(error)) from None


def _integer(digits: str) -> float:
    # Python does not parse longer integers.
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def first_of(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the object in `data`, or the first object of its array, or an empty object."""
    data = payload.get("data")
    if isinstance(data, list):
        data = data[0] if data else None
    return data if isinstance(data, dict) else {}


def split_event(event: str) -> tuple[str | None, str]:
    """Split an event into operation and name; the operation is None if the event has none.

    :param event: for example `monitor.check.completed`, or `check.completed`.
    """
    operation, dot, name = event.partition(".")
    return (operation, name) if dot and operation in OPERATIONS else (None, event)


def same_event(one: str, other: str) -> bool:
    """Return whether two names denote the same event; either may omit the operation."""
    (operation, name), (other_operation, other_name) = split_event(one), split_event(other)
    return name == other_name and (
        operation is None or other_operation is None or operation == other_operation
    )
