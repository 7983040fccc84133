# SPDX-License-Identifier: Apache-2.0
"""Variables of the environment that name certificates and files of TLS: a clear error, in each client."""

from __future__ import annotations

import asyncio
import io
import logging
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.client import AsyncWebDataClient, ClientConfig, WebDataClient
from airflow_provider_webdata.api.errors import CertificateRefusedError, ConfigurationError
from airflow_provider_webdata.api.file_transfer import FileTransfer
from airflow_provider_webdata.api.multipart import Upload
from airflow_provider_webdata.hooks.connection import ConnectionSettings, settings_of
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.inbox.reader.client import AsyncInboxReader, InboxReader
from airflow_provider_webdata.inbox.reader.protocol import InboxAddress
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.results.media.fetch import MediaFetcher, MediaSettings
from airflow_provider_webdata.runs.publishing.keep_media import KeepMedia
from airflow_provider_webdata.triggers.job import WebDataJobTrigger
from tests.support import direct
from tests.support.certificates import self_signed
from tests.support.fault_server import API_KEY, Caller, FaultServer, answer
from tests.support.job_service import JobService
from tests.support.service import connection_text
from tests.support.waiting import PATIENCE

LOG = logging.getLogger(__name__)
USAGE = '{"success": true, "data": {"remainingCredits": 5}}'
VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")
TLS_PROXY = ("HTTPS_PROXY", "https://proxy.example")
"""With it, clients of a plain-http server need the variables too."""


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def _folder(folder: Path, **files: bytes) -> str:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return str(folder)


BROKEN: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "missing file": ("SSL_CERT_FILE", lambda here: here / "no-cert-file.crt"),
    "folder as a file": ("SSL_CERT_FILE", lambda here: here),
    "text that is no PEM": ("SSL_CERT_FILE", lambda _: __file__),
    "empty file": ("SSL_CERT_FILE", lambda here: f"{_folder(here / 'e', empty=b'')}/empty"),
    "private key": ("SSL_CERT_FILE", lambda here: self_signed(here)[1]),
    "missing folder": ("SSL_CERT_DIR", lambda here: here / "certs"),
    "empty folder": ("SSL_CERT_DIR", lambda here: _folder(here / "empty")),
    "folder without hashed names": ("SSL_CERT_DIR", lambda here: self_signed(here)[0].parent),
    "file as a folder": ("SSL_CERT_DIR", lambda _: __file__),
    "two folders": ("SSL_CERT_DIR", lambda here: f"{here / 'a'}:{_folder(here / 'b')}"),
    "missing folder of the log": ("SSLKEYLOGFILE", lambda here: here / "no" / "keys.log"),
    "folder as the log": ("SSLKEYLOGFILE", lambda here: here),
}


@pytest.fixture(params=BROKEN)
def broken(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str]:
    """Return the name and the value of a variable that cannot be used."""
    name, value_in = BROKEN[request.param]
    value = str(value_in(tmp_path))
    monkeypatch.setenv(name, value)
    return name, value


def _config(**more: Any) -> ClientConfig:
    return ClientConfig("https://127.0.0.1:9", API_KEY, retry_budget=0, **more)


def _transfer() -> FileTransfer:
    target = models.ParseUpload(upload_url="https://127.0.0.1:9/f", upload_ref="r", method="PUT")
    return FileTransfer(_config(), target, Upload("parse", io.BytesIO(b"%PDF"), "a.pdf", max_bytes=9))


def _settings() -> ConnectionSettings:
    return settings_of(Connection.from_json(connection_text("https://127.0.0.1:9"), conn_id="c"))


INBOX = InboxAddress("https://airflow.test/webdata", "webdata_default", "secret")
CLIENTS: dict[str, Callable[[], Any]] = {
    "service": lambda: WebDataClient(_config()),
    "service, asynchronous": lambda: AsyncWebDataClient(_config()),
    "upload": lambda: _transfer().send(),
    "upload, asynchronous": lambda: asyncio.run(_transfer().asend()),
    "media": lambda: [*KeepMedia("/tmp/webdata/media", 1, _settings, LOG).keep([{}])],
    "inbox": lambda: InboxReader(INBOX),
    "inbox, asynchronous": lambda: AsyncInboxReader(INBOX),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_names_the_variable_and_its_value(broken: tuple[str, str], client: str) -> None:
    name, value = broken
    with pytest.raises(ConfigurationError) as caught:
        CLIENTS[client]()
    said = str(caught.value)
    assert f"environment variable {name} " in said
    assert repr(value) in said
    assert "(WD-009)" in said
    assert caught.value.verdict == "never"


@pytest.mark.parametrize("variable", VARIABLES)
def test_plain_http_needs_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, f"{tmp_path}/no/such")
    WebDataClient(ClientConfig("http://127.0.0.1:9", API_KEY)).close()
    InboxReader(InboxAddress("http://127.0.0.1:9", INBOX.conn_id, INBOX.secret)).close()
    monkeypatch.setenv(*TLS_PROXY)
    with pytest.raises(ConfigurationError, match=f"environment variable {variable} "):
        WebDataClient(ClientConfig("http://127.0.0.1:9", API_KEY))


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_inbox_reads_them_beside_its_own_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, f"{tmp_path}/no/such")
    address = InboxAddress(INBOX.url, INBOX.conn_id, INBOX.secret, ca_files=(str(self_signed(tmp_path)[0]),))
    with pytest.raises(ConfigurationError, match=f"environment variable {variable} "):
        InboxReader(address)


@pytest.mark.parametrize("variable", VARIABLES[:2])
def test_a_bundle_of_the_connection_replaces_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, f"{tmp_path}/no/such")
    bundle = str(self_signed(tmp_path)[0])
    WebDataClient(_config(ca_file=bundle)).close()
    MediaFetcher(MediaSettings(ca_file=bundle)).close()
    WebDataClient(_config(verify=False)).close()


@pytest.fixture
def trusted(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the URL of a server, and the certificate by which clients trust it."""
    public, private = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    server = FaultServer([answer(body=USAGE)], context)
    yield server.url, public
    server.close()


def _usage(url: str) -> None:
    asyncio.run(Caller("sync", {"retry_budget": 0}).call(url, endpoints.CREDIT_USAGE))


def test_a_file_and_a_folder_that_can_be_used_are(
    trusted: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, public = trusted
    with pytest.raises(CertificateRefusedError):
        _usage(url)
    monkeypatch.setenv("SSL_CERT_FILE", str(public))
    _usage(url)
    monkeypatch.delenv("SSL_CERT_FILE")
    folder = tmp_path / "hashed"
    folder.mkdir()
    command = ["openssl", "x509", "-subject_hash", "-noout", "-in", str(public)]
    named = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    shutil.copy(public, folder / f"{named}.0")
    monkeypatch.setenv("SSL_CERT_DIR", f"{tmp_path}/no/such:{folder}")
    _usage(url)
    # As in httpx, the file replaces the folder.
    monkeypatch.setenv("SSL_CERT_FILE", str(public))
    monkeypatch.setenv("SSL_CERT_DIR", "/no/such")
    monkeypatch.setenv("SSLKEYLOGFILE", f"{tmp_path}/keys.log")
    _usage(url)
    assert "SECRET" in (tmp_path / "keys.log").read_text()


UNREAD = ("NETRC", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def test_variables_of_other_libraries_have_no_effect(
    trusted: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, public = trusted
    monkeypatch.setenv("SSL_CERT_FILE", str(public))
    for name in UNREAD:
        monkeypatch.setenv(name, f"{tmp_path}/no/such")
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login x password {")
    monkeypatch.setenv("HOME", str(tmp_path))
    _usage(url)


def test_a_task_fails_without_a_retry(broken: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text("https://127.0.0.1:9", retry_budget=0))
    done = direct.run(WebDataSearchOperator(task_id="t", query="q", retries=3))
    assert done.ended == ("failed", 1)
    assert "(WD-009)" in str(done.error)
    assert broken[0] in str(done.xcom["failure"])


def test_the_test_of_a_connection_names_it(broken: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text("https://127.0.0.1:9", retry_budget=0))
    works, message = WebDataHook().test_connection()
    assert (works, broken[0] in message) == (False, True)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobService]:
    service = JobService()
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(service.url, retry_budget=0))
    yield service
    service.stop()


def _event(job_id: str) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        trigger = WebDataJobTrigger("webdata_default", "crawl", job_id, 1.0, deadline=time.time() + PATIENCE)
        async for event in trigger.run():
            return event.payload  # type: ignore[no-any-return]
        raise AssertionError

    return asyncio.run(asyncio.wait_for(run(), PATIENCE))


def test_a_wait_in_the_triggerer_ends_at_its_first_poll(
    jobs: JobService, broken: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variables of a process do not change. The job runs, and another triggerer can wait for it."""
    monkeypatch.setenv(*TLS_PROXY)
    jobs.set("crawl", "j", "scraping")
    event = _event("j")
    assert (event["status"], event["verdict"], event["job_id"]) == ("error", "later", "j")
    assert f"environment variable {broken[0]} " in event["message"]


def test_a_job_survives_a_triggerer_with_such_a_variable(
    jobs: JobService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A retry waits for the same job."""
    jobs.ends_after = 0
    jobs.ends_as = {
        "status": "completed",
        "data": [{"markdown": "x", "metadata": {"sourceURL": "https://a.b/"}}],
    }
    task = WebDataCrawlOperator(task_id="t", url="https://a.b/", poll_interval=1, deferrable=True, retries=2)
    store = direct.StateStore()
    real, left = WebDataJobTrigger.run, [True]

    async def run(self: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            if left and left.pop():
                patch.setenv(*TLS_PROXY)
                patch.setenv("SSL_CERT_FILE", f"{tmp_path}/no-cert-file.crt")
            async for event in real(self):
                yield event

    monkeypatch.setattr(WebDataJobTrigger, "run", run)
    done = direct.run(task, store)
    assert done.state == "success", done.error
    assert len(jobs.started()) == 1
    assert not jobs.cancels()
    assert done.value["data"][0]["markdown"] == "x"
