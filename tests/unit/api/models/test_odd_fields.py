"""Odd values in each field of each response: a value beside the result does not cost a billed answer.

The fields and the bodies are derived from the models and from the documented answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.models.base import ResponseModel
from airflow_provider_webdata.api.odd_parts import OddParts
from tests.unit.api.models.test_responses import DOCUMENTED

ODD = [None, [None], {"a": 1}, "odd", 10**400, -(10**30), True, 1.5]

NEEDED = {
    "AgentRun id", "AgentRuns agents", "AgentRuns next", "AgentSnapshot snapshot", "AgentStatus status",
    "AgentThread id", "AgentThread runs", "AgentThreadResponse thread", "AgentTrace events", "AgentTraceEvent type",
    "AgentTurn id", "ActiveCrawl id", "ActiveCrawls crawls", "Activity cursor", "Activity data",
    "CreditHistory periods", "CrawlParamsResponse data", "CreditUsageResponse data", "DeveloperSearchResponse results",
    "ExtractStatus status",
    "FileFormats formats", "FileFormatsResponse data", "GovernmentSearchResponse data", "InteractSession id",
    "InteractSessions sessions", "JobDocuments data", "JobErrors errors", "JobErrors robotsBlocked", "JobProgress next",
    "JobProgress status", "JobStarted id", "JobStatus data", "MapLink url", "MapResponse links", "Monitor id",
    "MonitorCheck id", "MonitorCheckDetail next", "MonitorCheckDetail pages", "MonitorCheckListResponse data",
    "MonitorCheckResponse data", "MonitorCheckResponse next", "MonitorListResponse data", "MonitorResponse data",
    "MonitorRunResponse data", "PaperResponse paper", "PaperSearchResponse results", "ParseUpload uploadRef",
    "ParseUpload uploadUrl", "ParseUploadResponse data", "ProviderResponse data", "ProviderResults alexandria",
    "Replay pages", "ReplayPage pageId", "ReplayPlaylist text", "ScrapeResponse data", "SearchData images",
    "SearchData news", "SearchData research", "SearchData tools", "SearchData web", "SearchResponse data",
    "SimilarPapersResponse results", "ThreatPolicyResponse data", "TokenHistory periods", "TokenUsageResponse data",
    "ToolPage items", "ToolPage next",
}  # fmt: skip
"""The fields without which an answer, or an entry of its list, cannot be delivered: ids, states, results, cursors."""

FURTHER: list[tuple[type[ResponseModel], Any]] = [
    (models.AgentRuns, {"agents": [{"id": "a", "status": "failed", "options": {}}], "next": None}),
    (models.AgentThreadResponse, {"thread": {"id": "t", "status": "idle", "runs": [{"id": "a", "turn": 1}]}}),
    (models.AgentTrace, {"events": [{"type": "x", "agent": {}}], "activeBrowserSessions": [{"id": "b"}]}),
    (models.AgentSnapshot, {"snapshot": "x", "snapshotId": "s"}),
    (models.Concurrency, {"concurrency": 0, "maxConcurrency": 2}),
    (models.ExecuteResult, {"success": True, "stdout": "x", "result": "x", "exitCode": 0, "killed": False}),
    (models.FileFormatsResponse, {"data": {"formats": [{"format": "pdf"}]}}),
    (models.ParseUploadResponse, {"data": {"uploadUrl": "https://a.example", "uploadRef": "r"}}),
    (
        models.ProviderResponse,
        {
            "scrape_id": "s",
            "data": {
                "creditsCost": 2,
                "alexandria": [
                    {"provider": "p", "capability": "c", "creditsCost": 2, "data": [1], "records": 1},
                    {
                        "provider": "p",
                        "capability": "c",
                        "error": {"code": "X", "message": "no", "status": 500},
                    },
                ],
            },
        },
    ),
    (
        models.ToolPage,
        {"level": "tools", "items": [{"id": "p/c", "creditsCost": 1}], "total": 1, "next": None},
    ),
    (models.Replay, {"pages": [{"pageId": "p", "startTimeMs": 5}], "pageCount": 1}),
    (models.ReplayPlaylist, {"text": "#EXTM3U"}),
    (models.ScrapeInteractResult, {"output": "x", "sessionId": "s", "liveViewUrl": "https://a.example"}),
    (
        models.ThreatPolicyResponse,
        {"data": {"mode": "off", "riskScoreThreshold": 50, "blacklist": ["a.example"]}},
    ),
]

Path = tuple[str | int, ...]


def model_in(annotation: Any) -> type[ResponseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation if issubclass(annotation, ResponseModel) else None
    return next((found for part in get_args(annotation) if (found := model_in(part))), None)


def fields_of(model: type[ResponseModel], body: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield each field of a body's models, with its path in the body and the name of its declaration."""
    declared = {field.alias or name: (name, field) for name, field in model.model_fields.items()}
    for wire, (name, field) in declared.items():
        owner = next(base for base in reversed(model.__mro__) if name in getattr(base, "model_fields", ()))
        yield (*path, wire), f"{owner.__name__} {wire}"
        inner, value = model_in(field.annotation), body.get(wire)
        if inner is not None and isinstance(value, dict):
            yield from fields_of(inner, value, (*path, wire))
        elif inner is not None and isinstance(value, list) and value and isinstance(value[0], dict):
            yield from fields_of(inner, value[0], (*path, wire, 0))


def with_value(body: Any, path: Path, value: Any) -> Any:
    changed = json.loads(json.dumps(body))
    place = changed
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return changed


def without(body: Any, path: Path) -> Any:
    changed = json.loads(json.dumps(body))
    place = changed
    for part in path[:-1]:
        if place == [] and part == 0:
            return changed
        place = place[part]
    place.pop(path[-1], None)
    return changed


ANSWERS = [*DOCUMENTED, *FURTHER]


@pytest.mark.rule("open-responses", "odd-values")
def test_an_odd_value_beside_the_result_costs_nothing() -> None:
    tried: set[str] = set()
    refused = set()
    for model, body in ANSWERS:
        for path, name in fields_of(model, body):
            if name in tried:
                continue
            tried.add(name)
            for value in ODD:
                try:
                    found = model.model_validate(with_value(body, path, value)).to_wire()
                except ValidationError:
                    refused.add(name)
                    continue
                if without(found, path) != without(body, path):
                    # The entry of a list is skipped.
                    refused.add(name)
    assert {endpoint.response() for endpoint in endpoints.ENDPOINTS.values()} <= {
        model for model, _ in ANSWERS
    }
    assert refused == NEEDED
    assert len(tried) > 300


@pytest.mark.rule("odd-values")
def test_entries_of_a_list_that_are_not_readable_are_skipped_and_counted() -> None:
    tried = 0
    for model, body in ANSWERS:
        for path, name in fields_of(model, body):
            place = body
            for part in path:
                place = place.get(part) if isinstance(place, dict) else place[part]
                if place is None:
                    break
            owner, wire = name.split()
            entries = getattr(models, owner, None)
            if not isinstance(place, list) or entries is None:
                continue
            field = next(found for key, found in entries.model_fields.items() if (found.alias or key) == wire)
            if "_readable_entries" not in str((field.annotation, field.metadata)):
                continue
            odd = OddParts()
            longer = with_value(body, path, [None, *place, 5])
            found = model.model_validate(longer, context=odd)
            assert found.to_wire() == body, name
            assert odd.skipped == {wire: 2}, name
            tried += 1
    assert tried > 30
