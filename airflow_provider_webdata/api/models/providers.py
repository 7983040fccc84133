# SPDX-License-Identifier: Apache-2.0
"""Calls of data providers, and the catalog of their capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from airflow_provider_webdata.api.models.base import (
    Answer,
    Entries,
    Lenient,
    OrNone,
    RequestModel,
    ResponseModel,
    problem,
)
from airflow_provider_webdata.api.models.fields import Integer, Integration, JsonObject, Listed, Query, Text
from airflow_provider_webdata.api.prices import CATALOG
from airflow_provider_webdata.common.clean_text import trimmed


class ProviderCall(RequestModel):
    """One call of a data provider.

    :param provider: id of the provider, such as `market-prices`.
    :param capability: name of the capability, such as `prices/history`.
    :param options: options of the capability, according to its contract.
    :param version: version of the capability, at most 128 characters. Default: the latest.
    """

    provider: Text
    capability: Text
    options: JsonObject | None = None
    version: Annotated[Text, Field(max_length=128)] | None = None

    def _check(self) -> None:
        if (self.provider.strip().lower(), self.capability.strip().lower()) == (CATALOG, "terms/accept"):
            raise problem(
                "terms",
                "a task cannot accept terms; an organization administrator must accept them in the service's "
                "dashboard",
            )


class ProviderRequest(RequestModel):
    """Body of `POST /v2/scrape` for calls of data providers; only `calls` is required.

    :param calls: 1 to 10 calls: `provider`, `capability`, `options`, `version`.
    :param timeout: time limit of the calls in milliseconds, 1 to 300,000; the service caps it at 120,000. Default:
        120,000.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    nullable = frozenset({"integration"})

    calls: Annotated[Listed[ProviderCall], Field(min_length=1, max_length=10)] = Field(alias="alexandria")
    timeout: Annotated[Integer, Field(ge=1, le=300_000)] | None = None
    origin: Text | None = None
    integration: Integration | None = None


class FindToolsRequest(RequestModel):
    """Options of the catalog; all are optional. An item must match all filters.

    :param query: description of the data, at most 2,000 characters.
    :param urls: sites of the data, at most 100.
    :param providers: ids of providers, at most 50; the same limit applies to the next three fields.
    :param categories: ids of categories.
    :param groups: ids of groups.
    :param capabilities: names of capabilities, which are returned with their contracts.
    :param level: `categories`, `providers`, `groups`, or `tools`. Default: depends on the filters.
    :param expand: parts of contracts to return: `options`, `response`, `examples`.
    :param limit: maximum number of items per page, 1 to 100.
    :param offset: number of items to skip, at least 0.
    """

    query: Annotated[Query, Field(max_length=2000)] | None = None
    urls: Annotated[Listed[Text], Field(min_length=1, max_length=100)] | None = None
    providers: Annotated[Listed[Text], Field(min_length=1, max_length=50)] | None = None
    categories: Annotated[Listed[Text], Field(min_length=1, max_length=50)] | None = None
    groups: Annotated[Listed[Text], Field(min_length=1, max_length=50)] | None = None
    capabilities: Annotated[Listed[Text], Field(min_length=1, max_length=50)] | None = None
    level: Literal["categories", "providers", "groups", "tools"] | None = None
    expand: Listed[Literal["options", "response", "examples"]] | None = None
    limit: Annotated[Integer, Field(ge=1, le=100)] | None = None
    offset: Annotated[Integer, Field(ge=0)] | None = None


class CallError(ResponseModel):
    """The error of one call of a request.

    :ivar status: HTTP status of the provider.
    :ivar charge_id: id of the charge, if the call was billed anyway.
    """

    code: OrNone[str] = None
    message: Lenient[str | None] = None
    status: OrNone[int] = None
    charge_id: OrNone[str] = None


def _call_error(value: Any) -> Any:
    # The error decides whether the call failed, so an undocumented form is kept as its message.
    return {"message": str(value)} if value and not isinstance(value, (Mapping, CallError)) else value or None


def _call_result(value: Any) -> Any:
    # The results are in the order of the calls, so an entry cannot be skipped.
    if isinstance(value, (Mapping, ProviderResult)):
        return value
    return {"error": {"message": f"the response has no result of this call, but {trimmed(repr(value), 100)}"}}


class ProviderResult(ResponseModel):
    """The result of one call.

    :ivar data: the provider's response: a record, or an object or list of records.
    :ivar records: number of records.
    :ivar error: the error, if the call failed.
    """

    provider: OrNone[str] = None
    capability: OrNone[str] = None
    credits_cost: OrNone[int | float] = None
    data: Any = None
    records: OrNone[int] = None
    upstream_status: OrNone[int] = None
    recorded_at: Lenient[str | None] = None
    error: Annotated[CallError | None, BeforeValidator(_call_error)] = None


class ProviderResults(ResponseModel):
    """The results of a request's calls, in the same order."""

    alexandria: list[Annotated[ProviderResult, BeforeValidator(_call_result)]]
    credits_cost: OrNone[int | float] = None


class ProviderResponse(Answer):
    """Response of `POST /v2/scrape` for calls of data providers.

    :ivar scrape_id: on the wire `scrape_id`.
    """

    scrape_id: OrNone[str] = Field(None, alias="scrape_id")
    data: ProviderResults

    @property
    def credits_used(self) -> int | float | None:
        """Credits of all calls."""
        return self.data.credits_cost


class DataTool(ResponseModel):
    """An item of the catalog: a capability, provider, group, or category.

    :ivar id: `provider/capability` of a tool.
    :ivar credits_cost: credits per call, or per record with `per_record`; None: only the response states the cost.
    :ivar options: options, each with `name`, `type`, `required`, ...
    :ivar response: description of the response: `fields` (each with `name` and `type`), and `key`, the field of the
        records.
    :ivar execute: `provider` and `capability` of the call, if they are not top-level fields.
    :ivar next: a complete call that returns details.
    """

    id: OrNone[str] = None
    provider: OrNone[str] = None
    capability: OrNone[str] = None
    name: OrNone[str] = None
    description: OrNone[str] = None
    credits_cost: OrNone[int | float] = None
    per_record: OrNone[bool] = None
    options: OrNone[Entries[dict[str, Any]]] = None
    response: OrNone[dict[str, Any]] = None
    execute: OrNone[dict[str, Any]] = None
    next: OrNone[dict[str, Any]] = None

    @property
    def address(self) -> str:
        """The item's `provider/capability`."""
        for part in ({"provider": self.provider, "capability": self.capability}, self.execute):
            if isinstance(part, dict) and part.get("provider") and part.get("capability"):
                return f"{part['provider']}/{part['capability']}"
        return self.id or ""

    @property
    def is_complete(self) -> bool:
        """Whether the item includes its contract."""
        return isinstance(self.options, list) and isinstance(self.response, dict)

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The fields of a record."""
        found = (self.response if isinstance(self.response, dict) else {}).get("fields")
        listed = found if isinstance(found, list) else []
        return [item for item in listed if isinstance(item, dict) and isinstance(item.get("name"), str)]

    @property
    def records_key(self) -> str | None:
        """The field of the response that contains the records, if the contract names one."""
        key = (self.response if isinstance(self.response, dict) else {}).get("key")
        return key if isinstance(key, str) and key else None


class ToolPage(ResponseModel):
    """A page of the catalog.

    :ivar next: a complete call for the next page; None on the last page.
    """

    level: Lenient[str | None] = None
    items: Entries[DataTool]
    total: Lenient[int | None] = None
    next: OrNone[dict[str, Any]] = None
