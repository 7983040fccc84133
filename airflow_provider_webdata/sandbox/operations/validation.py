"""Request bodies checked, and the service's way of saying what is wrong with one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.sandbox.reference.rules import check
from airflow_provider_webdata.sandbox.reference.wire import ServiceError

from .search import unknown_keys

if TYPE_CHECKING:
    from airflow_provider_webdata.sandbox.reference.wire import Issue, Json


def valid(operation: str, body: Any) -> Json:
    """Return the body when it keeps the rules.

    :param operation: a key of :data:`~airflow_provider_webdata.sandbox.reference.schema.BODIES`.
    :raises ServiceError: 400 ``BAD_REQUEST`` with ``details`` (supplement 1, 17.1).
    """
    return settled(body, check(operation, body))


def settled(body: Any, issues: list[Issue]) -> Json:
    """Return the body when nothing is wrong with it; see :func:`valid`.

    :param issues: what is wrong.
    :raises ServiceError: 400.
    """
    unknown = unknown_keys(issues)
    if unknown:
        raise unknown
    if issues:
        text = issues[0].message if issues[0].code == "custom" else "Bad Request"
        raise ServiceError(400, text, code="BAD_REQUEST", details=[issue.to_wire() for issue in issues])
    checked: Json = body
    return checked
