# SPDX-License-Identifier: Apache-2.0
"""Messages of unusable answers, failures, and refused calls, word by word."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.api.config import ClientConfig
from airflow_provider_webdata.api.errors import InvalidRequestError, WebDataError
from airflow_provider_webdata.api.exchange import Reader, prepare
from airflow_provider_webdata.api.models import SearchRequest

CONFIG = ClientConfig(
    "https://api.example/base", "fc-secret-key", declared="hosted", headers={"x-tenant": "tenant-one"}
)
JOB = "01234567-89ab-cdef-0123-456789abcdef"
X, Y, Z = "x" * 200, "y" * 200, "z" * 150
HOST = "check that the connection's host is the service. It starts with: "
PROXY = "probably from a proxy in front of the service"


def error_of(status: int, headers: dict[str, str], body: Any) -> WebDataError:
    prepared = prepare(CONFIG, endpoints.SEARCH, None, None, SearchRequest(query="q"), None)
    reader = Reader(prepared, httpx.Response(status, headers=headers))
    reader.feed(body if isinstance(body, bytes) else json.dumps(body).encode())
    with pytest.raises(WebDataError) as caught:
        reader.finish()
    return caught.value


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        (b"", {}, "the body is empty"),
        (b"\xef\xbb\xbf", {}, "the body is empty"),
        (b"[1]", {}, "the body: Input should be a valid dictionary or instance of SearchResponse (error 1 of 1)"),
        (
            {"success": True, "data": {"web": {}, "news": 5, "images": "x"}},
            {},
            "data.web: Input should be a valid list (error 1 of 3)",
        ),
        (b'  {"a": ', {}, "its JSON is invalid or truncated after 8 bytes"),
        (b" [1, ", {}, "its JSON is invalid or truncated after 5 bytes"),
        (b" " * 63 + b"[1, ", {}, "its JSON is invalid or truncated after 67 bytes"),
        (b" " * 64 + b"[1, ", {}, f"it is text without a content type, not JSON; {HOST}[1,"),
        (
            b"<html>fc-secret-key of tenant-one</html>",
            {"content-type": "text/html; charset=utf-8"},
            f"it is text/html, not JSON; {HOST}<html>*** of ***</html>",
        ),
        (b"hello " * 100, {}, f"it is text without a content type, not JSON; {HOST}{('hello ' * 34)[:199]}\u2026"),
    ],
    ids=[
        "nothing", "a byte order mark", "a list", "three places", "half an object", "half a list", "blanks",
        "more blanks", "a page with secrets", "a long text",
    ],
)  # fmt: skip
def test_a_success_that_is_not_usable(body: Any, headers: dict[str, str], said: str) -> None:
    assert (
        error_of(200, headers, body).brief() == f"search: the response (HTTP 200) is invalid: {said} (WD-011)"
    )


def read(body: str, endpoint: Any = endpoints.SEARCH) -> Any:
    config = ClientConfig("https://api.example", "fc-secret-key")
    reader = Reader(prepare(config, endpoint, None, None, None, None), httpx.Response(200))
    reader.feed(body.encode())
    return reader.finish()


@pytest.mark.rule("odd-values")
def test_odd_parts_of_an_answer_are_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    body = {
        "data": {"web": [None, {"url": "u"}, "x"], "news": [5]},
        "creditsUsed": "abc",
        "warning": ["a", "b"],
    }
    found = read(json.dumps({"success": True, "id": 7, **body}))
    assert found.to_wire() == {
        "success": True, "id": None, "data": {"web": [{"url": "u"}], "news": []}, "creditsUsed": None, "warning": "a; b"
    }  # fmt: skip
    assert found.skipped == 3
    assert [record.getMessage() for record in caplog.records] == [
        "search: the response has an undocumented form: skipped 1 of news; skipped 2 of web; ignored the value of "
        "creditsUsed, id"
    ]


@pytest.mark.rule("long-numbers")
def test_long_numbers_cost_no_answer() -> None:
    many = "9" * 5000
    said = rf'"\u00e4\" {many} \\"'
    values = f"[{many}, -{many}, 0.{many}, 1{many}E5, 12, 0.5, 1e3, 1e999, true, null, {said}]"
    found = read(f'{{"data": {{"web": [{{"url": "u", "json": {values}}}]}}, "creditsUsed": {many}}}')
    assert found.credits_used is None
    assert found.data.web[0].json_ == [
        many, f"-{many}", f"0.{many}", f"1{many}E5", 12, 0.5, 1e3, float("inf"), True, None, json.loads(said)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("location", "said"),
    [
        (None, "it redirects without a valid location; check the connection's host"),
        ("https://[x", "it redirects without a valid location; check the connection's host"),
        ("/login?x=1", "it redirects to /login on the same host; check the path in the connection's host"),
        ("login", "it redirects to /base/v2/login on the same host; check the path in the connection's host"),
        (
            "https://u:p@w@evil.example/x",
            "it redirects to https://evil.example; set the connection's host to the service's own address",
        ),
        (
            "http://api.example/x",
            "it redirects to http://api.example; set the connection's host to the service's own address",
        ),
    ],
)
def test_a_redirect(location: str | None, said: str) -> None:
    error = error_of(302, {} if location is None else {"Location": location}, b"")
    assert error.brief() == f"search: the response (HTTP 302) is invalid: {said} (WD-011)"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": ["one", 2, None]}, "one; 2; None"),
        (
            {"error": [{"path": ["a", 0], "message": "bad"}, {"path": "b", "message": "worse"}]},
            "a.0: bad; b: worse",
        ),
        ({"error": [{"message": "no path"}, {"path": None, "message": "none: "}]}, "no path; none"),
        ({"error": [{"path": ["a"]}, {"path": ""}, 5]}, "a; 5"),
        ({"error": [{"path": "X", "message": "X!"}]}, "X: X!"),
        ({"error": list("abcdef")}, "a; b; c; d; e"),
        (
            {"error": [X, X + "x", {"message": Y + "y"}]},
            f"{X}; {X[1:]}\u2026; {Y[1:]}\u2026"[:499] + "\u2026",
        ),
        ({"error": "Bad", "details": [{"path": ["n"], "message": "few"}]}, "Bad (n: few)"),
        ({"error": "Bad", "details": [Z] * 6}, f"Bad ({'; '.join([Z] * 5)})"),
        ({"error": "Bad", "details": [X] * 6}, f"Bad ({'; '.join([X] * 5)}"[:999] + "\u2026"),
        ({"success": False, "error": ""}, "the service gave no reason"),
        ({"error": "", "message": "by message"}, "by message"),
        (b"", f"the error body is empty, {PROXY}"),
        (b"[1]", "the error body is not a valid JSON object; it starts with: [1]"),
        (
            b"Bad\x1b[0m",
            f"the error body is not JSON but text without a content type, {PROXY}; it starts with: Bad",
        ),
    ],
)
def test_a_failure(body: Any, said: str) -> None:
    assert error_of(400, {}, body).brief() == f"search: HTTP 400: {said} (WD-400)"


def literal(value: str, path: list[Any]) -> dict[str, Any]:
    said = f'Invalid input: expected "{value}"'
    return {"code": "invalid_value", "values": [value], "path": path, "message": said}


def mistyped(wanted: str, path: list[Any]) -> dict[str, Any]:
    said = f"Invalid input: expected {wanted}, received string"
    return {"code": "invalid_type", "expected": wanted, "path": path, "message": said}


def union(path: list[Any], *branches: list[Any]) -> dict[str, Any]:
    return {"code": "invalid_union", "errors": [*branches], "path": path, "message": "Invalid input"}


SOURCES = [{"code": "invalid_value", "values": ["web", "news"], "path": [0], "message": "Invalid option"}]
TOO_SMALL = {"code": "too_small", "path": ["maxPages"], "message": "Too small: expected number to be >0"}
SELECTOR = mistyped("string", ["selector"])
ONCE = "Number of actions cannot exceed 50"


@pytest.mark.rule("error-details")
@pytest.mark.parametrize(
    ("error", "details", "said"),
    [
        (
            "Bad Request",
            [union(["formats", 0], *([literal(name, ["type"])] for name in ("markdown", "html", "rawHtml")))],
            'Bad Request (formats.0.type: expected "markdown", "html", "rawHtml")',
        ),
        (
            "Bad Request",
            [union(["actions", 0], [literal("wait", ["type"])], [literal("click", ["type"]), SELECTOR])],
            'Bad Request (actions.0.type: expected "wait", "click")',
        ),
        (
            "Bad Request",
            [union(["actions", 0], [literal("wait", ["type"])], [SELECTOR])],
            "Bad Request (actions.0.selector: Invalid input: expected string, received string)",
        ),
        (
            "Bad Request",
            [union(["parsers", 0], [literal("pdf", [])], [mistyped("object", [])])],
            'Bad Request (parsers.0: expected "pdf")',
        ),
        (
            "Bad Request",
            [union(["parsers", 0], [literal("pdf", [])], [TOO_SMALL])],
            "Bad Request (parsers.0.maxPages: Too small: expected number to be >0)",
        ),
        (
            "Invalid request body",
            [union(["sources"], SOURCES, [union([0], [mistyped("object", [])], [mistyped("object", [])])])],
            'Invalid request body (sources.0: expected "web", "news")',
        ),
        (
            "No",
            [union(["a"], [mistyped("string", [])], [mistyped("array", [])])],
            "No (a: Invalid input: expected string, received string or Invalid input: expected array, "
            "received string)",
        ),
        ("No", [union(["a"]), {**union(["b"]), "errors": [[], "x", [5]]}], "No (a: Invalid input; b: 5)"),
        (ONCE, [{"code": "custom", "path": ["actions"], "message": ONCE}], f"{ONCE} (actions)"),
        (ONCE, [{"code": "custom", "path": [], "message": ONCE}], ONCE),
        ("Bad", "the body is empty", "Bad (the body is empty)"),
    ],
)
def test_the_issues_of_a_failure(error: str, details: Any, said: str) -> None:
    failure = error_of(400, {}, {"success": False, "error": error, "details": details})
    assert failure.brief() == f"search: HTTP 400: {said} (WD-400)"


def test_a_deep_union_is_a_short_text() -> None:
    issue = literal("x", ["y"])
    for _ in range(60):
        issue = union(["u"], [issue])
    assert str(error_of(400, {}, {"error": "Bad", "details": [issue]})).startswith(
        "search: HTTP 400: Bad (u.u.u"
    )


FORM = "the error body has an unknown form; it starts with: "


@pytest.mark.rule("error-body")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"detail": "Not\nFound"}, "Not Found"),
        (
            {"detail": [{"loc": ["body", "url"], "msg": "Field required"}]},
            "body.url: Field required",
        ),
        ({"title": "Gone away", "status": 400}, FORM + '{"title": "Gone away", "status": 400}'),
        (
            {"fault": {"faultstring": "No key fc-secret-key", "x": "tenant-one"}, "success": False},
            FORM + '{"fault": {"faultstring": "No key ***", "x": "***"}}',
        ),
        ({"error": 5, "n": "n" * 600}, f'{FORM}{{"n": "{"n" * 600}'[: len(FORM) + 499] + "\u2026"),
        ({"error": "invalid_token", "error_description": "It expired"}, "invalid_token: It expired"),
        ({"error": {"code": "X", "message": "Denied"}, "message": "Denied"}, "Denied"),
    ],
)
def test_a_failure_in_another_servers_form(body: Any, said: str) -> None:
    failure = error_of(400, {}, body)
    assert failure.brief().removesuffix(" (WD-400)").partition(": ")[2].partition(": ")[2] == said


def test_the_kind_of_a_failure() -> None:
    error = error_of(502, {"Content-Type": "text/html;charset=utf-8"}, b"<h1>Bad gateway</h1>")
    said = f"the error body is not JSON but text/html, {PROXY}; it starts with: <h1>Bad gateway</h1>"
    assert error.brief() == f"search: HTTP 502: {said} (WD-500)"


class NoJSON:
    def __repr__(self) -> str:
        return "<what JSON does not have>"


HALF = "a lone surrogate, which UTF-8 cannot encode"
MONITOR = {"endpoint": endpoints.GET_MONITOR}
NAMES = (
    "extra_body: integration: must begin with '_', as every server accepts, or be a name that the service knows (as of "
    "2026-08-21): camelai, cli, crewai, dify, flowise, gstack, hermes, langchain, llamaindex, make, metagpt, n8n, "
    "pipedream, prometheus, raycast, relevanceai, viasocket, zapier (given: {given})"
)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "extra body": (
        {"extra_body": {"good": 1, "bad": "\ud83d", "worse": NoJSON()}},
        f"extra_body: the value of 'bad' contains {HALF}\n  - extra_body: the value of 'worse' is not valid JSON: "
        f"Unable to serialize unknown type: {NoJSON!r}",
    ),
    "deep half": (
        {"extra_body": {"a": [{"b": "\ud83d"}]}}, f"extra_body: the value of 'a' contains {HALF}"
    ),
    "half a name": ({"extra_body": {"\ud83d": 1}}, f"extra_body: the value of '\\ud83d' contains {HALF}"),
    "integration": ({"extra_body": {"integration": "airflow"}}, NAMES.format(given="'airflow'")),
    "integration of another type": ({"extra_body": {"integration": ["_x"]}}, NAMES.format(given="['_x']")),
    "half a query": (
        {"endpoint": endpoints.ACTIVITY, "query": {"cursor": "a\ud83d"}},
        f"cursor: the text contains {HALF} (given: 'a\\ud83d')",
    ),
    "half an id": (
        {**MONITOR, "path": {"monitor_id": "a\ud83d"}},
        f"monitor_id: the text contains {HALF} (given: 'a\\ud83d')",
    ),
    "blank id": ({**MONITOR, "path": {"monitor_id": " "}}, "monitor_id: must be an identifier (given: ' ')"),
    "dot": ({**MONITOR, "path": {"monitor_id": "."}}, "monitor_id: must be an identifier (given: '.')"),
    "dots": ({**MONITOR, "path": {"monitor_id": ".."}}, "monitor_id: must be an identifier (given: '..')"),
    "dots after a blank": (
        {**MONITOR, "path": {"monitor_id": " .."}},
        "monitor_id: must be an identifier (given: ' ..')",
    ),
    "no id": ({**MONITOR, "path": {"monitor_id": None}}, "monitor_id: must be an identifier (given: None)"),
    "ignored key": (
        {"idempotency_key": JOB},
        "idempotency_key: this operation does not support one; omit it",
    ),
    "odd key": (
        {"endpoint": endpoints.START_CRAWL, "idempotency_key": "key"},
        "idempotency_key: must be a UUID (given: 'key')",
    ),
    "longer key": (
        {"endpoint": endpoints.START_CRAWL, "idempotency_key": f"{JOB}\r\nx: y"},
        f"idempotency_key: must be a UUID (given: '{JOB}\\r\\nx: y')",
    ),
}  # fmt: skip


@pytest.mark.rule("half-characters", "ids", "idempotency-key")
@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED)
def test_a_call_that_cannot_be_made(arguments: dict[str, Any], said: str) -> None:
    given = {
        "endpoint": endpoints.SEARCH,
        "path": None,
        "query": None,
        "body": None,
        "extra_body": None,
        **arguments,
    }
    with pytest.raises(InvalidRequestError) as caught:
        prepare(CONFIG, **given)
    problems = "the request has a problem" if "\n" not in said else "the request has 2 problems"
    assert (
        caught.value.brief()
        == f"{given['endpoint'].label}: nothing was sent, {problems}:\n  - {said} (WD-002)"
    )


@pytest.mark.rule("caller-integration")
@pytest.mark.parametrize("label", ["_airflow", "n8n", None])
def test_an_accepted_label_in_an_extra_body(label: str | None) -> None:
    prepared = prepare(CONFIG, endpoints.SEARCH, None, None, SearchRequest(query="q"), {"integration": label})
    assert json.loads(prepared.request["content"])["integration"] == label


def test_a_path_is_one_segment() -> None:
    prepared = prepare(CONFIG, endpoints.CRAWL_STATUS, {"job_id": " X/../Y "}, None, None, None)
    assert str(prepared.request["url"]) == "https://api.example/base/v2/crawl/X%2F..%2FY"
