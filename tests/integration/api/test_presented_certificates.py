# SPDX-License-Identifier: Apache-2.0
"""A client certificate of the connection: presented to the service's host, and to no other."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from airflow.sdk import Connection
from cryptography.hazmat.primitives import serialization

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.client import ClientConfig, WebDataClient
from airflow_provider_webdata.api.errors import CertificateRequiredError, ConfigurationError, UploadError
from airflow_provider_webdata.api.file_transfer import FileTransfer
from airflow_provider_webdata.api.multipart import Upload
from airflow_provider_webdata.common.tls import ClientCertificate
from airflow_provider_webdata.hooks.connection import settings_of
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.results.media.copies import MediaReport, keep_media
from airflow_provider_webdata.results.media.fetch import MediaSettings
from airflow_provider_webdata.waiting import connection as connection_of_waits
from tests.support import direct
from tests.support.certificates import requiring_a_certificate, self_signed
from tests.support.fault_server import API_KEY, Caller, FaultServer, answer
from tests.support.service import connection_text

USAGE = '{"success": true, "data": {"remainingCredits": 5}}'
FOUND = '{"success": true, "data": {"web": []}, "creditsUsed": 0}'
PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 600
PASSWORD = "hush-of-the-key"
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class Files(NamedTuple):
    """A certificate, its key, the same key with a password, both in one file, and those of a stranger."""

    certificate: str
    key: str
    locked_key: str
    both: str
    strange_certificate: str
    strange_key: str


def locked(key: Path) -> bytes:
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    return loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )


@pytest.fixture(params=VERSIONS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[FaultServer, Files]]:
    context, public = requiring_a_certificate(tmp_path, VERSIONS[request.param])
    private = public.with_name("private.pem")
    (tmp_path / "locked.pem").write_bytes(locked(private))
    (tmp_path / "both.pem").write_bytes(public.read_bytes() + private.read_bytes())
    (strange := tmp_path / "strange").mkdir()
    names = (public, private, tmp_path / "locked.pem", tmp_path / "both.pem", *self_signed(strange))
    made = FaultServer([answer(body=USAGE)], context)
    yield made, Files(*map(str, names))
    made.close()


WAYS: dict[str, Callable[[Files], dict[str, str]]] = {
    "two files": lambda files: {"client_cert_file": files.certificate, "client_key_file": files.key},
    "one file": lambda files: {"client_cert_file": files.both},
    "a password": lambda files: {
        "client_cert_file": files.certificate,
        "client_key_file": files.locked_key,
        "client_key_password": PASSWORD,
    },
}


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_requires_one_answers(server: tuple[FaultServer, Files], kind: str, way: str) -> None:
    made, files = server
    options = {"ca_file": files.certificate, "retry_budget": 0, **WAYS[way](files)}
    asyncio.run(Caller(kind, options).call(made.url, endpoints.CREDIT_USAGE))
    assert len(made.requests) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_task_uses_the_fields_of_the_connection(
    server: tuple[FaultServer, Files], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    made, files = server
    made._steps = [answer(body=FOUND)]
    text = connection_text(made.url, ca_file=files.certificate, retry_budget=0, **WAYS[way](files))
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", text)
    done = direct.run(WebDataSearchOperator(task_id="t", query="q"))
    assert done.state == "success", done.error
    assert len(made.requests) == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_certificate_that_the_server_does_not_trust(server: tuple[FaultServer, Files], kind: str) -> None:
    made, files = server
    options = {
        "ca_file": files.certificate,
        "retry_budget": 5,
        "client_cert_file": files.strange_certificate,
        "client_key_file": files.strange_key,
    }
    with pytest.raises(CertificateRequiredError) as caught:
        asyncio.run(Caller(kind, options).call(made.url, endpoints.CREDIT_USAGE))
    assert "it refuses the connection's client certificate" in str(caught.value)
    assert (caught.value.sent, made.requests) == (False, [])


async def test_a_wait_reads_renewed_files(
    server: tuple[FaultServer, Files], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Certificates that are valid for a day are replaced while a triggerer waits."""
    made, files = server
    fields = {"client_cert_file": files.strange_certificate, "client_key_file": files.strange_key}
    text = connection_text(made.url, ca_file=files.certificate, retry_budget=0, **fields)
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", text)
    monkeypatch.setattr(connection_of_waits, "COMPARE_SECONDS", 0.0)
    connection = connection_of_waits.Connection(
        "webdata_default", lambda *_, **__: None, pytest.fail, lambda _: None
    )
    with pytest.raises(CertificateRequiredError):
        await connection.call(lambda hook: hook.credit_usage())
    Path(files.strange_certificate).write_bytes(Path(files.certificate).read_bytes())
    Path(files.strange_key).write_bytes(Path(files.key).read_bytes())
    assert (await connection.call(lambda hook: hook.credit_usage())).remaining_credits == 5
    await connection.close()


UNUSABLE: dict[str, tuple[Callable[[Files], dict[str, str]], str]] = {
    "no PEM": (
        lambda files: {"client_cert_file": __file__, "client_key_file": files.key},
        "client_cert_file .* cannot be loaded",
    ),
    "a folder": (
        lambda files: {"client_cert_file": str(Path(files.key).parent)},
        "client_cert_file .* cannot be (loaded|read)",
    ),
    "missing": (lambda files: {"client_cert_file": f"{files.key}.no"}, "client_cert_file .* cannot be read"),
    "missing key": (
        lambda files: {"client_cert_file": files.certificate, "client_key_file": f"{files.key}.no"},
        "client_key_file .* cannot be read",
    ),
    "no key": (
        lambda files: {"client_cert_file": files.certificate},
        "contains no private key|cannot be loaded",
    ),
    "another's key": (
        lambda files: {"client_cert_file": files.certificate, "client_key_file": files.strange_key},
        "do not belong together",
    ),
    "no password": (
        lambda files: {"client_cert_file": files.certificate, "client_key_file": files.locked_key},
        "client_key_password",
    ),
    "wrong password": (
        lambda files: {
            "client_cert_file": files.certificate,
            "client_key_file": files.locked_key,
            "client_key_password": "hush-hush",
        },
        "client_key_password",
    ),
    "long password": (
        lambda files: {
            "client_cert_file": files.certificate,
            "client_key_file": files.locked_key,
            "client_key_password": "hush" * 500,
        },
        "client_key_password",
    ),
    "a key alone": (
        lambda files: {"client_key_file": files.key},
        "client_key_file is set without client_cert_file",
    ),
    "a password alone": (
        lambda files: {"client_key_password": PASSWORD},
        "client_key_password is set without client_cert_file",
    ),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_files_that_cannot_be_used_are_named(server: tuple[FaultServer, Files], name: str) -> None:
    """OpenSSL must not ask for the password at a terminal."""
    made, files = server
    options, said = UNUSABLE[name]
    with pytest.raises(ConfigurationError, match=said) as caught:
        WebDataClient(ClientConfig(made.url, API_KEY, **options(files)))
    assert "hush" not in str(caught.value)
    assert caught.value.verdict == "never"


def test_the_connection_names_its_fields(tmp_path: Path) -> None:
    for extra in (
        {"client_cert_file": "/no/such.pem"},
        {"client_cert_file": __file__, "client_key_file": "/no/such.pem"},
        {"client_key_file": __file__},
        {"client_key_password": PASSWORD},
    ):
        connection = Connection.from_json(connection_text("https://x", **extra), conn_id="c")
        with pytest.raises(ConfigurationError, match=f"connection 'c': {[*extra][-1]} ") as caught:
            settings_of(connection)
        assert PASSWORD not in str(caught.value)


def test_the_password_is_a_secret(server: tuple[FaultServer, Files]) -> None:
    made, files = server
    text = connection_text(made.url, **WAYS["a password"](files))
    settings = settings_of(Connection.from_json(text, conn_id="c"))
    assert PASSWORD in set(settings.secrets())
    assert PASSWORD not in f"{settings!r}{settings.client!r}{ClientCertificate('a', 'b', PASSWORD)!r}"


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_an_upload_presents_it_to_the_service_only(
    server: tuple[FaultServer, Files], monkeypatch: pytest.MonkeyPatch, is_async: bool, host: str
) -> None:
    made, files = server
    monkeypatch.setattr("airflow_provider_webdata.api.file_transfer.addresses_for", lambda *_: ["127.0.0.1"])
    config = ClientConfig(made.url, API_KEY, ca_file=files.certificate, **WAYS["two files"](files))
    target = models.ParseUpload(upload_url=f"https://{host}:{made.port}/f", upload_ref="r", method="PUT")
    transfer = FileTransfer(config, target, Upload("parse", io.BytesIO(b"%PDF"), "a.pdf", max_bytes=9))

    def send() -> None:
        asyncio.run(transfer.asend()) if is_async else transfer.send()

    if host == "127.0.0.1":
        send()
        assert len(made.requests) == 1
    else:
        with pytest.raises(UploadError):
            send()
        assert made.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_media_present_it_to_the_service_only(
    server: tuple[FaultServer, Files], tmp_path: Path, host: str
) -> None:
    made, files = server
    made._steps = [answer(body=PNG, content_type="image/png")]
    settings = MediaSettings(
        hosts=frozenset({"127.0.0.1", "localhost"}),
        ca_file=files.certificate,
        certificate=ClientCertificate(files.certificate, files.key),
        own_host="127.0.0.1",
        attempts=1,
    )
    page = {
        "screenshot": f"https://{host}:{made.port}/a.png",
        "metadata": {"sourceURL": "https://x.example/"},
    }
    report = MediaReport()
    list(keep_media([page], f"{tmp_path}/media", settings, report))
    assert (report.kept, len(made.requests)) == ((1, 1) if host == "127.0.0.1" else (0, 0))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_proxy_that_completes_the_handshake_and_refuses_it(
    server: tuple[FaultServer, Files], kind: str
) -> None:
    """As nginx does."""
    made, files = server
    page = "<html><head><title>400 The SSL certificate error</title></head></html>"
    made._steps = [answer(400, page, "text/html")]
    caller = Caller(kind, {"ca_file": files.certificate, "retry_budget": 5, **WAYS["one file"](files)})
    with pytest.raises(
        CertificateRequiredError, match="it refuses the connection's client certificate"
    ) as caught:
        asyncio.run(caller.call(made.url, endpoints.SEARCH, body=models.SearchRequest(query="q")))
    assert (caught.value.verdict, caught.value.sent, len(made.requests)) == ("never", False, 1)
