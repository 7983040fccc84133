# SPDX-License-Identifier: Apache-2.0
"""Calls to pass to a client, and pagination of lists, for all operations of the hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from pydantic import ValidationError

from airflow_provider_webdata.api.endpoints import LIST_MONITORS, Endpoint, ResponseT
from airflow_provider_webdata.api.errors import InvalidRequestError, UnsupportedError
from airflow_provider_webdata.api.models.base import RequestModel
from airflow_provider_webdata.api.servers import DROPS_QUERY

if TYPE_CHECKING:
    from airflow_provider_webdata.api import models
    from airflow_provider_webdata.api.multipart import Upload

RequestT = TypeVar("RequestT", bound=RequestModel)
Body = Mapping[str, Any]

PAGE_SIZE = 100
"""Maximum number of items on one page of a list. See sandbox/docs/service.md#monitor-list, #check-list."""
_DEFAULT_PAGE_SIZE = 25
"""Number of monitors on a page of a request without `limit`."""


class Call(msgspec.Struct, Generic[ResponseT], frozen=True):
    """One call to pass to a client.

    :param path: values of the path's placeholders.
    :param query: query parameters; None values are omitted.
    :param extra_body: merged into the body unchecked.
    :param upload: a file to send; the body becomes its options.
    :param idempotency_key: value of the endpoint's `key_header`, if the endpoint has one.
    :param priced: inputs of the price other than the body.
    """

    endpoint: Endpoint[ResponseT]
    path: Mapping[str, str] | None = None
    query: Mapping[str, Any] | None = None
    body: RequestModel | None = None
    extra_body: Body | None = None
    upload: Upload | None = None
    idempotency_key: str | None = None
    priced: Body | None = None

    @classmethod
    def of(
        cls,
        endpoint: Endpoint[ResponseT],
        request: RequestModel | Body | None,
        fields: Body | None = None,
        *,
        path: Mapping[str, str] | None = None,
        extra_body: Body | None = None,
        upload: Upload | None = None,
        idempotency_key: str | None = None,
    ) -> Call[ResponseT]:
        """Return a call whose body is validated against the endpoint's request model.

        :param request: the model itself, or a mapping with wire or Python names.
        :param fields: the fields, in place of `request`. None: without `request`, the call has no body.
        :raises InvalidRequestError: the fields violate a documented rule, or are given in both ways.
        """
        given = one_of(request, fields, endpoint.label)
        body = None if given is None else checked_body(endpoint, given)
        return Call(endpoint, path, None, body, extra_body, upload, idempotency_key)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the client's `call`."""
        given = msgspec.structs.asdict(self)
        return {name: value for name, value in given.items() if name not in {"endpoint", "priced"}}


def one_of(
    request: RequestModel | Body | None, fields: Body | None, operation: str
) -> RequestModel | Body | None:
    """Return the fields of a request, given either as one mapping or model, or as keyword arguments.

    :param operation: name of the call in errors.
    :raises InvalidRequestError: both are given, or the request is neither a mapping nor a model.
    """
    if request is None:
        return fields
    if not isinstance(request, (Mapping, RequestModel)):
        raise InvalidRequestError(
            operation,
            [
                "fields are keyword arguments, such as url=... or query=...: name the field, or pass one mapping of "
                f"fields (given: {type(request).__name__})"
            ],
        )
    if fields:
        raise InvalidRequestError(
            operation,
            [
                f"{', '.join(fields)}: fields are given as keyword arguments beside a request; pass all fields as "
                "keyword arguments, or all in the request"
            ],
        )
    return request


def checked_body(endpoint: Endpoint[Any], request: RequestModel | Body) -> RequestModel:
    """Return the body of a call as the endpoint's request model.

    :raises InvalidRequestError: the request violates a documented rule.
    """
    if endpoint.request is None:
        raise TypeError(f"{endpoint.label} accepts no body")
    return body_for(endpoint.request(), request, endpoint.label)


def body_for(model: type[RequestT], request: RequestModel | Body, operation: str) -> RequestT:
    """Return the request model of a call.

    :param request: the model itself, or a mapping with wire or Python names.
    :param operation: name of the call in errors.
    :raises InvalidRequestError: the mapping violates a documented rule.
    """
    if isinstance(request, model):
        return request
    try:
        return model.model_validate(request)
    except ValidationError as error:
        raise InvalidRequestError.from_validation_error(operation, error, model) from None


def repeated_page(endpoint: Endpoint[Any], items: str) -> UnsupportedError:
    """Return the error of a paged read that receives the same page again, so that the rest cannot be read.

    :param items: what the page has, in the plural.
    """
    repeats = f"the response repeats the {items} of the one before"
    return UnsupportedError(endpoint.label, 200, repeats, lack=DROPS_QUERY)


class MonitorPages:
    """Pagination of the monitor list.

    The service returns neither a total nor a link: a page with fewer monitors than requested is the last one. One
    of the default size is followed by another, because it may be the answer to a request whose query was dropped.
    Monitors created meanwhile push others onto the next page, so monitors that were already seen are skipped. Monitors
    deleted meanwhile pull others onto a page that was already read, so each page begins with the last monitor of the
    one before; if it does not, an earlier page is read again.
    """

    def __init__(self) -> None:
        self.query: dict[str, int] | None = {"limit": PAGE_SIZE, "offset": 0}
        self._seen: set[str] = set()
        self._farthest = 0
        self._turned_back_at: set[int] = set()

    def add_page(self, page: list[models.Monitor]) -> list[models.Monitor]:
        """Return the page's new monitors, and advance to the next page.

        :raises UnsupportedError: the page repeats the one before.
        """
        if self.query is None:
            return []
        offset = self.query["offset"]
        lacks_some = offset > 0 and (not page or page[0].id not in self._seen)
        # Once for each page, so that the read ends in every case.
        turns_back = lacks_some and offset not in self._turned_back_at
        fresh = [monitor for monitor in page if monitor.id not in self._seen]
        self._seen.update(monitor.id for monitor in fresh)
        if turns_back:
            self._turned_back_at.add(offset)
            self._turn_to(max(offset - PAGE_SIZE + 1, 0))
        elif len(page) < PAGE_SIZE and len(page) != _DEFAULT_PAGE_SIZE:
            self.query = None
        elif not fresh and offset > self._farthest:
            raise repeated_page(LIST_MONITORS, "monitors")
        else:
            self._turn_to(offset + len(page) - 1)
        self._farthest = max(self._farthest, offset)
        return fresh

    def _turn_to(self, offset: int) -> None:
        self.query = {"limit": PAGE_SIZE, "offset": offset}
