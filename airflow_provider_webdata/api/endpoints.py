"""Every endpoint of the service, declared once; `client` executes them, sync or async.

A declaration says all that differs from call to call: where it goes, what comes back, whether repeating it can
start or bill something twice, and how long the service itself may take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.models.base import RequestModel, ResponseModel

ResponseT = TypeVar("ResponseT", bound=ResponseModel)

DEFAULT_SERVICE_TIMEOUT_MS = 60_000
"""The service's own default for `timeout`, in search as in scrape options."""


@dataclass(frozen=True)
class Endpoint(Generic[ResponseT]):
    """One operation of the service.

    :param name: what errors and logs call it.
    :param method: HTTP method.
    :param path: path with `{placeholders}`, from `/v2` on.
    :param response: model of the answer.
    :param request: model of the body, if it has one.
    :param repeatable: whether a repetition after a lost answer does no harm. False for whatever starts or bills.
    :param judged_by_status: the object's `status` tells how it went and `success` does not (jobs and checks), or
        its `exitCode` and `killed` (code that ran in a browser session).
    :param service_seconds: how long the service may work on a given body before it answers, in seconds.
    :param takes_idempotency_key: whether the service honours `x-idempotency-key` here.
    """

    name: str
    method: Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
    path: str
    response: type[ResponseT]
    request: type[RequestModel] | None = None
    repeatable: bool = False
    judged_by_status: bool = False
    service_seconds: Callable[[Mapping[str, Any]], float] | None = None
    takes_idempotency_key: bool = False


def _milliseconds(options: Mapping[str, Any]) -> float:
    given = options.get("timeout")
    return float(given) if isinstance(given, (int, float)) else DEFAULT_SERVICE_TIMEOUT_MS


def _search_seconds(body: Mapping[str, Any]) -> float:
    total = _milliseconds(body)
    options = body.get("scrapeOptions")
    if isinstance(options, Mapping) and options.get("formats"):
        # Whether `timeout` of a search covers the scraping of its results is not documented: allow for both.
        total += _milliseconds(options)
    return total / 1000


SEARCH = Endpoint(
    "search",
    "POST",
    "/v2/search",
    models.SearchResponse,
    request=models.SearchRequest,
    service_seconds=_search_seconds,
)


def _scrape_seconds(body: Mapping[str, Any]) -> float:
    return _milliseconds(body) / 1000


_UNLIMITED_MAP_SECONDS = 300.0
_START_SECONDS = 60.0
_PROMPT_SECONDS = 120.0


def _map_seconds(body: Mapping[str, Any]) -> float:
    # A map has no limit of its own; giving up early would pay for links that nobody reads.
    return _milliseconds(body) / 1000 if body.get("timeout") is not None else _UNLIMITED_MAP_SECONDS


def _start_seconds(body: Mapping[str, Any]) -> float:
    # Starting is quick, but an answer that is lost to impatience leaves a job that nobody knows. With a prompt
    # a language model is asked first.
    return _PROMPT_SECONDS if body.get("prompt") else _START_SECONDS


SCRAPE = Endpoint(
    "scrape",
    "POST",
    "/v2/scrape",
    models.ScrapeResponse,
    request=models.ScrapeRequest,
    service_seconds=_scrape_seconds,
)
GET_SCRAPE = Endpoint("get scrape", "GET", "/v2/scrape/{scrape_id}", models.ScrapeResponse, repeatable=True)

START_BATCH_SCRAPE = Endpoint(
    "start batch scrape",
    "POST",
    "/v2/batch/scrape",
    models.JobStarted,
    request=models.BatchScrapeRequest,
    service_seconds=_start_seconds,
)
BATCH_SCRAPE_STATUS = Endpoint(
    "batch scrape status",
    "GET",
    "/v2/batch/scrape/{job_id}",
    models.JobStatus,
    repeatable=True,
    judged_by_status=True,
)
BATCH_SCRAPE_DOCUMENTS = Endpoint(
    "batch scrape documents",
    "GET",
    "/v2/batch/scrape/{job_id}",
    models.JobDocuments,
    repeatable=True,
    judged_by_status=True,
)
"""The same call as the status; its documents are left as they came."""
CANCEL_BATCH_SCRAPE = Endpoint(
    "cancel batch scrape", "DELETE", "/v2/batch/scrape/{job_id}", models.CancelResponse, repeatable=True
)
BATCH_SCRAPE_ERRORS = Endpoint(
    "batch scrape errors", "GET", "/v2/batch/scrape/{job_id}/errors", models.JobErrors, repeatable=True
)

START_CRAWL = Endpoint(
    "start crawl",
    "POST",
    "/v2/crawl",
    models.JobStarted,
    request=models.CrawlRequest,
    service_seconds=_start_seconds,
    takes_idempotency_key=True,
)
CRAWL_STATUS = Endpoint(
    "crawl status",
    "GET",
    "/v2/crawl/{job_id}",
    models.JobStatus,
    repeatable=True,
    judged_by_status=True,
)
CRAWL_DOCUMENTS = Endpoint(
    "crawl documents",
    "GET",
    "/v2/crawl/{job_id}",
    models.JobDocuments,
    repeatable=True,
    judged_by_status=True,
)
"""The same call as the status; its documents are left as they came."""
CANCEL_CRAWL = Endpoint(
    "cancel crawl", "DELETE", "/v2/crawl/{job_id}", models.CancelResponse, repeatable=True
)
CRAWL_ERRORS = Endpoint("crawl errors", "GET", "/v2/crawl/{job_id}/errors", models.JobErrors, repeatable=True)
ACTIVE_CRAWLS = Endpoint("active crawls", "GET", "/v2/crawl/active", models.ActiveCrawls, repeatable=True)
CRAWL_PARAMS = Endpoint(
    "crawl params preview",
    "POST",
    "/v2/crawl/params-preview",
    models.CrawlParamsResponse,
    request=models.CrawlParamsRequest,
    repeatable=True,
    service_seconds=_start_seconds,
)

MAP = Endpoint(
    "map",
    "POST",
    "/v2/map",
    models.MapResponse,
    request=models.MapRequest,
    service_seconds=_map_seconds,
)

_LONGEST_SCRAPE_SECONDS = 300.0
_OPEN_SECONDS = 60.0
_CODE_SECONDS = 30.0


def _parse_seconds(body: Mapping[str, Any]) -> float:
    # The sources differ on whether there is a default; giving up early would pay for text that nobody reads.
    return _milliseconds(body) / 1000 if body.get("timeout") is not None else _LONGEST_SCRAPE_SECONDS


def _open_seconds(body: Mapping[str, Any]) -> float:  # noqa: ARG001
    # Opening takes no timeout; a session whose id is lost to impatience bills until its ttl.
    return _OPEN_SECONDS


def _code_seconds(body: Mapping[str, Any]) -> float:
    given = body.get("timeout")
    return float(given) if isinstance(given, (int, float)) else _CODE_SECONDS


def _scrape_code_seconds(body: Mapping[str, Any]) -> float:
    # The first call opens a browser and repeats the scrape before the code's own time begins.
    return _LONGEST_SCRAPE_SECONDS + _code_seconds(body)


PARSE = Endpoint(
    "parse",
    "POST",
    "/v2/parse",
    models.ScrapeResponse,
    request=models.ParseOptions,
    service_seconds=_parse_seconds,
)

START_EXTRACT = Endpoint(
    "start extract",
    "POST",
    "/v2/extract",
    models.JobStarted,
    request=models.ExtractRequest,
    service_seconds=_start_seconds,
)
EXTRACT_STATUS = Endpoint(
    "extract status",
    "GET",
    "/v2/extract/{job_id}",
    models.ExtractStatus,
    repeatable=True,
    judged_by_status=True,
)

START_AGENT = Endpoint(
    "start agent",
    "POST",
    "/v2/agent",
    models.JobStarted,
    request=models.AgentRequest,
    service_seconds=_start_seconds,
)
AGENT_STATUS = Endpoint(
    "agent status",
    "GET",
    "/v2/agent/{job_id}",
    models.AgentStatus,
    repeatable=True,
    judged_by_status=True,
)
CANCEL_AGENT = Endpoint(
    "cancel agent", "DELETE", "/v2/agent/{job_id}", models.CancelResponse, repeatable=True
)

OPEN_SESSION = Endpoint(
    "open session",
    "POST",
    "/v2/interact",
    models.InteractSession,
    request=models.InteractRequest,
    service_seconds=_open_seconds,
)
LIST_SESSIONS = Endpoint("list sessions", "GET", "/v2/interact", models.InteractSessions, repeatable=True)
EXECUTE = Endpoint(
    "execute",
    "POST",
    "/v2/interact/{session_id}/execute",
    models.ExecuteResult,
    request=models.ExecuteRequest,
    judged_by_status=True,
    service_seconds=_code_seconds,
)
CLOSE_SESSION = Endpoint(
    "close session", "DELETE", "/v2/interact/{session_id}", models.SessionClosed, repeatable=True
)
INTERACT_SCRAPE = Endpoint(
    "interact with scrape",
    "POST",
    "/v2/scrape/{scrape_id}/interact",
    models.ScrapeInteractResult,
    request=models.ScrapeInteractRequest,
    judged_by_status=True,
    service_seconds=_scrape_code_seconds,
)
STOP_SCRAPE_INTERACT = Endpoint(
    "stop interaction with scrape",
    "DELETE",
    "/v2/scrape/{scrape_id}/interact",
    models.SessionClosed,
    repeatable=True,
)

CREATE_MONITOR = Endpoint(
    "create monitor", "POST", "/v2/monitor", models.MonitorResponse, request=models.MonitorCreateRequest
)
LIST_MONITORS = Endpoint("list monitors", "GET", "/v2/monitor", models.MonitorListResponse, repeatable=True)
GET_MONITOR = Endpoint(
    "get monitor", "GET", "/v2/monitor/{monitor_id}", models.MonitorResponse, repeatable=True
)
UPDATE_MONITOR = Endpoint(
    "update monitor",
    "PATCH",
    "/v2/monitor/{monitor_id}",
    models.MonitorResponse,
    request=models.MonitorUpdateRequest,
    repeatable=True,
)
DELETE_MONITOR = Endpoint(
    "delete monitor", "DELETE", "/v2/monitor/{monitor_id}", models.DeleteResponse, repeatable=True
)
RUN_MONITOR = Endpoint("run monitor", "POST", "/v2/monitor/{monitor_id}/run", models.MonitorRunResponse)
LIST_MONITOR_CHECKS = Endpoint(
    "list monitor checks",
    "GET",
    "/v2/monitor/{monitor_id}/checks",
    models.MonitorCheckListResponse,
    repeatable=True,
)
GET_MONITOR_CHECK = Endpoint(
    "get monitor check",
    "GET",
    "/v2/monitor/{monitor_id}/checks/{check_id}",
    models.MonitorCheckResponse,
    repeatable=True,
    judged_by_status=True,
)

CREDIT_USAGE = Endpoint(
    "credit usage", "GET", "/v2/team/credit-usage", models.CreditUsageResponse, repeatable=True
)
CREDIT_HISTORY = Endpoint(
    "credit history", "GET", "/v2/team/credit-usage/historical", models.CreditHistory, repeatable=True
)
TOKEN_USAGE = Endpoint(
    "token usage", "GET", "/v2/team/token-usage", models.TokenUsageResponse, repeatable=True
)
TOKEN_HISTORY = Endpoint(
    "token history", "GET", "/v2/team/token-usage/historical", models.TokenHistory, repeatable=True
)
QUEUE_STATUS = Endpoint("queue status", "GET", "/v2/team/queue-status", models.QueueStatus, repeatable=True)
ACTIVITY = Endpoint("activity", "GET", "/v2/team/activity", models.Activity, repeatable=True)
