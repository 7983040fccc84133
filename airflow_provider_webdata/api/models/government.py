"""Searches of the service's index of government sources."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from airflow_provider_webdata.api.models.base import Lenient, RequestModel, ResponseModel
from airflow_provider_webdata.api.models.fields import Integer, Text
from airflow_provider_webdata.api.models.search import WebResult


class GovernmentSearchRequest(RequestModel):
    """Body of `POST /v2/search/gov`; only `query` is required. 2 credits for each 10 results, rounded up.

    :param query: what to search.
    :param k: most results, 1 to 100.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: another such label.
    """

    query: Text
    k: Annotated[Integer, Field(ge=1, le=100)] | None = None
    origin: Text | None = None
    integration: Text | None = None


class GovernmentResults(ResponseModel):
    """What was found, in the shape of a search's web results."""

    web: Lenient[list[WebResult] | None] = None


class GovernmentSearchResponse(ResponseModel):
    """Answer of `POST /v2/search/gov`."""

    success: bool | None = None
    data: GovernmentResults
