# SPDX-License-Identifier: Apache-2.0
"""Requests to the inbox and parsing of its responses, without I/O."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from typing_extensions import TypedDict

from airflow_provider_webdata import __version__
from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.api.http_clients import context_for, tls_context
from airflow_provider_webdata.api.retry import named_wait
from airflow_provider_webdata.common.http_library import httpx
from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.inbox import tokens
from airflow_provider_webdata.inbox.wire import DELIVERIES_PATH, LISTS

from .delivery import Delivery, DeliveryPage
from .errors import (
    CursorAheadError,
    DeliveryGoneError,
    InboxAnswerError,
    InboxMissingError,
    InboxRefusedError,
    InboxUnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

END = "end"
"""The cursor after the last delivery in the inbox."""

CHECK_SECONDS = 5.0
"""Maximum seconds for which a task waits for the inbox before it starts."""

_TIMEOUT = 10.0
_MARGIN = 15.0


_PAGE = msgspec.json.Decoder(DeliveryPage)
_DELIVERY = msgspec.json.Decoder(Delivery)


@dataclass(frozen=True)
class InboxAddress:
    """Address and credentials of an inbox.

    :param url: address of the server, without the inbox's path.
    :param secret: the connection's signing secret, or its webhook secret if it has none.
    :param ca_files: paths of additional trusted CA bundles.
    """

    url: str
    conn_id: str
    secret: str = field(repr=False)
    verify: bool = True
    ca_files: tuple[str, ...] = ()


def client_options(address: InboxAddress) -> dict[str, Any]:
    """Return the arguments of `httpx.Client` and `httpx.AsyncClient` for an inbox.

    :raises ConfigurationError: a CA bundle cannot be read.
    """
    verify: Any = address.verify
    if verify and address.ca_files and address.url.startswith("https:"):
        # Raises for a variable of the environment that cannot be used, which OpenSSL would ignore.
        tls_context()
        verify = ssl.create_default_context()
        for path in address.ca_files:
            _trust(verify, path, address.conn_id)
    elif verify:
        verify = context_for(address.url)
    return {
        "headers": {
            "accept": "application/json",
            "user-agent": f"airflow-provider-webdata/{__version__}",
        },
        "follow_redirects": False,
        "verify": verify,
    }


def _trust(context: ssl.SSLContext, path: str, conn_id: str) -> None:
    try:
        context.load_verify_locations(path)
    except OSError as error:
        raise ConfigurationError(
            f"connection {conn_id!r}: the certificates in {path!r} cannot be read ({plain_reason(error)}); correct "
            "[api] ssl_cert or the connection's CA bundle on this machine"
        ) from error


class Query(TypedDict, total=False):
    """A query for deliveries.

    A delivery matches if it has any of the given keys, job ids, or monitor ids, and any of the given events (with or
    without the operation's prefix).
    """

    keys: Iterable[str]
    """Correlation keys."""
    job_ids: Iterable[str]
    """Ids of jobs, or for monitors of checks."""
    monitor_ids: Iterable[str]
    events: Iterable[str]
    received_after: str | None
    """Only deliveries received at or after this time, ISO 8601."""
    limit: int | None
    """Maximum number of deliveries, 1 to 1000; the inbox's default is 200."""


def feed_request(address: InboxAddress, after: str | None, wait: float, query: Query) -> dict[str, Any]:
    """Return the arguments of httpx's `request` for one page of the feed."""
    single, lists = _split(query)
    single |= {"after": after, "wait": f"{wait:g}" if wait > 0 else None}
    params = {name: value for name, value in single.items() if value is not None}
    params |= {name: [value for value in lists[field] if value] for name, field in LISTS.items()}
    return {
        "method": "GET",
        "url": _url(address),
        "params": params,
        "headers": _authorization(address),
        "timeout": httpx.Timeout(_TIMEOUT, read=wait + _MARGIN),
    }


def check_request(address: InboxAddress) -> dict[str, Any]:
    """Return the arguments of httpx's `request` for the end of the feed."""
    return {**feed_request(address, END, 0.0, {}), "timeout": CHECK_SECONDS}


def search_request(address: InboxAddress, after: str | None, query: Query) -> dict[str, Any]:
    """Return the arguments of httpx's `request` for a search."""
    single, lists = _split(query)
    body = {"received_after": None, "after": after, **single, **lists}
    return {
        "method": "POST",
        "url": f"{_url(address)}/search",
        "content": msgspec.json.encode(body),
        "headers": {**_authorization(address), "content-type": "application/json"},
        "timeout": httpx.Timeout(_TIMEOUT, read=_MARGIN),
    }


def fetch_request(address: InboxAddress, delivery_id: int) -> dict[str, Any]:
    """Return the arguments of httpx's `request` for one delivery with its body."""
    return {
        "method": "GET",
        "url": f"{_url(address)}/{delivery_id:d}",
        "headers": _authorization(address),
        "timeout": httpx.Timeout(_TIMEOUT, read=60.0),
    }


def _split(query: Query) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Split a query into single-value and list parameters."""
    single: dict[str, Any] = {**query}
    return single, {field: list(single.pop(field, ())) for field in LISTS.values()}


NO_RESPONSE = (httpx.HTTPError, ssl.SSLError, httpx.InvalidURL, UnicodeError)
"""Errors of a request without a response; the last two are those of an address that is no URL. An asynchronous client
raises a TLS alert unchanged."""


def unreachable(address: InboxAddress, error: Exception) -> InboxUnreachableError:
    """Return the error for a missing response."""
    return InboxUnreachableError(f"the inbox at {address.url} does not respond ({plain_reason(error)})")


def page_of(address: InboxAddress, response: httpx.Response) -> DeliveryPage:
    """Parse the page in a response.

    :raises InboxError: the response has no page.
    """
    _check(address, response)
    page: DeliveryPage = _decoded(address, response, _PAGE)
    return page


def delivery_of(address: InboxAddress, response: httpx.Response, delivery_id: int) -> Delivery:
    """Parse the delivery in a response.

    :raises InboxError: the response has no delivery.
    """
    if response.status_code == 404 and "error" in _body(response):
        raise DeliveryGoneError(
            f"connection {address.conn_id!r}: the inbox at {address.url} has no delivery {delivery_id}; "
            "it may have been pruned ([webdata] inbox_retention_days)"
        )
    _check(address, response)
    delivery: Delivery = _decoded(address, response, _DELIVERY)
    return delivery


def _url(address: InboxAddress) -> str:
    return f"{address.url}{DELIVERIES_PATH}/{quote(address.conn_id, safe='')}"


def _authorization(address: InboxAddress) -> dict[str, str]:
    return {"authorization": f"Bearer {tokens.issue(address.secret, address.conn_id)}"}


def _decoded(address: InboxAddress, response: httpx.Response, decoder: msgspec.json.Decoder[Any]) -> Any:
    try:
        return decoder.decode(response.content)
    except msgspec.MsgspecError as error:
        kind = response.headers.get("content-type", "no content type").partition(";")[0]
        if "json" not in kind:
            raise _missing(address, f"the server responded with {kind}") from None
        raise InboxAnswerError(
            f"the response of the inbox at {address.url} cannot be parsed: {error}"
        ) from None


def _check(address: InboxAddress, response: httpx.Response) -> None:
    status = response.status_code
    if status == 200:
        return
    body = _body(response)
    reason = body.get("error")
    words = f"HTTP {status}" + (f": {reason}" if isinstance(reason, str) else "")
    if status == 401:
        raise InboxRefusedError(
            f"the inbox at {address.url} rejects the token for connection {address.conn_id!r} ({words}); the API "
            "server must read the same connection with the same signing_secret (or webhook_secret), of which it "
            "notices a change after up to 30 seconds, and the clocks of both machines must agree"
        )
    if status == 410 and isinstance(body.get("cursor"), str):
        raise CursorAheadError(
            f"the inbox at {address.url} was reset: the cursor is beyond its end", cursor=body["cursor"]
        )
    if status >= 500 or status in {408, 429}:
        raise InboxUnreachableError(
            f"the inbox at {address.url} is unavailable ({words})",
            retry_after=named_wait(response.headers, "", {}),
        )
    if status == 404 or 300 <= status < 400:
        raise _missing(address, words)
    raise InboxAnswerError(f"the inbox at {address.url} rejects a request ({words})")


def _missing(address: InboxAddress, words: str) -> InboxMissingError:
    return InboxMissingError(
        f"{address.url} has no inbox ({words}); set [webdata] inbox = True on the API server, run `airflow db "
        "migrate`, and restart it, or set [webdata] inbox_url or the connection's inbox_url to the inbox's address"
    )


def _body(response: httpx.Response) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(response.content)
    except msgspec.MsgspecError:
        return {}
    return body if isinstance(body, dict) else {}
