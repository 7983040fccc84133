"""What the service says of a job of many pages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.answers import DOCUMENT
from tests.unit.api.models.limits import SITE, UUID

STATUS = {
    "success": True,
    "status": "completed",
    "total": 3,
    "completed": 2,
    "creditsUsed": -1,
    "createdAt": "2026-08-21T10:00:00.000Z",
    "completedAt": "2026-08-21T10:01:00.000Z",
    "expiresAt": "2026-08-22T10:01:00.000Z",
    "duration": 60.5,
    "next": "http://10.0.0.1/v2/crawl/x?skip=100",
    "data": [DOCUMENT, {"metadata": {}}],
    "warning": "one page only",
}
FAILED_PAGE = {"id": UUID, "timestamp": None, "url": SITE, "error": "no", "code": "EXTERNAL_LINK"}
DOCUMENTED: list[tuple[type[m.ResponseModel], dict[str, Any]]] = [
    (m.JobStarted, {"success": True, "id": UUID, "url": SITE}),
    (m.JobStarted, {"success": True, "id": UUID, "url": SITE, "invalidURLs": ["no url"]}),
    (m.JobStarted, {"success": True, "id": UUID, "invalidURLs": None}),
    (m.JobStarted, {"id": UUID, "promptGeneratedOptions": {"limit": 5}, "finalCrawlerOptions": {"limit": 9}}),
    (m.JobStatus, STATUS),
    (m.JobStatus, {"status": "scraping", "next": None}),
    (m.JobStatus, {"success": False, "status": "failed", "error": "queue full", "total": 0, "data": []}),
    (m.JobStatus, {"status": "hibernating"}),
    (m.JobDocuments, STATUS),
    (m.JobErrors, {"errors": [FAILED_PAGE, {"url": SITE}], "robotsBlocked": [SITE]}),
    (m.JobErrors, {}),
    (m.CancelResponse, {"status": "cancelled"}),
    (m.CancelResponse, {"success": True}),
]


@pytest.mark.rule("batch-answer", "crawl-answer", "job-counts", "job-times")
@pytest.mark.rule("job-data", "job-next", "job-warning", "job-errors")
@pytest.mark.parametrize("model, body", DOCUMENTED)
def test_a_documented_answer_comes_back_as_it_was(model: type[m.ResponseModel], body: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(body)).to_wire() == body
    newer = {**body, "xNew": {"a": [None]}}
    assert model.model_validate_json(json.dumps(newer)).to_wire() == newer


@pytest.mark.rule("job-status")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.JobStarted, {"success": True}),
        # A job whose state is not named would be waited on for ever.
        (m.JobStatus, {"success": True}),
        (m.JobStatus, {"status": None}),
        (m.JobStatus, {"status": "completed", "data": {}}),
        (m.JobDocuments, {"status": "completed", "data": ["x"]}),
    ],
)
def test_what_is_no_such_answer_is_an_error(model: type[m.ResponseModel], body: Any) -> None:
    with pytest.raises(ValidationError):
        model.model_validate_json(json.dumps(body))


def test_python_names_lead_to_wire_names() -> None:
    assert m.JobStarted(id="x", invalidURLs=["a"]).invalid_urls == ["a"]
