# SPDX-License-Identifier: Apache-2.0
"""Responses: documented shapes, odd shapes that occur, and shapes that are not an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.tables import SECRET, SITE, UUID, Body, ids

FACTS = {
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
    "metadata": FACTS,
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

METADATA = {
    "title": ["T", "U"],
    "language": None,
    "ogLocaleAlternate": ["de"],
    "dc.creator": ["a", "b"],
    "contentType": "text/html",
    "scrapeId": UUID,
    "concurrencyLimited": True,
    "concurrencyQueueDurationMs": 12.5,
    "proxyUsed": "stealth",
    "cacheState": "hit",
    "cachedAt": "2026-08-21T10:00:00.000Z",
    "creditsUsed": 5,
    "statusCode": 404,
    "sourceURL": SITE,
    "sourceFile": "a.pdf",
}
BLOCK = {
    "id": "p1.b1",
    "type": "table",
    "label": None,
    "bbox": {"x0": 0, "y0": 0.5, "x1": 1, "y1": 1},
    "content": "| a |",
    "markdownSpan": {"start": 0, "end": 5},
    "readingOrder": 1,
    "source": "native_text",
    "confidence": {"layout": 0.9, "ocr": None},
}
DOCUMENT = {
    "markdown": "# a",
    "html": None,
    "rawHtml": "<p>",
    "links": [SITE],
    "json": {"a": [1]},
    "changeTracking": {
        "previousScrapeAt": None,
        "changeStatus": "new",
        "visibility": "visible",
        "diff": {"text": "-a", "json": {"files": [{"from": "a", "to": "b", "chunks": []}]}},
        "json": {"price": {"previous": 1, "current": 2}},
    },
    "branding": {
        "colorScheme": "dark",
        "colors": {"primary": "#fff"},
        "fonts": [{"family": "A"}],
        "tone": None,
    },
    "product": {"title": "t", "url": SITE, "variants": [{"price": {"amount": 1.5}}]},
    "menu": {"isMenu": True, "sections": []},
    "attributes": [{"selector": "a", "attribute": "href", "values": ["x"]}],
    "pages": [{"pageNumber": 1, "markdown": "x"}],
    "blocks": [{"pageNumber": 1, "width": None, "height": None, "status": "partial", "items": [BLOCK]}],
    "actions": {
        "screenshots": [SITE],
        "scrapes": [{"url": SITE, "html": "<p>"}],
        "javascriptReturns": [{"type": "number", "value": 4}],
        "pdfs": [SITE],
    },
    "warning": None,
    "metadata": METADATA,
}

ACTIVE = {
    "id": UUID,
    "teamId": "t",
    "url": SITE,
    "options": {"limit": 5, "scrapeOptions": {"headers": {"Cookie": "s3cr3t"}}},
    "created_at": "2026-08-21T10:00:00.000Z",
}
ITEM = {
    "id": UUID,
    "endpoint": "batch_scrape",
    "api_version": "v2",
    "created_at": "2026-08-21T10:00:00.000Z",
    "target": None,
}
PERIOD = {"startDate": "2026-08-01", "endDate": "2026-09-01", "apiKey": None}
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
FOUND = {
    "paperId": "20142",
    "primaryId": "arxiv:2105.05233",
    "ids": {"arxiv": ["2105.05233"]},
    "title": "t",
    "abstract": "a",
    "score": 0.5,
}
BROWSER = {"cdpUrl": f"wss://browser.example/{SECRET}", "liveViewUrl": f"https://live.example/{SECRET}"}
SESSION = {
    "id": "s1",
    **BROWSER,
    "status": "active",
    "streamWebView": True,
    "createdAt": 1_800_000_000,
    "expiresAt": None,
}
# fmt: off
DOCUMENTED: list[tuple[type[m.ResponseModel], Body]] = [
    (m.SearchResponse, SEARCH),
    (m.ScrapeResponse, {"success": True, "data": DOCUMENT}),
    (m.MapResponse, {"success": True, "links": [{"url": SITE, "title": "t", "description": None}], "id": UUID}),
    (m.MapResponse, {"status": "success", "links": []}),
    # Jobs.
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
    (m.ActiveCrawls, {"success": True, "crawls": [ACTIVE, {"id": UUID}]}),
    (m.CrawlParamsResponse,
     {"success": True, "data": {"includePaths": ["/a"], "maxDepth": 2, "delay": 500, "deduplicateSimilarURLs": True}}),
    (m.AgentStatus, {"success": True, "status": "completed", "data": {"a": []}, "model": "spark-2", "creditsUsed": 9}),
    (m.AgentStatus, {"success": True, "status": "pausing", "partial": {"a": 1}, "stopReason": "x"}),
    # Sessions.
    (m.InteractSession, SESSION),
    (m.InteractSessions, {"success": True, "sessions": [SESSION, {"id": "s2"}]}),
    (m.SessionClosed, {"success": True, "sessionDurationMs": 61_000, "creditsBilled": 4, "cleanupQueued": True}),
    (m.SessionClosed, {}),
    # Monitors.
    (m.MonitorResponse, {"success": True, "data": MONITOR}),
    (m.MonitorListResponse, {"success": True, "data": [MONITOR, {"id": "m2"}]}),
    (m.DeleteResponse, {"success": True}),
    (m.MonitorRunResponse, {"success": True, "id": "c1", "data": CHECK}),
    (m.MonitorCheckListResponse, {"success": True, "data": [CHECK]}),
    (m.MonitorCheckResponse, {"success": True, "next": "https://x/v2?skip=1", "data": {**CHECK, "pages": [PAGE]}}),
    # The team.
    (m.CreditUsageResponse, {"success": True, "data": BALANCE}),
    (m.CreditHistory, {"success": True, "periods": [{**PERIOD, "totalCredits": 5}, {**PERIOD, "creditsUsed": 0.5}]}),
    (m.TokenUsageResponse, {"success": True, "data": {"remainingTokens": 5, "planTokens": 10}}),
    (m.TokenHistory, {"success": True, "periods": [{**PERIOD, "totalTokens": 5}]}),
    (m.QueueStatus,
     {"success": True, "jobsInQueue": 1, "activeJobsInQueue": 0, "waitingJobsInQueue": 1, "maxConcurrency": 2,
      "mostRecentSuccess": None}),
    (m.Activity, {"success": True, "data": [ITEM, {}], "cursor": None, "has_more": False}),
    # Indexes.
    (
        m.DeveloperSearchResponse,
        {
            "success": True,
            "results": [
                {
                    "id": "issue:a/b#1",
                    "type": "issue",
                    "url": "https://a.example",
                    "title": "t",
                    "passages": [{"text": "p", "citation_url": "https://a.example#1"}],
                    "license": {"state": "licensed", "spdx_id": "MIT"},
                },
                {"id": "doc:x", "url": "u", "passages": [], "license": "MIT", "new": 1},
            ],
            "coverage": {"doc": "ok", "issue": "brand-new"},
            "reranked": True,
            "repos": [{"repo": "a/b", "indexed": True, "types": {"pullRequest": True}}],
            "sources": [{"source": "x", "indexed": False}],
        },
    ),
    (m.PaperSearchResponse, {"success": True, "results": [FOUND, {**FOUND, "signals": {"structural": 1}}]}),
    (m.SimilarPapersResponse, {"results": [FOUND], "poolSize": 40, "truncated": False, "note": None}),
    (
        m.PaperResponse,
        {
            "success": True,
            "paper": {
                "paperId": "1",
                "ids": {},
                "title": "t",
                "abstract": "a",
                "authors": "A. B, C. D",
                "categories": ["cs.LG"],
                "createdDate": "Wed, 11 May 2021 18:01:01 GMT",
                "updateDate": "2021-06-01",
            },
            "paperId": "1",
            "query": "q",
            "passages": [{"text": "p", "score": 0.25}],
        },
    ),
]
# fmt: on


@pytest.mark.rule("document-change-tracking", "metadata-urls", "search-data", "search-facts")
@pytest.mark.rule("search-web-item", "search-image-item", "search-news-item", "monitor-status")
@pytest.mark.rule("monitor-record", "monitor-estimate", "monitor-current-check", "monitor-last-check")
@pytest.mark.rule("monitor-next-run", "monitor-list", "monitor-run", "check-object", "check-credits")
@pytest.mark.rule("check-summary", "check-targets", "check-list", "check-get", "check-page")
@pytest.mark.rule("check-search-status", "check-judgment", "check-diff", "team-credits")
@pytest.mark.rule("document-text", "document-lists", "document-answers", "document-brand")
@pytest.mark.rule("document-pdf-pages", "document-blocks", "document-actions", "document-warning")
@pytest.mark.rule("document-metadata", "metadata-texts", "metadata-open", "metadata-status")
@pytest.mark.rule("metadata-scrape-id", "metadata-credits", "metadata-source-file", "scrape-answer")
@pytest.mark.rule("batch-answer", "crawl-answer", "job-counts", "job-times", "job-data", "job-next")
@pytest.mark.rule("job-warning", "job-errors", "crawl-active", "crawl-preview", "map-links")
@pytest.mark.rule("team-credits-history", "team-tokens", "team-queue", "team-activity", "team-concurrency")
@pytest.mark.rule("parse-answer", "session-answer", "session-list", "session-close", "code-result")
@pytest.mark.rule("scrape-interact", "scrape-interact-stop")
@pytest.mark.rule("agent-answer", "agent-status", "developer-answer")
@pytest.mark.rule("research-papers", "research-one", "research-similar-answer")
@pytest.mark.parametrize("model, body", DOCUMENTED, ids=ids(DOCUMENTED))
def test_a_documented_answer_is_kept(model: type[m.ResponseModel], body: Body) -> None:
    """As are the fields of a newer service, at any depth."""

    def extended(value: Any) -> Any:
        if isinstance(value, dict):
            return {"xNew": [None], **{key: extended(item) for key, item in value.items()}}
        return [extended(item) for item in value] if isinstance(value, list) else value

    for answer in (body, extended(body)):
        assert model.model_validate_json(json.dumps(answer)).to_wire() == answer


def nulls(value: Any) -> Any:
    return {key: item if key in {"id", "data"} else None for key, item in value.items()}


# fmt: off
ODD: list[tuple[type[m.ResponseModel], Body]] = [
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
    # Documented by some of the sources, or seen.
    (m.PageMetadata, {"title": ["a", "b"], "description": ["a"], "language": ["de"], "keywords": "a, b"}),
    (m.WebResult, {"links": "https://a.example", "images": "i", "category": "brand-new", "highlights": ["a"]}),
    (m.ChangeTracking, {"diff": "-a"}),
    (m.ChangeTracking, {"diff": {"json": {"files": []}}, "json": {"a": {"previous": 1, "current": 2}}}),
    (m.SearchResponse, {"data": {"research": [{"paper": 1}]}, "creditsUsed": 0.5}),
    (m.SearchResponse, {"data": {"web": [], "research": {"papers": [1]}, "tools": {"items": []}}}),
    (m.Monitor, {"id": "m", "webhook": "https://a.example", "status": "hibernating"}),
    (m.Monitor, {"id": "m", "targets": [{"urls": "https://a.example", "type": "brand-new"}]}),
    (m.MonitorCheck, {"id": "c", "status": "skipped_no_credits", "targetResults": {}}),
    (m.MonitorCheckPage, {"diff": "-a", "snapshot": "x", "status": "brand-new"}),
    # An odd field must not cost an answer that was billed.
    (m.AgentStatus, {"status": "completed", "data": [1], "expiresAt": {}, "creditsUsed": "few", "model": 2}),
    (m.ExecuteResult, {"success": True, "stdout": ["a"], "exitCode": "none", "killed": {}, "error": {"a": 1}}),
    (m.InteractSession, {"id": "s", "cdpUrl": {"url": SECRET}, "expiresAt": 1.5, "streamWebView": "perhaps"}),
    (m.SessionClosed, {"creditsBilled": None, "cleanupQueued": "soon"}),
]
NO_ANSWERS: list[tuple[type[m.ResponseModel], Any]] = [
    (m.SearchResponse, {}),
    (m.SearchResponse, {"success": True, "data": "x"}),
    (m.SearchResponse, {"data": {"web": {}}}),
    (m.ScrapeResponse, {"success": True, "data": None}),
    (m.MapResponse, {"success": True}),
    (m.MonitorResponse, {"success": True, "data": {}}),
    (m.MonitorListResponse, {"data": MONITOR}),
    (m.MonitorCheckResponse, {"data": [CHECK]}),
    (m.CreditUsageResponse, {"data": []}),
    (m.CreditHistory, {}),
    (m.Activity, {"success": True}),
    (m.QueueStatus, []),
    (m.DeleteResponse, "ok"),
    (m.ActiveCrawls, {"success": True}),
    (m.JobStarted, {"success": True}),
    # A job without a status would be polled forever.
    (m.JobStatus, {"success": True}),
    (m.JobStatus, {"status": None}),
    (m.JobStatus, {"status": "completed", "data": {}}),
    (m.AgentStatus, {"data": {}}),
    (m.InteractSessions, {"success": True}),
]
# fmt: on


@pytest.mark.rule("success-flag", "open-responses", "document-change-tracking", "metadata-texts")
@pytest.mark.rule("search-research-moves", "check-skipped-no-credits")
@pytest.mark.parametrize("model, body", ODD, ids=ids(ODD))
def test_absent_null_and_odd_values_are_kept(model: type[m.ResponseModel], body: Body) -> None:
    found = model.model_validate_json(json.dumps(body))
    assert found.to_wire() == body
    assert SECRET not in f"{found!r} {found}"
    assert not hasattr(found, "secrets") or list(found.secrets()) == []


@pytest.mark.rule("search-data", "job-status")
@pytest.mark.parametrize("model, body", NO_ANSWERS, ids=ids(NO_ANSWERS))
def test_what_is_not_an_answer_is_an_error(model: type[m.ResponseModel], body: Any) -> None:
    with pytest.raises(ValidationError):
        model.model_validate_json(json.dumps(body))


@pytest.mark.parametrize(
    "body", [b"", b'{"data": {"web": [', b'{"data": {}} x', b'{"data": {"a": "\xff"}}'], ids=str
)
def test_bytes_that_are_not_json_are_a_validation_error(body: bytes) -> None:
    with pytest.raises(ValidationError):
        m.SearchResponse.model_validate_json(body)


def names(model: type[BaseModel]) -> st.SearchStrategy[str]:
    return st.sampled_from(sorted(field.alias or name for name, field in model.model_fields.items()))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.rule("open-responses")
@given(
    metadata=st.dictionaries(names(m.PageMetadata) | st.text(max_size=8), json_values, max_size=6),
    fields=st.dictionaries(names(m.Document) | st.text(max_size=8), json_values, max_size=6),
)
def test_an_odd_page_does_not_cost_the_others(metadata: Body, fields: Body) -> None:
    odd = {**fields, "metadata": metadata}
    body = {"status": "completed", "data": [odd, DOCUMENT]}
    found = m.JobStatus.model_validate_json(json.dumps(body))
    assert found.data is not None
    assert found.data[1].markdown == "# a"
    wire = found.to_wire()["data"][0]
    assert {**wire, "metadata": None} == {**odd, "metadata": None}
    # A number written as text is read as a number.
    assert wire["metadata"].keys() == metadata.keys()


@pytest.mark.rule("open-responses")
@pytest.mark.parametrize(
    "model", [m.Document, m.PageMetadata, m.ChangeTracking, m.ActionResults, m.WebResult]
)
def test_a_field_of_any_shape_is_kept(model: type[m.ResponseModel]) -> None:
    own = m.WebResult.model_fields.keys() - m.PageContent.model_fields.keys()
    for value in (7.5, "x", True, ["x", 7], [["x"]], {"a": {"b": None}}):
        for name in model.model_fields.keys() - own:
            body = {model.model_fields[name].alias or name: value}
            assert model.model_validate_json(json.dumps(body)).to_wire() == body
            assert model.model_validate(body).to_wire() == body


@pytest.mark.rule("metadata-urls", "search-news-item")
def test_python_names_of_wire_names() -> None:
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
    document = m.ScrapeResponse.model_validate({"data": DOCUMENT}).data
    assert document.actions is not None
    assert document.actions.javascript_returns == [{"type": "number", "value": 4}]
    assert document.change_tracking is not None
    assert document.change_tracking.json_ == {"price": {"previous": 1, "current": 2}}
    assert document.metadata is not None
    assert (document.metadata.scrape_id, document.metadata.source_url) == (UUID, SITE)
    assert m.Monitor(id="m", created_at="now").to_wire() == {"id": "m", "createdAt": "now"}
    assert m.JobStarted(id="x", invalidURLs=["a"]).invalid_urls == ["a"]
    assert m.ActiveCrawl.model_validate({"id": "c", "createdAt": "now"}).created_at == "now"
    assert m.Activity.model_validate({"data": [ITEM], "has_more": True}).has_more is True
    assert m.ActivityItem(created_at="now", api_version="v2").to_wire() == {
        "created_at": "now",
        "api_version": "v2",
    }


@pytest.mark.rule("map-links")
def test_links_of_a_map_may_be_plain_text() -> None:
    assert m.MapResponse.model_validate_json('{"links": null}').links == []
    found = m.MapResponse.model_validate_json(json.dumps({"links": [SITE, {"url": "b", "title": ["x"]}]}))
    assert [link.url for link in found.links] == [SITE, "b"]
    assert found.to_wire() == {"links": [{"url": SITE}, {"url": "b", "title": ["x"]}]}


@pytest.mark.rule("team-credits-history", "team-tokens")
def test_a_period_has_its_use_under_either_name() -> None:
    for model, total, used in (
        (m.CreditPeriod, "totalCredits", "creditsUsed"),
        (m.TokenPeriod, "totalTokens", "tokensUsed"),
    ):
        assert model.model_validate({total: 5}).used == 5
        assert model.model_validate({used: 6}).used == 6
        assert model.model_validate({total: 0, used: 6}).used == 0
        assert model.model_validate({}).used is None


@pytest.mark.rule("scrape-headers", "webhook-headers", "crawl-active")
def test_secrets_stay_out_of_reprs_and_headers_can_be_masked() -> None:
    target = {"type": "scrape", "scrapeOptions": {"headers": {"Cookie": "s3cr3t"}}}
    monitor = m.Monitor.model_validate({**MONITOR, "targets": [target]})
    assert "s3cr3t" not in repr(monitor)
    assert monitor.to_wire()["webhook"]["headers"] == {"X-Secret": "s3cr3t"}
    masked = monitor.to_wire(mask_headers=True)
    assert masked["webhook"]["headers"] == {"X-Secret": "***"}
    assert masked["targets"] == [{"type": "scrape", "scrapeOptions": {"headers": {"Cookie": "***"}}}]
    assert masked["webhook"]["url"] == "https://a.example"
    crawls = m.ActiveCrawls.model_validate({"crawls": [ACTIVE]})
    assert "s3cr3t" not in repr(crawls)
    assert "s3cr3t" not in json.dumps(crawls.to_wire(mask_headers=True))
    assert "wd-123" not in repr(m.CreditPeriod.model_validate({**PERIOD, "apiKey": "wd-123"}))


def test_responses_and_requests_share_no_class() -> None:
    for name in m.__all__:
        model = getattr(m, name)
        if isinstance(model, type):
            assert issubclass(model, m.RequestModel) != issubclass(model, m.ResponseModel), name
            wanted = "forbid" if issubclass(model, m.RequestModel) else "allow"
            assert model.model_config["extra"] == wanted, name
