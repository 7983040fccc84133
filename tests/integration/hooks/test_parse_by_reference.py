"""Files that go to a storage first, through both hooks, against the sandbox over HTTP."""

from __future__ import annotations

import hashlib
import io
import re
from typing import Any

import pytest

from airflow_provider_webdata.api import errors, models
from airflow_provider_webdata.api.config import ClientConfig
from airflow_provider_webdata.api.file_transfer import FileTransfer
from airflow_provider_webdata.api.models import parse as parse_models
from airflow_provider_webdata.api.multipart import Upload
from tests.support.waiting import settled

HTML = b"<title>Airship</title><p>It floats.</p>"
FORM = ["/v2/parse"]
REFERENCE = ["/v2/parse/upload-url", "/v2/parse/upload/", "/v2/parse"]


@pytest.fixture
async def hook(kind_of_hook: Any, sandbox: Any, connect: Any) -> Any:
    connect(sandbox.url, sandbox.api_key, retry_budget=1)
    made = kind_of_hook()
    yield made
    await settled(made.close())


def paths(sandbox: Any) -> list[str]:
    """Return where calls went, without the names of stored files."""
    return [re.sub(r"(?<=/upload/).*", "", sent["path"]) for sent in sandbox.control.requests()]


# most bytes of a form, the way that is asked for, the way that is taken
WAYS = [
    (len(HTML), "auto", FORM),
    (len(HTML) - 1, "auto", REFERENCE),
    (len(HTML), "reference", REFERENCE),
    (len(HTML), "form", FORM),
]


@pytest.mark.rule("parse-size", "parse-upload", "parse-storage", "parse-reference")
@pytest.mark.parametrize("quirks", [[], ["upload-form"]])
@pytest.mark.parametrize(("most", "upload", "way"), WAYS)
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
async def test_what_is_larger_than_the_storage_takes(hook, sandbox, monkeypatch) -> None:
    monkeypatch.setattr(parse_models, "MAX_FILE_BYTES", 10)
    sandbox.control.set_quirks(["large-uploads=1"])
    with pytest.raises(errors.BadRequestError, match="less than or equal to 1048576"):
        await settled(hook.parse(io.BytesIO(b"x" * (2**20 + 1)), "a.csv"))
    found = await settled(hook.parse(io.BytesIO(b"a,b\n" * 5000), "a.csv"))
    assert found.data.markdown
    assert paths(sandbox) == ["/v2/parse/upload-url", *REFERENCE]


@pytest.mark.rule("parse-storage")
@pytest.mark.parametrize(
    ("kind", "fault"), [("status", {"status": 503}), ("drop", {}), ("drop_after_work", {})]
)
async def test_a_storage_that_takes_nothing(hook, sandbox, kind: str, fault: dict[str, Any]) -> None:
    """Nothing was parsed, so that nothing is paid for; the task's retry begins anew."""
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
)
async def test_a_reference_is_used_once(hook, sandbox, status: int, error: type[Exception]) -> None:
    """Even what a call would repeat at once: the file may be gone."""
    body = {"success": False, "error": "wait", "details": {"state": "processing_continues"}}
    sandbox.control.add_fault(
        "status", path="/v2/parse$", status=status, body=body, headers={"Retry-After": "0"}
    )
    with pytest.raises(error):
        await settled(hook.parse(io.BytesIO(HTML), "a.html", upload="reference"))
    assert paths(sandbox) == REFERENCE


@pytest.mark.rule("parse-uploads-used-up")
async def test_too_many_files_that_nobody_parsed(hook, sandbox) -> None:
    sandbox.control.add_fault("status", path="/v2/parse/upload/", status=500, times=10)
    for _ in range(10):
        with pytest.raises(errors.UploadError):
            await settled(hook.parse(io.BytesIO(HTML), "a.html", upload="reference"))
    with pytest.raises(errors.ClientError, match="Too many unparsed uploads") as caught:
        await settled(hook.parse(io.BytesIO(HTML), "a.html", upload="reference"))
    assert caught.value.verdict == "never"
    sandbox.control.advance(86_401)
    assert (await settled(hook.parse(io.BytesIO(HTML), "a.html", upload="reference"))).data.markdown


async def test_what_cannot_be_sent(hook, sandbox) -> None:
    for file, more, words in (
        (iter([b"x"]), {"upload": "reference"}, "size: must be given"),
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


# address, method, most bytes, error
TARGETS: list[tuple[str, str | None, int | None, type[Exception] | None]] = [
    ("https://storage.example/a?sig=x", None, None, None),
    ("https://storage.example/a?sig=x", "put", 1, None),
    ("http://storage.example/a?sig=x", "PUT", None, errors.InvalidResponseError),
    ("ftp://storage.example/a", "PUT", None, errors.InvalidResponseError),
    ("/a", "PUT", None, errors.InvalidResponseError),
    ("https://storage.example/a", "PATCH", None, errors.InvalidResponseError),
    ("https://storage.example/a", "POST", 0, errors.UploadTooLargeError),
]


@pytest.mark.rule("parse-storage")
@pytest.mark.parametrize(("address", "method", "most", "error"), TARGETS)
def test_where_a_file_may_go(
    address: str, method: str | None, most: int | None, error: type[Exception] | None
) -> None:
    """Over http to a service that is reached so itself only."""
    target = models.ParseUpload(upload_url=address, upload_ref="r", method=method, max_size_bytes=most)
    config = ClientConfig(base_url="https://service.example", api_key="k")
    upload = Upload("parse", io.BytesIO(b"x"), "a.pdf", max_bytes=9)
    if error is None:
        FileTransfer(config, target, upload)
        return
    with pytest.raises(error) as caught:
        FileTransfer(config, target, upload)
    assert "sig=" not in str(caught.value)


def test_secrets_stay_out_of_reprs() -> None:
    told = models.ParseUpload(
        upload_url="https://a.example/?s3cr3t",
        upload_ref="s3cr3t",
        form_fields={"policy": "s3cr3t"},
        headers={"x": "s3cr3t"},
    )
    assert "s3cr3t" not in repr(told)
    assert "s3cr3t" not in repr(models.ParseReferenceRequest(upload_ref="s3cr3t"))
    assert told.to_wire()["fields"] == {"policy": "s3cr3t"}


@pytest.mark.rule("parse-kinds", "parse-extension")
async def test_kinds_of_files(hook, sandbox) -> None:
    """What this version takes is what the service does."""
    told = await settled(hook.parse_formats())
    assert {name for kind in told for name in kind.extensions} == {*parse_models.FILE_EXTENSIONS}
    assert all(kind.available and kind.mime_types for kind in told)
    sandbox.control.add_fault("status", path="/v2/parse/formats", status=404)
    with pytest.raises(errors.NotFoundError):
        await settled(hook.parse_formats())
