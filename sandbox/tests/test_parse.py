# SPDX-License-Identifier: Apache-2.0
"""Parse: a form with a file, over HTTP, to a document; both sides of what the service takes."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from firecrawl import Firecrawl

from tests.support.tables import each_row
from webdata_sandbox.http.uploads import MAX_FILE

from .conftest import reset_sandbox

PDF = (Path(__file__).parent / "files" / "chromium.pdf").read_bytes()
HTML = (
    b'<html lang="en"><head><title>Levels</title></head><body><nav>Menu</nav><main><h1>Levels</h1>'
    b'<p class="x">412 cm <a href="https://weather.example/levels">now</a></p>'
    b'<img src="data:image/png;base64,AA" alt="map">'
    b'<script type="application/ld+json">{"level": 412}</script></main></body></html>'
)


def send(
    api: Any, name: str = "levels.html", content: Any = HTML, options: Any = None, **more: Any
) -> httpx.Response:
    data = (
        {} if options is None else {"options": options if isinstance(options, str) else json.dumps(options)}
    )
    return api.http.post("/v2/parse", files={"file": (name, content, "text/html")}, data=data, **more)


def parsed(api: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    response = send(api, *args, **kwargs)
    assert response.status_code == 200, response.text
    assert response.json()["success"] is True
    return response.json()["data"]


def refused(response: httpx.Response, status: int, code: str) -> str:
    body = response.json()
    assert (response.status_code, body["success"], body["code"]) == (status, False, code), body
    return body["error"]


@pytest.mark.rule("metadata-source-file", "parse-answer")
def test_defaults(api) -> None:
    document = parsed(api)
    metadata = document.pop("metadata")
    assert document == {
        "markdown": "# Levels\n\n412 cm [now](https://weather.example/levels)\n\n![map](<Base64-Image-Removed>)"
    }
    assert len(metadata.pop("scrapeId")) == 36
    assert metadata == {
        "title": "Levels",
        "language": "en",
        "sourceFile": "levels.html",
        "contentType": "text/html",
        "statusCode": 200,
        "creditsUsed": 1,
    }


@pytest.mark.rule("parse-formats")
def test_formats(api) -> None:
    formats = ["summary", "html", "rawHtml", {"type": "links"}, "images"]
    document = parsed(api, options={"formats": formats, "onlyMainContent": False, "includeTags": ["p"]})
    assert document["rawHtml"].encode() == HTML
    assert (
        document["html"]
        == '<div><p class="x">412 cm <a href="https://weather.example/levels">now</a></p></div>'
    )
    assert document["links"] == ["https://weather.example/levels"]
    assert document["summary"].startswith("Levels 412 cm")
    assert "first sentences" in document["warning"]
    assert "markdown" not in document


@pytest.mark.rule("parse-options-part")
def test_options_may_be_absent_or_plain_text(api) -> None:
    assert "markdown" in parsed(api, options="{}")
    assert parsed(api, options={"formats": []}).keys() == {"metadata"}
    error = refused(send(api, options="{not json"), 400, "BAD_REQUEST")
    assert "JSON" in error
    refused(send(api, options="[]"), 400, "BAD_REQUEST")


@pytest.mark.rule("credits-pdf", "document-pdf-pages", "metadata-pdf")
@each_row("maximum, pages, credits", [(None, 2, 2), (1, 1, 1), (2, 2, 2), (10_000, 2, 2)])
def test_pages_of_a_pdf(api, maximum: int | None, pages: int, credits: int) -> None:
    options = {"parsers": [{"type": "pdf", "maxPages": maximum}]} if maximum else {}
    before = api.balance()
    document = parsed(api, "report.pdf", PDF, options)
    metadata = document["metadata"]
    assert (metadata["numPages"], metadata["totalPages"], metadata["creditsUsed"]) == (pages, 2, credits)
    assert ("Second page" in document["markdown"]) is (pages == 2)
    assert metadata["contentType"] == "application/pdf"
    assert api.balance() == before - credits


def test_what_the_sandbox_cannot_read(api) -> None:
    before = api.balance()
    for name, options in (
        ("a.doc", {}),
        ("a.rtf", {}),
        ("a.pdf", {"parsers": [{"type": "pdf", "mode": "ocr"}]}),
        ("a.pdf", {"parsers": [{"type": "pdf", "blocks": True}]}),
        ("a.html", {"redactPII": True}),
    ):
        refused(send(api, name, PDF, options), 400, "UNSUPPORTED_IN_SANDBOX")
    refused(send(api, "a.pdf", b"no PDF"), 500, "SCRAPE_UNSUPPORTED_FILE_ERROR")
    assert "markdown" in parsed(api, "a.html", HTML, {"parsers": []})  # of PDFs only
    assert api.balance() == before - 1


@pytest.mark.rule("page-codes-400", "parse-unsupported")
@each_row(
    "options",
    [
        {"actions": [{"type": "wait", "milliseconds": 1}]},
        {"formats": ["screenshot"]},
        {"formats": ["markdown", {"type": "screenshot", "fullPage": True}]},
        {"formats": ["branding"]},
        {"formats": ["markdown", "changeTracking"]},
        {"waitFor": 1},
        {"location": {"country": "DE"}},
        {"mobile": True},
        {"proxy": "enhanced"},
        {"proxy": "stealth"},
    ],
)
def test_options_that_no_upload_has(api, options: dict[str, Any]) -> None:
    error = refused(send(api, options=options), 400, "PARSE_UNSUPPORTED_OPTIONS")
    name = next(iter(options)) if "formats" not in options else "format"
    assert name in error


@pytest.mark.rule("parse-unsupported")
@each_row("options", [{"waitFor": 0}, {"mobile": False}, {"actions": []}, {"proxy": "basic"}])
def test_what_asks_for_nothing_is_let_through(api, options: dict[str, Any]) -> None:
    assert "markdown" in parsed(api, options=options)


@pytest.mark.rule("parse-formats")
def test_wrong_options(api) -> None:
    response = send(api, options={"timeout": 300_001})
    refused(response, 400, "BAD_REQUEST")
    assert response.json()["details"][0]["path"] == ["timeout"]
    error = refused(send(api, options={"maxAge": 0}), 400, "BAD_REQUEST")
    assert error.startswith("Unrecognized key in body")


@pytest.mark.rule("parse-extension")
def test_file_types(api) -> None:
    assert ".pdf" in refused(send(api, "levels.txt"), 400, "UNSUPPORTED_FILE_TYPE")
    assert parsed(api, "LEVELS.HTM")["metadata"]["sourceFile"] == "LEVELS.HTM"
    assert "| a | b |" in parsed(api, "Größe.csv", b"a,b\n1,2\n")["markdown"]


@pytest.mark.rule("parse-no-form")
def test_bodies_that_are_no_form(api) -> None:
    url = "/v2/parse"
    for response in (
        api.http.post(url, json={"uploadRef": "x"}),
        api.http.post(url),
        api.http.post(url, data={"options": "{}"}),
        api.http.post(url, files={"options": (None, "{}")}),
        api.http.post(url, files={"file": (None, "no file name")}),
        api.http.post(url, files={"file": (" ", "blank file name")}),
        api.http.post(url, files={"file": ("a.html", HTML), "options": ("o.json", "{}")}),
        api.http.post(
            url, content=b"--x\r\ngarbage", headers={"Content-Type": "multipart/form-data; boundary=x"}
        ),
        api.http.post(url, content=b"x", headers={"Content-Type": "multipart/form-data"}),
    ):
        refused(response, 400, "BAD_REQUEST")


def padded(size: int) -> Iterator[bytes]:
    """Yield an HTML file of so many bytes, never all of it at once."""
    yield b"<p>x</p><!--"
    left = size - len("<p>x</p><!---->")
    while left:
        block = min(left, 256 * 1024)
        yield b" " * block
        left -= block
    yield b"-->"


def streamed(api: Any, size: int) -> httpx.Response:
    def body() -> Iterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.html"\r\n\r\n'
        yield from padded(size)
        yield b"\r\n--b--\r\n"

    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    return api.http.post("/v2/parse", content=body(), headers=headers)


@pytest.mark.rule("parse-size")
def test_the_largest_file(sandbox, api) -> None:
    assert streamed(api, MAX_FILE).json()["data"]["markdown"] == "x"
    assert sandbox.control.requests("/v2/parse")[0]["body"]["file"]["size"] == MAX_FILE


@pytest.mark.rule("parse-size")
def test_a_larger_file(api) -> None:
    assert "50MB" in refused(streamed(api, MAX_FILE + 1), 400, "BAD_REQUEST")


def test_a_large_file_is_not_held_in_memory_while_it_comes(sandbox, api) -> None:
    tracemalloc.start()
    try:
        refused(streamed(api, MAX_FILE + 10 * 1024 * 1024), 400, "BAD_REQUEST")
        _, peak = tracemalloc.get_traced_memory()  # the sandbox is a thread of this process
    finally:
        tracemalloc.stop()
    assert peak < 20 * 1024 * 1024


def test_the_record_holds_no_content(sandbox, api) -> None:
    parsed(api, options={"formats": ["html"]})
    (request,) = sandbox.control.requests("/v2/parse")
    assert request["body"]["file"]["filename"] == "levels.html"
    assert request["body"]["file"]["size"] == len(HTML)
    assert json.loads(request["body"]["options"]) == {"formats": ["html"]}
    assert "412 cm" not in json.dumps(request)


def test_who_may(sandbox, api) -> None:
    assert send(api, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert send(api, options={"zeroDataRetention": True}).status_code == 403
    sandbox.control.configure(entitlements=["zeroDataRetention"])
    assert send(api, options={"zeroDataRetention": True}).status_code == 200
    sandbox.control.configure(credits=0)
    assert send(api).status_code == 402
    sandbox.control.configure(credits=1)
    assert send(api).status_code == 200


@pytest.mark.rule("keyless-calls")
def test_without_a_key(sandbox, api) -> None:
    def without_key(path: str, **body: Any) -> int:
        return httpx.post(f"{sandbox.url}/v2/{path}", trust_env=False, verify=False, **body).status_code

    upload = {"files": {"file": ("a.html", HTML)}}
    assert without_key("parse", **upload) == 401
    sandbox.control.set_quirks(["keyless-limit=2"])
    try:
        assert [without_key("agent", json={"prompt": "x"}), without_key("parse", **upload)] == [401, 200]
        assert [without_key("interact", json={}), without_key("interact", json={})] == [200, 429]
    finally:
        sandbox.control.set_quirks([])


@pytest.mark.rule("rate-classes")
def test_rate_limit_is_that_of_scrapes(sandbox, api) -> None:
    sandbox.control.configure(rate_limits={"scrape": 1})
    assert [send(api).status_code for _ in range(2)] == [200, 429]


@each_row("kind", ["drop", "drop_after_work"], before=reset_sandbox)
def test_faults_come_after_the_whole_upload(sandbox, api, kind: str) -> None:
    sandbox.control.add_fault(kind, path="/v2/parse")
    before = api.balance()
    with pytest.raises(httpx.RemoteProtocolError):
        send(api)
    assert sandbox.control.requests("/v2/parse")[0]["body"]["file"]["size"] == len(HTML)
    assert before - api.balance() == int(kind == "drop_after_work")


class TestTime:
    """Work that outlives the request."""

    @pytest.mark.rule("parse-timeout", "parse-time")
    @each_row(
        "seconds, options, status",
        [(30, {}, 200), (30.5, {}, 408), (1, {"timeout": 1000}, 200), (1.1, {"timeout": 1000}, 408)],
        before=reset_sandbox,
    )
    def test_timeout(self, sandbox, api, seconds: float, options: dict[str, Any], status: int) -> None:
        sandbox.control.configure(parse_seconds=seconds)
        assert send(api, options=options).status_code == status

    def test_what_is_no_document_is_given_up(self, sandbox, api) -> None:
        sandbox.control.configure(parse_seconds=100)
        for _ in range(2):
            response = send(api)
            refused(response, 408, "SCRAPE_TIMEOUT")
            assert "details" not in response.json()
            sandbox.control.advance(1000)

    @pytest.mark.rule("large-documents-answer", "large-documents-again", "parse-time")
    def test_a_pdf_goes_on_being_processed(self, sandbox, api) -> None:
        sandbox.control.configure(parse_seconds=90)
        before = api.balance()
        response = send(api, "report.pdf", PDF)
        refused(response, 408, "SCRAPE_TIMEOUT")
        assert response.headers["retry-after"] == "60"
        assert response.json()["details"] == {
            "state": "processing_continues",
            "documentPages": 2,
            "jobStatus": "running",
            "estimatedRemainingSeconds": 60,
            "retryAfterSeconds": 60,
            "mayExceedProcessingWindow": False,
        }
        sandbox.control.advance(50)
        early = send(api, "report.pdf", PDF)
        assert early.status_code == 408
        assert 0 < int(early.headers["retry-after"]) <= 10
        sandbox.control.advance(10)
        assert parsed(api, "report.pdf", PDF)["metadata"]["numPages"] == 2
        assert api.balance() == before - 2
        # It is done with: the next one is work of its own again.
        assert send(api, "report.pdf", PDF).headers["retry-after"] == "60"

    def test_only_the_same_request_finds_it(self, sandbox, api) -> None:
        sandbox.control.configure(parse_seconds=90)
        assert send(api, "report.pdf", PDF).status_code == 408
        sandbox.control.advance(60)
        for name, content, options in (
            ("other.pdf", PDF, None),
            ("report.pdf", PDF + b"\n", None),
            ("report.pdf", PDF, {"formats": ["html"]}),
        ):
            assert send(api, name, content, options).headers["retry-after"] == "60"
        assert send(api, "report.pdf", PDF, "{}").status_code == 200

    @pytest.mark.rule("large-documents-answer")
    @each_row(
        "seconds, hint, beyond",
        [(630, "600", False), (1230, "600", False), (1232, "600", True)],
        before=reset_sandbox,
    )
    def test_hints_are_bounded(self, sandbox, api, seconds: float, hint: str, beyond: bool) -> None:
        sandbox.control.configure(parse_seconds=seconds)
        response = send(api, "report.pdf", PDF)
        details = response.json()["details"]
        assert response.headers["retry-after"] == hint
        assert details["retryAfterSeconds"] == int(hint)
        assert details["estimatedRemainingSeconds"] == seconds - 30
        assert details["mayExceedProcessingWindow"] is beyond


UPLOAD_URL = "/v2/parse/upload-url"


def destination(api: Any, **body: Any) -> httpx.Response:
    return api.http.post(UPLOAD_URL, json={"filename": "levels.html", **body})


@pytest.mark.rule("parse-upload", "parse-storage", "parse-reference-once")
@each_row("quirks", [[], ["upload-form"]], before=reset_sandbox)
def test_by_reference(sandbox, api, quirks) -> None:
    sandbox.control.set_quirks(quirks)
    target = destination(api, declaredSizeBytes=len(HTML), contentType="text/html").json()["data"]
    reference = {"uploadRef": target["uploadRef"], "formats": ["markdown"]}
    assert "not available" in refused(api.http.post("/v2/parse", json=reference), 400, "BAD_REQUEST")
    if quirks:
        stored = httpx.post(
            target["uploadUrl"],
            data=target["fields"],
            files={"file": ("x", HTML)},
            trust_env=False,
            verify=False,
        )
    else:
        stored = httpx.put(
            target["uploadUrl"], content=HTML, headers=target["headers"], trust_env=False, verify=False
        )
    assert stored.status_code == 200, stored.text
    document = api.http.post("/v2/parse", json=reference).json()["data"]
    assert document["markdown"].startswith("# Levels")
    assert document["metadata"]["sourceFile"] == "levels.html"
    assert "not available" in refused(api.http.post("/v2/parse", json=reference), 400, "BAD_REQUEST")


@pytest.mark.rule("parse-upload", "parse-storage")
def test_by_reference_refused(sandbox, api) -> None:
    refused(destination(api, filename="x.txt"), 400, "UNSUPPORTED_FILE_TYPE")
    refused(destination(api, declaredSizeBytes=MAX_FILE + 1), 400, "BAD_REQUEST")
    refused(destination(api, filename=""), 400, "BAD_REQUEST")
    refused(api.http.post("/v2/parse", json={"uploadRef": "nonsense"}), 400, "BAD_REQUEST")
    target = destination(api).json()["data"]
    sandbox.control.advance(601)
    assert httpx.put(target["uploadUrl"], content=HTML, trust_env=False, verify=False).status_code == 404


@pytest.mark.rule("parse-uploads-used-up")
def test_unparsed_uploads(sandbox, api) -> None:
    assert {destination(api).status_code for _ in range(10)} == {200}
    refused(destination(api), 429, "PARSE_UPLOAD_UNPARSED_LIMIT_REACHED")
    sandbox.control.advance(86_401)
    assert destination(api).status_code == 200


@pytest.mark.rule("parse-kinds", "parse-extension")
def test_kinds(sandbox, api) -> None:
    told = api.http.get("/v2/parse/formats").json()["data"]["formats"]
    assert {".pdf", ".csv", ".docx"} <= {name for kind in told for name in kind["extensions"]}
    client = Firecrawl(api_key=sandbox.api_key, api_url=sandbox.url)
    assert [kind.format for kind in client.get_parse_formats()] == [kind["format"] for kind in told]
