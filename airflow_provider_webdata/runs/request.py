# SPDX-License-Identifier: Apache-2.0
"""Requests and numbers from the rendered arguments of a task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.common.arguments import number, without_sets
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.logs import task_logger
from airflow_provider_webdata.hooks.calls import body_for

if TYPE_CHECKING:
    from airflow_provider_webdata.api.models.base import RequestModel

    RequestT = TypeVar("RequestT", bound=RequestModel)


def request_body(task: Any) -> Mapping[str, Any]:
    """Build the request from the arguments, in wire form.

    :raises InvalidRequestError: a field breaks a documented rule.
    """
    model: type[RequestModel] = getattr(models, task._request_model)
    return body_for(model, task._field_values(), task._request_model).to_wire()


def checked_request(
    task: Any,
    model: type[RequestT],
    operation: str,
    fields: Mapping[str, Any] | None = None,
    *,
    map_index: int | None = None,
) -> RequestT:
    """Build the request from the arguments, and log its warnings and notes.

    Of a mapped task, only the first instance logs the notes, which are the same for all.

    :param operation: the name of the call in errors.
    :param fields: the request's fields. Default: the arguments.
    :param map_index: index of a mapped task.
    :raises InvalidRequestError: a field breaks a documented rule, or the connection's kind of server refuses it.
    """
    fields = task._field_values() if fields is None else fields
    if problems := task._lists_for_text(fields):
        raise InvalidRequestError(operation, problems)
    request = valid_request(task, model, operation, fields)
    log = task_logger(task)
    for warning in request.warnings():
        log.warning("%s: %s", operation, warning)
    for note in request.notes(task.hook.get_settings().client.server) if (map_index or 0) <= 0 else ():
        log.info("%s: %s", operation, note)
    return request


def valid_request(task: Any, model: type[RequestT], operation: str, fields: Mapping[str, Any]) -> RequestT:
    """Build a request that the connection's kind of server accepts.

    :param operation: the name of the call in errors.
    :param fields: the request's fields.
    :raises InvalidRequestError: a field breaks a documented rule, or the connection's kind of server refuses it.
    """
    request = body_for(model, fields, operation)
    if problems := request.refused_by(task.hook.get_settings().client.server):
        raise InvalidRequestError(operation, problems)
    return request


def checked_number(operation: str, name: str, given: Any, most: float = float("inf")) -> float | None:
    """Parse a number like `number`, for an operator that is about to make a call.

    :param operation: the name of the call in errors.
    :raises InvalidRequestError: the value is not a number in the allowed range.
    """
    try:
        return number(name, given, most)
    except ArgumentError as error:
        raise InvalidRequestError(operation, [error.text()]) from None


def checked_extra_body(task: Any, operation: str) -> Mapping[str, Any] | None:
    """Return `extra_body` as a mapping; a template may have rendered it as JSON text.

    :param operation: the name of the call in errors.
    :raises InvalidRequestError: the value is not an object.
    """
    value: Any = task.extra_body
    if isinstance(value, str):
        with suppress(ValueError):
            value = json.loads(value) if value.strip() else None
    if value is not None and not isinstance(value, Mapping):
        raise InvalidRequestError(
            operation, [f"extra_body: must be a mapping or a JSON object (given: {type(value).__name__})"]
        )
    return without_sets(value)  # type: ignore[no-any-return]
