"""Parse: limits from both sides, the wire, extensions."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.api import models as m
from airflow_provider_webdata.api.models.parse import FILE_EXTENSIONS, MAX_FILE_BYTES, has_known_extension
from tests.unit.api.models.limits import SCHEMAS, SECRET, SWITCHES, Row, assert_limits, each

ROWS: dict[str, Row] = {
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
}


@pytest.mark.rule("caller-labels", "scrape-switches", "scrape-clean-content", "scrape-tags")
@pytest.mark.rule("scrape-max-age", "scrape-wait-for", "scrape-tls", "scrape-actions")
@pytest.mark.rule("search-location", "parse-formats", "parse-timeout", "parse-proxy")
@pytest.mark.rule("parse-further", "parse-unsupported")
@each(ROWS)
def test_both_sides_of_the_limits(problems: Any, row: Row) -> None:
    assert_limits(problems, row)


@pytest.mark.rule("request-body")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.ParseOptions, {}),
        (m.ParseOptions, {"formats": [], "parsers": []}),
    ],
)
def test_what_was_given_is_sent_and_nothing_else(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    assert model.model_validate(body).to_wire() == body


@pytest.mark.rule("parse-formats")
@pytest.mark.parametrize(
    "model, body, path, hint",
    [
        (m.ParseOptions, {"formats": ["markdwn"]}, "formats.0", "did you mean 'markdown'?"),
    ],
)
def test_a_mistake_is_met_with_what_was_meant(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str, hint: str
) -> None:
    found = problems(model, body)
    assert list(found) == [path]
    assert hint in found[path]


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


@pytest.mark.parametrize(
    "model, body",
    [
        (m.ParseOptions, {"headers": {"Cookie": SECRET}}),
    ],
)
def test_secrets_are_sent_but_not_shown(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    request = model.model_validate(body)
    assert SECRET in str(request.to_wire())
    assert SECRET not in f"{request!r} {request}"
