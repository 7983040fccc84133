# SPDX-License-Identifier: Apache-2.0
"""Arguments of other clients get a hint, and following the hint gives a valid request."""

from __future__ import annotations

import inspect
import re
from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.models import RequestModel
from airflow_provider_webdata.api.query import tbs
from airflow_provider_webdata.base.arguments.literal_check import field_rules
from airflow_provider_webdata.common.foreign_arguments import FOREIGN, Replacement, advice
from tests.support.request_fields import minimal, sample
from tests.unit.test_contract import TASKS, parameters, required
from tools.hook_fields import classes

MODELS = {**classes(), "CrawlTargetFields": models.CrawlTarget, "ScrapeTargetFields": models.ScrapeTarget}
HINT = re.compile(r"write (?P<code>.+?)(?: \([^()]*\))?$")
VALUES = {
    "question": "q",
    "schema": {"type": "object", "properties": {"price": {"type": "number"}}},
    "prompt": "the price",
    "selector": "main",
    "script": "scroll()",
    "country": "DE",
    "languages": ["de"],
    "Cookie": "a=b",
    "User-Agent": "x",
}
"""Values of fields inside objects."""


OTHERS = (
    models.SearchScrapeOptions,
    models.CrawlRequest,
    models.SearchRequest,
    models.DeveloperSearchRequest,
)
"""Models of fields inside objects, and of arguments that an operator has beside its request."""

OWN = {
    "credit_limit": 5,
    "extra_body": {"a": 1},
    "limit": 5,
    "max_concurrency": 2,
    "media_to": "/media",
    "save_to": "/*.jsonl",
    "wait_timeout": 60,
    "webdata_conn_id": "c",
}
"""Values of operators' arguments that are not fields of their requests."""


def filled(value: Any, name: str, model: type[RequestModel] | None = None) -> Any:
    """Return the value of an advice, with the caller's own values in place of dots."""
    if isinstance(value, dict):
        return {key: filled(inner, key) for key, inner in value.items()}
    if value in (..., [...]):
        fields = {one.rstrip("_"): one for one in model.model_fields} if model is not None else {}
        if name in fields and model is not None:
            return sample(model, fields[name])
        if name in {**VALUES, **OWN}:
            return {**VALUES, **OWN}[name]
        return next(sample(one, name) for one in OTHERS if name in one.model_fields)
    if isinstance(value, list):
        return [filled(one, name) for one in value]
    return value


def followed(hint: str, model: type[RequestModel] | None) -> dict[str, Any]:
    """Return the arguments that a hint says to write."""
    found = HINT.search(hint)
    assert found, hint
    names = {"tbs": tbs, "start": date(2026, 1, 1), "end": date(2026, 1, 31)}
    given = eval(f"dict({found['code']})", names)
    return {name: filled(value, name, model) for name, value in given.items()}


def unknown_to(model: type[RequestModel]) -> list[str]:
    """Return the foreign names for which a model has a hint."""
    known = {*model.model_fields} | {field.alias for field in model.model_fields.values()}
    plain = {str(name).replace("_", "").lower() for name in known}
    return [name for name in FOREIGN if name not in plain]


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.__name__)
def test_a_followed_hint_of_a_request_is_valid(model: type[RequestModel]) -> None:
    body, hints = minimal(model), {}
    for name in unknown_to(model):
        with pytest.raises(ValidationError) as failed:
            model.model_validate({**body, name: "x"})
        [text] = [issue["msg"] for issue in failed.value.errors() if issue["loc"] == (name,)]
        if "; write " in text:
            hints[name] = text
    for name, hint in hints.items():
        given = followed(hint, model)
        names = {one.rstrip("_"): field.alias or one for one, field in model.model_fields.items()}
        fields = {**body, **{names[one]: value for one, value in given.items()}}
        assert model.model_validate(fields).model_fields_set, (name, hint)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
def test_a_followed_hint_of_an_operator_is_valid(task: Any) -> None:
    known = {*parameters(task)} - (set() if getattr(task, "_request_fields", ()) else {"extra_body"})
    model = getattr(models, getattr(task, "_request_model", ""), None)
    arguments = required(task)
    for name in FOREIGN:
        hint = advice(name, known, {"scrape_options": field_rules("ScrapeOptions")})
        # Airflow's own arguments, such as `params`, are known.
        if not hint or name in {one.replace("_", "") for one in known}:
            continue
        with pytest.raises(TypeError) as failed:
            task(task_id="t", **arguments, **{name: "x"})
        if "unknown argument" not in str(failed.value):
            continue
        assert hint in str(failed.value)
        task(task_id="t", **{**arguments, **followed(hint, model)})


def test_each_replacement_is_followed_somewhere() -> None:
    """An entry that no operation uses would promise nothing."""
    operations = [
        *([one.rstrip("_") for one in model.model_fields] for model in MODELS.values()),
        *({*parameters(task)} for task in TASKS),
    ]
    parts = {"scrape_options": field_rules("ScrapeOptions")}
    used: dict[tuple[Replacement, ...], set[str]] = {}
    for name, replacements in FOREIGN.items():
        for known in operations:
            if name not in {one.replace("_", "") for one in known}:
                used.setdefault(replacements, set()).add(advice(name, known, parts))
    unused = [
        one
        for replacements, hints in used.items()
        for one in replacements
        if not any(f"{one.argument}={one.value}" in hint or f'"{one.argument}": ' in hint for hint in hints)
    ]
    assert unused == []


@pytest.mark.parametrize(
    ("model", "name", "hint"),
    [
        ("SearchRequest", "maxResults", "write limit=..."),
        ("SearchRequest", "max_results", "write limit=..."),
        (
            "SearchRequest",
            "lang",
            "write country=... (a search has a country of two letters, and no language)",
        ),
        ("SearchRequest", "onlyMainContent", 'write scrape_options={"only_main_content": ...}'),
        (
            "SearchRequest",
            "schema",
            'write scrape_options={"formats": ["markdown", {"type": "json", "schema": ...}]}',
        ),
        ("ScrapeRequest", "schema", 'write formats=["markdown", {"type": "json", "schema": ...}]'),
        ("ScrapeRequest", "lang", 'write location={"languages": [...]}'),
        ("BatchScrapeRequest", "schema", 'write formats=["markdown", {"type": "json", "schema": ...}]'),
        ("CrawlRequest", "maxDepth", "write max_discovery_depth=..."),
        (
            "CrawlRequest",
            "include_domains",
            "write url=... (a crawl stays on the site of url; start one for each)",
        ),
        ("PaperSearchRequest", "limit", "write k=..."),
        ("MapRequest", "schema", ""),
    ],
)
def test_hints(model: str, name: str, hint: str) -> None:
    kind: type[RequestModel] = getattr(models, model)
    known = [one.rstrip("_") for one in kind.model_fields]
    assert advice(name, known, {"scrape_options": field_rules("ScrapeOptions")}) == hint


def test_no_known_argument_is_replaced() -> None:
    for task in TASKS:
        assert not inspect.isabstract(task)
    assert advice("zzzz", ["query"], {}) == ""
