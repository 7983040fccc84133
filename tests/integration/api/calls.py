"""Every call of the service, with a good answer to it, and the failures after which nobody knows what became of it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from airflow_provider_webdata.api import endpoints, errors, models
from airflow_provider_webdata.api.models.parse import MAX_FILE_BYTES
from airflow_provider_webdata.api.multipart import FileSource, Upload
from tests.support.fault_server import Step, answer, hang_up, raw, reset

MONITOR = {"monitor_id": "m-1"}
CHECK = {"monitor_id": "m-1", "check_id": "c-1"}
STARTED = '{"success": true, "id": "j-1"}'
PAGE = '{"success": true, "data": {"markdown": "x"}}'
STATE = '{"success": true, "status": "completed", "data": []}'
KEY = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"
CRAWL = models.CrawlRequest(url="https://a.example", limit=5)
JOB = {"job_id": "j-1"}
SESSION = {"session_id": "s-1"}
SCRAPE = {"scrape_id": "p-1"}
PAPER = {"paper_id": "arxiv:1"}
FOUND = '{"success": true, "results": []}'
CONTENT = b"%PDF-1.7 content"
RAN = '{"success": true, "stdout": "1", "exitCode": 0, "killed": false}'


def upload(file: FileSource | None = None, size: int | None = None) -> Upload:
    return Upload(
        "parse", io.BytesIO(CONTENT) if file is None else file, "a.pdf", size, max_bytes=MAX_FILE_BYTES
    )


@dataclass
class Operation:
    """A call, made up anew for each try of a test, and a good answer to it."""

    make: Callable[[], dict[str, Any]]
    good: str


def call(endpoint: Any, good: str, **arguments: Any) -> Operation:
    return Operation(lambda: {"endpoint": endpoint, **arguments}, good)


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
    "parse": Operation(
        lambda: {"endpoint": endpoints.PARSE, "body": models.ParseOptions(timeout=1000), "upload": upload()},
        '{"success": true, "data": {"markdown": "x"}}',
    ),
    "start extract": call(
        endpoints.START_EXTRACT, '{"success": true, "id": "j"}', body=models.ExtractRequest(prompt="p")
    ),
    "start agent": call(
        endpoints.START_AGENT, '{"success": true, "id": "j"}', body=models.AgentRequest(prompt="p")
    ),
    "open session": call(
        endpoints.OPEN_SESSION, '{"success": true, "id": "s"}', body=models.InteractRequest(ttl=60)
    ),
    "execute": call(endpoints.EXECUTE, RAN, path=SESSION, body=models.ExecuteRequest(code="1", timeout=1)),
    "interact with scrape": call(
        endpoints.INTERACT_SCRAPE, RAN, path=SCRAPE, body=models.ScrapeInteractRequest(prompt="p")
    ),
    "developer search": call(
        endpoints.DEVELOPER_SEARCH, FOUND, body=models.DeveloperSearchRequest(query="q")
    ),
    "government search": call(
        endpoints.GOVERNMENT_SEARCH, '{"data": {}}', body=models.GovernmentSearchRequest(query="q")
    ),
    "paper search": call(endpoints.PAPER_SEARCH, FOUND, body=models.PaperSearchRequest(query="q")),
    "paper": call(endpoints.PAPER, '{"paper": {}}', path=PAPER, body=models.PaperRequest(query="q")),
    "similar papers": call(
        endpoints.SIMILAR_PAPERS, FOUND, path=PAPER, body=models.SimilarPapersRequest(intent="i")
    ),
    "parse upload": call(
        endpoints.PARSE_UPLOAD,
        '{"data": {"uploadUrl": "https://files.example/u", "uploadRef": "r"}}',
        body=models.ParseUploadRequest(filename="a.pdf"),
    ),
    "parse by reference": call(
        endpoints.PARSE_REFERENCE, PAGE, body=models.ParseReferenceRequest(upload_ref="r", timeout=1000)
    ),
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
    "extract status": call(endpoints.EXTRACT_STATUS, '{"status": "processing", "data": []}', path=JOB),
    "agent status": call(endpoints.AGENT_STATUS, '{"status": "processing"}', path=JOB),
    "cancel agent": call(endpoints.CANCEL_AGENT, '{"success": true}', path=JOB),
    "list sessions": call(endpoints.LIST_SESSIONS, '{"success": true, "sessions": []}'),
    "close session": call(endpoints.CLOSE_SESSION, '{"success": true}', path=SESSION),
    "list agents": call(endpoints.LIST_AGENTS, '{"agents": []}'),
    "agent thread": call(
        endpoints.AGENT_THREAD, '{"thread": {"id": "t", "runs": []}}', path={"thread_id": "t"}
    ),
    "agent trace": call(endpoints.AGENT_TRACE, '{"events": []}', path=JOB),
    "agent snapshot": call(endpoints.AGENT_SNAPSHOT, '{"snapshot": "x"}', path={**JOB, "snapshot_id": "s"}),
    "parse formats": call(endpoints.PARSE_FORMATS, '{"data": {"formats": []}}'),
    "search feedback": call(
        endpoints.SEARCH_FEEDBACK,
        '{"success": true}',
        path={"search_id": "s"},
        body=models.SearchFeedbackRequest(rating="bad", query_suggestions="x"),
    ),
    "feedback": call(
        endpoints.FEEDBACK,
        '{"success": true}',
        body=models.FeedbackRequest(endpoint="scrape", job_id=KEY, rating="good", note="n"),
    ),
    "concurrency": call(endpoints.CONCURRENCY, '{"concurrency": 0}'),
    "threat policy": call(endpoints.THREAT_POLICY, '{"data": {"mode": "off"}}'),
    "replace threat policy": call(
        endpoints.REPLACE_THREAT_POLICY,
        '{"data": {"mode": "off"}}',
        body=models.ThreatPolicyRequest(mode="off"),
    ),
    "stop interaction": call(endpoints.STOP_SCRAPE_INTERACT, '{"success": true}', path=SCRAPE),
}


def failure(status: int, headers: dict[str, str] | None = None, **body: Any) -> Step:
    return answer(status, json.dumps({"success": False, **body}), headers=headers)


CHUNKED_CUT = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n20\r\n{"
)
# The service may have done what it was asked and may not: nobody can tell.
AMBIGUOUS: dict[str, tuple[Step, type[errors.WebDataError]]] = {
    "closed without an answer": (hang_up, errors.TransportError),
    "reset": (reset, errors.TransportError),
    "cut inside the headers": (raw(b"HTTP/1.1 200 OK\r\ncontent-"), errors.TransportError),
    "cut inside the body": (answer(body='{"success": tr', length=500), errors.TransportError),
    "cut inside a chunk": (raw(CHUNKED_CUT), errors.TransportError),
    "not HTTP": (raw(b"SSH-2.0-OpenSSH_9\r\n\r\n"), errors.TransportError),
    "408": (failure(408, code="SCRAPE_TIMEOUT", error="slow"), errors.RequestTimeoutError),
    "500": (failure(500, code="UNKNOWN_ERROR", error="x"), errors.ServerError),
    "502 of a proxy": (answer(502, "<html>bad gateway</html>", "text/html"), errors.ServerError),
    "503": (failure(503, error="x"), errors.ServerError),
    "504": (answer(504, b""), errors.ServerError),
    "200 that is HTML": (answer(body="<html>", content_type="text/html"), errors.InvalidResponseError),
    "200 cut short": (answer(body='{"success": true, "da'), errors.InvalidResponseError),
    "200 that is a list": (answer(body="[]"), errors.InvalidResponseError),
    "200 that is not UTF-8": (answer(body=b'{"error": "\xff\xfe"}'), errors.InvalidResponseError),
    "redirect": (answer(302, headers={"location": "/v2/elsewhere"}), errors.InvalidResponseError),
}
