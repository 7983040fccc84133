"""Whatever starts or bills reaches the service once after an ambiguous failure; whatever does not is repeated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_webdata.api import endpoints, errors, models
from tests.fault_server import Caller, answer, never_answer
from tests.integration.api import test_upload_and_session_faults as files_and_sessions
from tests.integration.api.test_upload_and_session_faults import AMBIGUOUS, JOB, SCRAPE, Operation, call

MONITOR = {"monitor_id": "m-1"}
CHECK = {"monitor_id": "m-1", "check_id": "c-1"}
STARTED = '{"success": true, "id": "j-1"}'
PAGE = '{"success": true, "data": {"markdown": "x"}}'
STATE = '{"success": true, "status": "completed", "data": []}'
KEY = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"
CRAWL = models.CrawlRequest(url="https://a.example", limit=5)

BILLING = {
    "search": call(endpoints.SEARCH, '{"data": {}}', body=models.SearchRequest(query="q")),
    "scrape": call(endpoints.SCRAPE, PAGE, body=models.ScrapeRequest(url="https://a.example")),
    "map": call(endpoints.MAP, '{"links": []}', body=models.MapRequest(url="https://a.example")),
    "start batch scrape": call(
        endpoints.START_BATCH_SCRAPE,
        STARTED,
        body=models.BatchScrapeRequest(urls=["https://a.example"], ignore_invalid_urls=True),
    ),
    "start crawl": call(endpoints.START_CRAWL, STARTED, body=CRAWL),
    # That the service honours the key is known of its source code alone: no reason to try it blindly.
    "start crawl with a key": call(endpoints.START_CRAWL, STARTED, body=CRAWL, idempotency_key=KEY),
    "create monitor": call(
        endpoints.CREATE_MONITOR,
        '{"data": {"id": "m"}}',
        body=models.MonitorCreateRequest(
            name="n",
            schedule={"text": "hourly"},
            targets=[{"type": "scrape", "urls": ["https://a.example"]}],
        ),
    ),
    "run monitor": call(endpoints.RUN_MONITOR, STARTED, path=MONITOR),
}
HARMLESS = {
    "get scrape": call(endpoints.GET_SCRAPE, PAGE, path=SCRAPE),
    "crawl status": call(endpoints.CRAWL_STATUS, STATE, path=JOB),
    "crawl documents": call(endpoints.CRAWL_DOCUMENTS, STATE, path=JOB),
    "crawl errors": call(endpoints.CRAWL_ERRORS, '{"errors": []}', path=JOB),
    "cancel crawl": call(endpoints.CANCEL_CRAWL, '{"status": "cancelled"}', path=JOB),
    "active crawls": call(endpoints.ACTIVE_CRAWLS, '{"crawls": []}'),
    "crawl params preview": call(
        endpoints.CRAWL_PARAMS, '{"data": {}}', body=models.CrawlParamsRequest(url="a.example", prompt="p")
    ),
    "batch scrape status": call(endpoints.BATCH_SCRAPE_STATUS, STATE, path=JOB),
    "batch scrape documents": call(endpoints.BATCH_SCRAPE_DOCUMENTS, STATE, path=JOB),
    "batch scrape errors": call(endpoints.BATCH_SCRAPE_ERRORS, '{"errors": []}', path=JOB),
    "cancel batch scrape": call(endpoints.CANCEL_BATCH_SCRAPE, '{"status": "cancelled"}', path=JOB),
    "list monitors": call(endpoints.LIST_MONITORS, '{"data": []}'),
    "get monitor": call(endpoints.GET_MONITOR, '{"data": {"id": "m"}}', path=MONITOR),
    "update monitor": call(
        endpoints.UPDATE_MONITOR,
        '{"data": {"id": "m"}}',
        path=MONITOR,
        body=models.MonitorUpdateRequest(name="n"),
    ),
    "delete monitor": call(endpoints.DELETE_MONITOR, '{"success": true}', path=MONITOR),
    "list monitor checks": call(endpoints.LIST_MONITOR_CHECKS, '{"data": []}', path=MONITOR),
    "get monitor check": call(endpoints.GET_MONITOR_CHECK, '{"data": {"id": "c"}}', path=CHECK),
    "credit usage": call(endpoints.CREDIT_USAGE, '{"data": {}}'),
    "credit history": call(endpoints.CREDIT_HISTORY, '{"periods": []}', query={"byApiKey": True}),
    "token usage": call(endpoints.TOKEN_USAGE, '{"data": {}}'),
    "token history": call(endpoints.TOKEN_HISTORY, '{"periods": []}'),
    "queue status": call(endpoints.QUEUE_STATUS, '{"jobsInQueue": 0}'),
    "activity": call(endpoints.ACTIVITY, '{"data": []}', query={"limit": 5}),
}


def names(*tables: dict[str, Operation]) -> set[str]:
    return {operation.make()["endpoint"].name for table in tables for operation in table.values()}


def test_no_endpoint_is_left_out() -> None:
    declared = [value for value in vars(endpoints).values() if isinstance(value, endpoints.Endpoint)]
    assert names(BILLING, files_and_sessions.BILLING) == {one.name for one in declared if not one.repeatable}
    assert names(HARMLESS, files_and_sessions.HARMLESS) == {one.name for one in declared if one.repeatable}
    assert len({one.name for one in declared}) == len(declared)


@pytest.mark.parametrize("fault", AMBIGUOUS)
@pytest.mark.parametrize("name", BILLING)
async def test_what_starts_or_bills_is_called_once(caller: Caller, serve: Any, name: str, fault: str) -> None:
    step, error = AMBIGUOUS[fault]
    server = serve(step, answer(body=BILLING[name].good))
    with pytest.raises(errors.WebDataError) as caught:
        await caller.call(server.url, **BILLING[name].make())
    assert type(caught.value) is error
    assert not isinstance(caught.value, errors.TransportError) or caught.value.sent
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", BILLING)
async def test_what_starts_or_bills_is_called_once_though_no_answer_comes(
    caller: Caller, serve: Any, name: str
) -> None:
    made = BILLING[name].make()
    # With the service's own time it would take minutes.
    made["endpoint"] = replace(made["endpoint"], service_seconds=None)
    caller.options["timeout"] = 0.3
    server = serve(never_answer, answer(body=BILLING[name].good))
    with pytest.raises(errors.TransportError, match="no answer from") as caught:
        await caller.call(server.url, **made)
    assert caught.value.sent
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", ["closed without an answer", "cut inside the body", "408", "503"])
@pytest.mark.parametrize("name", HARMLESS)
async def test_what_does_no_harm_is_called_again(caller: Caller, serve: Any, name: str, fault: str) -> None:
    server = serve(AMBIGUOUS[fault][0], answer(body=HARMLESS[name].good))
    assert await caller.call(server.url, **HARMLESS[name].make())
    assert len(server.requests) == 2
    assert server.requests[0].target == server.requests[1].target


@pytest.mark.parametrize("name", BILLING)
async def test_a_refusal_for_rate_is_no_start(caller: Caller, serve: Any, name: str) -> None:
    refusal = answer(429, '{"success": false, "error": "rate"}', headers={"retry-after": "0"})
    server = serve(refusal, answer(body=BILLING[name].good))
    assert await caller.call(server.url, **BILLING[name].make())
    assert len(server.requests) == 2
    assert server.requests[0].body == server.requests[1].body
