# SPDX-License-Identifier: Apache-2.0
"""Text that UTF-8 cannot carry is refused, and the field that holds it is named."""

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
    (models.ScrapeRequest, {"url": SITE, "headers": {"X-A": HALF}}, "headers"),
    (models.ScrapeRequest, {"url": SITE, "formats": [{"type": "json", "prompt": HALF}]}, "formats[0].prompt"),
    (models.ScrapeRequest, {"url": SITE, "include_tags": ["p", HALF]}, "include_tags[1]"),
    (models.BatchScrapeRequest, {"urls": [HALF], "ignore_invalid_urls": True}, "urls[0]"),
    (
        models.AgentRequest,
        {"prompt": "p", "schema": {"type": "object", "title": HALF}},
        "schema_ (sent as schema)",
    ),
    (models.ExecuteRequest, {"code": HALF}, "code"),
]


@pytest.mark.rule("half-characters")
@pytest.mark.parametrize(("model", "fields", "place"), REQUESTS, ids=[place for *_, place in REQUESTS])
def test_half_a_character_is_refused(model: type[RequestModel], fields: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(fields)
    (problem,) = InvalidRequestError.from_validation_error("x", caught.value, model).problems
    assert problem.startswith(f"{place}: ")
    assert "lone surrogate" in problem
    problem.encode()
