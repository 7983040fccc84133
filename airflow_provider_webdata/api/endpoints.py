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
    :param judged_by_status: the object's `status` tells how it went and `success` does not (jobs and checks).
    :param service_seconds: how long the service may work on a given body before it answers, in seconds.
    """

    name: str
    method: Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
    path: str
    response: type[ResponseT]
    request: type[RequestModel] | None = None
    repeatable: bool = False
    judged_by_status: bool = False
    service_seconds: Callable[[Mapping[str, Any]], float] | None = None


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
