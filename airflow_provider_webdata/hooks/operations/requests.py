# SPDX-License-Identifier: Apache-2.0
"""Calls of operations without a separate method."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import unquote

from pydantic import model_validator
from pydantic_core import from_json, to_json

from airflow_provider_webdata.api import prices
from airflow_provider_webdata.api.endpoints import ENDPOINTS, Endpoint
from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.api.models.base import Answer
from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.hooks.calls import Body, Call
from airflow_provider_webdata.hooks.operations.base import Operations

if TYPE_CHECKING:
    from collections.abc import Iterator

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

_PATH = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)+")
_SLASH = re.compile(r"[/\\]")
_SCALARS = (str, int, float, bool)
_SERVICE_SECONDS = 300.0
"""How long an operation of unknown duration may take."""


class _JsonAnswer(Answer):
    """A response of any shape.

    :ivar content: the decoded JSON, unchanged.
    """

    content: Any = None
    credits_used: Any = None

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, body: Any) -> dict[str, Any]:
        known = (
            {name: body.get(name) for name in ("success", "creditsUsed")} if isinstance(body, dict) else {}
        )
        return {"content": body, **known}


class RequestOperations(Operations):
    """Any other operation."""

    async def request(
        self,
        method: Method,
        path: str,
        *,
        json: Body | None = None,
        params: Mapping[str, Any] | None = None,
        billed: bool = True,
    ) -> Any:
        """Call an operation that has no separate method, and return the decoded JSON of the response.

        The call is authorized, and masked and limited like every other call of the hook. A failure raises the error of
        its status, also if the body has `"success": false`. A request that may have reached the service is not
        repeated, except a GET with `billed=False`.

        In a guarded hook, the call counts as one of unknown cost unless the response has `creditsUsed`. The hook
        refuses it if it has `max_credits`, or limits the domains.

        :param method: `GET`, `POST`, `PUT`, `PATCH`, or `DELETE`.
        :param path: path below the connection's base URL, such as `/v2/team/activity`. Quote ids that may contain other
            characters with `urllib.parse.quote(id, safe="")`.
        :param json: JSON object to send as the body; not with `GET`.
        :param params: query parameters: texts, numbers, booleans, and lists of these; None values are omitted.
        :param billed: False if the operation is free: a guarded hook then sends it regardless of `max_credits` and
            `max_calls`.
        :return: the decoded JSON, with wire names; an empty mapping for an empty body.
        :raises InvalidRequestError: an argument is invalid; nothing was sent.
        """
        label = f"{method} {trimmed(str(path), 200)}"
        if problems := [*_problems(method, path, json, params, billed)]:
            raise InvalidRequestError(label, problems)
        endpoint: Endpoint[_JsonAnswer] = Endpoint(
            "request",
            method,
            path,
            "endpoints",
            lambda: _JsonAnswer,
            price=prices.UNDOCUMENTED if billed else None,
            starts_nothing=not billed,
            is_declared=False,
            title=label,
            service_seconds=lambda _: _SERVICE_SECONDS,
        )
        return (await self._execute(Call(endpoint, query=params, extra_body=json))).content


def _problems(method: str, path: str, json: Any, params: Any, billed: bool) -> Iterator[str]:
    if method not in get_args(Method):
        yield f"method: must be one of {', '.join(get_args(Method))} (given: {method!r})"
    if not _is_path(path):
        yield (
            "path: must start with / and have no empty or dotted segment, no host, and no query; pass a query in "
            f"params (given: {trimmed(repr(path), 200)})"
        )
    elif not billed and any(endpoint.matches(method, path) for endpoint in _MAY_BILL):
        yield "billed: this operation may bill credits; omit billed=False"
    if json is not None:
        if method == "GET":
            yield "json: a GET has no body; pass params instead"
        yield from _json_problems(json)
    if params is not None and not isinstance(params, Mapping):
        yield f"params: must be a mapping (given: {type(params).__name__})"
        return
    for name, value in (params or {}).items():
        values = value if isinstance(value, (list, tuple)) else [value]
        if value is not None and not all(isinstance(one, _SCALARS) for one in values):
            yield f"params: {name!r} must be a text, a number, a boolean, or a list of these"


def _is_path(path: Any) -> bool:
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        return False
    # A server may decode a segment, even twice, or drop its parameters before it resolves the path.
    segments = [unquote(segment) for segment in path[1:].split("/")]
    return all(map(str.strip, segments)) and not any(
        "%" in segment or part.partition(";")[0] in {".", ".."}
        for segment in segments
        for part in _SLASH.split(segment)
    )


def _json_problems(json: Any) -> Iterator[str]:
    if not isinstance(json, Mapping):
        yield f"json: must be a mapping (given: {type(json).__name__})"
        return
    try:
        from_json(to_json(json), allow_inf_nan=False)
    except ValueError as error:
        yield f"json: is not valid JSON: {trimmed(str(error), 200)}"


_MAY_BILL = tuple(
    one for one in ENDPOINTS.values() if one.price is not None or one.method in {"PATCH", "PUT"}
)
"""Declared operations that are not free, or whose changes may lead to visits that bill."""
