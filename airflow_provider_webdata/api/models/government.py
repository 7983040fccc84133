"""Searches of the service's index of government sources."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import Answer, Entries, Lenient, RequestModel, ResponseModel
from airflow_provider_webdata.api.models.fields import Integer, Integration, Text
from airflow_provider_webdata.api.models.search import WebResult

CourtType = Literal[
    "federal-supreme",
    "federal-appellate",
    "federal-district",
    "federal-bankruptcy",
    "federal-special",
    "military",
    "state-supreme",
    "state-appellate",
    "state-trial",
    "state-special",
    "state-attorney-general",
]


class GovernmentSearchRequest(RequestModel):
    """Body of `POST /v2/search/gov`; only `query` is required. 2 credits for each 10 results, rounded up.

    The filters match only pages that the index has labeled, so they exclude relevant pages without labels.

    :param query: the search query.
    :param k: maximum number of results, 1 to 100.
    :param jurisdiction: `us`, or `us-` followed by a state or territory, such as `us-ca`.
    :param court: id of a court, such as `scotus`.
    :param court_type: type of court, such as `federal-appellate` or `state-supreme`.
    :param cites: a cited law or case, such as `42 U.S.C. § 1983` or `us:usc:42:1983`.
    :param domain: a site, such as `irs.gov`.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    query: Text
    k: Annotated[Integer, Field(ge=1, le=100)] | None = None
    jurisdiction: Text | None = None
    court: Text | None = None
    court_type: CourtType | None = None
    cites: Text | None = None
    domain: Text | None = None
    origin: Text | None = None
    integration: Integration | None = None


class GovernmentResults(ResponseModel):
    """Search results, in the shape of a search's web results."""

    web: Lenient[Entries[WebResult] | None] = None


class GovernmentSearchResponse(Answer):
    """Response of `POST /v2/search/gov`."""

    data: GovernmentResults
