# SPDX-License-Identifier: Apache-2.0
"""Streaming download of media files with type and size checks. Their hosts receive no data of the service."""

from __future__ import annotations

import base64
import binascii
import random
import threading
import time
import zlib
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes

from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.deadline import Deadline
from airflow_provider_webdata.common.hosts import HostRefusedError, addresses_for, normal_host
from airflow_provider_webdata.common.http_clients import goes_through_proxy, http_client
from airflow_provider_webdata.common.http_library import httpx
from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.common.tls import tls_context
from airflow_provider_webdata.results.files.storage import WholeFile
from airflow_provider_webdata.results.media.kinds import FIRST_BYTES, MediaKind, sniffed, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from airflow.sdk import ObjectStoragePath

    from airflow_provider_webdata.common.tls import ClientCertificate

CONCURRENCY = 4
"""Maximum number of files fetched concurrently."""

MAX_REDIRECTS = 5
_GONE = frozenset({403, 404, 410})
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_COMPRESSIONS = frozenset({"gzip", "x-gzip", "deflate", "compress", "br", "zstd"})
_PART_BYTES = 2**18


class MediaError(CodedError):
    """A media file could not be kept. Other files are not affected."""

    help_code = "WD-015"


class _TransientError(MediaError):
    """The same request may succeed shortly."""


@dataclass(frozen=True)
class MediaSettings:
    """Settings for fetching media.

    :param max_bytes: maximum size of a file.
    :param timeout: timeout in seconds for connecting and for each read.
    :param max_seconds: maximum seconds for one file in total.
    :param attempts: maximum requests for a file if its host is unreachable or overloaded.
    :param verify: whether TLS certificates are verified.
    :param ca_file: path of a CA bundle that replaces the default one.
    :param proxy: URL of an HTTP proxy.
    :param hosts: names or addresses of non-public hosts that are allowed; see `hosts.normal_host`.
    :param certificate: a client certificate, which is presented to `own_host` only.
    :param own_host: name or address of the service's host.
    """

    max_bytes: int = 500 * 2**20
    timeout: float = 30.0
    max_seconds: float = 1800.0
    attempts: int = 3
    verify: bool = True
    ca_file: str | None = None
    proxy: str | None = None
    hosts: frozenset[str] = frozenset()
    certificate: ClientCertificate | None = None
    own_host: str | None = None


@dataclass(frozen=True)
class StoredMedia:
    """A kept file, with its size in bytes."""

    url: str
    content_type: str
    size: int


class _Clients(NamedTuple):
    """The clients of hosts: through a proxy, and to an address."""

    proxied: httpx.Client
    direct: httpx.Client

    @classmethod
    def of(cls, options: Mapping[str, Any], proxy: str | None) -> _Clients:
        return cls(http_client(**options, proxy=proxy), http_client(**options, is_direct=True))


class MediaFetcher:
    """Fetches media files over separate connections, without the service's key, cookies, and headers."""

    def __init__(self, settings: MediaSettings) -> None:
        self._settings = settings
        self._stopped = threading.Event()
        options: dict[str, Any] = {
            "verify": tls_context(verify=settings.verify, ca_file=settings.ca_file),
            "timeout": settings.timeout,
            "follow_redirects": False,
            # Without keep-alive, a connection verified for one host serves no other with the same IP.
            "limits": httpx.Limits(max_connections=CONCURRENCY, max_keepalive_connections=0),
            # Media is compressed already.
            "headers": {
                "User-Agent": "airflow-provider-webdata",
                "Accept": "*/*",
                "Accept-Encoding": "identity",
            },
        }
        self._clients = _Clients.of(options, settings.proxy)
        self._own_clients = self._clients
        if settings.certificate is not None:
            options["verify"] = tls_context(
                verify=settings.verify, ca_file=settings.ca_file, certificate=settings.certificate
            )
            self._own_clients = _Clients.of(options, settings.proxy)

    def stop(self) -> None:
        """Stop the downloads in other threads at their next chunk."""
        self._stopped.set()

    def close(self) -> None:
        """Close the connections."""
        for client in (*self._clients, *self._own_clients):
            client.close()

    def keep(self, link: str, kind: MediaKind, path_for: Callable[[str], ObjectStoragePath]) -> StoredMedia:
        """Fetch a link, or decode its embedded content, and store the file.

        :param link: an http(s) URL, a `data:` URL, or base64 text.
        :param path_for: returns the file's path for its content type.
        :raises MediaError: the file cannot be kept; the message has the reason.
        """
        if not link.startswith(("http://", "https://")):
            declared, content = decoded(link)
            return self._store(declared, iter([content]), kind, path_for)
        end = time.monotonic() + self._settings.max_seconds
        try:
            with Deadline(self._settings.max_seconds):
                return self._fetch_with_retries(link, kind, path_for, end)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            if time.monotonic() >= end:
                raise self._too_slow() from error
            raise MediaError(
                f"could not be fetched: {type(error).__name__}: {plain_reason(error)}"
            ) from error

    def _fetch_with_retries(
        self, link: str, kind: MediaKind, path_for: Callable[[str], ObjectStoragePath], end: float
    ) -> StoredMedia:
        attempt = 1
        while True:
            try:
                return self._fetch(link, kind, path_for, end)
            except (_TransientError, httpx.TransportError):
                if attempt >= self._settings.attempts or time.monotonic() >= end:
                    raise
            time.sleep(random.uniform(0, min(5.0, 0.2 * 2**attempt)))  # noqa: S311
            attempt += 1

    def _fetch(
        self, link: str, kind: MediaKind, path_for: Callable[[str], ObjectStoragePath], end: float
    ) -> StoredMedia:
        with self._answer(link) as response:
            announced = response.headers.get("content-length", "")
            if announced.isdigit() and int(announced) > self._settings.max_bytes:
                raise MediaError(f"has {announced} bytes, more than the {self._settings.max_bytes} allowed")
            chunks = self._in_time(_content_of(response), end)
            return self._store(response.headers.get("content-type", ""), chunks, kind, path_for)

    @contextmanager
    def _answer(self, link: str) -> Iterator[httpx.Response]:
        url = httpx.URL(link)
        for _ in range(MAX_REDIRECTS + 1):
            with closing(self._asked(url)) as response:
                # Do not send a host's cookies to another.
                for client in (*self._clients, *self._own_clients):
                    client.cookies.clear()
                if not response.has_redirect_location:
                    _check_status(response)
                    yield response
                    return
                onward = url.join(response.headers["location"])
            if onward.scheme not in {"http", "https"} or (url.scheme == "https" and onward.scheme == "http"):
                raise MediaError(f"redirects from {url.scheme} to {onward.scheme}, which is not followed")
            url = onward
        raise MediaError(f"redirects more than {MAX_REDIRECTS} times")

    def _asked(self, url: httpx.URL) -> httpx.Response:
        """Request a file from an allowed address of the host."""
        is_proxied = goes_through_proxy(url, self._settings.proxy)
        try:
            addresses = addresses_for(url, self._settings.hosts)
        except HostRefusedError as error:
            raise MediaError(
                f"is not fetched: {error}. To allow the host, add it to the connection's media_hosts"
            ) from None
        except OSError as error:
            # Only the proxy may be able to resolve the name, and then decides.
            if not is_proxied:
                raise _TransientError(f"could not be fetched: {url.host}: {plain_reason(error)}") from error
            addresses = []
        is_own = self._settings.own_host is not None and normal_host(url.host) == self._settings.own_host
        clients = self._own_clients if is_own else self._clients
        if is_proxied:
            return clients.proxied.send(clients.proxied.build_request("GET", url), stream=True)
        for address in addresses[:-1]:
            with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return clients.direct.send(_request(clients.direct, url, address), stream=True)
        return clients.direct.send(_request(clients.direct, url, addresses[-1]), stream=True)

    def _in_time(self, chunks: Iterator[bytes], end: float) -> Iterator[bytes]:
        for chunk in chunks:
            if self._stopped.is_set():
                raise MediaError("was not fetched because the task is ending")
            if time.monotonic() > end:
                raise self._too_slow()
            yield chunk

    def _too_slow(self) -> MediaError:
        return MediaError(f"took longer than {self._settings.max_seconds:g} seconds")

    def _store(
        self,
        declared: str,
        chunks: Iterator[bytes],
        kind: MediaKind,
        path_for: Callable[[str], ObjectStoragePath],
    ) -> StoredMedia:
        first = b""
        for chunk in chunks:
            first += chunk
            if len(first) >= FIRST_BYTES:
                break
        if not first:
            raise MediaError("is empty")
        content_type = type_of(declared, first, kind)
        if content_type is None:
            begins = sniffed(first) or "an unknown type"
            raise MediaError(
                f"is not of kind {kind}: its Content-Type is {declared or 'missing'!r}, and its first bytes "
                f"show {begins}"
            )
        path = path_for(content_type)
        with WholeFile(path) as file:
            for chunk in chain([first], chunks):
                if file.bytes + len(chunk) > self._settings.max_bytes:
                    raise MediaError(f"has more than the {self._settings.max_bytes} bytes allowed")
                file.write(chunk)
        return StoredMedia(str(path), content_type, file.bytes)


def _check_status(response: httpx.Response) -> None:
    status = response.status_code
    if status in _GONE:
        raise MediaError(f"is gone (HTTP {status}): the link has expired, or never worked")
    if status in _TRANSIENT:
        raise _TransientError(f"could not be fetched: HTTP {status}")
    if status != 200:
        raise MediaError(f"could not be fetched: HTTP {status}")


def _content_of(response: httpx.Response) -> Iterator[bytes]:
    """Yield the body in parts of bounded size, each upon receipt.

    httpx would decompress all that it has read at once, and yield nothing for input without output.
    """
    encoding = response.headers.get("content-encoding", "")
    # Storages return any text that the uploader set, such as `utf-8`.
    compressions = [name for name in map(str.strip, encoding.lower().split(",")) if name in _COMPRESSIONS]
    if not compressions:
        yield from response.iter_raw()
        return
    if compressions not in (["gzip"], ["x-gzip"]):
        raise MediaError(f"has the Content-Encoding {encoding!r}, which is unsupported")
    unpacker = zlib.decompressobj(31)
    try:
        for raw in response.iter_raw():
            part = unpacker.decompress(raw, _PART_BYTES)
            yield part
            while unpacker.unconsumed_tail or len(part) == _PART_BYTES:
                part = unpacker.decompress(unpacker.unconsumed_tail, _PART_BYTES)
                yield part
            if unpacker.eof:
                return
    except zlib.error as error:
        raise MediaError(f"is not compressed as its Content-Encoding says: {error}") from error
    raise MediaError("ended before its compressed content was complete")


def decoded(link: str) -> tuple[str, bytes]:
    """Return the content type and the bytes of a `data:` URL or base64 text.

    :raises MediaError: the link is neither.
    """
    if link.startswith("data:"):
        head, comma, body = link[5:].partition(",")
        if not comma:
            raise MediaError("is a data: URL without content")
        if not head.endswith(";base64"):
            return head, unquote_to_bytes(body)
        content_type, text = head.removesuffix(";base64"), unquote_to_bytes(body)
    else:
        content_type, text = "", link.encode("ascii", "replace")
    try:
        return content_type, base64.b64decode(b"".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise MediaError("is neither an http(s) or data: URL nor base64 text") from error


def _request(client: httpx.Client, url: httpx.URL, address: str) -> httpx.Request:
    # Send the host name, and verify the certificate for it.
    return client.build_request(
        "GET",
        url.copy_with(host=address),
        headers={"Host": url.netloc.decode("ascii")},
        extensions={"sni_hostname": url.raw_host.decode("ascii")},
    )
