# SPDX-License-Identifier: Apache-2.0
"""Outcome of every fault: the error, and how often the call reaches the service.

Both clients share the decision. Rows in which they move bytes differently run on both.
"""

from __future__ import annotations

import gzip
import json
import traceback
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest

from airflow_provider_webdata.api import endpoints, errors, exchange
from airflow_provider_webdata.api.client import ClientConfig, WebDataClient
from airflow_provider_webdata.api.models.base import Answer
from tests.integration.api.calls import built
from tests.support.fault_server import API_KEY, Caller, Step, answer, hang_up, raw, reset
from tests.support.waiting import PATIENCE

OK_SEARCH = answer(body='{"success": true, "data": {"web": []}, "id": "s-1", "creditsUsed": 2}')
OK_MONITORS = answer(body='{"success": true, "data": []}')

JOB = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"
SEARCH: dict[str, Any] = {"endpoint": endpoints.SEARCH, "fields": {"query": "pendulum"}}
LIST: dict[str, Any] = {"endpoint": endpoints.LIST_MONITORS}
CHECK: dict[str, Any] = {
    "endpoint": endpoints.GET_MONITOR_CHECK,
    "path": {"monitor_id": "m-1", "check_id": "c-1"},
}
SCRAPE: dict[str, Any] = {
    "endpoint": endpoints.SCRAPE,
    "fields": {"url": "https://a.example/large.pdf"},
}
GET_SCRAPE: dict[str, Any] = {"endpoint": endpoints.GET_SCRAPE, "path": {"scrape_id": "p-1"}}
MAP: dict[str, Any] = {"endpoint": endpoints.MAP, "fields": {"url": "https://a.example"}}
CRAWL: dict[str, Any] = {
    "endpoint": endpoints.START_CRAWL,
    "fields": {"url": "https://a.example", "limit": 5},
}
KEYED: dict[str, Any] = {**CRAWL, "idempotency_key": JOB}
CRAWL_STATUS: dict[str, Any] = {"endpoint": endpoints.CRAWL_STATUS, "path": {"job_id": "j-1"}}
CRAWL_DOCUMENTS: dict[str, Any] = {"endpoint": endpoints.CRAWL_DOCUMENTS, "path": {"job_id": "j-1"}}
BATCH_STATUS: dict[str, Any] = {"endpoint": endpoints.BATCH_SCRAPE_STATUS, "path": {"job_id": "j-1"}}
CRAWL_ERRORS: dict[str, Any] = {"endpoint": endpoints.CRAWL_ERRORS, "path": {"job_id": "j-1"}}
CANCEL: dict[str, Any] = {"endpoint": endpoints.CANCEL_CRAWL, "path": {"job_id": "j-1"}}
ACTIVE: dict[str, Any] = {"endpoint": endpoints.ACTIVE_CRAWLS}
PARSE_FORMATS: dict[str, Any] = {"endpoint": endpoints.PARSE_FORMATS}
OWN_CALL = endpoints.Endpoint(
    "request",
    "GET",
    "/v2/feedback/f-1",
    "endpoints",
    lambda: Answer,
    is_declared=False,
    title="GET /v2/feedback/f-1",
)
CREATE: dict[str, Any] = {
    "endpoint": endpoints.CREATE_MONITOR,
    "fields": {
        "name": "prices",
        "schedule": {"cron": "0 6 * * *"},
        "targets": [{"type": "scrape", "urls": ["https://shop.example/"]}],
    },
}


def failure(status: int, headers: dict[str, str] | None = None, **body: Any) -> Step:
    return answer(status, json.dumps({"success": False, **body}), headers=headers)


def still_working(headers: dict[str, str] | None = None, **details: Any) -> Step:
    """The 408 of a large document."""
    details = {"state": "processing_continues", "jobStatus": "running", **details}
    return failure(408, headers, code="SCRAPE_TIMEOUT", error="Scrape timed out", details=details)


def in_seconds(seconds: int) -> str:
    return format_datetime(datetime.now(timezone.utc) + timedelta(seconds=seconds), usegmt=True)


PAGE = '{"success": true, "data": {"markdown": "naïve"}}'.encode()
RATE_TEXT = (
    "Rate limit exceeded. Consumed (req/min): 11, Remaining (req/min): 0. Upgrade your plan or "
    "please retry after 37s, resets at Sat Nov 21 2026 10:00:37 GMT+0000 (Coordinated Universal Time)"
)
HEADER = "team-secret-9f3"
CHUNKED_CUT = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n20\r\n{"
)


BOTH = ("sync", "async")


@dataclass
class Row:
    """A fault and its outcome.

    :param name: also the test's id.
    :param call: arguments of the call.
    :param steps: the server's answers.
    :param error: class of the error, or None where the call succeeds.
    :param requests: number of requests that reach the server.
    :param has: attributes of the error.
    :param says: part of the error's text.
    :param gives: part of the result, as JSON.
    :param options: settings of the client.
    :param callers: clients that make the call.
    """

    name: str
    call: dict[str, Any]
    steps: list[Step]
    error: type[errors.WebDataError] | None
    requests: int = 1
    has: dict[str, Any] = field(default_factory=dict)
    says: str = ""
    gives: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    callers: tuple[str, ...] = ("sync",)


# fmt: off
ROWS = [
    # Refusals, which are final even where the call may be repeated.
    Row("400", SEARCH, [failure(400, error="Invalid request body", details=[{"path": ["limit"], "message": "too big"}])],
        errors.BadRequestError, has={"status": 400, "verdict": "never"}, says="limit: too big", callers=BOTH),
    Row("402 without success", LIST, [answer(402, '{"error": "Payment Required: Insufficient credits"}')],
        errors.PaymentRequiredError, has={"verdict": "never"}, says="Insufficient credits"),
    Row("403 names the feature",
        {**SEARCH, "fields": {"query": "x", "threat_protection": {"mode": "normal"}}},
        [failure(403, error="not enabled")],
        errors.EntitlementError, has={"verdict": "never"}, says="Threat Protection"),
    Row("403 of enterprise search", {**SEARCH, "fields": {"query": "x", "enterprise": ["zdr"]}},
        [failure(403, error="no")], errors.EntitlementError, says="zero data retention"),
    Row("403 names a feature of scrape options",
        {**SEARCH, "fields": {"query": "x", "scrape_options": {"formats": ["markdown"], "zero_data_retention": True}}},
        [failure(403, error="no")], errors.EntitlementError, says="zeroDataRetention"),
    Row("404", CHECK, [failure(404, error="Check not found")],
        errors.NotFoundError, has={"verdict": "unknown"}, says="Check not found"),
    Row("a proxy's 404, a read", LIST, [answer(404, "404 page not found\n", "text/plain"), OK_MONITORS], None, requests=2),
    Row("a proxy's 404 that stays", LIST, [answer(404, "<html>404 Not Found</html>", "text/html")],
        errors.ServerError, options={"retry_budget": 0.0}, says="probably from a proxy"),
    Row("a proxy's 404, a search", SEARCH, [answer(404, "404 page not found\n", "text/plain")], errors.NotFoundError),
    Row("404 no cached data", SEARCH, [failure(404, code="SCRAPE_NO_CACHED_DATA", error="none")],
        errors.CacheMissError, has={"code": "SCRAPE_NO_CACHED_DATA", "verdict": "never"}),
    Row("404 lockdown miss is billed", LIST, [failure(404, code="SCRAPE_LOCKDOWN_CACHE_MISS", error="none")],
        errors.CacheMissError, has={"verdict": "never"}),
    Row("409 keeps the check id", CREATE, [failure(409, error="running", checkId="c-9")],
        errors.ConflictError, has={"body": {"success": False, "checkId": "c-9"}}),
    Row("410", LIST, [failure(410, error="gone")], errors.GoneError, has={"verdict": "never"}, says="(WD-410)"),
    Row("500 for a body above the limit", {**SCRAPE, "fields": {"url": "a.example", "headers": {"a": "b" * 10 * 2**20}}},
        [failure(500, code="UNKNOWN_ERROR", error="x")], errors.ClientError, says="more than 10 MB"),
    Row("413", LIST, [failure(413, error="too large")], errors.ClientError, has={"verdict": "never"}),
    Row("422", LIST, [failure(422, error="schema")], errors.ClientError),
    Row("unknown status and code", LIST, [failure(499, code="NEW_CODE", error="?")],
        errors.ClientError, has={"code": "NEW_CODE"}),
    Row("an error that is an object", SEARCH, [answer(400, '{"error": {"code": "BAD_REQUEST", "message": "limit is too high"}}')],
        errors.BadRequestError, has={"code": "BAD_REQUEST", "message": "limit is too high"}, says="HTTP 400, BAD_REQUEST: limit is too high"),
    Row("its code decides the class", SCRAPE, [failure(500, error={"code": "SCRAPE_SSL_ERROR", "message": "expired"})],
        errors.PermanentPageError, has={"code": "SCRAPE_SSL_ERROR"}, says="expired"),
    Row("its code decides the class of a 200", SCRAPE, [failure(200, error={"code": "SCRAPE_DNS_RESOLUTION_ERROR", "message": "no such host"})],
        errors.PermanentPageError, says="no such host"),
    Row("its details and its wait", SEARCH, [answer(429, '{"code": "A", "error": {"code": "B", "message": "slow", "details": [{"path": ["q"], "message": "m"}], "retry_after_seconds": 90}}')],
        errors.RateLimitError, has={"code": "B", "retry_after": 90.0}, says="slow (q: m); retry after 90 s"),
    Row("an error in an error", SEARCH, [failure(403, error={"error": {"message": "deep", "code": 1234}})],
        errors.EntitlementError, has={"code": "1234", "message": "deep"}),
    Row("an empty error object", SEARCH, [failure(400, error={})], errors.BadRequestError, says="no reason"),
    Row("a failed crawl whose error is an object", CRAWL_STATUS,
        [answer(body='{"success": false, "status": "failed", "error": {"code": "X", "message": "y"}, "data": []}')], None, gives='"code":"X"'),
    Row("a failed check whose error is an object", CHECK,
        [answer(body='{"success": true, "data": {"id": "c-1", "status": "failed", "error": {"message": "y"}}}')], None, gives='"message":"y"'),
    # Control characters do not reach the text.
    Row("control characters", SEARCH, [answer(400, r'{"error": "a\u001b[31mb\u0007\r\nc\u009b2Jd\u202ee\u001b]0;t\u0007f\u0000g", "code": "X\u001bcY", "details": [{"path": ["l\u001b[1m"], "message": "\u0008m"}]}')],
        errors.BadRequestError, has={"message": "ab cdefg (l: m)", "code": "XY"}),
    Row("control characters that hide the key", SEARCH, [answer(400, json.dumps({"error": f"token {API_KEY[:9]}\x07{API_KEY[9:]}"}))],
        errors.BadRequestError, has={"message": "token ***"}),
    Row("control characters in a body that is no JSON", SEARCH, [answer(400, "no\x1b[2J\u009b1mway", "text/plain\x9b1m")],
        errors.BadRequestError, says="text/plain, probably from a proxy in front of the service; it starts with: noway"),
    Row("control characters in a wrong shape", SEARCH, [answer(body=r'{"success": true, "data": {"web": 7}, "x\u001b": 1}')],
        errors.InvalidResponseError, says="data.web"),
    # Only the start of an error body is read.
    Row("an error of more than 256 KiB", SEARCH, [answer(400, json.dumps({"code": "BAD_REQUEST", "error": "é" * 300_000}))],
        errors.BadRequestError, has={"code": "BAD_REQUEST"}, says="ééé", callers=BOTH),
    Row("an error after more than 256 KiB", SEARCH, [answer(400, json.dumps({"x": "y" * 300_000, "error": "bad"}))],
        errors.BadRequestError, says="the error body has an unknown form; it starts with: {\"x\": \"yyy"),
    Row("a list of more than 256 KiB", SEARCH, [answer(400, "[" + "1," * 200_000 + "1]")],
        errors.BadRequestError, says="the error body of more than 262144 bytes is not a valid JSON object; it starts with: [1,1,"),
    Row("text of more than 256 KiB", SEARCH, [answer(500, "oh no " * 60_000, "text/plain")],
        errors.ServerError, says="text/plain of more than 262144 bytes, probably from a proxy in front of the service; it starts with: oh no oh", callers=BOTH),
    Row("error text echoes the key", LIST, [failure(401, error=f"Invalid token {API_KEY}")],
        errors.AuthenticationError, has={"verdict": "never"}, says="Invalid token ***"),
    Row("the whole error body echoes key and headers", SEARCH,
        [failure(400, error=f"bad header {HEADER}", details=[{"path": [], "message": API_KEY}], seen={"a": [HEADER], API_KEY: 1})],
        errors.BadRequestError, says="bad header ***", has={"body": {"success": False, "seen": {"a": ["***"], "***": 1}}},
        options={"headers": {"X-Team": HEADER}}),
    # Time and load: repeated only where a repetition cannot start or bill anything.
    Row("408 of a search is not repeated", SEARCH, [failure(408, error="Request timed out"), OK_SEARCH],
        errors.RequestTimeoutError, says="timed out"),
    Row("408 of a read is repeated", LIST, [failure(408, error="slow"), OK_MONITORS], None, requests=2),
    Row("500 of a search is not repeated", SEARCH, [failure(500, code="UNKNOWN_ERROR", error="x"), OK_SEARCH],
        errors.ServerError, has={"code": "UNKNOWN_ERROR", "verdict": "unknown"}),
    Row("500 of a read is repeated", LIST, [failure(500, error="x"), failure(503, error="x"), OK_MONITORS],
        None, requests=3, callers=BOTH),
    Row("500 forever ends", LIST, [failure(500, error="x")], errors.ServerError, requests=6, callers=BOTH),
    Row("no repetition without a budget", LIST, [failure(500, error="x")],
        errors.ServerError, options={"retry_budget": 0}),
    Row("HTML from a proxy", LIST, [answer(502, "<html>bad gateway</html>", "text/html")],
        errors.ServerError, requests=6, says="text/html"),
    # 429 is a refusal, so that even a create may be repeated, within the budget.
    Row("429 Retry-After in seconds", SEARCH, [failure(429, {"Retry-After": "0"}, error="x"), OK_SEARCH],
        None, requests=2, callers=BOTH),
    Row("429 Retry-After as a date that has passed", CREATE,
        [failure(429, {"Retry-After": in_seconds(-60)}, error="x"), answer(body='{"success": true, "data": {"id": "m"}}')],
        None, requests=2),
    Row("429 over the budget, in seconds", SEARCH, [failure(429, {"Retry-After": "90"}, error="x"), OK_SEARCH],
        errors.RateLimitError, has={"retry_after": 90.0, "verdict": "later"}),
    Row("429 over the budget, only in the text", SEARCH, [failure(429, error=RATE_TEXT), OK_SEARCH],
        errors.RateLimitError, has={"retry_after": 37.0}),
    Row("429 wait in the body", SEARCH, [failure(429, error="x", reason="ip", retry_after_seconds=3600)],
        errors.RateLimitError, has={"retry_after": 3600.0}),
    Row("429 without a reason", SEARCH, [answer(429, ""), OK_SEARCH], None, requests=2),
    # A 503 with a wait.
    Row("503 names a wait over the budget, a read", LIST, [failure(503, {"Retry-After": "90"}, error="x"), OK_MONITORS],
        errors.UnavailableError, has={"retry_after": 90.0, "verdict": "later"}, says="HTTP 503: x; retry after 90 s"),
    Row("503 names a wait, a search", SEARCH, [failure(503, {"Retry-After": "0"}, error="x"), OK_SEARCH],
        errors.UnavailableError, has={"retry_after": 0.0}),
    Row("503 names a wait within the budget, a read", LIST, [failure(503, {"Retry-After": "0"}, error="x"), OK_MONITORS],
        None, requests=2),
    Row("503 of a proxy names a wait", SEARCH, [answer(503, "<html>", "text/html", {"Retry-After": "1000000000000"})],
        errors.UnavailableError, has={"retry_after": 86_400.0}),
    Row("502 names a wait", SEARCH, [failure(502, {"Retry-After": "9"}, error="x")],
        errors.ServerError, has={"retry_after": 9.0, "verdict": "unknown"}),
    # A large document in progress: the same call is repeated, in this process or later.
    Row("processing continues, over the budget", SCRAPE,
        [still_working({"Retry-After": "90"}, documentPages=800, estimatedRemainingSeconds=120, mayExceedProcessingWindow=True)],
        errors.ProcessingContinuesError,
        has={"retry_after": 90.0, "pages": 800, "remaining": 120, "may_exceed": True, "verdict": "later", "code": "SCRAPE_TIMEOUT"},
        says="still processing the document of 800 pages, which may exceed its time limit"),
    Row("processing continues, the wait only in the details", SCRAPE, [still_working(retryAfterSeconds=45)],
        errors.ProcessingContinuesError, has={"retry_after": 45.0, "pages": None, "may_exceed": False}),
    Row("processing continues, no wait named", SCRAPE, [still_working()],
        errors.ProcessingContinuesError, has={"retry_after": 60.0}),
    Row("processing continues, a wait too long", SCRAPE, [still_working({"Retry-After": "9000"})],
        errors.ProcessingContinuesError, has={"retry_after": 600.0}),
    Row("processing continues, a wait too short", SCRAPE, [still_working({"Retry-After": "0"})],
        errors.ProcessingContinuesError, has={"retry_after": 5.0}, options={"retry_budget": 4}),
    Row("408 of a scrape that is only slow", SCRAPE, [failure(408, code="SCRAPE_TIMEOUT", error="x", details={"state": "?"})],
        errors.RequestTimeoutError, has={"code": "SCRAPE_TIMEOUT"}),
    Row("408 in the queue", SCRAPE, [failure(408, code="CONCURRENCY_QUEUE_TIMEOUT", error="x")], errors.RequestTimeoutError),
    Row("408 of a map", MAP, [failure(408, code="MAP_TIMEOUT", error="x")], errors.RequestTimeoutError),
    # Faults of a page, not of the service.
    Row("no such host, with 200", SCRAPE, [failure(200, code="SCRAPE_DNS_RESOLUTION_ERROR", error="no such host")],
        errors.PermanentPageError, has={"status": 200, "code": "SCRAPE_DNS_RESOLUTION_ERROR", "verdict": "never"}),
    Row("no such host, with 500", SCRAPE, [failure(500, code="SCRAPE_DNS_RESOLUTION_ERROR", error="no such host")],
        errors.PermanentPageError, has={"status": 500, "code": "SCRAPE_DNS_RESOLUTION_ERROR"}),
    Row("a bad page is not requested again", GET_SCRAPE, [failure(500, code="SCRAPE_SSL_ERROR", error="certificate")],
        errors.PermanentPageError, has={"code": "SCRAPE_SSL_ERROR"}),
    Row("a fault of the service is requested again", GET_SCRAPE, [failure(500, code="SCRAPE_RETRY_LIMIT", error="x")],
        errors.ServerError, requests=6),
    Row("an unsafe page", {**SCRAPE, "fields": {"url": "a.example", "threat_protection": {"mode": "normal"}}},
        [failure(403, code="unsafe_domain_blocked", error="blocked by policy")],
        errors.PageRefusedError, has={"verdict": "never"}, says="blocked by policy"),
    Row("a page with an injected prompt", SCRAPE, [failure(403, code="SCRAPE_PROMPT_INJECTION_DETECTED", error="x")],
        errors.PageRefusedError),
    Row("a document whose site refuses robots", GET_SCRAPE, [failure(500, code="SCRAPE_DOCUMENT_ANTIBOT_ERROR", error="x")],
        errors.PageError),
    Row("a site that the service names unsupported", SCRAPE, [failure(403, code="UNSUPPORTED_SITE", error="x")],
        errors.PageRefusedError),
    Row("an unsupported site", SCRAPE, [failure(403, error="This website is not supported")],
        errors.EntitlementError, has={"features": (), "verdict": "never"}, says="not supported"),
    Row("403 names the features of a crawl", {**CRAWL, "fields": {"url": "a.example", "ignore_robots_txt": True, "zero_data_retention": True}},
        [failure(403, error="not enabled")], errors.EntitlementError, says="zeroDataRetention and ignoreRobotsTxt"),
    # Jobs.
    Row("a key that was used", KEYED, [failure(409, error="Idempotency key already used")],
        errors.IdempotencyKeyUsedError, has={"status": 409, "verdict": "never"}, says="already used. Look for"),
    Row("a conflict without a key", CRAWL, [failure(409, error="no")], errors.ConflictError),
    Row("a failed crawl is a status", CRAWL_STATUS,
        [answer(body='{"success": false, "status": "failed", "error": "queue full", "total": 0, "data": []}')], None, callers=BOTH),
    Row("a batch status without success", BATCH_STATUS, [answer(body='{"status": "scraping", "total": 5}')], None),
    Row("a status without a state", CRAWL_STATUS, [answer(body='{"success": true, "total": 5}')],
        errors.InvalidResponseError, says="status: Field required"),
    Row("a status request that failed with 200", CRAWL_STATUS, [failure(200, error="Job expired")],
        errors.UnsuccessfulError, says="Job expired"),
    Row("an unknown job", CRAWL_STATUS, [failure(404, error="Job not found")], errors.NotFoundError),
    Row("cancel of a job that is over", {"endpoint": endpoints.CANCEL_CRAWL, "path": {"job_id": "j"}},
        [answer(409, '{"error": "Crawl is already completed"}')], errors.ConflictError),
    # The wire.
    Row("closed without an answer, a read", LIST, [hang_up, OK_MONITORS], None, requests=2, callers=BOTH),
    Row("closed without an answer, a search", SEARCH, [hang_up, OK_SEARCH],
        errors.TransportError, has={"sent": True}, says="may have processed", callers=BOTH),
    Row("reset", SEARCH, [reset], errors.TransportError, has={"sent": True}, callers=BOTH),
    Row("cut inside the headers", SEARCH, [raw(b"HTTP/1.1 200 OK\r\ncontent-")],
        errors.TransportError, has={"sent": True}, callers=BOTH),
    Row("cut inside the body", SEARCH, [answer(body='{"success": tr', length=500)],
        errors.TransportError, has={"sent": True}, callers=BOTH),
    Row("cut inside the body, a read", LIST, [answer(body='{"success": tr', length=500), OK_MONITORS],
        None, requests=2, callers=BOTH),
    Row("cut inside a chunk", SEARCH, [raw(CHUNKED_CUT)], errors.TransportError, has={"sent": True}, callers=BOTH),
    Row("not HTTP at all", SEARCH, [raw(b"SSH-2.0-OpenSSH_9\r\n\r\n")], errors.TransportError, callers=BOTH),
    # Unusable answers.
    Row("200 with success false", SEARCH, [failure(200, code="SCRAPE_DNS_RESOLUTION_ERROR", error="no such host")],
        errors.PermanentPageError, has={"code": "SCRAPE_DNS_RESOLUTION_ERROR", "status": 200}, says="no such host"),
    Row("200 with success false and no known code", SCRAPE, [failure(200, code="NEW_CODE", error="no")],
        errors.UnsuccessfulError, has={"code": "NEW_CODE", "verdict": "unknown"}),
    Row("a check is judged by its status", CHECK,
        [answer(body='{"success": false, "data": {"id": "c-1", "status": "failed", "error": "x"}}')], None),
    Row("204 that should have a body", SEARCH, [answer(204, b"")], errors.InvalidResponseError, says="(HTTP 204) is invalid: the body is empty", callers=BOTH),
    Row("200 of blanks", SEARCH, [answer(200, b" \n ")], errors.InvalidResponseError, says="the body is empty"),
    Row("text", SEARCH, [answer(body=f"  Hello\x1b[2J\n{'x' * 500} {API_KEY}", content_type="text/plain")],
        errors.InvalidResponseError, says=f"it is text/plain, not JSON; check that the connection's host is the service. It starts with: Hello {'x' * 193}…"),
    Row("a byte order mark", SCRAPE, [answer(body=b"\xef\xbb\xbf" + PAGE)], None, gives='"markdown":"naïve"'),
    Row("UTF-16", SCRAPE, [answer(body=PAGE.decode().encode("utf-16"))], None, gives='"markdown":"naïve"'),
    Row("UTF-16 without a mark", SCRAPE, [answer(body=PAGE.decode().encode("utf-16-be"))], None, gives='"markdown":"naïve"'),
    Row("a byte order mark in front of HTML", SEARCH, [answer(body=b"\xef\xbb\xbf<html>", content_type="text/html")],
        errors.InvalidResponseError, says="It starts with: <html>"),
    Row("an error with a byte order mark", SEARCH, [answer(400, b'\xef\xbb\xbf{"error": "bad"}')], errors.BadRequestError, says="400: bad"),
    Row("empty answer to a delete", {"endpoint": endpoints.DELETE_MONITOR, "path": {"monitor_id": "m"}},
        [answer(204, b"")], None, callers=BOTH),
    Row("not UTF-8", SEARCH, [answer(body=b'{"success": true, "data": {}, "warning": "\xff\xfe"}')], errors.InvalidResponseError),
    Row("announced too large", SEARCH, [answer(body=b" ", length=5000)],
        errors.ResponseTooLargeError, says="larger than 1000 bytes", options={"max_response_bytes": 1000}, callers=BOTH),
    Row("too large when unpacked", SEARCH,
        [answer(body=gzip.compress(b" " * 50_000), headers={"content-encoding": "gzip"})],
        errors.ResponseTooLargeError, options={"max_response_bytes": 1000}, callers=BOTH),
    Row("not really gzip", SEARCH, [answer(body=b"plain", headers={"content-encoding": "gzip"})],
        errors.InvalidResponseError, says="compressed", callers=BOTH),
    Row("gzip", SEARCH, [answer(body=gzip.compress(b'{"success": true, "data": {}}'), headers={"content-encoding": "gzip"})], None, callers=BOTH),
    Row("an encoding that is none", SEARCH, [answer(body=b'{"success": true, "data": {}}', headers={"content-encoding": "utf-8"})], None, callers=BOTH),
    Row("compressed twice", SEARCH,
        [answer(body=gzip.compress(gzip.compress(b" " * 50_000)), headers={"content-encoding": "gzip, gzip"})],
        errors.InvalidResponseError, says="its Content-Encoding is 'gzip, gzip', which was not requested", callers=BOTH),
    Row("an error that is compressed twice", SEARCH,
        [answer(400, body=gzip.compress(gzip.compress(b'{"error": "bad"}')), headers={"content-encoding": "gzip, gzip"})],
        errors.BadRequestError, callers=BOTH),
    Row("redirect on the same host", LIST, [answer(307, headers={"location": "/v2/elsewhere/?key=hush"})],
        errors.InvalidResponseError, says="redirects to /v2/elsewhere/ on the same host; check the path", callers=BOTH),
    Row("redirect to the key", LIST, [answer(302, headers={"location": f"/{API_KEY}"})],
        errors.InvalidResponseError, says="redirects to /*** on"),
    # JavaScript cuts emoji in half. A billed answer is returned anyway, and a failure keeps its text.
    Row("half an emoji in a page", SCRAPE, [answer(body=r'{"success": true, "data": {"markdown": "a\ud83d"}}')], None,
        gives=r'"markdown":"a\\ud83d"'),
    Row("half an emoji in a name", SCRAPE, [answer(body=r'{"data": {"markdown": "x", "json": {"\ude00": "\ud83d\ude00\\ud83d"}}}')], None,
        gives='{"\\\\ude00":"\U0001f600\\\\ud83d"}'),
    Row("half an emoji among the results of a crawl", CRAWL_DOCUMENTS,
        [answer(body=r'{"status": "completed", "data": [{"markdown": "\ud83d"}, {"markdown": "whole"}]}')], None, gives="whole"),
    Row("half an emoji in an answer cut short", SEARCH, [answer(body=r'{"success": true, "data": {"web": ["\ud83d"')],
        errors.InvalidResponseError, says="truncated"),
    Row("half an emoji in a wrong shape", SEARCH, [answer(body=r'{"success": true, "data": {"web": "\ud83d"}}')],
        errors.InvalidResponseError, says="data.web"),
    Row("half an emoji in an error", SEARCH, [answer(400, r'{"error": "bad \ud83d", "code": "BAD_REQUEST"}')],
        errors.BadRequestError, says=r"bad \ud83d", has={"code": "BAD_REQUEST"}),
    Row("half an emoji in a failure with 200", SCRAPE, [answer(200, r'{"success": false, "error": "no \ud83d"}')],
        errors.UnsuccessfulError, says=r"no \ud83d"),
    # Other servers with the same API. A path without an id of the caller has no object that could be missing.
    Row("no route: FastAPI", MAP, [answer(404, '{"detail": "Not Found"}')],
        errors.UnsupportedError, has={"status": 404, "verdict": "never"},
        says='map: HTTP 404: Not Found. The server does not support this call: it has no such operation. Check "Base URL"'),
    Row("no route, a read: FastAPI", LIST, [answer(404, '{"detail": "Not Found"}')],
        errors.UnsupportedError, says="it has no monitors. Schedule a DAG"),
    Row("no route: firecrawl-compat", CRAWL, [failure(404, error="Not found")], errors.UnsupportedError, says="HTTP 404: Not found. The server"),
    Row("no route: firecrawl-lb", PARSE_FORMATS,
        [answer(404, '{"error": {"message": "No such route", "type": "invalid_request_error", "code": "not_found"}}')],
        errors.UnsupportedError, has={"code": "not_found"}, says="No such route. The server does not support this call"),
    Row("no route: crw", ACTIVE, [answer(404, b"")], errors.UnsupportedError, says='Check "Base URL"', callers=BOTH),
    Row("no route, a start: crw", SEARCH, [answer(404, b"")], errors.UnsupportedError),
    Row("no method: FastAPI", LIST, [answer(405, '{"detail": "Method Not Allowed"}')],
        errors.UnsupportedError, has={"status": 405, "verdict": "never"}, says="HTTP 405: Method Not Allowed. The server does not support"),
    Row("no method for an object: crw", CANCEL, [failure(405, error="Method not allowed", errorCode="method_not_allowed")],
        errors.UnsupportedError, has={"code": "method_not_allowed"}, says="cancel crawl: HTTP 405"),
    Row("no method: an empty answer", CRAWL_STATUS, [answer(405, b"")], errors.UnsupportedError),
    Row("no method: text", CRAWL_STATUS, [answer(405, "Method Not Allowed\n", "text/plain")], errors.ServerError, options={"retry_budget": 0.0}),
    Row("a missing page with a code", SCRAPE, [failure(404, error="The page is gone", code="SCRAPE_PAGE_GONE")], errors.NotFoundError),
    Row("a missing object: FastAPI", CRAWL_STATUS, [answer(404, '{"detail": "Not Found"}')], errors.NotFoundError, says="Not Found"),
    Row("a missing object: an empty answer", CRAWL_STATUS, [answer(404, b"")], errors.ServerError, options={"retry_budget": 0.0}),
    Row("a wrong key: groktocrawl", LIST, [answer(403, '{"detail": "Invalid or missing API key."}')],
        errors.AuthenticationError, has={"status": 403, "verdict": "never"}, says='Check "API Key" (WD-401)'),
    Row("a wrong key: FastAPI", SEARCH, [answer(403, '{"detail": "Not authenticated"}')], errors.AuthenticationError),
    Row("a key that may not do this", SEARCH, [failure(403, error="This API key is not allowed from your IP address")],
        errors.EntitlementError),
    Row("an invalid text about something else", SEARCH, [failure(403, error="Invalid domain: keys.example is blocked")],
        errors.EntitlementError),
    Row("no search backend: crw", SEARCH, [failure(503, error="Search is disabled: set [search].searxng_url", errorCode="search_disabled")],
        errors.UnsupportedError, has={"code": "search_disabled", "verdict": "never"}, says="it has no search backend. Configure one on the server"),
    Row("a code as errorCode: crw", SCRAPE, [failure(422, error="Target unreachable", errorCode="target_unreachable")],
        errors.ClientError, has={"code": "target_unreachable"}, says="HTTP 422, target_unreachable: Target"),
    Row("a code as error_code: groktocrawl", SCRAPE, [failure(502, error="no", error_code="SCRAPE_FAILED")],
        errors.ServerError, has={"code": "SCRAPE_FAILED"}),
    Row("its code decides the class, by any name", SCRAPE, [failure(500, error="expired", error_code="SCRAPE_SSL_ERROR")],
        errors.PermanentPageError),
    Row("fields as field and message: groktocrawl", SEARCH,
        [failure(422, error="Validation failed", details=[{"field": "limit", "message": "must be positive"}, {"field": "body.query", "message": "required"}])],
        errors.ClientError, says="Validation failed (limit: must be positive; body.query: required)"),
    Row("fields as loc and msg: FastAPI", SEARCH,
        [answer(422, '{"detail": [{"loc": ["body", "formats", 0], "msg": "Input should be a valid string", "type": "string_type"}]}')],
        errors.ClientError, says="HTTP 422: body.formats.0: Input should be a valid string"),
    Row("crawls as ids: crw", ACTIVE, [answer(body='{"success": true, "crawls": ["c-1", "c-2"]}')], None, gives='"crawls":[{"id":"c-1",'),
    Row("crawls as data: groktocrawl", ACTIVE, [answer(body='{"success": true, "data": [{"id": "c-1", "status": "processing"}]}')],
        None, gives='"crawls":[{"id":"c-1",'),
    Row("the code of a failed page by another name", CRAWL_ERRORS, [answer(body='{"errors": [{"url": "u", "error": "x", "errorCode": "unreachable"}]}')],
        None, gives='"code":"unreachable"'),
    # The service's own 404s of paths without an id.
    Row("a team without figures", {"endpoint": endpoints.CREDIT_USAGE}, [failure(404, error="Could not find credit usage information")],
        errors.NotFoundError, says="Could not find credit usage"),
    Row("a team without figures of tokens", {"endpoint": endpoints.TOKEN_USAGE}, [failure(404, error="Could not find token usage information")],
        errors.NotFoundError),
    Row("an upload that has expired", {"endpoint": endpoints.PARSE_BY_REFERENCE, "fields": {"upload_ref": "r"}},
        [failure(404, code="NOT_FOUND", error="Upload URL not found or expired.")], errors.NotFoundError),
    Row("a batch that should be extended", {"endpoint": endpoints.START_BATCH_SCRAPE, "fields": {"urls": ["a.example"], "append_to_id": JOB}},
        [failure(404, error="Job not found")], errors.NotFoundError),
    Row("an unknown thread of an agent", {"endpoint": endpoints.START_AGENT, "fields": {"prompt": "x", "thread_id": JOB}},
        [failure(404, code="thread_not_found", error="Agent thread not found")], errors.NotFoundError),
    Row("an unknown data provider", {"endpoint": endpoints.FIND_TOOLS, "extra_body": {"alexandria": []}},
        [failure(404, code="unknown_provider", error="Unknown provider 'x'")], errors.BadRequestError),
    Row("a call of the caller", {"endpoint": OWN_CALL}, [failure(404, error="Not found")], errors.NotFoundError),
    # Values of a newer service.
    Row("unknown fields and states", CHECK,
        [answer(body='{"data": {"id": "c", "status": "paused_for_tea", "pages": [{"status": "x", "new": 1}]}, "y": {}}',
                headers={"Deprecation": "true"})], None),
]
# fmt: on


@pytest.mark.rule("keyless-calls", "success-flag", "ok-but-failed", "transport", "repeat-safe")
@pytest.mark.rule("repeat-unsafe", "idempotency-key-used", "error-body", "error-details", "error-unknown")
@pytest.mark.rule("status-400", "status-401", "status-402", "status-403", "status-404", "status-408")
@pytest.mark.rule("status-409", "status-410", "status-413", "status-422", "status-429", "status-500")
@pytest.mark.rule("status-5xx", "page-codes-403", "page-codes-404", "page-codes-500", "ok-but-failed-scrape")
@pytest.mark.rule("ok-but-failed-job", "rate-limit-text", "retry-after", "scrape-min-age", "scrape-timeout")
@pytest.mark.rule("scrape-lockdown", "threat-entitlement", "zdr-entitlement", "large-documents-answer")
@pytest.mark.rule("large-documents-again", "search-timeout", "search-enterprise", "map-timeout")
@pytest.mark.rule("half-characters", "server-lacks", "unknown-paths")
@pytest.mark.rule("crawl-robots", "job-status", "job-cancel-ended", "monitor-run-conflict", "check-failed")
@pytest.mark.parametrize(
    ("row", "kind"),
    [pytest.param(row, kind, id=f"{row.name}-{kind}") for row in ROWS for kind in row.callers],
)
async def test_fault(
    row: Row, kind: str, serve: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow machine, the deadline of the whole call must not pass before the timeout of a single read.
    monkeypatch.setattr(exchange.Prepared, "seconds", PATIENCE)
    server = serve(*row.steps)
    caller = Caller(kind, row.options)
    if row.error is None:
        found = await caller.call(server.url, **built(**row.call))
        assert row.gives in found.model_dump_json(by_alias=True)
    else:
        with pytest.raises(errors.WebDataError) as caught:
            await caller.call(server.url, **built(**row.call))
        assert type(caught.value) is row.error
        # An error has several lines.
        assert row.says in " ".join(str(caught.value).split())
        assert {name: getattr(caught.value, name) for name in row.has} == row.has
        trace = "".join(traceback.format_exception(caught.value))
        everything = trace + repr(caught.value) + str(vars(caught.value))
        assert API_KEY not in everything
        assert HEADER not in everything
    assert server.count(row.requests) == row.requests
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {API_KEY}"}
    assert API_KEY not in caplog.text


LINK = '</v3/search>; rel="successor-version", <https://docs.example/end>; rel="sunset"'


@pytest.mark.rule("deprecation")
@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"deprecation": "true"}, "search: the service reports that this operation is deprecated"),
        (
            {"deprecation": "@1796914800", "sunset": "Fri, 11 Dec 2026 15:00:00 GMT", "link": LINK},
            "deprecated since 2026-12-10 15:00 UTC. It ends on 2026-12-11 15:00 UTC. "
            "successor-version: /v3/search; sunset: https://docs.example/end",
        ),
        ({"sunset": "soon", "link": "<;;=,"}, "deprecated. It ends on soon"),
        ({"deprecation": f"@{10**30}", "sunset": f"{API_KEY}"}, f"since @{10**30}. It ends on ***"),
    ],
)
def test_a_deprecation_is_logged_once(
    serve: Any, caplog: pytest.LogCaptureFixture, headers: dict[str, str], says: str
) -> None:
    """Once for a connection's settings, however many calls and clients there are."""
    found = answer(body='{"success": true, "data": {}}', headers=headers)
    server = serve(found, found)
    config = ClientConfig(server.url, API_KEY, declared="hosted")
    for _ in range(2):
        with WebDataClient(config) as client:
            client.call(**built(**SEARCH))
    warnings = [record for record in caplog.records if "deprecated" in record.getMessage()]
    assert [record.levelname for record in warnings] == ["WARNING"]
    assert says in warnings[0].getMessage()


async def test_nothing_listens(caller: Caller, serve: Any) -> None:
    server = serve(OK_SEARCH)
    server.close()
    caller.options["retry_budget"] = 0.1
    with pytest.raises(errors.TransportError) as caught:
        await caller.call(server.url, **built(**CREATE))
    assert caught.value.sent is False
    assert "nothing was sent" in str(caught.value)


@pytest.mark.parametrize(
    ("status", "error"), [(302, errors.InvalidResponseError), (400, errors.BadRequestError)]
)
async def test_an_error_body_is_not_read_to_its_end(
    caller: Caller, serve: Any, status: int, error: type[errors.WebDataError]
) -> None:
    """The server would send a terabyte, and counts the bytes that it can send."""
    sent = 0

    def pour(connection: Any) -> None:
        nonlocal sent
        connection.sendall(f"HTTP/1.1 {status} X\r\ncontent-length: {10**12}\r\n\r\n{{".encode())
        while True:
            sent += connection.send(b" " * 65536)

    server = serve(pour)
    with pytest.raises(error):
        await caller.call(server.url, **built(**SEARCH))
    # The client's reads, and the buffers of the operating system on both sides.
    assert sent < 64 * 2**20


@pytest.mark.rule("ids")
async def test_an_identifier_is_quoted_on_the_wire(serve: Any) -> None:
    server = serve(answer(body='{"data": {"id": "m"}}'))
    await Caller("sync").call(server.url, endpoints.GET_MONITOR, path={"monitor_id": "a/../b?c"})
    assert server.requests[0].target == "/v2/monitor/a%2F..%2Fb%3Fc"


@pytest.mark.rule("large-documents-again")
@pytest.mark.parametrize("times", [5, 6])
async def test_a_large_document_is_requested_again_five_times(
    serve: Any, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setattr(errors, "PROCESSING_WAIT_SECONDS", (0.0, 0.001))
    done = answer(body='{"success": true, "data": {"markdown": "# all of it"}}')
    server = serve(*[still_working(retryAfterSeconds=30)] * times, done)
    if times == 5:
        found = await Caller("sync").call(server.url, **built(**SCRAPE))
        assert found.data.markdown == "# all of it"
    else:
        with pytest.raises(errors.ProcessingContinuesError):
            await Caller("sync").call(server.url, **built(**SCRAPE))
    # Only the identical request finds the work in progress.
    assert len({(request.target, request.body) for request in server.requests}) == 1
    assert len(server.requests) == 6


@pytest.mark.rule("idempotency-key")
async def test_a_key_is_sent_with_a_crawl(serve: Any) -> None:
    server = serve(answer(body='{"success": true, "id": "j-1", "url": "https://x/v2/crawl/j-1"}'))
    assert (await Caller("sync").call(server.url, **built(**KEYED))).id == "j-1"
    await Caller("sync").call(server.url, **built(**CRAWL))
    assert [request.headers.get("x-idempotency-key") for request in server.requests] == [
        KEYED["idempotency_key"],
        None,
    ]
