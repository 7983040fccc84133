"""Every call of the service with a good answer, by whether it may be repeated."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.api.models.parse import MAX_FILE_BYTES
from airflow_provider_webdata.api.multipart import FileSource, Upload
from tests.support.fault_server import Step, answer

MONITOR = {"monitor_id": "m-1"}
CHECK = {"monitor_id": "m-1", "check_id": "c-1"}
STARTED = '{"success": true, "id": "j-1"}'
PAGE = '{"success": true, "data": {"markdown": "x"}}'
STATE = '{"success": true, "status": "completed", "data": []}'
KEY = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"
CRAWL = {"url": "https://a.example", "limit": 5}
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
    """A call, built anew for each use, and a good answer to it."""

    make: Callable[[], dict[str, Any]]
    good: str


def built(endpoint: Any, fields: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    """Return the arguments of a call, with a request of these fields as its body.

    Modules build no requests when they are imported: that takes longer than most of their tests.
    """
    body = None if fields is None else endpoint.request().model_validate(fields)
    return {"endpoint": endpoint, "body": body, **arguments}


def call(endpoint: Any, good: str, **arguments: Any) -> Operation:
    return Operation(lambda: built(endpoint, **arguments), good)


BILLING = {
    "search": call(endpoints.SEARCH, '{"data": {}}', fields={"query": "q"}),
    "scrape": call(endpoints.SCRAPE, PAGE, fields={"url": "https://a.example"}),
    "map": call(endpoints.MAP, '{"links": []}', fields={"url": "https://a.example"}),
    "start batch scrape": call(
        endpoints.START_BATCH_SCRAPE,
        STARTED,
        fields={"urls": ["https://a.example"], "ignore_invalid_urls": True},
    ),
    "start crawl": call(endpoints.START_CRAWL, STARTED, fields=CRAWL),
    # Only the service's source code says that it honors the key, so that a lost answer is not repeated.
    "start crawl with a key": call(endpoints.START_CRAWL, STARTED, fields=CRAWL, idempotency_key=KEY),
    "create monitor": call(
        endpoints.CREATE_MONITOR,
        '{"data": {"id": "m"}}',
        fields={
            "name": "n",
            "schedule": {"text": "hourly"},
            "targets": [{"type": "scrape", "urls": ["https://a.example"]}],
        },
    ),
    "run monitor": call(endpoints.RUN_MONITOR, STARTED, path=MONITOR),
    "parse": Operation(
        lambda: built(endpoints.PARSE, {"timeout": 1000}, upload=upload()),
        '{"success": true, "data": {"markdown": "x"}}',
    ),
    "start extract": call(endpoints.START_EXTRACT, '{"success": true, "id": "j"}', fields={"prompt": "p"}),
    "start agent": call(endpoints.START_AGENT, '{"success": true, "id": "j"}', fields={"prompt": "p"}),
    "open session": call(endpoints.OPEN_SESSION, '{"success": true, "id": "s"}', fields={"ttl": 60}),
    "execute": call(endpoints.EXECUTE, RAN, path=SESSION, fields={"code": "1", "timeout": 1}),
    "interact with scrape": call(endpoints.INTERACT_SCRAPE, RAN, path=SCRAPE, fields={"prompt": "p"}),
    "developer search": call(endpoints.DEVELOPER_SEARCH, FOUND, fields={"query": "q"}),
    "government search": call(endpoints.GOVERNMENT_SEARCH, '{"data": {}}', fields={"query": "q"}),
    "paper search": call(endpoints.PAPER_SEARCH, FOUND, fields={"query": "q"}),
    "paper": call(endpoints.PAPER, '{"paper": {}}', path=PAPER, fields={"query": "q"}),
    "similar papers": call(endpoints.SIMILAR_PAPERS, FOUND, path=PAPER, fields={"intent": "i"}),
    "parse upload": call(
        endpoints.PARSE_UPLOAD,
        '{"data": {"uploadUrl": "https://files.example/u", "uploadRef": "r"}}',
        fields={"filename": "a.pdf"},
    ),
    "parse by reference": call(endpoints.PARSE_REFERENCE, PAGE, fields={"upload_ref": "r", "timeout": 1000}),
}
HARMLESS = {
    "get scrape": call(endpoints.GET_SCRAPE, PAGE, path=SCRAPE),
    "crawl status": call(endpoints.CRAWL_STATUS, STATE, path=JOB),
    "crawl documents": call(endpoints.CRAWL_DOCUMENTS, STATE, path=JOB),
    "crawl errors": call(endpoints.CRAWL_ERRORS, '{"errors": []}', path=JOB),
    "cancel crawl": call(endpoints.CANCEL_CRAWL, '{"status": "cancelled"}', path=JOB),
    "active crawls": call(endpoints.ACTIVE_CRAWLS, '{"crawls": []}'),
    "crawl params preview": call(
        endpoints.CRAWL_PARAMS, '{"data": {}}', fields={"url": "a.example", "prompt": "p"}
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
        fields={"name": "n"},
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
        fields={"rating": "bad", "query_suggestions": "x"},
    ),
    "feedback": call(
        endpoints.FEEDBACK,
        '{"success": true}',
        fields={"endpoint": "scrape", "job_id": KEY, "rating": "good", "note": "n"},
    ),
    "concurrency": call(endpoints.CONCURRENCY, '{"concurrency": 0}'),
    "threat policy": call(endpoints.THREAT_POLICY, '{"data": {"mode": "off"}}'),
    "replace threat policy": call(
        endpoints.REPLACE_THREAT_POLICY,
        '{"data": {"mode": "off"}}',
        fields={"mode": "off"},
    ),
    "stop interaction": call(endpoints.STOP_SCRAPE_INTERACT, '{"success": true}', path=SCRAPE),
}


def failure(status: int, headers: dict[str, str] | None = None, **body: Any) -> Step:
    return answer(status, json.dumps({"success": False, **body}), headers=headers)
