# SPDX-License-Identifier: Apache-2.0
"""Files that are uploaded to a storage first, through both hooks, against the sandbox over HTTP."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import socket
from typing import Any

import pytest

from airflow_provider_webdata.api import errors, file_transfer, models
from airflow_provider_webdata.api.config import ClientConfig
from airflow_provider_webdata.api.file_transfer import FileTransfer
from airflow_provider_webdata.api.models import parse as parse_models
from airflow_provider_webdata.api.multipart import Upload
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
from tests.integration.hooks.conftest import one_hook
from tests.support.fault_server import FaultServer, answer, drip
from tests.support.waiting import settled

HTML = b"<title>Airship</title><p>It floats.</p>"
FORM = ["/v2/parse"]
REFERENCE = ["/v2/parse/upload-url", "/v2/parse/upload/", "/v2/parse"]


@pytest.fixture
async def hook(kind_of_hook: Any, sandbox: Any, connect: Any) -> Any:
    connect(sandbox.url, sandbox.api_key, retry_budget=1)
    hook = kind_of_hook()
    yield hook
    await settled(hook.close())


def paths(sandbox: Any) -> list[str]:
    """Return the paths of calls, without the names of stored files."""
    return [re.sub(r"(?<=/upload/).*", "", sent["path"]) for sent in sandbox.control.requests()]


# The hook, the quirks, the most bytes of a form, the requested way, and the way that the file takes.
WAYS: list[Any] = [
    pytest.param(WebDataHook, [], len(HTML), "auto", FORM, id="auto-form"),
    pytest.param(WebDataHook, [], len(HTML) - 1, "auto", REFERENCE, id="auto-reference"),
    pytest.param(WebDataHook, ["upload-form"], len(HTML), "reference", REFERENCE, id="reference-form"),
    pytest.param(WebDataAsyncHook, [], len(HTML), "reference", REFERENCE, id="reference-async"),
    pytest.param(WebDataAsyncHook, ["upload-form"], 1, "auto", REFERENCE, id="reference-form-async"),
    pytest.param(WebDataAsyncHook, [], len(HTML), "form", FORM, id="form-async"),
]


@pytest.mark.rule("parse-size", "parse-upload", "parse-storage", "parse-reference")
@pytest.mark.parametrize(("kind_of_hook", "quirks", "most", "upload", "way"), WAYS, indirect=["kind_of_hook"])
async def test_the_size_decides(
    hook, sandbox, monkeypatch, quirks, most: int, upload: Any, way: list[str]
) -> None:
    sandbox.control.set_quirks(quirks)
    monkeypatch.setattr(parse_models, "MAX_FILE_BYTES", most)
    options = models.ParseOptions(formats=["markdown", "html"])
    found = await settled(
        hook.parse(
            io.BytesIO(HTML), "/secret/a.html", options=options, extra_body={"fastMode": True}, upload=upload
        )
    )
    assert "It floats." in found.data.markdown
    assert found.data.html
    assert paths(sandbox) == way
    if way is FORM:
        return
    asked, stored, parsed = sandbox.control.requests()
    assert asked["body"] == {"filename": "a.html", "declaredSizeBytes": len(HTML)}
    assert "authorization" not in stored["headers"]
    file = stored["body"]["file"]
    assert (file["size"], file["sha256"]) == (len(HTML), hashlib.sha256(HTML).hexdigest())
    reference = parsed["body"].pop("uploadRef")
    assert reference
    assert parsed["body"] == {"formats": ["markdown", "html"], "fastMode": True}


@pytest.mark.rule("parse-storage")
@one_hook
async def test_a_file_that_is_too_large_for_the_storage(hook, sandbox, monkeypatch) -> None:
    monkeypatch.setattr(parse_models, "MAX_FILE_BYTES", 10)
    sandbox.control.set_quirks(["large-uploads=1"])
    with pytest.raises(errors.BadRequestError, match="less than or equal to 1048576"):
        await settled(hook.parse(io.BytesIO(b"x" * (2**20 + 1)), "a.csv"))
    found = await settled(hook.parse(io.BytesIO(b"a,b\n" * 50), "a.csv"))
    assert found.data.markdown
    assert paths(sandbox) == ["/v2/parse/upload-url", *REFERENCE]


@pytest.mark.rule("parse-storage")
@pytest.mark.parametrize(
    ("kind", "fault"), [("status", {"status": 503}), ("drop", {}), ("drop_after_work", {})]
)
@one_hook
async def test_a_storage_that_refuses_the_file(hook, sandbox, kind: str, fault: dict[str, Any]) -> None:
    """Nothing was parsed or billed, and the task's retry begins again."""
    sandbox.control.add_fault(kind, path="/v2/parse/upload/", **fault)
    with pytest.raises(errors.UploadError) as caught:
        await settled(hook.parse(io.BytesIO(HTML), "a.html", upload="reference"))
    assert "uploadRef" not in str(caught.value)
    assert paths(sandbox) == REFERENCE[:2]
    assert (await settled(hook.parse(io.BytesIO(HTML), "a.html", upload="reference"))).data.markdown


@pytest.mark.rule("parse-reference-once")
@pytest.mark.parametrize(
    ("status", "error"),
    [(429, errors.RateLimitError), (502, errors.ServerError), (408, errors.ProcessingContinuesError)],
    ids=["429", "502", "408"],
)
@one_hook
async def test_a_reference_is_used_once(hook, sandbox, status: int, error: type[Exception]) -> None:
    """It is used once even after an answer that is otherwise repeated: the file may be gone."""
    body = {"success": False, "error": "wait", "details": {"state": "processing_continues"}}
    sandbox.control.add_fault(
        "status", path="/v2/parse$", status=status, body=body, headers={"Retry-After": "0"}
    )
    with pytest.raises(error):
        await settled(hook.parse(io.BytesIO(HTML), "a.html", upload="reference"))
    assert paths(sandbox) == REFERENCE


@pytest.mark.rule("parse-uploads-used-up")
@one_hook
async def test_too_many_unparsed_files(hook, sandbox) -> None:
    sandbox.control.add_fault("status", path="/v2/parse/upload/", status=500, times=10)
    for _ in range(10):
        with pytest.raises(errors.UploadError):
            await settled(hook.parse(io.BytesIO(HTML), "a.html", upload="reference"))
    with pytest.raises(errors.ClientError, match="Too many unparsed uploads") as caught:
        await settled(hook.parse(io.BytesIO(HTML), "a.html", upload="reference"))
    assert caught.value.verdict == "never"
    sandbox.control.advance(86_401)
    assert (await settled(hook.parse(io.BytesIO(HTML), "a.html", upload="reference"))).data.markdown


async def test_an_invalid_upload_is_not_sent(hook, sandbox) -> None:
    for file, more, words in (
        (iter([b"x"]), {"upload": "reference"}, "size: is required"),
        (
            io.BytesIO(b"x"),
            {"upload": "form", "size": parse_models.MAX_FILE_BYTES + 1},
            "at most 52428800 bytes",
        ),
        (io.BytesIO(b"x"), {"upload": "post"}, "upload: must be auto, form or reference"),
    ):
        with pytest.raises(errors.InvalidRequestError, match=words):
            await settled(hook.parse(file, "a.pdf", **more))
    assert sandbox.control.requests() == []


# Address, method, most bytes, and error.
TARGETS: list[tuple[str, str | None, int | None, type[Exception] | None]] = [
    ("https://storage.example/a?sig=x", None, None, None),
    ("https://storage.example/a?sig=x", "put", 1, None),
    ("https://storage.example", "POST", None, None),
    ("http://storage.example/a?sig=x", "PUT", None, errors.InvalidResponseError),
    ("ftp://storage.example/a", "PUT", None, errors.InvalidResponseError),
    ("/a", "PUT", None, errors.InvalidResponseError),
    *(
        (address, None, None, errors.InvalidResponseError)
        for address in (
            "https://",
            "https://[::1/a?sig=x",
            "https://storage.example:99999/a?sig=x",
            "https://storage.example:port/a?sig=x",
            "https://user:sig=@storage.example/",
            "https://storage.example\\@10.0.0.1/?sig=x",
            "https://storage.example/\n?sig=x",
            "https://a..example/?sig=x",
            f"https://{'a' * 64}.example/?sig=x",
            "https://storage.ex\ud800mple/?sig=x",
            "https://storage.example/\udc00?sig=x",
            "https://storage.example/" + "a" * 70_000 + "?sig=x",
            "",
        )
    ),
    ("https://storage.example/a", "PATCH", None, errors.InvalidResponseError),
    ("https://storage.example/a", "CONNECT", None, errors.InvalidResponseError),
    ("https://storage.example/a", "POST", 0, errors.UploadTooLargeError),
]


def transfer(base_url: str, address: str, *, timeout: float = 30, **target: Any) -> FileTransfer:
    config = ClientConfig(base_url=base_url, api_key="k", timeout=timeout)
    upload = Upload("parse", io.BytesIO(HTML), "a.html", max_bytes=100)
    return FileTransfer(config, models.ParseUpload(upload_url=address, upload_ref="r", **target), upload)


@pytest.mark.rule("parse-storage")
def test_addresses_of_a_storage() -> None:
    """A storage is reached over http only if the service is."""
    for address, method, most, error in TARGETS:
        target = {"method": method, "max_size_bytes": None if most is None else most * 100}
        if error is None:
            transfer("https://service.example", address, **target)
            continue
        with pytest.raises(error) as caught:
            transfer("https://service.example", address, **target)
        assert "sig=" not in str(caught.value), address


# Headers, fields, and whether they can be sent.
PARTS: list[tuple[dict[str, str], dict[str, str], bool]] = [
    ({"Content-Type": "text/html", "x-amz-meta": "a b"}, {"policy": "a\nb", "": "\U0001f600"}, True),
    ({"Transfer-Encoding": "chunked"}, {}, False),
    ({"connection": "x"}, {}, False),
    ({"x y": ""}, {}, False),
    ({"": ""}, {}, False),
    ({"x": "a\r\nHost: b"}, {}, False),
    ({"x": "\xe4"}, {}, False),
    ({"x": "\ud800"}, {}, False),
    ({}, {'a"; filename="b': ""}, False),
    ({}, {"a\r\nb": ""}, False),
    ({}, {"a": "\ud800"}, False),
]


@pytest.mark.rule("parse-storage")
def test_headers_and_fields_of_a_storage() -> None:
    for headers, fields, is_good in PARTS:
        given = {"method": "POST", "headers": headers, "form_fields": fields}
        if is_good:
            transfer("https://service.example", "https://storage.example/", **given)
            continue
        with pytest.raises(errors.InvalidResponseError, match=r"it requires a (header|form field)"):
            transfer("https://service.example", "https://storage.example/", **given)


@pytest.mark.rule("parse-storage")
@pytest.mark.parametrize("is_blocking", [True, False])
async def test_a_storage_inside(is_blocking: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the service's own host may have a private address, also where a name leads to one."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", ("10.0.0.7", 0))])
    for host in ("10.0.0.7", "storage.example", "[::ffff:a00:7]", "167772167"):
        file = transfer("http://service.example", f"http://{host}/?sig=x")
        with pytest.raises(errors.InvalidResponseError, match="is no public host") as caught:
            file.send() if is_blocking else await file.asend()
        assert "sig=" not in str(caught.value)


@pytest.mark.parametrize("is_blocking", [True, False])
async def test_a_storage_that_no_proxy_serves(is_blocking: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of such hosts has names, not the address to which the file goes."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "storage.example")
    # No test can reach a public address.
    monkeypatch.setattr(file_transfer, "addresses_for", lambda *_: ["127.0.0.1"])
    server = FaultServer([answer(200)])
    try:
        file = transfer("http://service.example", f"http://storage.example:{server.port}/a")
        file.send() if is_blocking else await file.asend()
    finally:
        server.close()
    (seen,) = server.requests
    assert (seen.headers["host"], seen.body) == (f"storage.example:{server.port}", HTML)


@pytest.mark.rule("parse-storage")
@pytest.mark.parametrize("is_blocking", [True, False])
async def test_the_answer_of_a_storage_is_not_read(is_blocking: bool) -> None:
    """Neither what is compressed nor what has no end; the storage's headers do not replace those of the request."""
    bomb = gzip.compress(bytes(2**24))
    endless = b"HTTP/1.1 201 X\r\ncontent-length: 1000000000\r\n\r\n"
    for step in (
        answer(body=bomb, headers={"content-encoding": "gzip"}),
        drip(endless, b"x", size=len(endless)),
    ):
        server = FaultServer([step])
        try:
            file = transfer(
                server.url, f"{server.url}/a", headers={"Content-Length": "1", "HOST": "b", "x": "y"}
            )
            file.send() if is_blocking else await file.asend()
        finally:
            server.close()
        (seen,) = server.requests
        assert seen.body == HTML
        assert (seen.headers["host"], seen.headers["x"]) == (f"127.0.0.1:{server.port}", "y")


def test_secrets_stay_out_of_reprs() -> None:
    target = models.ParseUpload(
        upload_url="https://a.example/?s3cr3t",
        upload_ref="s3cr3t",
        form_fields={"policy": "s3cr3t"},
        headers={"x": "s3cr3t"},
    )
    assert "s3cr3t" not in repr(target)
    assert "s3cr3t" not in repr(models.ParseReferenceRequest(upload_ref="s3cr3t"))
    assert target.to_wire()["fields"] == {"policy": "s3cr3t"}


@pytest.mark.rule("parse-kinds", "parse-extension")
async def test_kinds_of_files(hook, sandbox) -> None:
    """This version accepts the files that the service parses."""
    kinds = await settled(hook.parse_formats())
    assert {name for kind in kinds for name in kind.extensions} == {*parse_models.FILE_EXTENSIONS}
    assert all(kind.available and kind.mime_types for kind in kinds)
    sandbox.control.add_fault("status", path="/v2/parse/formats", status=404)
    with pytest.raises(errors.UnsupportedError):
        await settled(hook.parse_formats())
