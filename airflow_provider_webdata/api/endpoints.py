# SPDX-License-Identifier: Apache-2.0
"""Declarations of all endpoints of the service.

A declaration contains all differences between calls: URL, models, price, and whether the call may be retried. The
client, the hooks and their guard, the limits of tasks, the tests, and the documentation are derived from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar
from urllib.parse import unquote

import msgspec

from airflow_provider_webdata.api import models, prices, service_time
from airflow_provider_webdata.api.prices import Price

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_webdata.api.models.base import RequestModel, ResponseModel
    from airflow_provider_webdata.api.servers import Server

ResponseT = TypeVar("ResponseT", bound="ResponseModel")


class JobEndpoints(msgspec.Struct, frozen=True):
    """The endpoints for a started job.

    :param status: returns the job's state.
    :param documents: returns the result in parts, as plain JSON objects; None if the result is a single object.
    :param cancel: cancels the job.
    :param errors: returns the failed pages; None if the job has no pages.
    """

    status: Endpoint[Any]
    cancel: Endpoint[models.CancelResponse]
    documents: Endpoint[models.JobDocuments] | None = None
    errors: Endpoint[models.JobErrors] | None = None


def label_of(operation: str) -> str:
    """Return the name of an operation in errors and logs.

    :param operation: the name in snake case.
    """
    return operation.replace("_", " ")


_IDS_IN_BODIES = frozenset({"appendToId", "threadId", "uploadRef"})


class Endpoint(msgspec.Struct, Generic[ResponseT], frozen=True):
    """An operation of the service.

    :param name: name in snake case; the constant in this module has the same name in upper case.
    :param method: HTTP method.
    :param path: path with `{placeholders}`, starting at `/v2`.
    :param section: anchor of the section of sandbox/docs/service.md that describes the operation.
    :param response: returns the response model, which is imported when the endpoint is first called.
    :param request: returns the model of the body, or of the query of a GET, if any.
    :param price: price of a call; None: free.
    :param starts_nothing: a POST that neither starts nor bills anything.
    :param session: the call opens a browser session, or runs code in one.
    :param job: for a call that starts a job, the job's endpoints.
    :param judged_by_status: the outcome is in the object's `status` rather than in `success` (jobs and checks), or in
        its `exitCode` and `killed` (code that ran in a browser session).
    :param service_seconds: returns the service-side time limit for a body, in seconds.
    :param uses_up_body: the response consumes the object that the body refers to, so the call cannot be repeated.
    :param answers_text: the response is text instead of JSON, and becomes the field `text` of the response model.
    :param key_header: the header that identifies a repeated request to a server that stores it. Such a server rejects
        a repeated `x-idempotency-key`. For a repeated `x-request-id`, which is always sent, it returns the first
        response and bills once.
    :param is_declared: False for a call of `hook.request`, whose effects are unknown.
    :param title: the name in errors and logs. Default: the name in snake case, with spaces.
    :raises TypeError: a POST declares neither a price nor `starts_nothing`.
    """

    name: str
    method: Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
    path: str
    section: str
    response: Callable[[], type[ResponseT]]
    request: Callable[[], type[RequestModel]] | None = None
    price: Price | Literal["included", "undocumented"] | None = None
    starts_nothing: bool = False
    session: Literal["opens", "uses"] | None = None
    job: JobEndpoints | None = None
    judged_by_status: bool = False
    service_seconds: Callable[[Mapping[str, Any]], float] | None = None
    uses_up_body: bool = False
    answers_text: bool = False
    key_header: Literal["x-idempotency-key", "x-request-id"] | None = None
    is_declared: bool = True
    title: str = ""

    def __post_init__(self) -> None:
        if self.method == "POST" and self.price is None and not self.starts_nothing:
            raise TypeError(f"{self.name}: declare a price or starts_nothing=True")

    @property
    def label(self) -> str:
        """The name in errors and logs."""
        return self.title or label_of(self.name)

    def names_object(self, body: Mapping[str, Any]) -> bool:
        """Return whether a request names an object that may be missing.

        A call of `hook.request` may name one, unless its path is that of an operation without an id.
        """
        known = ENDPOINTS.values() if not self.is_declared else (self,)
        has_id = not any("{" not in one.path and one.matches(self.method, self.path) for one in known)
        return has_id or not _IDS_IN_BODIES.isdisjoint(body)

    def matches(self, method: str, path: str) -> bool:
        """Return whether a method and a path call this operation, in any case: some servers ignore it."""
        ours, theirs = self.path.split("/"), path.split("/")
        return (
            self.method == method
            and len(ours) == len(theirs)
            and all(
                one.startswith("{") or one.casefold() == unquote(other).casefold()
                for one, other in zip(ours, theirs, strict=True)
            )
        )

    def is_repeatable(self, server: Server) -> bool:
        """Return whether the call can be retried safely after a lost response."""
        if not self.is_declared and self.method != "GET":
            return False
        return self.price is None or (self.key_header == "x-request-id" and server.trusts_keys)


def _page_job_calls(
    kind: str, path: str
) -> tuple[
    Endpoint[models.JobStatus],
    Endpoint[models.JobDocuments],
    Endpoint[models.CancelResponse],
    Endpoint[models.JobErrors],
]:
    """Return the endpoints for a job with a list of pages as its result: status, documents, cancel, errors."""
    return (
        Endpoint(
            f"{kind}_status", "GET", path, "state-of-a-job", lambda: models.JobStatus, judged_by_status=True
        ),
        Endpoint(
            f"{kind}_documents",
            "GET",
            path,
            "parts-of-the-result",
            lambda: models.JobDocuments,
            judged_by_status=True,
        ),
        Endpoint(f"cancel_{kind}", "DELETE", path, "cancel", lambda: models.CancelResponse),
        Endpoint(f"{kind}_errors", "GET", f"{path}/errors", "errors-of-a-job", lambda: models.JobErrors),
    )


SEARCH = Endpoint(
    "search", "POST", "/v2/search", "search", lambda: models.SearchResponse, lambda: models.SearchRequest,
    prices.SEARCH, service_seconds=service_time.search,
)  # fmt: skip

DEVELOPER_SEARCH = Endpoint(
    "developer_search", "POST", "/v2/search/developer", "developer-search",
    lambda: models.DeveloperSearchResponse, lambda: models.DeveloperSearchRequest, prices.DEVELOPER_SEARCH,
    service_seconds=service_time.search,
)  # fmt: skip

PAPER_SEARCH = Endpoint(
    "paper_search", "GET", "/v2/search/research/papers", "research", lambda: models.PaperSearchResponse,
    lambda: models.PaperSearchRequest, prices.PAPER_SEARCH, service_seconds=service_time.search,
)  # fmt: skip
PAPER = Endpoint(
    "paper", "GET", "/v2/search/research/papers/{paper_id}", "one-paper", lambda: models.PaperResponse,
    lambda: models.PaperRequest, prices.UNDOCUMENTED, service_seconds=service_time.search,
)  # fmt: skip
SIMILAR_PAPERS = Endpoint(
    "similar_papers", "GET", "/v2/search/research/papers/{paper_id}/similar", "similar-papers",
    lambda: models.SimilarPapersResponse, lambda: models.SimilarPapersRequest, prices.UNDOCUMENTED,
    service_seconds=service_time.search,
)  # fmt: skip

SCRAPE = Endpoint(
    "scrape", "POST", "/v2/scrape", "scrape", lambda: models.ScrapeResponse, lambda: models.ScrapeRequest,
    prices.SCRAPE, service_seconds=service_time.scrape,
)  # fmt: skip
GET_SCRAPE = Endpoint("get_scrape", "GET", "/v2/scrape/{scrape_id}", "scrape", lambda: models.ScrapeResponse)

RUN_PROVIDER = Endpoint(
    "run_provider", "POST", "/v2/scrape", "data-providers", lambda: models.ProviderResponse,
    lambda: models.ProviderRequest, prices.PROVIDER, service_seconds=service_time.providers,
    key_header="x-request-id",
)  # fmt: skip
FIND_TOOLS = Endpoint(
    "find_tools", "POST", "/v2/scrape", "find-tools", lambda: models.ProviderResponse, starts_nothing=True,
    service_seconds=service_time.providers,
)  # fmt: skip
"""The same endpoint with a call to the catalog, which is free."""

BATCH_SCRAPE_STATUS, BATCH_SCRAPE_DOCUMENTS, CANCEL_BATCH_SCRAPE, BATCH_SCRAPE_ERRORS = _page_job_calls(
    "batch_scrape", "/v2/batch/scrape/{job_id}"
)
START_BATCH_SCRAPE = Endpoint(
    "start_batch_scrape", "POST", "/v2/batch/scrape", "batch-scrape", lambda: models.JobStarted,
    lambda: models.BatchScrapeRequest, prices.BATCH_SCRAPE,
    job=JobEndpoints(BATCH_SCRAPE_STATUS, CANCEL_BATCH_SCRAPE, BATCH_SCRAPE_DOCUMENTS, BATCH_SCRAPE_ERRORS),
    service_seconds=service_time.start,
)  # fmt: skip

CRAWL_STATUS, CRAWL_DOCUMENTS, CANCEL_CRAWL, CRAWL_ERRORS = _page_job_calls("crawl", "/v2/crawl/{job_id}")
START_CRAWL = Endpoint(
    "start_crawl", "POST", "/v2/crawl", "crawl", lambda: models.JobStarted, lambda: models.CrawlRequest,
    prices.CRAWL, job=JobEndpoints(CRAWL_STATUS, CANCEL_CRAWL, CRAWL_DOCUMENTS, CRAWL_ERRORS),
    service_seconds=service_time.start, key_header="x-idempotency-key",
)  # fmt: skip
ACTIVE_CRAWLS = Endpoint(
    "active_crawls", "GET", "/v2/crawl/active", "crawls-that-run", lambda: models.ActiveCrawls
)
CRAWL_PARAMS_PREVIEW = Endpoint(
    "crawl_params_preview", "POST", "/v2/crawl/params-preview", "preview-of-crawl-options",
    lambda: models.CrawlParamsResponse, lambda: models.CrawlParamsRequest, starts_nothing=True,
    service_seconds=service_time.start,
)  # fmt: skip

MAP = Endpoint(
    "map", "POST", "/v2/map", "map", lambda: models.MapResponse, lambda: models.MapRequest, prices.MAP,
    service_seconds=service_time.without_default,
)  # fmt: skip

PARSE = Endpoint(
    "parse", "POST", "/v2/parse", "parse", lambda: models.ScrapeResponse, lambda: models.ParseOptions,
    prices.PARSE, service_seconds=service_time.scrape,
)  # fmt: skip
PARSE_UPLOAD = Endpoint(
    "parse_upload", "POST", "/v2/parse/upload-url", "parse-by-reference", lambda: models.ParseUploadResponse,
    lambda: models.ParseUploadRequest, prices.INCLUDED,
)  # fmt: skip
PARSE_BY_REFERENCE = Endpoint(
    "parse_by_reference", "POST", "/v2/parse", "parse-by-reference", lambda: models.ScrapeResponse,
    lambda: models.ParseReferenceRequest, prices.PARSE,
    service_seconds=service_time.scrape, uses_up_body=True,
)  # fmt: skip
"""The same endpoint as `PARSE`, for a file that was uploaded to the storage from `PARSE_UPLOAD`."""
PARSE_FORMATS = Endpoint(
    "parse_formats", "GET", "/v2/parse/formats", "parse", lambda: models.FileFormatsResponse
)

AGENT_STATUS = Endpoint(
    "agent_status", "GET", "/v2/agent/{job_id}", "agent", lambda: models.AgentStatus, judged_by_status=True
)
CANCEL_AGENT = Endpoint(
    "cancel_agent", "DELETE", "/v2/agent/{job_id}", "agent", lambda: models.CancelResponse
)
START_AGENT = Endpoint(
    "start_agent", "POST", "/v2/agent", "agent", lambda: models.JobStarted, lambda: models.AgentRequest,
    prices.AGENT, job=JobEndpoints(AGENT_STATUS, CANCEL_AGENT), service_seconds=service_time.start,
)  # fmt: skip
OPEN_SESSION = Endpoint(
    "open_session", "POST", "/v2/interact", "session", lambda: models.InteractSession,
    lambda: models.InteractRequest, prices.INTERACT, session="opens", service_seconds=service_time.start,
)  # fmt: skip
LIST_SESSIONS = Endpoint("list_sessions", "GET", "/v2/interact", "session", lambda: models.InteractSessions)
EXECUTE = Endpoint(
    "execute", "POST", "/v2/interact/{session_id}/execute", "code", lambda: models.ExecuteResult,
    lambda: models.ExecuteRequest, prices.INCLUDED, session="uses", judged_by_status=True,
    service_seconds=service_time.execute,
)  # fmt: skip
CLOSE_SESSION = Endpoint(
    "close_session", "DELETE", "/v2/interact/{session_id}", "session", lambda: models.SessionClosed
)
REPLAY = Endpoint("replay", "GET", "/v2/interact/{session_id}/replay", "replay", lambda: models.Replay)
REPLAY_PAGE = Endpoint(
    "replay_page", "GET", "/v2/interact/{session_id}/replay/{page_id}", "replay",
    lambda: models.ReplayPlaylist, answers_text=True,
)  # fmt: skip
INTERACT_WITH_SCRAPE = Endpoint(
    "interact_with_scrape", "POST", "/v2/scrape/{scrape_id}/interact", "on-the-page-of-a-scrape",
    lambda: models.ScrapeInteractResult, lambda: models.ScrapeInteractRequest, prices.UNDOCUMENTED,
    judged_by_status=True, service_seconds=service_time.interact,
)  # fmt: skip
STOP_INTERACTION_WITH_SCRAPE = Endpoint(
    "stop_interaction_with_scrape", "DELETE", "/v2/scrape/{scrape_id}/interact", "on-the-page-of-a-scrape",
    lambda: models.SessionClosed,
)  # fmt: skip

CREATE_MONITOR = Endpoint(
    "create_monitor", "POST", "/v2/monitor", "monitor-fields", lambda: models.MonitorResponse,
    lambda: models.MonitorCreateRequest, prices.UNDOCUMENTED,
)  # fmt: skip
LIST_MONITORS = Endpoint(
    "list_monitors", "GET", "/v2/monitor", "reading-and-changing-monitors",
    lambda: models.MonitorListResponse,
)  # fmt: skip
GET_MONITOR = Endpoint(
    "get_monitor", "GET", "/v2/monitor/{monitor_id}", "reading-and-changing-monitors",
    lambda: models.MonitorResponse,
)  # fmt: skip
UPDATE_MONITOR = Endpoint(
    "update_monitor", "PATCH", "/v2/monitor/{monitor_id}", "monitor-fields", lambda: models.MonitorResponse,
    lambda: models.MonitorUpdateRequest,
)  # fmt: skip
DELETE_MONITOR = Endpoint(
    "delete_monitor", "DELETE", "/v2/monitor/{monitor_id}", "reading-and-changing-monitors",
    lambda: models.DeleteResponse,
)  # fmt: skip
RUN_MONITOR = Endpoint(
    "run_monitor", "POST", "/v2/monitor/{monitor_id}/run", "checks", lambda: models.MonitorRunResponse,
    price=prices.UNDOCUMENTED,
)  # fmt: skip
LIST_MONITOR_CHECKS = Endpoint(
    "list_monitor_checks", "GET", "/v2/monitor/{monitor_id}/checks", "checks",
    lambda: models.MonitorCheckListResponse,
)  # fmt: skip
GET_MONITOR_CHECK = Endpoint(
    "get_monitor_check", "GET", "/v2/monitor/{monitor_id}/checks/{check_id}", "checks",
    lambda: models.MonitorCheckResponse, judged_by_status=True,
)  # fmt: skip

CREDIT_USAGE = Endpoint(
    "credit_usage", "GET", "/v2/team/credit-usage", "team", lambda: models.CreditUsageResponse
)
CREDIT_HISTORY = Endpoint(
    "credit_history", "GET", "/v2/team/credit-usage/historical", "team", lambda: models.CreditHistory
)
TOKEN_USAGE = Endpoint(
    "token_usage", "GET", "/v2/team/token-usage", "team", lambda: models.TokenUsageResponse
)
TOKEN_HISTORY = Endpoint(
    "token_history", "GET", "/v2/team/token-usage/historical", "team", lambda: models.TokenHistory
)
QUEUE_STATUS = Endpoint("queue_status", "GET", "/v2/team/queue-status", "team", lambda: models.QueueStatus)
ACTIVITY = Endpoint("activity", "GET", "/v2/team/activity", "team", lambda: models.Activity)
CONCURRENCY = Endpoint("concurrency", "GET", "/v2/concurrency-check", "team", lambda: models.Concurrency)
THREAT_POLICY = Endpoint(
    "threat_policy", "GET", "/v2/team/threat-protection", "threat-policy",
    lambda: models.ThreatPolicyResponse,
)  # fmt: skip
REPLACE_THREAT_POLICY = Endpoint(
    "replace_threat_policy", "PUT", "/v2/team/threat-protection", "threat-policy",
    lambda: models.ThreatPolicyResponse, lambda: models.ThreatPolicyRequest,
)  # fmt: skip


ENDPOINTS: Mapping[str, Endpoint[Any]] = {
    value.name: value for value in tuple(globals().values()) if isinstance(value, Endpoint)
}
"""All endpoints by name."""

PRICES: Mapping[str, Price] = {
    endpoint.price.operation: endpoint.price
    for endpoint in ENDPOINTS.values()
    if isinstance(endpoint.price, Price)
}
"""The documented prices, by billed operation."""

JOBS: Mapping[str, JobEndpoints] = {
    endpoint.price.operation: endpoint.job
    for endpoint in ENDPOINTS.values()
    if isinstance(endpoint.price, Price) and endpoint.job is not None
}
"""The endpoints for each kind of job."""
