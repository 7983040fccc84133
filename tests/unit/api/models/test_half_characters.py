"""A request holds text that UTF-8 can carry; the field that does not is named."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.api.models.base import RequestModel

HALF = "a\ud83d"
SITE = "https://a.example"
REQUESTS: list[tuple[type[RequestModel], dict[str, Any], str]] = [
    (models.SearchRequest, {"query": HALF}, "query"),
    (models.SearchRequest, {"query": "q", "location": HALF}, "location"),
    (models.ScrapeRequest, {"url": f"{SITE}/{HALF}"}, "url"),
    (models.ScrapeRequest, {"url": SITE, "headers": {"X-A": HALF}}, "headers"),
    (models.ScrapeRequest, {"url": SITE, "formats": [{"type": "json", "prompt": HALF}]}, "formats[0].prompt"),
    (models.ScrapeRequest, {"url": SITE, "include_tags": ["p", HALF]}, "include_tags[1]"),
    (models.BatchScrapeRequest, {"urls": [HALF], "ignore_invalid_urls": True}, "urls[0]"),
    (models.CrawlRequest, {"url": SITE, "limit": 1, "prompt": HALF}, "prompt"),
    (models.MapRequest, {"url": SITE, "search": HALF}, "search"),
    (models.AgentRequest, {"prompt": HALF}, "prompt"),
    (
        models.AgentRequest,
        {"prompt": "p", "schema": {"type": "object", "title": HALF}},
        "schema_ (sent as schema)",
    ),
    (models.ExecuteRequest, {"code": HALF}, "code"),
    (models.MonitorUpdateRequest, {"goal": HALF}, "goal"),
]


@pytest.mark.rule("half-characters")
@pytest.mark.parametrize(
    ("model", "fields", "place"), REQUESTS, ids=lambda value: getattr(value, "__name__", "")
)
def test_half_a_character_is_refused(model: type[RequestModel], fields: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(fields)
    (problem,) = InvalidRequestError.from_validation_error("x", caught.value, model).problems
    assert problem.startswith(f"{place}: ")
    assert "half of a surrogate pair" in problem
    problem.encode()
