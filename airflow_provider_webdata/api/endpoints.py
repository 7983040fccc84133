"""Every endpoint of the service, declared once; `client` executes them, sync or async.

A declaration holds everything that differs between calls: the URL, the response type, whether a repeat can start or
bill something twice, and how long the service may need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from airflow_provider_webdata import endings
from airflow_provider_webdata.api import models, service_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_webdata.api.models.base import RequestModel, ResponseModel
    from airflow_provider_webdata.endings import Ending

ResponseT = TypeVar("ResponseT", bound="ResponseModel")


@dataclass(frozen=True)
class Endpoint(Generic[ResponseT]):
    """One operation of the service.

    :param name: its name in errors and logs.
    :param method: HTTP method.
    :param path: path with `{placeholders}`, from `/v2` on.
    :param response: returns the model of the answer, which is loaded when the endpoint is first called.
    :param request: returns the model of the body, or of the query of a GET, if it has one.
    :param starts_nothing: a POST that may be repeated after a lost answer: it neither starts nor bills anything.
    :param bills: a GET that bills credits, so that it is not repeated after a lost answer.
    :param judged_by_status: the outcome is in the object's `status` rather than in `success` (jobs and checks), or in
        its `exitCode` and `killed` (code that ran in a browser session).
    :param service_seconds: how long the service may work on a given body before it answers, in seconds.
    :param uses_up_body: the object that the body names is gone once the service has answered, so that no repeat is
        possible.
    :param takes_idempotency_key: whether the service honours `x-idempotency-key` here.
    :param ends: when the hosted service shuts the operation down, and what replaces it.
    """

    name: str
    method: Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
    path: str
    response: Callable[[], type[ResponseT]]
    request: Callable[[], type[RequestModel]] | None = None
    starts_nothing: bool = False
    bills: bool = False
    judged_by_status: bool = False
    service_seconds: Callable[[Mapping[str, Any]], float] | None = None
    uses_up_body: bool = False
    takes_idempotency_key: bool = False
    ends: Ending | None = None

    @property
    def repeatable(self) -> bool:
        """Whether the call may be repeated after a lost answer without harm."""
        return self.starts_nothing if self.method == "POST" else not self.bills


SEARCH = Endpoint(
    "search",
    "POST",
    "/v2/search",
    lambda: models.SearchResponse,
    request=lambda: models.SearchRequest,
    service_seconds=service_time.search,
)

DEVELOPER_SEARCH = Endpoint(
    "developer search",
    "POST",
    "/v2/search/developer",
    lambda: models.DeveloperSearchResponse,
    request=lambda: models.DeveloperSearchRequest,
    service_seconds=service_time.search,
)
PAPER_SEARCH = Endpoint(
    "paper search",
    "GET",
    "/v2/search/research/papers",
    lambda: models.PaperSearchResponse,
    request=lambda: models.PaperSearchRequest,
    bills=True,
    service_seconds=service_time.search,
)
PAPER = Endpoint(
    "paper",
    "GET",
    "/v2/search/research/papers/{paper_id}",
    lambda: models.PaperResponse,
    request=lambda: models.PaperRequest,
    bills=True,
    service_seconds=service_time.search,
)
SIMILAR_PAPERS = Endpoint(
    "similar papers",
    "GET",
    "/v2/search/research/papers/{paper_id}/similar",
    lambda: models.SimilarPapersResponse,
    request=lambda: models.SimilarPapersRequest,
    bills=True,
    service_seconds=service_time.search,
)
GOVERNMENT_SEARCH = Endpoint(
    "government search",
    "POST",
    "/v2/search/gov",
    lambda: models.GovernmentSearchResponse,
    request=lambda: models.GovernmentSearchRequest,
    service_seconds=service_time.search,
)

SEARCH_FEEDBACK = Endpoint(
    "search feedback",
    "POST",
    "/v2/search/{search_id}/feedback",
    lambda: models.FeedbackResponse,
    request=lambda: models.SearchFeedbackRequest,
    starts_nothing=True,
)
FEEDBACK = Endpoint(
    "feedback",
    "POST",
    "/v2/feedback",
    lambda: models.FeedbackResponse,
    request=lambda: models.FeedbackRequest,
    starts_nothing=True,
)

SCRAPE = Endpoint(
    "scrape",
    "POST",
    "/v2/scrape",
    lambda: models.ScrapeResponse,
    request=lambda: models.ScrapeRequest,
    service_seconds=service_time.scrape,
)
GET_SCRAPE = Endpoint("get scrape", "GET", "/v2/scrape/{scrape_id}", lambda: models.ScrapeResponse)

START_BATCH_SCRAPE = Endpoint(
    "start batch scrape",
    "POST",
    "/v2/batch/scrape",
    lambda: models.JobStarted,
    request=lambda: models.BatchScrapeRequest,
    service_seconds=service_time.start,
)
BATCH_SCRAPE_STATUS = Endpoint(
    "batch scrape status", "GET", "/v2/batch/scrape/{job_id}", lambda: models.JobStatus, judged_by_status=True
)
BATCH_SCRAPE_DOCUMENTS = Endpoint(
    "batch scrape documents",
    "GET",
    "/v2/batch/scrape/{job_id}",
    lambda: models.JobDocuments,
    judged_by_status=True,
)
"""The same call as the status; its documents are left as they came."""
CANCEL_BATCH_SCRAPE = Endpoint(
    "cancel batch scrape", "DELETE", "/v2/batch/scrape/{job_id}", lambda: models.CancelResponse
)
BATCH_SCRAPE_ERRORS = Endpoint(
    "batch scrape errors", "GET", "/v2/batch/scrape/{job_id}/errors", lambda: models.JobErrors
)

START_CRAWL = Endpoint(
    "start crawl",
    "POST",
    "/v2/crawl",
    lambda: models.JobStarted,
    request=lambda: models.CrawlRequest,
    service_seconds=service_time.start,
    takes_idempotency_key=True,
)
CRAWL_STATUS = Endpoint(
    "crawl status", "GET", "/v2/crawl/{job_id}", lambda: models.JobStatus, judged_by_status=True
)
CRAWL_DOCUMENTS = Endpoint(
    "crawl documents", "GET", "/v2/crawl/{job_id}", lambda: models.JobDocuments, judged_by_status=True
)
"""The same call as the status; its documents are left as they came."""
CANCEL_CRAWL = Endpoint("cancel crawl", "DELETE", "/v2/crawl/{job_id}", lambda: models.CancelResponse)
CRAWL_ERRORS = Endpoint("crawl errors", "GET", "/v2/crawl/{job_id}/errors", lambda: models.JobErrors)
ACTIVE_CRAWLS = Endpoint("active crawls", "GET", "/v2/crawl/active", lambda: models.ActiveCrawls)
CRAWL_PARAMS = Endpoint(
    "crawl params preview",
    "POST",
    "/v2/crawl/params-preview",
    lambda: models.CrawlParamsResponse,
    request=lambda: models.CrawlParamsRequest,
    starts_nothing=True,
    service_seconds=service_time.start,
)

MAP = Endpoint(
    "map",
    "POST",
    "/v2/map",
    lambda: models.MapResponse,
    request=lambda: models.MapRequest,
    service_seconds=service_time.without_default,
)

PARSE = Endpoint(
    "parse",
    "POST",
    "/v2/parse",
    lambda: models.ScrapeResponse,
    request=lambda: models.ParseOptions,
    service_seconds=service_time.without_default,
)

PARSE_UPLOAD = Endpoint(
    "parse upload",
    "POST",
    "/v2/parse/upload-url",
    lambda: models.ParseUploadResponse,
    request=lambda: models.ParseUploadRequest,
)
PARSE_REFERENCE = Endpoint(
    "parse by reference",
    "POST",
    "/v2/parse",
    lambda: models.ScrapeResponse,
    request=lambda: models.ParseReferenceRequest,
    service_seconds=service_time.without_default,
    uses_up_body=True,
)
"""The same call as parse, of a file that was sent to the storage that `PARSE_UPLOAD` named."""

PARSE_FORMATS = Endpoint("parse formats", "GET", "/v2/parse/formats", lambda: models.FileFormatsResponse)

START_EXTRACT = Endpoint(
    "start extract",
    "POST",
    "/v2/extract",
    lambda: models.JobStarted,
    request=lambda: models.ExtractRequest,
    service_seconds=service_time.start,
    ends=endings.EXTRACT,
)
EXTRACT_STATUS = Endpoint(
    "extract status",
    "GET",
    "/v2/extract/{job_id}",
    lambda: models.ExtractStatus,
    judged_by_status=True,
    ends=endings.EXTRACT,
)

START_AGENT = Endpoint(
    "start agent",
    "POST",
    "/v2/agent",
    lambda: models.JobStarted,
    request=lambda: models.AgentRequest,
    service_seconds=service_time.start,
)
AGENT_STATUS = Endpoint(
    "agent status", "GET", "/v2/agent/{job_id}", lambda: models.AgentStatus, judged_by_status=True
)
CANCEL_AGENT = Endpoint("cancel agent", "DELETE", "/v2/agent/{job_id}", lambda: models.CancelResponse)
LIST_AGENTS = Endpoint("list agents", "GET", "/v2/agent", lambda: models.AgentRuns)
AGENT_THREAD = Endpoint(
    "agent thread", "GET", "/v2/agent/threads/{thread_id}", lambda: models.AgentThreadResponse
)
AGENT_TRACE = Endpoint("agent trace", "GET", "/v2/agent/{job_id}/trace", lambda: models.AgentTrace)
AGENT_SNAPSHOT = Endpoint(
    "agent snapshot", "GET", "/v2/agent/{job_id}/snapshots/{snapshot_id}", lambda: models.AgentSnapshot
)

OPEN_SESSION = Endpoint(
    "open session",
    "POST",
    "/v2/interact",
    lambda: models.InteractSession,
    request=lambda: models.InteractRequest,
    service_seconds=service_time.start,
)
LIST_SESSIONS = Endpoint("list sessions", "GET", "/v2/interact", lambda: models.InteractSessions)
EXECUTE = Endpoint(
    "execute",
    "POST",
    "/v2/interact/{session_id}/execute",
    lambda: models.ExecuteResult,
    request=lambda: models.ExecuteRequest,
    judged_by_status=True,
    service_seconds=service_time.execute,
)
CLOSE_SESSION = Endpoint("close session", "DELETE", "/v2/interact/{session_id}", lambda: models.SessionClosed)
INTERACT_SCRAPE = Endpoint(
    "interact with scrape",
    "POST",
    "/v2/scrape/{scrape_id}/interact",
    lambda: models.ScrapeInteractResult,
    request=lambda: models.ScrapeInteractRequest,
    judged_by_status=True,
    service_seconds=service_time.interact,
)
STOP_SCRAPE_INTERACT = Endpoint(
    "stop interaction with scrape", "DELETE", "/v2/scrape/{scrape_id}/interact", lambda: models.SessionClosed
)

CREATE_MONITOR = Endpoint(
    "create monitor",
    "POST",
    "/v2/monitor",
    lambda: models.MonitorResponse,
    request=lambda: models.MonitorCreateRequest,
)
LIST_MONITORS = Endpoint("list monitors", "GET", "/v2/monitor", lambda: models.MonitorListResponse)
GET_MONITOR = Endpoint("get monitor", "GET", "/v2/monitor/{monitor_id}", lambda: models.MonitorResponse)
UPDATE_MONITOR = Endpoint(
    "update monitor",
    "PATCH",
    "/v2/monitor/{monitor_id}",
    lambda: models.MonitorResponse,
    request=lambda: models.MonitorUpdateRequest,
)
DELETE_MONITOR = Endpoint(
    "delete monitor", "DELETE", "/v2/monitor/{monitor_id}", lambda: models.DeleteResponse
)
RUN_MONITOR = Endpoint(
    "run monitor", "POST", "/v2/monitor/{monitor_id}/run", lambda: models.MonitorRunResponse
)
LIST_MONITOR_CHECKS = Endpoint(
    "list monitor checks", "GET", "/v2/monitor/{monitor_id}/checks", lambda: models.MonitorCheckListResponse
)
GET_MONITOR_CHECK = Endpoint(
    "get monitor check",
    "GET",
    "/v2/monitor/{monitor_id}/checks/{check_id}",
    lambda: models.MonitorCheckResponse,
    judged_by_status=True,
)

CREDIT_USAGE = Endpoint("credit usage", "GET", "/v2/team/credit-usage", lambda: models.CreditUsageResponse)
CREDIT_HISTORY = Endpoint(
    "credit history", "GET", "/v2/team/credit-usage/historical", lambda: models.CreditHistory
)
TOKEN_USAGE = Endpoint("token usage", "GET", "/v2/team/token-usage", lambda: models.TokenUsageResponse)
TOKEN_HISTORY = Endpoint(
    "token history", "GET", "/v2/team/token-usage/historical", lambda: models.TokenHistory
)
QUEUE_STATUS = Endpoint("queue status", "GET", "/v2/team/queue-status", lambda: models.QueueStatus)
ACTIVITY = Endpoint("activity", "GET", "/v2/team/activity", lambda: models.Activity)
CONCURRENCY = Endpoint("concurrency", "GET", "/v2/concurrency-check", lambda: models.Concurrency)
THREAT_POLICY = Endpoint(
    "threat policy", "GET", "/v2/team/threat-protection", lambda: models.ThreatPolicyResponse
)
REPLACE_THREAT_POLICY = Endpoint(
    "replace threat policy",
    "PUT",
    "/v2/team/threat-protection",
    lambda: models.ThreatPolicyResponse,
    request=lambda: models.ThreatPolicyRequest,
)
