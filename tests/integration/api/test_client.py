# SPDX-License-Identifier: Apache-2.0
"""Requests that the client sends, and good answers, over real sockets."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import ipaddress
import json
import socket
import ssl
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from airflow_provider_webdata.api import endpoints, errors, exchange, models, pools
from airflow_provider_webdata.api.client import AsyncWebDataClient, ClientConfig, WebDataClient
from tests.support.fault_server import API_KEY, Caller, answer

OK = answer(body='{"success": true, "data": {}}')
NO_MONITORS = answer(body='{"data": []}')


@pytest.mark.rule("base-address", "authentication", "request-body")
async def test_what_is_sent(caller: Caller, serve: Any) -> None:
    server = serve(OK)
    caller.options["headers"] = {"X-Team": "data"}
    await caller.call(
        f"{server.url}/v2",
        endpoints.SEARCH,
        body=models.SearchRequest(query="naïve", limit=5),
        extra_body={"limit": 7, "newField": {"a": None}},
    )
    (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/v2/search")
    assert json.loads(request.body) == {"query": "naïve", "limit": 7, "newField": {"a": None}}
    assert request.headers["content-type"] == "application/json"
    assert request.headers["authorization"] == f"Bearer {API_KEY}"
    assert request.headers["x-team"] == "data"
    assert request.headers["user-agent"].startswith("airflow-provider-webdata/")


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_tracing_records_each_call(
    caller: Caller, serve: Any, monkeypatch: pytest.MonkeyPatch, is_proxied: bool
) -> None:
    """`HTTPXClientInstrumentor` of OpenTelemetry wraps these two methods, and no transport that replaces them."""
    traced: list[str] = []

    def wrap(transport: Any, method: str) -> None:
        original = getattr(transport, method)

        def recorded(self: Any, request: httpx.Request) -> Any:
            traced.append(str(request.url))
            return original(self, request)

        monkeypatch.setattr(transport, method, recorded)

    wrap(httpx.HTTPTransport, "handle_request")
    wrap(httpx.AsyncHTTPTransport, "handle_async_request")
    server = serve(OK)
    if is_proxied:
        caller.options["proxy"] = server.url
    await caller.call("http://service.example" if is_proxied else server.url, endpoints.CREDIT_USAGE)
    assert len(traced) == len(server.requests) == 1


async def test_a_header_of_the_connection_is_sent_once(caller: Caller, serve: Any) -> None:
    """Responses remain readable, and no header is sent twice."""
    server = serve(OK)
    given = {
        "User-Agent": "gateway",
        "Accept": "x",
        "Accept-Encoding": "br",
    }
    caller.options["headers"] = given
    await caller.call(server.url, endpoints.SEARCH, body=models.SearchRequest(query="q"))
    (request,) = server.requests
    assert {name: request.headers[name.lower()] for name in given} == {
        "User-Agent": "gateway",
        "Accept": "application/json",
        "Accept-Encoding": "gzip, deflate",
    }
    config = ClientConfig(base_url=server.url, api_key=API_KEY, headers=given)
    assert len(exchange.http_options(config)["headers"]) == len(given) + 1


async def test_query_parameters_omit_what_is_not_given(serve: Any) -> None:
    server = serve(NO_MONITORS)
    await Caller("sync").call(
        server.url, endpoints.LIST_MONITORS, query={"limit": 100, "offset": 0, "status": None}
    )
    assert server.requests[0].target == "/v2/monitor?limit=100&offset=0"
    assert server.requests[0].body == b""


@pytest.mark.rule("authentication", "next-host")
async def test_a_next_link_stays_on_the_connections_host(serve: Any) -> None:
    link, target = "https://evil.example/v2/monitor/m/checks/c?skip=25", "/v2/monitor/m/checks/c?skip=25"
    server = serve(answer(body='{"data": {"id": "c"}}'))
    with WebDataClient(ClientConfig(server.url, API_KEY, declared="hosted")) as client:
        client.follow(endpoints.GET_MONITOR_CHECK, link)
        with pytest.raises(errors.InvalidResponseError, match="next link"):
            client.follow(endpoints.GET_MONITOR_CHECK, "https://evil.example/")
    async with AsyncWebDataClient(ClientConfig(server.url, API_KEY, declared="hosted")) as async_client:
        await async_client.follow(endpoints.GET_MONITOR_CHECK, link)
        with pytest.raises(errors.InvalidResponseError, match="next link"):
            await async_client.follow(endpoints.GET_MONITOR_CHECK, "https://evil.example/")
    assert [request.target for request in server.requests] == [target, target]


@pytest.mark.rule("transport")
def test_one_connection_serves_many_calls(serve: Any) -> None:
    ports: list[int] = []

    def note(connection: Any) -> None:
        ports.append(connection.getpeername()[1])
        NO_MONITORS(connection)

    server = serve(note)
    with WebDataClient(ClientConfig(server.url, API_KEY, declared="hosted")) as client:
        for _ in range(5):
            client.call(endpoints.LIST_MONITORS)
    assert len(ports) == 5
    assert len(set(ports)) == 1


@pytest.mark.parametrize("allowed", [2, 9])
async def test_max_concurrency_holds(serve: Any, allowed: int) -> None:
    lock = threading.Lock()
    now = most = 0
    go_on = threading.Event()

    def count(connection: Any) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            if now == allowed:
                go_on.set()
        go_on.wait(30)
        with lock:
            now -= 1
        NO_MONITORS(connection)

    ports: set[int] = set()

    def count_and_note(connection: Any) -> None:
        ports.add(connection.getpeername()[1])
        count(connection)

    server = serve(count_and_note)
    async with AsyncWebDataClient(
        ClientConfig(server.url, API_KEY, declared="hosted", max_concurrency=allowed)
    ) as client:
        for _ in range(2):
            await asyncio.gather(*(client.call(endpoints.LIST_MONITORS) for _ in range(3 * allowed)))
    assert most == allowed
    assert len(server.requests) == 6 * allowed
    assert len(ports) == allowed


async def test_connections_are_kept_and_closed_when_not_needed(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Concurrent calls share as many connections again; the next call closes those that were idle for too long."""
    monkeypatch.setattr(pools, "_KEEPALIVE_SECONDS", 60.0)
    together = threading.Barrier(30)
    opened: dict[int, socket.socket] = {}

    def note(connection: Any) -> None:
        opened[connection.getpeername()[1]] = connection
        if len(server.requests) <= 60:
            together.wait(30)
        NO_MONITORS(connection)

    server = serve(note)
    client = AsyncWebDataClient(ClientConfig(server.url, API_KEY, declared="hosted"))
    for _ in range(2):
        await asyncio.gather(*(client.call(endpoints.LIST_MONITORS) for _ in range(30)))
    assert len(opened) == 30
    monkeypatch.setattr(pools, "_KEEPALIVE_SECONDS", 0.0)
    await client.call(endpoints.LIST_MONITORS)
    assert len(opened) == 30
    deadline = time.monotonic() + 20
    while sum(connection.fileno() >= 0 for connection in opened.values()) > 1:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)

    # One closes the connections that were idle, and others take the last one meanwhile.
    async def call_now_and_then(pause: float) -> None:
        for _ in range(100):
            await client.call(endpoints.LIST_MONITORS)
            await asyncio.sleep(pause)

    await asyncio.gather(*(call_now_and_then(number / 2000) for number in range(5)))
    await client.aclose()
    assert client.is_closed
    with pytest.raises(RuntimeError, match="closed"):
        await client.call(endpoints.LIST_MONITORS)


VALUES = {
    "plain": '"plain"',
    "other scripts": '"Łódź, größer, 小麦 🌾👩\u200d🌾"',
    "escapes": r'"\u0141\u00f3d\u017a \ud83c\udf3e \"quoted\" C:\\x \/ \b\f\n\r\t \u0000"',
    "many digits": "123456789012345678901234567890",
    "an exponent": "1.5e300",
    "beyond a float": "1e400",
    "infinity": "Infinity",
    "an object": '{"a": 1, "b": {"a": null}, "": [true, false, []]}',
    "deep": "[" * 500 + "]" * 500,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_any_json_is_returned_as_it_was_sent(serve: Any, value: str) -> None:
    """In a field of any type, a text, an object, and a field of a newer service."""
    names = ["json", "newField"] if value.startswith("[[") else ["json", "markdown", "metadata", "newField"]
    web = ", ".join(f'{{"{name}": {value}}}' for name in names)
    body = f'{{"success": true, "data": {{"web": [{web}]}}}}'
    server = serve(answer(body=body))
    found = await Caller("sync").call(server.url, endpoints.SEARCH, body=models.SearchRequest(query="q"))
    assert found.to_wire() == json.loads(body)


def test_a_large_body_is_freed_without_the_garbage_collector(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[weakref.ref[exchange.Reader[Any]]] = []

    class Watched(exchange.Reader[Any]):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            readers.append(weakref.ref(self))

    monkeypatch.setattr(exchange, "Reader", Watched)
    server = serve(answer(body=json.dumps({"data": {"web": [{"markdown": "x" * 1_000_000}]}})))
    with WebDataClient(ClientConfig(server.url, API_KEY, declared="hosted")) as client:
        gc.collect()
        gc.disable()
        try:
            result = client.call(endpoints.SEARCH, body=models.SearchRequest(query="x"))
            assert len(readers) == 1
            assert readers[0]() is None
        finally:
            gc.enable()
    assert result.data is not None


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sandbox")])
    now = dt.datetime.now(dt.timezone.utc)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + built.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.mark.parametrize(
    ("settings", "trusted"),
    [
        (lambda path: {}, False),
        (lambda path: {"ca_file": str(path)}, True),
        (lambda path: {"verify": False}, True),
    ],
    ids=["unknown authority", "ca_file", "verify off"],
)
async def test_tls(caller: Caller, serve: Any, certificate: Path, settings: Any, trusted: bool) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = serve(answer(body='{"data": []}'), tls=context)
    caller.options.update(settings(certificate), retry_budget=0)
    if trusted:
        await caller.call(server.url, endpoints.LIST_MONITORS)
    else:
        with pytest.raises(errors.TransportError, match="CERTIFICATE_VERIFY_FAILED") as caught:
            await caller.call(server.url, endpoints.LIST_MONITORS)
        assert caught.value.sent is False
    assert len(server.requests) == trusted


def test_a_ca_file_that_is_missing_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigurationError, match="ca_file"):
        WebDataClient(ClientConfig("https://host", API_KEY, ca_file=str(tmp_path / "no.pem")))
