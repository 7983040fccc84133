"""Responses: documented shapes, odd shapes that occur, and shapes that mean that this is no answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.api import models as m

METADATA = {
    "title": "T",
    "description": "D",
    "sourceURL": "http://example.com:80/a?b=%20#c",
    "url": "https://EXAMPLE.com/ä",
    "statusCode": 200,
    "numPages": 3,
    "totalPages": 9,
    "error": None,
    "keywords": ["a", "b"],
    "og:image": "https://example.com/x.png",
    "ogLocaleAlternate": ["de", "fr"],
}
CONTENT = {
    "markdown": "# a",
    "html": None,
    "rawHtml": "<p>",
    "links": ["https://a.example"],
    "screenshot": "https://a.example/s.png",
    "audio": "https://a.example/a.mp3",
    "video": None,
    "summary": "s",
    "images": ["https://a.example/i.png"],
    "json": {"price": 5},
    "answer": "42",
    "highlights": "h",
    "changeTracking": {"changeStatus": "changed", "previousScrapeAt": None, "diff": {"text": "-a\n+b"}},
    "metadata": METADATA,
    "branding": {"logo": None},
}
SEARCH = {
    "success": True,
    "data": {
        "web": [
            {"title": "t", "description": "d", "url": "u", "category": "codehost", "position": 1, **CONTENT}
        ],
        "images": [
            {"title": "t", "imageUrl": "i", "imageWidth": 5, "imageHeight": 6, "url": "u", "position": 1}
        ],
        "news": [
            {
                "title": "t",
                "snippet": "s",
                "url": "u",
                "date": "today",
                "imageUrl": "i",
                "position": 1,
                **CONTENT,
            }
        ],
    },
    "warning": None,
    "id": "7f3c",
    "creditsUsed": 3,
}
MONITOR = {
    "id": "m1",
    "name": "n",
    "status": "active",
    "goal": None,
    "judgeEnabled": False,
    "schedule": {"cron": "0 * * * *", "timezone": "UTC"},
    "targets": [
        {
            "id": "t1",
            "type": "scrape",
            "urls": ["https://a.example"],
            "scrapeOptions": {"formats": ["markdown"]},
        },
        {"id": "t2", "type": "crawl", "url": "https://a.example", "crawlOptions": {"limit": 5}},
        {"id": "t3", "type": "search", "queries": ["q"], "searchWindow": "24h", "maxResults": 10},
    ],
    "webhook": {"url": "https://a.example", "headers": {"X-Secret": "s3cr3t"}, "events": ["monitor.page"]},
    "notification": {"email": {"enabled": False, "includeDiffs": False, "recipients": []}},
    "retentionDays": 30,
    "estimatedCreditsPerMonth": 720,
    "currentCheckId": None,
    "lastCheckSummary": {"changed": 1, "error": 0, "new": 0, "removed": 0, "same": 4, "totalPages": 5},
    "lastRunAt": "2026-08-21T10:00:00.000Z",
    "nextRunAt": None,
    "createdAt": "2026-08-21T10:00:00.000Z",
    "updatedAt": "2026-08-21T10:00:00.000Z",
    "unchangedPagesFree": True,
}
CHECK = {
    "id": "c1",
    "monitorId": "m1",
    "status": "partial",
    "trigger": "manual",
    "scheduledFor": None,
    "startedAt": "2026-08-21T10:00:00.000Z",
    "finishedAt": "2026-08-21T10:01:00.000Z",
    "estimatedCredits": 5,
    "reservedCredits": None,
    "actualCredits": 4,
    "billingStatus": "confirmed",
    "summary": MONITOR["lastCheckSummary"],
    "targetResults": [{"targetId": "t1"}],
    "notificationStatus": {"webhook": {"attempted": True}},
    "error": None,
    "createdAt": "2026-08-21T10:00:00.000Z",
    "updatedAt": "2026-08-21T10:00:00.000Z",
}
PAGE = {
    "id": "p1",
    "targetId": "t1",
    "url": "https://a.example",
    "status": "changed",
    "previousScrapeId": "s1",
    "currentScrapeId": None,
    "statusCode": 200,
    "error": None,
    "metadata": {"searchStatus": "alert"},
    "judgment": {
        "meaningful": True,
        "confidence": "high",
        "reason": "r",
        "meaningfulChanges": [{"type": "added"}],
    },
    "diff": {"text": "-a\n+b", "json": {"files": []}},
    "snapshot": {"json": {"a": 1}},
    "createdAt": "2026-08-21T10:00:00.000Z",
}
BALANCE = {
    "remainingCredits": 1000,
    "planCredits": 500.5,
    "billingPeriodStart": None,
    "billingPeriodEnd": "2026-09-01T00:00:00.000Z",
}

DOCUMENTED = [
    (m.SearchResponse, SEARCH),
    (m.MonitorResponse, {"success": True, "data": MONITOR}),
    (m.MonitorListResponse, {"success": True, "data": [MONITOR, {"id": "m2"}]}),
    (m.DeleteResponse, {"success": True}),
    (m.MonitorRunResponse, {"success": True, "id": "c1", "data": CHECK}),
    (m.MonitorCheckListResponse, {"success": True, "data": [CHECK]}),
    (
        m.MonitorCheckResponse,
        {"success": True, "next": "https://x/v2?skip=1", "data": {**CHECK, "pages": [PAGE]}},
    ),
    (m.CreditUsageResponse, {"success": True, "data": BALANCE}),
]


@pytest.mark.rule("document-change-tracking", "metadata-urls", "search-data", "search-facts")
@pytest.mark.rule("search-web-item", "search-image-item", "search-news-item", "monitor-status")
@pytest.mark.rule("monitor-record", "monitor-estimate", "monitor-current-check", "monitor-last-check")
@pytest.mark.rule("monitor-next-run", "monitor-list", "monitor-run", "check-object", "check-credits")
@pytest.mark.rule("check-summary", "check-targets", "check-list", "check-get", "check-page")
@pytest.mark.rule("check-search-status", "check-judgment", "check-diff", "team-credits")
@pytest.mark.parametrize("model, body", DOCUMENTED)
def test_a_documented_answer_comes_back_as_it_was(model: type[m.ResponseModel], body: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(body)).to_wire() == body


@pytest.mark.rule("open-responses")
@pytest.mark.parametrize("model, body", DOCUMENTED)
def test_fields_of_a_newer_service_are_kept(model: type[m.ResponseModel], body: dict[str, Any]) -> None:
    def extended(value: Any) -> Any:
        if isinstance(value, dict):
            return {"xNew": [None], **{key: extended(item) for key, item in value.items()}}
        return [extended(item) for item in value] if isinstance(value, list) else value

    newer = extended(body)
    assert model.model_validate_json(json.dumps(newer)).to_wire() == newer


def nulls(value: Any) -> Any:
    return {key: item if key in {"id", "data"} else None for key, item in value.items()}


@pytest.mark.rule("success-flag", "open-responses", "document-change-tracking", "metadata-texts")
@pytest.mark.rule("search-research-moves", "check-skipped-no-credits")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.SearchResponse, {"data": {}}),
        (m.SearchResponse, {"data": nulls(SEARCH["data"])}),
        (m.SearchResponse, {"data": {"web": [nulls(SEARCH["data"]["web"][0]), {}]}}),  # type: ignore[index]
        (m.Monitor, nulls(MONITOR)),
        (m.MonitorCheck, nulls(CHECK)),
        (m.MonitorCheckPage, nulls(PAGE)),
        (m.CreditUsage, nulls(BALANCE)),
        (m.CreditUsage, {}),
        (m.DeleteResponse, {}),
        (m.MonitorRunResponse, {"id": "c1"}),
        # Odd, but seen or documented somewhere.
        (m.PageMetadata, {"title": ["a", "b"], "description": ["a"], "language": ["de"], "keywords": "a, b"}),
        (
            m.WebResult,
            {"links": "https://a.example", "images": "i", "category": "brand-new", "highlights": ["a"]},
        ),
        (m.ChangeTracking, {"diff": "-a"}),
        (m.ChangeTracking, {"diff": {"json": {"files": []}}, "json": {"a": {"previous": 1, "current": 2}}}),
        (m.SearchResponse, {"data": {"research": [{"paper": 1}]}, "creditsUsed": 0.5}),
        (m.Monitor, {"id": "m", "webhook": "https://a.example", "status": "hibernating"}),
        (m.Monitor, {"id": "m", "targets": [{"urls": "https://a.example", "type": "brand-new"}]}),
        (m.MonitorCheck, {"id": "c", "status": "skipped_no_credits", "targetResults": {}}),
        (m.MonitorCheckPage, {"diff": "-a", "snapshot": "x", "status": "brand-new"}),
    ],
)
def test_absent_null_and_odd_values_are_read(model: type[m.ResponseModel], body: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(body)).to_wire() == body


@pytest.mark.rule("search-data")
@pytest.mark.parametrize(
    "model, body",
    [
        (m.SearchResponse, {}),
        (m.SearchResponse, {"success": True, "data": "x"}),
        (m.SearchResponse, {"data": {"web": {}}}),
        (m.SearchResponse, {"data": {"web": ["x"]}}),
        (m.MonitorResponse, {"success": True, "data": {}}),
        (m.MonitorListResponse, {"data": MONITOR}),
        (m.MonitorCheckResponse, {"data": [CHECK]}),
        (m.CreditUsageResponse, {"data": []}),
        (m.CreditUsageResponse, []),
        (m.DeleteResponse, "ok"),
    ],
)
def test_what_is_no_such_answer_is_an_error(model: type[m.ResponseModel], body: Any) -> None:
    with pytest.raises(ValidationError):
        model.model_validate_json(json.dumps(body))


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b'{"data": {"web": [', b'{"data": {}} x', b"\xff\xfe", b'{"data": {"a": "\xff"}}'],
)
def test_bytes_that_are_no_json_are_a_validation_error(body: bytes) -> None:
    with pytest.raises(ValidationError):
        m.SearchResponse.model_validate_json(body)


@pytest.mark.rule("metadata-urls", "search-news-item")
def test_python_names_lead_to_wire_names() -> None:
    answer = m.SearchResponse.model_validate(SEARCH)
    assert answer.data.web is not None
    assert answer.data.news is not None
    result = answer.data.web[0]
    assert result.metadata is not None
    assert result.metadata.source_url == "http://example.com:80/a?b=%20#c"
    assert result.raw_html == "<p>"
    assert result.json_ == {"price": 5}
    assert answer.data.news[0].image_url == "i"
    assert answer.credits_used == 3
    assert m.Monitor(id="m", created_at="now").to_wire() == {"id": "m", "createdAt": "now"}


@pytest.mark.rule("scrape-headers", "webhook-headers")
def test_headers_stay_out_of_reprs_and_can_be_masked() -> None:
    target = {"type": "scrape", "scrapeOptions": {"headers": {"Cookie": "s3cr3t"}}}
    monitor = m.Monitor.model_validate({**MONITOR, "targets": [target]})
    assert "s3cr3t" not in repr(monitor)
    assert monitor.to_wire()["webhook"]["headers"] == {"X-Secret": "s3cr3t"}
    masked = monitor.to_wire(mask_headers=True)
    assert masked["webhook"]["headers"] == {"X-Secret": "***"}
    assert masked["targets"] == [{"type": "scrape", "scrapeOptions": {"headers": {"Cookie": "***"}}}]
    assert masked["webhook"]["url"] == "https://a.example"


def test_responses_and_requests_share_no_class() -> None:
    for name in m.__all__:
        model = getattr(m, name)
        if isinstance(model, type):
            assert issubclass(model, m.RequestModel) != issubclass(model, m.ResponseModel), name
            wanted = "forbid" if issubclass(model, m.RequestModel) else "allow"
            assert model.model_config["extra"] == wanted, name
