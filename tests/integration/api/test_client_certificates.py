# SPDX-License-Identifier: Apache-2.0
"""A server that requires a client certificate: a TLS alert, which is no lost response."""

from __future__ import annotations

import asyncio
import io
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.client import ClientConfig
from airflow_provider_webdata.api.errors import CertificateRequiredError, UploadError
from airflow_provider_webdata.api.file_transfer import FileTransfer
from airflow_provider_webdata.api.multipart import Upload
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from tests.support import direct
from tests.support.certificates import requiring_a_certificate
from tests.support.direct import StateStore
from tests.support.fault_server import API_KEY, Caller, FaultServer, answer
from tests.support.service import connection_text

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


@pytest.fixture(params=VERSIONS)
def refusing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[FaultServer, str]]:
    context, trusted = requiring_a_certificate(tmp_path, VERSIONS[request.param])
    server = FaultServer([answer(body='{"success": true, "data": {"remainingCredits": 5}}')], context)
    yield server, str(trusted)
    server.close()


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("endpoint", [endpoints.SEARCH, endpoints.CREDIT_USAGE], ids=["billed", "read"])
def test_the_alert_names_the_certificate(refusing: tuple[FaultServer, str], kind: str, endpoint: Any) -> None:
    """In TLS 1.3, it is sent in place of the response."""
    server, trusted = refusing
    body = {"body": models.SearchRequest(query="q")} if endpoint is endpoints.SEARCH else {}
    caller = Caller(kind, {"ca_file": trusted, "retry_budget": 5.0})
    for _ in range(3):
        with pytest.raises(CertificateRequiredError) as caught:
            asyncio.run(caller.call(server.url, endpoint, **body))
    error = caught.value
    assert (error.verdict, error.sent, server.requests) == ("never", False, [])
    # TLS 1.2 has no alert of its own for it.
    assert re.search("it (probably )?requires a client certificate; nothing was sent", str(error))
    assert 'Set "Client certificate" of the connection to one that the server trusts' in str(error)


@contextmanager
def presenting(server: FaultServer, certificate: Path) -> Iterator[str]:
    """Serve a proxy in front of the service, which presents a certificate."""
    context = ssl.create_default_context(cafile=str(certificate))
    context.load_cert_chain(certificate, certificate.with_name("private.pem"))

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = context.wrap_socket(
                    socket.create_connection(("127.0.0.1", server.port)), server_hostname="127.0.0.1"
                )
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=copy, args=pair, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def test_a_proxy_that_presents_a_certificate_works(refusing: tuple[FaultServer, str]) -> None:
    server, trusted = refusing
    with presenting(server, Path(trusted)) as base_url:
        asyncio.run(Caller("sync").call(base_url, endpoints.CREDIT_USAGE))
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_proxy_that_completes_the_handshake(kind: str) -> None:
    """As nginx does."""
    page = "<html><head><title>400 No required SSL certificate was sent</title></head></html>"
    server = FaultServer([answer(400, page, "text/html")])
    for endpoint in (endpoints.CREDIT_USAGE, endpoints.SEARCH):
        body = {"body": models.SearchRequest(query="q")} if endpoint is endpoints.SEARCH else {}
        with pytest.raises(CertificateRequiredError, match="requires a client certificate; nothing was sent"):
            asyncio.run(Caller(kind).call(server.url, endpoint, **body))
    server.close()
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "task",
    [
        WebDataSearchOperator(task_id="t", query="q", credit_limit=2, retries=3, rate_limit_timeout=0),
        WebDataBatchSearchOperator(
            task_id="t",
            queries=["a", "b", "c"],
            save_to="/tmp/webdata/refused.jsonl",
            credit_limit=6,
            retries=3,
            rate_limit_timeout=0,
        ),
    ],
    ids=["search", "batch"],
)
def test_a_task_fails_without_a_retry_and_counts_nothing(
    refusing: tuple[FaultServer, str], task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, trusted = refusing
    text = connection_text(server.url, ca_file=trusted, retry_budget=5)
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", text)
    store = StateStore()
    outcome = direct.run(task, store)
    assert outcome.ended == ("failed", 1)
    assert "(WD-019)" in str(outcome.error)
    assert "billed" not in str(outcome.error)
    assert outcome.xcom.get("credits", {"used": 0, "unknown": 0})["unknown"] == 0
    # The whole limit is left for a task that is cleared once the proxy is there.
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text("http://127.0.0.1:9", retry_budget=0))
    assert "credit_limit" not in str(direct.run(task, store).error)


def test_the_test_of_the_connection_names_it(
    refusing: tuple[FaultServer, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, trusted = refusing
    text = connection_text(server.url, ca_file=trusted, retry_budget=0)
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", text)
    works, message = WebDataHook().test_connection()
    assert not works
    assert message.startswith("The TLS connection fails: ")
    assert 'Set "Client certificate" of the connection' in message
    assert "CA bundle" not in message


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_storage_of_an_upload_may_require_one_too(
    refusing: tuple[FaultServer, str], is_async: bool
) -> None:
    """An asynchronous client raises the alert as an error of Python's ssl."""
    server, trusted = refusing
    config = ClientConfig(server.url, API_KEY, ca_file=trusted)
    target = models.ParseUpload(upload_url=f"{server.url}/f", upload_ref="r", method="PUT")
    upload = Upload("parse", io.BytesIO(b"%PDF"), "a.pdf", max_bytes=9)
    transfer = FileTransfer(config, target, upload)
    with pytest.raises(UploadError):
        asyncio.run(transfer.asend()) if is_async else transfer.send()
