"""Parse, extract, agent and interact: limits from both sides, the wire, doubts, secrets, answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api import models as m
from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.api.models.parse import FILE_EXTENSIONS, MAX_FILE_BYTES, has_known_extension
from tests.unit.api.models.limits import Row, assert_named, beyond, within
from tests.unit.api.models.test_properties import (
    BROAD,
    headers,
    label,
    plain,
    schema,
    scrape_options,
    snake_case,
    some,
    switch,
    text,
    threat,
    typed,
)

JOB = "https://hooks.example/in"
SWITCHES = ([True, False], [1, 0, "yes", "", []])
LABELS = (["airflow"], ["", " ", 5])
SCHEMAS = (
    [{}, {"type": "object", "properties": {"a": {"type": "string"}}}],
    [{"type": "nothing"}, {"properties": []}, [], "{}", {"required": "a"}, {"minimum": "x"}],
)
TEXTS = (["x", "x" * 10_000], ["", " ", "x" * 10_001, 5])


def extract(**fields: Any) -> dict[str, Any]:
    return {"urls": ["https://a.example/*"], **fields}


def agent(**fields: Any) -> dict[str, Any]:
    return {"prompt": "p", **fields}


def code(**fields: Any) -> dict[str, Any]:
    return {"code": "print(1)", **fields}


CODES = (
    ["x", " ", "x" * 100_000, "ä" * 50_000, "\n", "𐍈" * 25_000],
    ["", "x" * 100_001, "ä" * 50_000 + "x", "𐍈" * 25_000 + "x", 5, b"x", "\ud800"],
)

# What is limited: model, body around the value, path of the error, values that pass, values that do not.
ROWS: dict[str, Row] = {
    # Parse.
    "parse format": (
        m.ParseOptions,
        lambda v: {"formats": [v]},
        "formats.0",
        [
            *("markdown", "summary", "html", "rawHtml", "links", "images", "json"),
            *({"type": "html"}, {"type": "json", "prompt": "p", "schema": {}}),
        ],
        [
            *("screenshot", "branding", "changeTracking", "audio", "question", "rawBase64", "pdf", 5),
            *({"type": "screenshot"}, {"type": "question", "question": "q"}, {"type": "json", "quality": 1}),
            {"type": "html", "prompt": "p"},
        ],
    ),
    "parse json schema": (
        m.ParseOptions,
        lambda v: {"formats": [{"type": "json", "schema": v}]},
        "formats.0.schema",
        *SCHEMAS,
    ),
    "parse timeout": (
        m.ParseOptions,
        lambda v: {"timeout": v},
        "timeout",
        [1, 30_000, 300_000],
        [0, -1, 300_001, True, 1.5],
    ),
    "parse proxy": (
        m.ParseOptions,
        lambda v: {"proxy": v},
        "proxy",
        ["basic", "auto"],
        ["enhanced", "stealth", ""],
    ),
    "parse parser": (
        m.ParseOptions,
        lambda v: {"parsers": v},
        "parsers",
        [[], ["pdf"], [{"type": "pdf", "mode": "ocr", "maxPages": 10_000}], ["image"]],
        ["pdf", ["docx"], [{"type": "pdf", "maxPages": 10_001}], [{"type": "pdf", "maxPages": 0}]],
    ),
    "parse redactPII": (
        m.ParseOptions,
        lambda v: {"redactPII": v},
        "redactPII",
        [True, False, {}, {"mode": "fast"}],
        [1, "yes", {"mode": "slow"}],
    ),
    "parse auditMetadata": (
        m.ParseOptions,
        lambda v: {"auditMetadata": {"username": v}},
        "auditMetadata.username",
        ["u", "u" * 1024],
        ["u" * 1025, 5],
    ),
    "parse headers": (
        m.ParseOptions,
        lambda v: {"headers": v},
        "headers",
        [{"A": "b"}],
        [{"A": 1}, {"a b": "c"}],
    ),
    "parse integration": (m.ParseOptions, lambda v: {"integration": v}, "integration", [None, "x"], ["", 5]),
    **{
        f"parse {name}": (m.ParseOptions, lambda v, name=name: {name: v}, name, *SWITCHES)
        for name in (
            *("onlyMainContent", "skipTlsVerification", "removeBase64Images"),
            *("blockAds", "zeroDataRetention"),
        )
    },
    **{
        f"parse {name}": (
            m.ParseOptions,
            lambda v, name=name: {name: v},
            name,
            [[], ["nav", ".ad"]],
            ["nav", [""]],
        )
        for name in ("includeTags", "excludeTags")
    },
    **{
        f"parse has no {name}": (
            m.ParseOptions,
            lambda v: v,
            name,
            [{}],
            [{name: value}],
        )
        for name, value in {
            "actions": [],
            "waitFor": 1,
            "location": {"country": "US"},
            "mobile": True,
            "maxAge": 1,
            "profile": {"name": "p"},
            "onlyCleanContent": True,
        }.items()
    },
    # Extract.
    "extract url": (
        m.ExtractRequest,
        lambda v: {"urls": [v]},
        "urls.0",
        ["https://a.example", "a.example/*", "https://a.example/docs/*"],
        ["", " ", "ftp://a.example", "a b", 5],
    ),
    "extract prompt": (m.ExtractRequest, lambda v: {"prompt": v}, "prompt", *TEXTS),
    "extract systemPrompt": (m.ExtractRequest, lambda v: extract(systemPrompt=v), "systemPrompt", *TEXTS),
    "extract schema": (m.ExtractRequest, lambda v: extract(schema=v), "schema", *SCHEMAS),
    "extract scrapeOptions": (
        m.ExtractRequest,
        lambda v: extract(scrapeOptions={"timeout": v}),
        "scrapeOptions.timeout",
        [1000, 300_000],
        [999, 300_001],
    ),
    "extract event": (
        m.ExtractRequest,
        lambda v: extract(webhook={"url": JOB, "events": [v]}),
        "webhook.events",
        ["started", "completed", "failed"],
        ["page", "action", "cancelled", "extract.completed"],
    ),
    **{
        f"extract {name}": (m.ExtractRequest, lambda v, name=name: extract(**{name: v}), name, *SWITCHES)
        for name in (
            *("enableWebSearch", "ignoreSitemap", "includeSubdomains", "showSources"),
            *("ignoreInvalidURLs", "allowExternalLinks"),
        )
    },
    "extract origin": (m.ExtractRequest, lambda v: extract(origin=v), "origin", *LABELS),
    # Agent.
    "agent prompt": (m.AgentRequest, lambda v: {"prompt": v}, "prompt", TEXTS[0], [*TEXTS[1], None]),
    "agent url": (
        m.AgentRequest,
        lambda v: agent(urls=[v]),
        "urls.0",
        ["a.example"],
        ["", "ftp://a.example"],
    ),
    "agent strictConstrainToURLs": (
        m.AgentRequest,
        lambda v: agent(urls=["a.example"], strictConstrainToURLs=v),
        "strictConstrainToURLs",
        *SWITCHES,
    ),
    "agent schema": (m.AgentRequest, lambda v: agent(schema=v), "schema", *SCHEMAS),
    "agent maxCredits": (
        m.AgentRequest,
        lambda v: agent(maxCredits=v),
        "maxCredits",
        [1, 0.5, 2500, 100_000],
        [0, -1, True, "many", float("nan"), float("inf")],
    ),
    "agent model": (
        m.AgentRequest,
        lambda v: agent(model=v),
        "model",
        ["spark-2", "spark-1-mini", "spark-1-pro"],
        ["spark", "", 1],
    ),
    "agent effort": (m.AgentRequest, lambda v: agent(effort=v), "effort", ["low", "medium", "high"], ["max"]),
    "agent event": (
        m.AgentRequest,
        lambda v: agent(webhook={"url": JOB, "events": [v]}),
        "webhook.events",
        ["started", "action", "completed", "failed", "cancelled"],
        ["page", "agent.completed", ""],
    ),
    "agent auditMetadata": (
        m.AgentRequest,
        lambda v: agent(auditMetadata={"username": v}),
        "auditMetadata.username",
        ["u" * 1024],
        ["u" * 1025],
    ),
    "agent zeroDataRetention": (
        m.AgentRequest,
        lambda v: agent(zeroDataRetention=v),
        "zeroDataRetention",
        *SWITCHES,
    ),
    # Sessions.
    "ttl": (m.InteractRequest, lambda v: {"ttl": v}, "ttl", [30, 3600], [29, 3601, 0, True, 30.5, "x"]),
    "activityTtl": (
        m.InteractRequest,
        lambda v: {"activityTtl": v},
        "activityTtl",
        [10, 3600],
        [9, 3601, -1],
    ),
    **{
        f"session {name}": (m.InteractRequest, lambda v, name=name: {name: v}, name, *SWITCHES)
        for name in ("streamWebView", "blockAds", "recordSession")
    },
    "session profile": (
        m.InteractRequest,
        lambda v: {"profile": {"name": v, "saveChanges": False}},
        "profile.name",
        ["p", "p" * 128],
        ["", "p" * 129],
    ),
    "code": (m.ExecuteRequest, lambda v: {"code": v}, "code", CODES[0], [*CODES[1], None]),
    "code timeout": (m.ExecuteRequest, lambda v: code(timeout=v), "timeout", [1, 300], [0, 301, 1.5, True]),
    "language": (
        m.ExecuteRequest,
        lambda v: code(language=v),
        "language",
        ["python", "node", "bash"],
        ["sh", ""],
    ),
    # On the page of a scrape.
    "scrape code": (m.ScrapeInteractRequest, lambda v: {"code": v}, "code", *CODES),
    "scrape prompt": (m.ScrapeInteractRequest, lambda v: {"prompt": v}, "prompt", *TEXTS),
    "scrape code timeout": (
        m.ScrapeInteractRequest,
        lambda v: code(timeout=v),
        "timeout",
        [1, 300],
        [0, 301],
    ),
    "scrape language": (
        m.ScrapeInteractRequest,
        lambda v: code(language=v),
        "language",
        ["python", "node", "bash"],
        ["ruby"],
    ),
    "scrape ttl": (m.ScrapeInteractRequest, lambda v: code(ttl=v), "ttl", [30, 3600], [29, 3601]),
    "scrape activityTtl": (
        m.ScrapeInteractRequest,
        lambda v: code(activityTtl=v),
        "activityTtl",
        [10, 3600],
        [9, 3601],
    ),
}


@within(ROWS)
def test_within_the_limit_the_body_is_sent_as_given(
    model: type[m.RequestModel], body: dict[str, Any]
) -> None:
    assert model.model_validate(body).to_wire() == body


@pytest.mark.rule("caller-labels", "scrape-switches", "scrape-clean-content", "scrape-tags", "scrape-max-age")
@pytest.mark.rule("scrape-wait-for", "scrape-tls", "scrape-actions", "search-location")
@pytest.mark.rule("search-ignore-invalid-urls", "parse-formats", "parse-timeout", "parse-proxy")
@pytest.mark.rule("parse-further", "parse-unsupported", "extract-source", "extract-prompts", "extract-schema")
@pytest.mark.rule("extract-switches", "extract-ignore-invalid-urls", "extract-further")
@pytest.mark.rule("extract-server-fields", "agent-prompt", "agent-urls", "agent-schema", "agent-max-credits")
@pytest.mark.rule("agent-model", "agent-further", "agent-server-fields", "session-ttl")
@pytest.mark.rule("session-activity-ttl", "session-profile", "session-further", "code-text", "code-language")
@pytest.mark.rule("code-timeout", "scrape-interact", "monitor-name", "webhook-events-steps")
@beyond(ROWS)
def test_beyond_the_limit_the_field_is_named(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str
) -> None:
    assert_named(problems(model, body), path)


@pytest.mark.rule("extract-source", "scrape-interact")
@pytest.mark.parametrize(
    "model, body, rule",
    [
        (m.ExtractRequest, {}, "'urls', 'prompt' or both"),
        (m.ExtractRequest, {"urls": []}, "'urls', 'prompt' or both"),
        (m.ExtractRequest, {"urls": None, "prompt": None, "schema": {}}, "'urls', 'prompt' or both"),
        (m.ExtractRequest, {"schema": {}, "enableWebSearch": True}, "'urls', 'prompt' or both"),
        (m.ScrapeInteractRequest, {}, "'code' or 'prompt'"),
        (m.ScrapeInteractRequest, {"language": "bash", "timeout": 5}, "'code' or 'prompt'"),
    ],
)
def test_what_there_is_to_work_on(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], rule: str
) -> None:
    found = problems(model, body)
    assert list(found) == [""]
    assert rule in found[""]


@pytest.mark.rule("request-body")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.ExtractRequest, {"prompt": "p"}),
        (m.ExtractRequest, {"urls": [], "prompt": "p"}),
        (m.ExtractRequest, {"urls": ["a.example"]}),
        (m.ExtractRequest, {"urls": ["a.example"], "integration": None}),
        (m.AgentRequest, {"prompt": "p", "webhook": {"url": JOB}}),
        (m.ScrapeInteractRequest, {"prompt": "p"}),
        (m.ScrapeInteractRequest, {"code": "1", "prompt": "p"}),
        (m.InteractRequest, {}),
        (m.ParseOptions, {}),
        (m.ParseOptions, {"formats": [], "parsers": []}),
    ],
)
def test_what_was_given_is_sent_and_nothing_else(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    assert model.model_validate(body).to_wire() == body


@pytest.mark.rule("parse-formats", "extract-further", "webhook-events-steps")
@pytest.mark.parametrize(
    "model, body, path, hint",
    [
        (m.ExtractRequest, extract(formats=["html"]), "formats", "belongs in 'scrapeOptions'"),
        (m.ExtractRequest, extract(ignoreInvalidUrls=True), "ignoreInvalidUrls", "'ignoreInvalidURLs'"),
        (
            m.AgentRequest,
            agent(strictConstrainToUrls=True),
            "strictConstrainToUrls",
            "'strictConstrainToURLs'",
        ),
        (m.AgentRequest, agent(max_credit=5), "max_credit", "'maxCredits' (in Python: 'max_credits')"),
        (m.InteractRequest, {"activityTTL": 60}, "activityTTL", "'activityTtl'"),
        (m.InteractRequest, {"saveChanges": True}, "saveChanges", "belongs in 'profile'"),
        (m.ParseOptions, {"formats": ["markdwn"]}, "formats.0", "did you mean 'markdown'?"),
        (
            m.AgentRequest,
            agent(webhook={"url": JOB, "events": ["agent.complete"]}),
            "webhook.events",
            "'completed'",
        ),
    ],
)
def test_a_mistake_is_met_with_what_was_meant(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str, hint: str
) -> None:
    found = problems(model, body)
    assert list(found) == [path]
    assert hint in found[path]


@pytest.mark.rule("scrape-waits-together", "extract-source", "agent-urls", "agent-free-runs", "session-ttl")
@pytest.mark.parametrize(
    "model, body, count",
    [
        (m.ExtractRequest, {"urls": ["a.example"] * 10, "prompt": "p"}, 0),
        (m.ExtractRequest, {"urls": ["a.example"] * 11, "prompt": "p"}, 1),
        (m.ExtractRequest, {"urls": ["a.example"]}, 1),
        (m.ExtractRequest, {"urls": ["a.example"], "schema": {}}, 0),
        (m.ExtractRequest, {"prompt": "p", "scrapeOptions": {"waitFor": 2501, "timeout": 5000}}, 1),
        (m.AgentRequest, {"prompt": "p", "maxCredits": 2500}, 0),
        (m.AgentRequest, {"prompt": "p", "maxCredits": 2501}, 1),
        (m.AgentRequest, {"prompt": "p", "strictConstrainToURLs": True}, 1),
        (m.AgentRequest, {"prompt": "p", "strictConstrainToURLs": True, "urls": ["a.example"]}, 0),
        (m.InteractRequest, {}, 1),
        (m.InteractRequest, {"ttl": 60}, 0),
        (m.ScrapeInteractRequest, {"code": "1"}, 0),
        (m.ScrapeInteractRequest, {"code": "1", "prompt": "p"}, 1),
    ],
)
def test_own_warnings_are_told(model: type[m.RequestModel], body: dict[str, Any], count: int) -> None:
    assert len(model.model_validate(body).warnings()) == count


@pytest.mark.rule("parse-extension")
@pytest.mark.parametrize("extension", FILE_EXTENSIONS)
def test_files_that_the_service_parses(extension: str) -> None:
    assert has_known_extension(f"report{extension}")
    assert has_known_extension(f"/a.dir/REPORT.2026{extension.upper()}")
    assert not has_known_extension(f"report{extension}.bak")


@pytest.mark.rule("parse-extension")
@pytest.mark.parametrize(
    "name", ["report", "", ".pdf", "report.", "report.txt", "report.png", "a.pdf/b", "a.pdf.zip"]
)
def test_files_that_it_does_not_parse(name: str) -> None:
    assert not has_known_extension(name)


@pytest.mark.rule("parse-extension")
def test_the_extensions_of_the_documentation() -> None:
    assert " ".join(FILE_EXTENSIONS) == (
        ".html .htm .xhtml .pdf .docx .doc .docm .odt .ods .odp .rtf .xlsx .xls .xlsm .xlsb .pptx .ppt .pptm "
        ".epub .csv"
    )
    assert MAX_FILE_BYTES == 52_428_800


url = st.builds("https://{}.example/{}".format, label, label)
parse_options = some(
    formats=st.lists(
        st.sampled_from(["markdown", "summary", "html", "rawHtml", "links", "images", "json"])
        | typed("json", schema=schema, prompt=text)
        | st.sampled_from([{"type": "html"}, {"type": "images"}]),
        max_size=4,
    ),
    onlyMainContent=switch,
    includeTags=st.lists(text, max_size=2),
    excludeTags=st.lists(text, max_size=2),
    headers=headers,
    timeout=st.integers(1, 300_000),
    parsers=st.lists(
        st.sampled_from(["pdf", "image"]) | typed("pdf", maxPages=st.integers(1, 10_000), pageMarkers=switch),
        max_size=2,
    ),
    skipTlsVerification=switch,
    removeBase64Images=switch,
    blockAds=switch,
    redactPII=switch | some(mode=st.sampled_from(["accurate", "fast"])),
    proxy=st.sampled_from(["basic", "auto"]),
    zeroDataRetention=switch,
    auditMetadata=some({"username": st.text(plain, max_size=1024)}),
    origin=text,
    integration=st.none() | text,
)


def webhook(*events: str) -> st.SearchStrategy[Any]:
    return some({"url": url}, headers=headers, events=st.lists(st.sampled_from(events), max_size=3))


extract_fields = {
    "schema": schema,
    "enableWebSearch": switch,
    "ignoreSitemap": switch,
    "includeSubdomains": switch,
    "showSources": switch,
    "ignoreInvalidURLs": switch,
    "scrapeOptions": scrape_options,
    "threatProtection": threat,
    "systemPrompt": text,
    "allowExternalLinks": switch,
    "webhook": webhook("started", "completed", "failed"),
    "origin": text,
    "integration": st.none() | text,
}
urls = st.lists(url, min_size=1, max_size=3)
extract_body = some({"urls": urls}, prompt=text, **extract_fields) | some({"prompt": text}, **extract_fields)
agent_body = some(
    {"prompt": text},
    urls=urls,
    strictConstrainToURLs=switch,
    schema=schema,
    maxCredits=st.integers(1, 10**6) | st.floats(0.01, 1e6),
    model=st.sampled_from(["spark-2", "spark-1-mini", "spark-1-pro"]),
    auditMetadata=some({"username": st.text(plain, max_size=1024)}),
    threatProtection=threat,
    webhook=webhook("started", "action", "completed", "failed", "cancelled"),
    effort=st.sampled_from(["low", "medium", "high"]),
    zeroDataRetention=switch,
    origin=text,
    integration=st.none() | text,
)
lives = {"ttl": st.integers(30, 3600), "activityTtl": st.integers(10, 3600)}
session_body = some(
    profile=some({"name": st.text(plain, min_size=1, max_size=128)}, saveChanges=switch),
    streamWebView=switch,
    blockAds=switch,
    recordSession=switch,
    origin=text,
    integration=st.none() | text,
    **lives,
)
any_code = st.text(st.characters(codec="utf-8"), min_size=1)
running = {"language": st.sampled_from(["python", "node", "bash"]), "timeout": st.integers(1, 300)}
scrape_code = some({"code": any_code}, prompt=text, origin=text, **running, **lives) | some(
    {"prompt": text}, origin=text, **running, **lives
)
REQUESTS = {
    m.ParseOptions: parse_options,
    m.ExtractRequest: extract_body,
    m.AgentRequest: agent_body,
    m.InteractRequest: session_body,
    m.ExecuteRequest: some({"code": any_code}, **running),
    m.ScrapeInteractRequest: scrape_code,
}


@pytest.mark.parametrize("model", REQUESTS)
@BROAD
@given(data=st.data())
def test_a_valid_request_survives_the_wire(model: type[m.RequestModel], data: st.DataObject) -> None:
    body = data.draw(REQUESTS[model])
    request = model.model_validate(body)
    wire = request.to_wire()
    assert wire == body
    assert json.loads(json.dumps(wire)) == body
    again = model.model_validate(wire)
    assert again == request
    assert again.to_wire() == wire
    assert model.model_validate_json(json.dumps(wire)) == request
    assert model.model_validate(snake_case(model, body)) == request


@pytest.mark.rule("code-text")
@BROAD
@given(value=any_code, ends=st.sampled_from(["", "ä", "𐍈"]))
def test_code_is_measured_in_bytes(value: str, ends: str) -> None:
    """Filled up to the limit it passes, and one byte more is one too many."""
    full = value + ends + "x" * (100_000 - len((value + ends).encode()))
    assert m.ExecuteRequest(code=full).code == full
    for more in ("x", "ä"):
        with pytest.raises(ValueError, match="UTF-8 bytes"):
            m.ExecuteRequest(code=full + more)


SECRET = "hush-hush-hush"


@pytest.mark.rule("code-text")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.ExecuteRequest, {"code": SECRET}),
        (m.ScrapeInteractRequest, {"code": SECRET, "prompt": "p"}),
        (m.ParseOptions, {"headers": {"Cookie": SECRET}}),
        (m.ExtractRequest, {"prompt": "p", "scrapeOptions": {"headers": {"Cookie": SECRET}}}),
        (m.AgentRequest, {"prompt": "p", "webhook": {"url": JOB, "headers": {"X-Secret": SECRET}}}),
    ],
)
def test_secrets_are_sent_but_not_shown(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    request = model.model_validate(body)
    assert SECRET in str(request.to_wire())
    assert SECRET not in f"{request!r} {request}"


@pytest.mark.rule("code-text")
@pytest.mark.parametrize("model", [m.ExecuteRequest, m.ScrapeInteractRequest])
@pytest.mark.parametrize("given_code", [f"{SECRET}\ud800", SECRET * 10_000, SECRET.encode(), [SECRET]])
def test_code_stays_out_of_errors(model: type[m.RequestModel], given_code: Any) -> None:
    with pytest.raises(ValueError, match="code") as caught:
        model.model_validate({"code": given_code})
    error = InvalidRequestError.from_validation_error("execute", caught.value, model)  # type: ignore[arg-type]
    assert SECRET not in f"{error} {caught.value}"


BROWSER = {
    "cdpUrl": f"wss://browser.example/{SECRET}-cdp",
    "liveViewUrl": f"https://live.example/{SECRET}-view",
    "interactiveLiveViewUrl": f"https://live.example/{SECRET}-control",
}
SESSION = {"id": "s1", **BROWSER}
OPENED = {"success": True, **SESSION, "expiresAt": "2026-11-21T10:00:00.000Z"}
LISTED = {
    **SESSION,
    "status": "active",
    "streamWebView": True,
    "createdAt": "2026-11-21T10:00:00.000Z",
    "lastActivity": "2026-11-21T10:00:00.000Z",
}
RAN = {
    "success": True,
    "stdout": "1\n",
    "result": "1\n",
    "stderr": None,
    "exitCode": 0,
    "killed": False,
    "error": None,
}
ON_PAGE = {**RAN, **BROWSER, "output": "answer", "sessionId": "s1"}
CONTROLLING = [BROWSER["cdpUrl"], BROWSER["interactiveLiveViewUrl"]]


@pytest.mark.rule("session-secrets")
@pytest.mark.parametrize(
    "model, answer, secrets",
    [
        (m.InteractSession, OPENED, CONTROLLING),
        (m.InteractSession, LISTED, CONTROLLING),
        (m.InteractSession, {"id": "s1", "cdpUrl": BROWSER["cdpUrl"]}, CONTROLLING[:1]),
        (m.InteractSession, {"id": "s1", "cdpUrl": "", "interactiveLiveViewUrl": None}, []),
        (m.InteractSession, {"id": "s1", "newWayInUrl": f"wss://{SECRET}"}, []),
        (m.InteractSessions, {"success": True, "sessions": [LISTED, SESSION]}, CONTROLLING * 2),
        (m.ScrapeInteractResult, ON_PAGE, CONTROLLING),
        (m.ScrapeInteractResult, {**RAN, "newWayInUrl": f"wss://{SECRET}"}, []),
    ],
)
def test_urls_that_control_a_browser_are_named_but_not_shown(
    model: Any, answer: dict[str, Any], secrets: list[str]
) -> None:
    found = model.model_validate_json(json.dumps(answer))
    assert list(found.secrets()) == secrets
    assert SECRET not in f"{found!r} {found}"
    assert found.to_wire() == answer


@pytest.mark.rule("session-secrets")
@pytest.mark.parametrize("model, answer", [(m.InteractSession, OPENED), (m.ScrapeInteractResult, ON_PAGE)])
def test_what_may_be_passed_on(model: Any, answer: dict[str, Any]) -> None:
    found = model.model_validate({**answer, "newWayInUrl": f"wss://{SECRET}"})
    hidden = {"cdpUrl", "interactiveLiveViewUrl"}
    assert found.without_secrets() == {name: value for name, value in answer.items() if name not in hidden}


@pytest.mark.rule("ok-but-failed-code", "code-result")
@pytest.mark.parametrize(
    "answer, failure",
    [
        (RAN, None),
        ({}, "the answer does not say how it went"),
        ({"new": 1}, "the answer does not say how it went"),
        ({"stdout": ""}, None),
        ({"success": True, "exitCode": None}, None),
        ({**RAN, "stderr": "a warning"}, None),
        ({**RAN, "exitCode": 3}, "it ended with exit code 3"),
        ({**RAN, "exitCode": -9}, "it ended with exit code -9"),
        ({**RAN, "error": "NameError: x", "exitCode": 1}, "NameError: x"),
        ({**RAN, "killed": True, "exitCode": 137, "error": "x"}, "it was stopped at its timeout"),
        ({**RAN, "success": False}, "the service gave no reason"),
        ({"success": False, "error": "boom"}, "boom"),
    ],
)
def test_code_is_judged_by_what_it_did(answer: dict[str, Any], failure: str | None) -> None:
    assert m.ExecuteResult.model_validate(answer).failure() == failure
    assert m.ScrapeInteractResult.model_validate(answer).failure() == failure


@pytest.mark.rule("parse-answer", "extract-answer", "extract-status", "extract-bill", "agent-answer")
@pytest.mark.rule("agent-status", "session-answer", "session-list", "session-close", "code-result")
@pytest.mark.rule("scrape-interact", "scrape-interact-stop")
@pytest.mark.parametrize(
    "model, answer",
    [
        (m.ExtractStatus, {"success": True, "status": "processing", "data": [], "expiresAt": "x"}),
        (
            m.ExtractStatus,
            {"success": True, "status": "completed", "data": {"a": 1}, "tokensUsed": 15, "sources": {}},
        ),
        (m.ExtractStatus, {"success": False, "status": "failed", "error": "x", "data": []}),
        (
            m.ExtractStatus,
            {"success": True, "status": "completed", "data": [{"a": 1}], "creditsUsed": 1.5, "new": 1},
        ),
        (m.AgentStatus, {"success": True, "status": "processing"}),
        (m.AgentStatus, {"success": True, "status": "failed", "error": "out of credits", "data": None}),
        (
            m.AgentStatus,
            {"success": True, "status": "completed", "data": {"a": []}, "model": "spark-2", "creditsUsed": 9},
        ),
        (m.AgentStatus, {"success": True, "status": "pausing", "partial": {"a": 1}, "stopReason": "x"}),
        (m.SessionClosed, {"success": True, "sessionDurationMs": 61_000, "creditsBilled": 4}),
        (m.SessionClosed, {"success": True, "cleanupQueued": True}),
        (m.SessionClosed, {}),
        (m.InteractSessions, {"success": True, "sessions": []}),
        (m.InteractSession, {"id": "s", "createdAt": 1_800_000_000, "expiresAt": None}),
    ],
)
def test_answers_are_kept_as_they_came(model: Any, answer: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(answer)).to_wire() == answer


@pytest.mark.rule("open-responses")
@pytest.mark.parametrize(
    "model, answer",
    [
        (
            m.InteractSession,
            {"id": "s", "cdpUrl": {"url": SECRET}, "expiresAt": 1.5, "streamWebView": "perhaps"},
        ),
        (
            m.ExecuteResult,
            {"success": True, "stdout": ["a"], "exitCode": "none", "killed": {}, "error": {"a": 1}},
        ),
        (
            m.ExtractStatus,
            {"status": "completed", "data": "text", "expiresAt": 5, "tokensUsed": "many", "error": []},
        ),
        (
            m.AgentStatus,
            {"status": "completed", "data": [1], "expiresAt": {}, "creditsUsed": "few", "model": 2},
        ),
        (m.SessionClosed, {"sessionDurationMs": "long", "creditsBilled": None, "cleanupQueued": "soon"}),
    ],
)
def test_an_odd_field_costs_no_answer_that_was_paid_for(model: Any, answer: dict[str, Any]) -> None:
    found = model.model_validate_json(json.dumps(answer))
    assert found.to_wire() == answer
    assert SECRET not in f"{found!r} {found}"
    assert not hasattr(found, "secrets") or list(found.secrets()) == []


def test_an_odd_error_is_told() -> None:
    assert (
        m.ExecuteResult.model_validate({"error": {"name": "TypeError"}}).failure() == "{'name': 'TypeError'}"
    )


@pytest.mark.parametrize(
    "model, answer",
    [
        (m.ExtractStatus, {"success": True}),
        (m.AgentStatus, {"data": {}}),
        (m.InteractSession, {"success": True, "cdpUrl": f"wss://{SECRET}"}),
        (m.InteractSessions, {"success": True}),
    ],
)
def test_answers_that_are_none(model: Any, answer: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Field required") as caught:
        model.model_validate(answer)
    assert SECRET not in str(caught.value)
