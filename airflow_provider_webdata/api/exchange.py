# SPDX-License-Identifier: Apache-2.0
"""Builds requests to the service, and interprets responses; the clients transfer the bytes."""

from __future__ import annotations

import json
import re
import socket
import ssl
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, Generic
from urllib.parse import quote, urljoin, urlsplit

import msgspec
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from airflow_provider_webdata import __version__
from airflow_provider_webdata.api.endpoints import Endpoint, ResponseT
from airflow_provider_webdata.api.errors import (
    APIError,
    AuthenticationError,
    CertificateRefusedError,
    CertificateRequiredError,
    ClientError,
    ConflictError,
    EntitlementError,
    IdempotencyKeyUsedError,
    InvalidRequestError,
    InvalidResponseError,
    PageError,
    ResponseTooLargeError,
    ServerError,
    TransportError,
    UndeclaredServerError,
    UnknownHostError,
    UnsupportedError,
    WebDataError,
    error_class,
    flattened,
)
from airflow_provider_webdata.api.http_clients import context_for, http_client
from airflow_provider_webdata.api.models.base import Answer
from airflow_provider_webdata.api.multipart import MultipartBody, Upload
from airflow_provider_webdata.api.odd_parts import OddParts
from airflow_provider_webdata.api.retry import named_wait
from airflow_provider_webdata.api.servers import (
    CODE_NAMES,
    has_no_objects,
    may_be_missing,
    may_refuse_private,
    missing_part,
    missing_route,
    no_route,
    part_in_remark,
    private_target_remedy,
    refuses_key,
    warning_instead,
)
from airflow_provider_webdata.api.validation_issues import issues_text
from airflow_provider_webdata.common.clean_text import one_line, trimmed
from airflow_provider_webdata.common.deadline import Deadline
from airflow_provider_webdata.common.http_library import httpx
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.common.secret_text import without_secrets
from airflow_provider_webdata.common.surrogates import escape_halves, is_utf8

if TYPE_CHECKING:
    from airflow_provider_webdata.api.config import ClientConfig
    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.api.servers import Server
    from airflow_provider_webdata.common.deadline import AsyncDeadline

log = logger(__name__)

_PROBE_SECONDS = 5.0

MARGIN_SECONDS = 15.0
"""Added to the service-side timeout, so that the client receives the service's own timeout error."""

_MAX_BODY_BYTES = 10 * 1024 * 1024
_MAX_ERROR_BYTES = 256 * 1024
_REQUESTED, _DECODED = ("gzip", "deflate"), ("gzip", "deflate", "br", "zstd")
"""The encodings of a body that are requested, and those that httpx decodes. It ignores any other text."""
_SHOWN_CHARACTERS = 200

_HALF = "contains a lone surrogate, which UTF-8 cannot encode"

_EMPTY: tuple[Any, ...] = (None, "", [], {})
_ENDING_HEADERS = frozenset({"deprecation", "sunset"})
_KEY_HEADER = "x-idempotency-key"
_OF_PROXIES = frozenset({400, 403, 404, 405, 421})
"""Client errors that a proxy may report for a moment, for example while the service behind it is replaced."""
_DOCUMENTS = frozenset({"scrape", "parse", "parse_by_reference"})
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

_ENTITLED = {
    "threatProtection": "threatProtection (Threat Protection)",
    "enterprise": "enterprise (zero data retention search)",
    "zeroDataRetention": "zeroDataRetention",
    "ignoreRobotsTxt": "ignoreRobotsTxt",
    "robotsUserAgent": "robotsUserAgent",
}

# Most calls of a client use a few URLs, and parsing one takes as long as validating a search request.
_address = lru_cache(maxsize=64)(httpx.URL)

# Raised before any byte of the request is sent. After other errors, this is unknown.
_NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)


_HANDSHAKE_FAILURE = "ALERT_HANDSHAKE_FAILURE"
_CERTIFICATE_ALERTS = (
    *("ALERT_CERTIFICATE_REQUIRED", "ALERT_BAD_CERTIFICATE", _HANDSHAKE_FAILURE),
    *(
        "ALERT_UNKNOWN_CA",
        "ALERT_CERTIFICATE_EXPIRED",
        "ALERT_CERTIFICATE_REVOKED",
        "ALERT_CERTIFICATE_UNKNOWN",
    ),
    *("ALERT_UNSUPPORTED_CERTIFICATE", "ALERT_ACCESS_DENIED"),
)
"""TLS alerts of servers that require a client certificate, or refuse the one presented, as OpenSSL names them. TLS 1.2
has no alert of its own for a missing one, and TLS 1.3 sends them only after the handshake, in place of a response."""

_NO_CERTIFICATE = (b"No required SSL certificate was sent", b"The SSL certificate error")
"""In nginx's pages for a client without a certificate, or with one that it refuses; it completes the handshake."""

_NO_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}

_reached: set[str] = set()
"""The base URLs that responded to this process."""


class Prepared(msgspec.Struct, Generic[ResponseT], frozen=True):
    """A call that is ready to send.

    :param request: arguments of httpx's `stream`.
    :param wire: the body, or the query of a GET, as JSON values.
    :param multipart: the body of a file upload; it is read again for each attempt.
    """

    endpoint: Endpoint[ResponseT]
    request: dict[str, Any]
    wire: Mapping[str, Any]
    config: ClientConfig
    multipart: MultipartBody | None = None

    def can_be_sent(self) -> bool:
        """Return whether the body can be sent; a file that cannot be rewound can be sent once."""
        if self.endpoint.uses_up_body:
            return False
        return self.multipart is None or self.multipart.upload.can_start

    def blocking(self) -> dict[str, Any]:
        """Return the arguments of a blocking client's `stream`."""
        return {**self.request, "content": self.multipart.chunks()} if self.multipart else self.request

    def asynchronous(self, deadline: AsyncDeadline) -> dict[str, Any]:
        """Return the arguments of an asynchronous client's `stream`. Sending the body extends the deadline."""
        if self.multipart is None:
            deadline.extend_by(len(self.request.get("content", b"")))
            return self.request
        return {**self.request, "content": allowed_for(self.multipart.achunks(), deadline)}

    @property
    def is_repeatable(self) -> bool:
        """Whether the call can be retried safely after a lost response."""
        return self.endpoint.is_repeatable(self.config.server)

    @property
    def seconds(self) -> float:
        """Time limit of an attempt, before extensions for transferred bytes: the connect plus the read timeout."""
        timeout = self.request["timeout"]
        return float(timeout.connect + timeout.read)


async def allowed_for(chunks: AsyncIterator[bytes], deadline: AsyncDeadline) -> AsyncIterator[bytes]:
    """Yield the chunks of a body, and extend the deadline for each."""
    async for chunk in chunks:
        deadline.extend_by(len(chunk))
        yield chunk


def http_options(config: ClientConfig) -> dict[str, Any]:
    """Return the arguments of `httpx.Client` and `httpx.AsyncClient` for a configuration."""
    options: dict[str, Any] = {
        # Names are compared without case, so that none is sent twice.
        "headers": {
            "authorization": f"Bearer {config.api_key}",
            "user-agent": f"airflow-provider-webdata/{__version__}",
            **{name.lower(): value for name, value in config.headers.items()},
            "accept": "application/json",
            "accept-encoding": "gzip, deflate",
        },
        # Report redirects instead of following them: the API key must not be sent to another host.
        "follow_redirects": False,
        **route_options(config),
    }
    if config.max_concurrency is not None:
        options["limits"] = httpx.Limits(
            max_connections=config.max_concurrency, max_keepalive_connections=config.max_concurrency
        )
    return options


def route_options(config: ClientConfig, url: str = "", *, is_service: bool = True) -> dict[str, Any]:
    """Return the part of `http_options` that applies to any request: certificates and the proxy.

    :param url: of the requests; empty: the base URL.
    :param is_service: whether the host is the service's, to which the client certificate is presented.
    """
    certificate = config.certificate if is_service else None
    trust = {"verify": config.verify, "ca_file": config.ca_file, "certificate": certificate}
    options: dict[str, Any] = {"verify": context_for(url or config.base_url, proxy=config.proxy, **trust)}
    if config.proxy:
        options["proxy"] = config.proxy
    return options


def prepare(
    config: ClientConfig,
    endpoint: Endpoint[ResponseT],
    path: Mapping[str, str] | None,
    query: Mapping[str, Any] | None,
    body: RequestModel | None,
    extra_body: Mapping[str, Any] | None,
    upload: Upload | None = None,
    *,
    idempotency_key: str | None = None,
) -> Prepared[ResponseT]:
    """Build the request of a call.

    With a file, the body is multipart form data, and the request model becomes its field `options`, as JSON text.

    :raises InvalidRequestError: a path value is not an identifier, the endpoint does not accept the key, or the kind of
        server refuses a value.
    """
    url = config.base_url + endpoint.path.format_map(
        {name: _segment(endpoint, name, value) for name, value in (path or {}).items()}
    )
    request: dict[str, Any] = {"method": endpoint.method, "url": _address(url)}
    wire: dict[str, Any] = {}
    if endpoint.is_declared and extra_body and extra_body.get("integration") is not None:
        _check_integration(endpoint, extra_body["integration"])
    if body is not None or extra_body is not None:
        wire = {**(_wire(config, endpoint, body) if body is not None else {}), **(extra_body or {})}
    asked = {**(query or {}), **wire} if endpoint.method == "GET" else query or {}
    params = {name: _encodable(endpoint, name, value) for name, value in asked.items() if value is not None}
    if params:
        request["params"] = params
    multipart = None
    if upload is not None:
        multipart = MultipartBody(upload, {"options": _json(endpoint, wire).decode()} if wire else {})
        request["headers"] = multipart.headers
    elif endpoint.method != "GET" and (body is not None or extra_body is not None):
        request["content"] = _json(endpoint, wire)
        request["headers"] = {"content-type": "application/json"}
    if endpoint.key_header == "x-request-id":
        if lack := config.server.lacks.get(endpoint.name):
            raise UnsupportedError(endpoint.label, 501, "not sent", lack=lack)
        if idempotency_key is None and config.server.accepts_keys:
            # Without an id, a retry would be executed and billed again.
            idempotency_key = str(uuid.uuid4())
    if idempotency_key is not None:
        header = _key_header(endpoint, idempotency_key, config.server)
        request.setdefault("headers", {})[header] = idempotency_key
    service = endpoint.service_seconds(wire) + MARGIN_SECONDS if endpoint.service_seconds else 0.0
    request["timeout"] = _timeout(config, service)
    return Prepared(endpoint, request, wire, config, multipart)


def _wire(config: ClientConfig, endpoint: Endpoint[Any], body: RequestModel) -> dict[str, Any]:
    if problems := body.refused_by(config.server):
        raise InvalidRequestError(endpoint.label, problems)
    return body.sent_to(config.server)


def _warn_once(config: ClientConfig, text: str) -> None:
    """Log a warning once per configuration."""
    if text not in config.warned:
        config.warned.add(text)
        log.warning("%s", text)


def prepare_link(config: ClientConfig, endpoint: Endpoint[ResponseT], link: str) -> Prepared[ResponseT]:
    """Build the request for a `next` link, on the connection's own origin.

    :raises InvalidResponseError: the link has no path below `/v2/`.
    """
    url = config.base_url + path_and_query(endpoint, link)
    request = {"method": "GET", "url": url, "timeout": _timeout(config, 0.0)}
    return Prepared(endpoint, request, {}, config)


def path_and_query(endpoint: Endpoint[Any], link: str) -> str:
    """Return the trusted part of a `next` link: its path, starting at `/v2/`, and its query.

    See sandbox/docs/service.md#next-host.

    :param link: the link, or an earlier return value.
    :raises InvalidResponseError: the link has no path below `/v2/`.
    """
    try:
        parts = urlsplit(link)
    except ValueError:
        parts = urlsplit("")
    start = parts.path.find("/v2/")
    if start < 0 or ".." in parts.path.split("/"):
        raise InvalidResponseError(
            endpoint.label, f"the next link {trimmed(link, 200)!r} has no path below /v2/", status=200
        )
    return parts.path[start:] + (f"?{parts.query}" if parts.query else "")


def _timeout(config: ClientConfig, service_seconds: float) -> httpx.Timeout:
    # No pool timeout: with max_concurrency, calls are expected to wait for a free connection.
    return httpx.Timeout(config.timeout, read=max(config.timeout, service_seconds), pool=None)


def _json(endpoint: Endpoint[Any], wire: Mapping[str, Any]) -> bytes:
    try:
        return to_json(wire)
    except ValueError:
        # Only `extra_body` can contain such values; the models reject them.
        problems = filter(None, (_misfit(name, value) for name, value in wire.items()))
        raise InvalidRequestError(endpoint.label, [*problems]) from None


def _check_integration(endpoint: Endpoint[Any], value: Any) -> None:
    from airflow_provider_webdata.api.models.fields import integration

    try:
        integration(value if isinstance(value, str) else "")
    except ValueError as error:
        raise InvalidRequestError(
            endpoint.label, [f"extra_body: integration: {error} (given: {trimmed(repr(value), 120)})"]
        ) from None


def _misfit(name: str, value: Any) -> str | None:
    try:
        to_json({name: value})
    except ValueError as error:
        reason = _HALF if "surrogates" in str(error) else f"is not valid JSON: {trimmed(str(error), 200)}"
        return f"extra_body: the value of {name!r} {reason}"
    return None


def _segment(endpoint: Endpoint[Any], name: str, value: str) -> str:
    # An empty or dotted segment would change the endpoint, for example from "get" to "list".
    text = value.strip() if isinstance(value, str) else ""
    if text in {"", ".", ".."}:
        raise InvalidRequestError(endpoint.label, [f"{name}: must be an identifier (given: {value!r})"])
    return quote(_encodable(endpoint, name, text), safe="")


def _encodable(endpoint: Endpoint[Any], name: str, value: Any) -> Any:
    if isinstance(value, str) and not is_utf8(value):
        raise InvalidRequestError(endpoint.label, [f"{name}: the text {_HALF} (given: {value!r})"])
    return value


def _key_header(endpoint: Endpoint[Any], key: str, server: Server) -> str:
    """Validate an idempotency key or request id, and return its header."""
    header = endpoint.key_header
    if header is None:
        raise InvalidRequestError(
            endpoint.label,
            ["idempotency_key: this operation does not support one; omit it"],
        )
    if not server.accepts_keys:
        # A self-hosted server without a database ends when it receives one.
        name = "request_id" if header == "x-request-id" else "idempotency_key"
        raise InvalidRequestError(
            endpoint.label,
            [f"{name}: only a hosted server stores it. Set server of the connection to 'hosted', or omit it"],
        )
    if header == "x-request-id":
        if not isinstance(key, str) or not _REQUEST_ID.fullmatch(key):
            rule = "must be 1 to 128 letters, digits, '.', '_', ':', and '-'"
            raise InvalidRequestError(endpoint.label, [f"request_id: {rule} (given: {key!r})"])
    # The service treats a key that is not a UUID as already used.
    elif not isinstance(key, str) or not _UUID.fullmatch(key):
        raise InvalidRequestError(endpoint.label, [f"idempotency_key: must be a UUID (given: {key!r})"])
    return header


def _features(wire: Mapping[str, Any]) -> tuple[str, ...]:
    options = wire.get("scrapeOptions")
    if not isinstance(options, Mapping):
        options = {}
    return tuple([label for key, label in _ENTITLED.items() if wire.get(key) or options.get(key)])


@contextmanager
def transport_errors(prepared: Prepared[Any], deadline: Deadline | AsyncDeadline) -> Iterator[None]:
    """Convert httpx errors into `TransportError`, which records whether the request may have been sent."""
    name = prepared.endpoint.label
    try:
        yield
    except httpx.TimeoutException as error:
        seconds = prepared.request["timeout"].read
        if deadline.is_over:
            reason = f"no complete response from {prepared.config.base_url} within {deadline.seconds:.3g} s"
        elif isinstance(error, _NOT_SENT):
            reason = f"no connection to {prepared.config.base_url} within {prepared.config.timeout:g} s"
        elif isinstance(error, httpx.WriteTimeout):
            reason = (
                f"{prepared.config.base_url} accepted no more of the body for {prepared.config.timeout:g} s"
            )
        else:
            reason = f"no response from {prepared.config.base_url} within {seconds:g} s"
        raise TransportError(name, reason, sent=not isinstance(error, _NOT_SENT)) from error
    except httpx.DecodingError as error:
        raise InvalidResponseError(name, "the compressed body cannot be decoded", status=200) from error
    # On an asynchronous connection, anyio lets an alert through.
    except (httpx.TransportError, ssl.SSLError) as error:
        if (alert := _certificate_alert(error)) is not None:
            probably = "probably " if alert.endswith(_HANDSHAKE_FAILURE) else ""
            reason = (
                f"{prepared.config.base_url} ended the TLS handshake ({plain_reason(error)}): it {probably}"
                f"{_demand(prepared.config)}"
            )
            raise CertificateRequiredError(name, reason, sent=False) from error
        what = "cannot reach" if isinstance(error, _NOT_SENT) else "lost the connection to"
        reason = f"{what} {prepared.config.base_url} ({plain_reason(error)})"
        kind = _kind_of(error, prepared.config.base_url)
        raise kind(name, reason, sent=not isinstance(error, _NOT_SENT)) from error


def _demand(config: ClientConfig) -> str:
    """Return what a server does that ends a TLS connection because of the client's certificate."""
    if config.certificate is None:
        return "requires a client certificate"
    return "refuses the connection's client certificate"


def may_have_lost_alert(prepared: Prepared[Any], error: TransportError) -> bool:
    """Return whether a lost connection may have been ended by a TLS alert: the host has never responded.

    An asynchronous connection that cannot send the rest of a request does not read what it received.
    """
    base_url = prepared.config.base_url
    is_lost = error.sent and not isinstance(error.__cause__, httpx.TimeoutException)
    return is_lost and base_url.startswith("https:") and base_url not in _reached


def check_certificate_alert(prepared: Prepared[Any]) -> None:
    """Send a request without the API key, and ignore the response and other failures.

    :raises CertificateRequiredError: the host requires a client certificate.
    """
    config = prepared.config
    try:
        with (
            transport_errors(prepared, Deadline(_PROBE_SECONDS)),
            http_client(**route_options(config), timeout=_PROBE_SECONDS) as client,
            client.stream("GET", config.base_url),
        ):
            pass
    except CertificateRequiredError:
        raise
    except WebDataError:
        pass


def _certificate_alert(error: BaseException) -> str | None:
    """Return OpenSSL's name of the TLS alert of a server that accepts no connection without another certificate."""
    cause: BaseException | None = error
    while cause is not None:
        reason = str(cause.reason) if isinstance(cause, ssl.SSLError) else ""
        if reason.endswith(_CERTIFICATE_ALERTS):
            return reason
        cause = cause.__cause__ or cause.__context__
    return None


def _kind_of(error: Exception, base_url: str) -> type[TransportError]:
    cause: BaseException | None = error
    while isinstance(error, _NOT_SENT) and cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return CertificateRefusedError
        # A name that was resolved before exists: its name server is down.
        if isinstance(cause, socket.gaierror) and cause.errno in _NO_NAME and base_url not in _reached:
            return UnknownHostError
        cause = cause.__cause__ or cause.__context__
    return TransportError


class Reader(Generic[ResponseT]):
    """Collects the bytes of a response, up to a limit, and parses them.

    The httpx response would keep the bytes in a reference cycle until the next garbage collection.

    :param response: the response, with an unread body.
    :raises ResponseTooLargeError: the announced or the actual size exceeds the limit.
    """

    def __init__(self, prepared: Prepared[ResponseT], response: httpx.Response) -> None:
        _reached.add(prepared.config.base_url)
        self._prepared = prepared
        self._endpoint = prepared.endpoint
        self._status = response.status_code
        self._headers = response.headers
        self._links = response.links if "link" in response.headers else {}
        # getvalue() returns the bytes without a copy, and they are parsed without one.
        self._buffer = BytesIO()
        self._odd = OddParts()
        self._is_cut = False
        self._limit = prepared.config.max_response_bytes
        if self._status >= 300:
            self._limit = min(self._limit, _MAX_ERROR_BYTES)
        elif (announced := self._headers.get("content-length", "")).isdecimal():
            self._check_size(int(announced))
        # Of a body that is compressed twice, a few bytes could fill the memory.
        encoding = self._headers.get("content-encoding", "")
        encodings = [name for name in map(str.strip, encoding.lower().split(",")) if name in _DECODED]
        if len(encodings) > 1 or not {*encodings} <= {*_REQUESTED}:
            if self._status < 300:
                raise self._unusable(f"its Content-Encoding is {encoding!r}, which was not requested")
            # The status of an error is enough.
            self._headers["content-encoding"] = "identity"

    def _check_size(self, size: int) -> None:
        if size > self._limit and self._status < 300:
            raise ResponseTooLargeError(
                self._endpoint.label,
                f"it is larger than {self._limit} bytes; request less, or raise the connection's limit",
                status=self._status,
            )

    def feed(self, chunk: bytes) -> bool:
        """Add decompressed bytes of the body, and return whether to continue reading.

        The body of an error is truncated at the limit.
        """
        room = self._limit - self._buffer.tell()
        self._check_size(self._limit - room + len(chunk))
        self._is_cut = len(chunk) > room
        self._buffer.write(chunk[:room] if self._is_cut else chunk)
        return not self._is_cut

    def finish(self) -> ResponseT:
        """Return the parsed response, or raise the error that it reports.

        :raises APIError: the service reports a failure.
        :raises InvalidResponseError: the body does not match the service's documentation.
        """
        if self._headers.keys() & _ENDING_HEADERS:
            _warn_once(self._prepared.config, self._deprecation())
        if self._status == HTTPStatus.BAD_REQUEST and any(
            text in self._buffer.getvalue() for text in _NO_CERTIFICATE
        ):
            config = self._prepared.config
            reason = f"{config.base_url} refused the TLS connection (HTTP 400): it {_demand(config)}"
            raise CertificateRequiredError(self._endpoint.label, reason, sent=False)
        if self._status >= 400:
            raise self._api_error(self._error_body())
        if self._status >= 300:
            raise self._unusable(self._redirect())
        try:
            model = self._parsed()
        except ValidationError as error:
            # A failure that is reported with HTTP 200 may not match the response model.
            body = self._error_body()
            if body.get("success") is False:
                raise self._api_error(body) from None
            raise self._unusable(self._explain(error)) from None
        if getattr(model, "success", None) is False and not self._endpoint.judged_by_status:
            raise self._api_error(self._error_body())
        if self._endpoint.name in _DOCUMENTS and not self._prepared.config.server.bills:
            self._refuse_without_formats(model)
        if text := str(self._odd):
            _warn_once(
                self._prepared.config,
                f"{self._endpoint.label}: the response has an undocumented form: {text}",
            )
        if self._odd.skipped and isinstance(model, Answer):
            model._skipped = self._odd.skipped.total()
        return model

    def _refuse_without_formats(self, model: Any) -> None:
        """Raise if the server returned a warning that it lacks a service instead of all requested formats."""
        if warning := warning_instead(self._prepared.config.server, model.data.to_wire()):
            text = self._line(str(warning))
            if lack := part_in_remark(text, self._prepared.wire):
                raise UnsupportedError(self._endpoint.label, self._status, text, lack=lack)

    def _deprecation(self) -> str:
        """Return a warning from `Deprecation`, `Sunset`, and `Link`. See sandbox/docs/service.md#deprecation."""
        since, until = (self._line(_date(self._headers.get(name, ""))) for name in ("deprecation", "sunset"))
        text = f"{self._endpoint.label}: the service reports that this operation is deprecated"
        text += f" since {since}" if since else ""
        text += f". It ends on {until}" if until else ""
        links = [
            f"{relation}: {self._line(str(self._links[relation].get('url', '')))}"
            for relation in ("successor-version", "deprecation", "sunset")
            if relation in self._links
        ]
        return f"{text}. {'; '.join(links)}" if links else text

    def _parsed(self) -> ResponseT:
        response, body = self._endpoint.response(), self._buffer.getvalue() or b"{}"
        if self._endpoint.answers_text:
            return response.model_validate({"text": body.decode(errors="replace")})
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            # For non-ASCII text, pydantic's own parser is half as fast.
            return response.model_validate(msgspec.json.decode(body), context=self._odd)
        # Neither half an emoji nor a long number must invalidate a billed response. msgspec also rejects numbers that
        # pydantic accepts. See sandbox/docs/service.md#half-characters, #long-numbers.
        readable = _with_long_numbers_as_text(_readable(body))
        return response.model_validate_json(readable, context=self._odd)

    def _unusable(self, reason: str) -> InvalidResponseError:
        return InvalidResponseError(self._endpoint.label, reason, status=self._status)

    def _explain(self, error: ValidationError) -> str:
        if not (beginning := self._beginning()):
            return "the body is empty"
        first = error.errors(include_input=False, include_url=False)[0]
        if first["type"] != "json_invalid":
            place = self._line(".".join(str(part) for part in first["loc"])) or "the body"
            return f"{place}: {first['msg']} (error 1 of {error.error_count()})"
        body = _readable(self._buffer.getvalue())
        if body[:64].lstrip()[:1] in (b"{", b"["):
            return f"its JSON is invalid or truncated after {len(body)} bytes"
        return (
            f"it is {self._kind()}, not JSON; check that the connection's host is the service. "
            f"It starts with: {beginning}"
        )

    def _redirect(self) -> str:
        location = self._headers.get("location", "")
        here = str(self._prepared.request["url"])
        try:
            origin, target = _origin(here), urljoin(here, location)
            place, path = _origin(target), urlsplit(target).path
        except ValueError:
            location = ""
        if not location:
            return "it redirects without a valid location; check the connection's host"
        if place == origin:
            return f"it redirects to {self._line(path)} on the same host; check the path in the connection's host"
        return f"it redirects to {self._line(place)}; set the connection's host to the service's own address"

    def _kind(self) -> str:
        return self._line(self._headers.get("content-type", "text without a content type").partition(";")[0])

    def _beginning(self) -> str:
        body = _readable(self._buffer.getvalue()[:_MAX_ERROR_BYTES])
        return self._line(body.decode(errors="replace"))

    def _line(self, text: str, limit: int = _SHOWN_CHARACTERS) -> str:
        # In this order: joining lines may form a secret, and trimming may split one.
        return trimmed(self._scrubbed(one_line(text)), limit)

    def _error_body(self) -> dict[str, Any]:
        body = _readable(self._buffer.getvalue())
        try:
            if self._is_cut:
                found = from_json(body.decode(errors="ignore"), allow_partial="trailing-strings")
            else:
                found = from_json(body)
        except ValueError:
            return {}
        return flattened(self._scrubbed(found)) if isinstance(found, dict) else {}

    def _scrubbed(self, value: Any) -> Any:
        """Remove the API key and the connection's headers, which the service may echo."""
        config = self._prepared.config
        return without_secrets(value, (config.api_key, *config.headers.values()))

    def _api_error(self, body: dict[str, Any]) -> APIError:
        code = body.get("code")
        code = self._line(str(code)) if isinstance(code, (str, int)) and not isinstance(code, bool) else None
        message = self._message(body)
        details = body.get("details")
        listed = [details] if isinstance(details, str) else details
        if isinstance(listed, list) and (issues := self._line(issues_text(listed, message), 1000)):
            message = trimmed(f"{message} ({issues})", 1000)
        wait = named_wait(self._headers, message, body)
        cls = error_class(self._status, code, details, names_wait=wait is not None)
        server, name = self._prepared.config.server, self._endpoint.name
        lack = None
        text = message if body else self._beginning()
        # Codes are an open set: one that is not only the status says what is missing.
        names_object = code not in (None, "not_found") or (
            self._endpoint.names_object(self._prepared.wire) and not has_no_objects(server, name, text)
        )
        if report := no_route(self._status, text, is_json=bool(body), names_object=names_object):
            lack, message = missing_route(name), report
        # Without a JSON object, the answer is from a proxy.
        elif wait is None and body:
            lack = missing_part(server, name, self._status, code, message, self._prepared.wire)
        size = len(self._prepared.request.get("content", b""))
        if self._status == HTTPStatus.INTERNAL_SERVER_ERROR and size > _MAX_BODY_BYTES:
            # See sandbox/docs/service.md#request-size.
            cls = ClientError
            message = f"{message.removesuffix('.')}. The body has more than 10 MB ({size} bytes)"
        if cls is ConflictError and _KEY_HEADER in self._prepared.request.get("headers", ()):
            cls = IdempotencyKeyUsedError
        extra: dict[str, Any] = {}
        if cls is EntitlementError and body and refuses_key(message):
            cls = AuthenticationError
        if cls is EntitlementError:
            extra["features"] = _features(self._prepared.wire)
        if lack is not None:
            cls, extra = UnsupportedError, {"lack": lack}
        elif may_be_missing(server, name, self._status):
            cls = UndeclaredServerError
        elif not body and self._prepared.is_repeatable and self._status in _OF_PROXIES:
            # From a proxy, which knows neither whether the object exists nor whether the call is allowed.
            cls, extra = ServerError, {}
        error = cls(
            self._endpoint.label,
            self._status,
            message,
            code=code,
            details=details,
            retry_after=wait,
            body={key: body[key] for key in body.keys() - {"error", "code", "details"}},
            **extra,
        )
        if isinstance(error, PageError) and may_refuse_private(code):
            error.likely_remedy = private_target_remedy(server, [self._prepared.wire.get("url")])
        return error

    def _message(self, body: dict[str, Any]) -> str:
        given = (body.get(key) for key in ("error", "message", "error_description", "detail"))
        texts = [issues_text(text) if isinstance(text, list) else text for text in given]
        lines = [self._line(text, 500) for text in texts if isinstance(text, str)]
        if reason := ": ".join(dict.fromkeys(filter(None, lines))):
            return reason
        if body:
            return self._unknown_form(body)
        if not (beginning := self._beginning()):
            return "the error body is empty, probably from a proxy in front of the service"
        size = f" of more than {self._limit} bytes" if self._is_cut else ""
        if beginning[0] in "{[":
            return f"the error body{size} is not a valid JSON object; it starts with: {beginning}"
        return (
            f"the error body is not JSON but {self._kind()}{size}, probably from a proxy in front of the service; "
            f"it starts with: {beginning}"
        )

    def _unknown_form(self, body: dict[str, Any]) -> str:
        read = {
            "success",
            *CODE_NAMES,
            *(["details"] if isinstance(body.get("details"), (list, str)) else []),
        }
        rest = {key: value for key, value in body.items() if key not in read and value not in _EMPTY}
        if not rest:
            return "the service gave no reason"
        text = self._line(json.dumps(rest, ensure_ascii=False), 500)
        return f"the error body has an unknown form; it starts with: {text}"


def _date(text: str) -> str:
    """Format the date of a header; return other text unchanged, and an empty string for `true`."""
    with suppress(ValueError, TypeError, OverflowError, OSError):
        if text.startswith("@"):
            return f"{datetime.fromtimestamp(int(text[1:]), timezone.utc):%Y-%m-%d %H:%M} UTC"
        return f"{parsedate_to_datetime(text).astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC"
    return "" if text.strip().lower() in ("true", "?1") else text


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


# Strings, which remain unchanged, and numbers of more digits than Python converts (4,300 by default).
_STRINGS_AND_LONG_NUMBERS = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|-?[0-9][0-9.eE+-]{4000,}', re.DOTALL)


def _with_long_numbers_as_text(body: bytes) -> bytes:
    def as_text(found: re.Match[bytes]) -> bytes:
        return found[0] if found[0].startswith(b'"') else b'"%s"' % found[0]

    return _STRINGS_AND_LONG_NUMBERS.sub(as_text, body)


def _readable(body: bytes) -> bytes:
    """Return JSON text that pydantic accepts: UTF-8, without a byte order mark or lone surrogates."""
    encoding = json.detect_encoding(body)
    if encoding != "utf-8":
        body = body.decode(encoding, "replace").encode()
    return escape_halves(body)
