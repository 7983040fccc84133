"""Extract: limits from both sides, the wire, warnings, answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.limits import (
    HOOK,
    LABELS,
    PROMPTS,
    SCHEMAS,
    SECRET,
    SWITCHES,
    Row,
    assert_limits,
    each,
)


def extract(**fields: Any) -> dict[str, Any]:
    return {"urls": ["https://a.example/*"], **fields}


ROWS: dict[str, Row] = {
    "extract url": (
        m.ExtractRequest,
        lambda v: {"urls": [v]},
        "urls.0",
        ["https://a.example", "a.example/*", "https://a.example/docs/*"],
        ["", " ", "ftp://a.example", "a b", 5],
    ),
    "extract prompt": (m.ExtractRequest, lambda v: {"prompt": v}, "prompt", *PROMPTS),
    "extract systemPrompt": (m.ExtractRequest, lambda v: extract(systemPrompt=v), "systemPrompt", *PROMPTS),
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
        lambda v: extract(webhook={"url": HOOK, "events": [v]}),
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
    "extract agent": (
        m.ExtractRequest,
        lambda v: extract(agent=v),
        "agent",
        [{"model": "FIRE-1"}, {}],
        [{"model": "FIRE-2"}, {"modle": "FIRE-1"}, "FIRE-1", []],
    ),
    "extract origin": (m.ExtractRequest, lambda v: extract(origin=v), "origin", *LABELS),
}


@pytest.mark.rule("scrape-switches", "scrape-clean-content", "scrape-tags", "scrape-max-age")
@pytest.mark.rule("scrape-wait-for", "scrape-tls", "scrape-actions", "search-ignore-invalid-urls")
@pytest.mark.rule("extract-source", "extract-prompts", "extract-schema", "extract-switches")
@pytest.mark.rule(
    "extract-ignore-invalid-urls", "extract-further", "extract-server-fields", "webhook-events-steps"
)
@each(ROWS)
def test_both_sides_of_the_limits(problems: Any, row: Row) -> None:
    assert_limits(problems, row)


@pytest.mark.rule("extract-source")
@pytest.mark.parametrize(
    "model, body, rule",
    [
        (m.ExtractRequest, {}, "'urls', 'prompt' or both"),
        (m.ExtractRequest, {"urls": []}, "'urls', 'prompt' or both"),
        (m.ExtractRequest, {"urls": None, "prompt": None, "schema": {}}, "'urls', 'prompt' or both"),
        (m.ExtractRequest, {"schema": {}, "enableWebSearch": True}, "'urls', 'prompt' or both"),
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
    ],
)
def test_what_was_given_is_sent_and_nothing_else(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    assert model.model_validate(body).to_wire() == body


@pytest.mark.rule("extract-further", "webhook-events-steps")
@pytest.mark.parametrize(
    "model, body, path, hint",
    [
        (m.ExtractRequest, extract(formats=["html"]), "formats", "belongs in 'scrapeOptions'"),
        (m.ExtractRequest, extract(ignoreInvalidUrls=True), "ignoreInvalidUrls", "'ignoreInvalidURLs'"),
    ],
)
def test_a_mistake_is_met_with_what_was_meant(
    problems: Any, model: type[m.RequestModel], body: dict[str, Any], path: str, hint: str
) -> None:
    found = problems(model, body)
    assert list(found) == [path]
    assert hint in found[path]


@pytest.mark.rule("scrape-waits-together", "extract-source")
@pytest.mark.parametrize(
    "model, body, count",
    [
        (m.ExtractRequest, {"urls": ["a.example"] * 10, "prompt": "p"}, 0),
        (m.ExtractRequest, {"urls": ["a.example"] * 11, "prompt": "p"}, 1),
        (m.ExtractRequest, {"urls": ["a.example"]}, 1),
        (m.ExtractRequest, {"urls": ["a.example"], "schema": {}}, 0),
        (m.ExtractRequest, {"prompt": "p", "scrapeOptions": {"waitFor": 2501, "timeout": 5000}}, 1),
    ],
)
def test_own_warnings_are_told(model: type[m.RequestModel], body: dict[str, Any], count: int) -> None:
    assert len(model.model_validate(body).warnings()) == count


@pytest.mark.parametrize(
    "model, body",
    [
        (m.ExtractRequest, {"prompt": "p", "scrapeOptions": {"headers": {"Cookie": SECRET}}}),
    ],
)
def test_secrets_are_sent_but_not_shown(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    request = model.model_validate(body)
    assert SECRET in str(request.to_wire())
    assert SECRET not in f"{request!r} {request}"


@pytest.mark.rule("parse-answer", "extract-answer", "extract-status", "extract-bill")
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
    ],
)
def test_answers_are_kept_as_they_came(model: Any, answer: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(answer)).to_wire() == answer


@pytest.mark.rule("open-responses")
@pytest.mark.parametrize(
    "model, answer",
    [
        (
            m.ExtractStatus,
            {"status": "completed", "data": "text", "expiresAt": 5, "tokensUsed": "many", "error": []},
        ),
    ],
)
def test_an_odd_field_costs_no_answer_that_was_paid_for(model: Any, answer: dict[str, Any]) -> None:
    found = model.model_validate_json(json.dumps(answer))
    assert found.to_wire() == answer
    assert SECRET not in f"{found!r} {found}"
    assert not hasattr(found, "secrets") or list(found.secrets()) == []


@pytest.mark.parametrize(
    "model, answer",
    [
        (m.ExtractStatus, {"success": True}),
    ],
)
def test_answers_that_are_none(model: Any, answer: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Field required") as caught:
        model.model_validate(answer)
    assert SECRET not in str(caught.value)
