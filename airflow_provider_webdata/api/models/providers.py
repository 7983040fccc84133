"""Calls of data providers, and the catalogue of their capabilities."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import Answer, Lenient, RequestModel, ResponseModel, problem
from airflow_provider_webdata.api.models.fields import Integer, JsonObject, Listed, Text
from airflow_provider_webdata.api.prices import CATALOGUE


class ProviderCall(RequestModel):
    """One call of a data provider.

    :param provider: its id, such as `market-prices`.
    :param capability: what it is asked, such as `prices/history`.
    :param options: as the contract of the capability says.
    :param version: of the capability, at most 128 characters. Default: the latest.
    """

    provider: Text
    capability: Text
    options: JsonObject | None = None
    version: Annotated[Text, Field(max_length=128)] | None = None

    def _check(self) -> None:
        if (self.provider.strip().lower(), self.capability.strip().lower()) == (CATALOGUE, "terms/accept"):
            raise problem(
                "terms",
                "terms are accepted by an administrator of the organization, in the service's dashboard, and never "
                "by a task",
            )


class ProviderRequest(RequestModel):
    """Body of `POST /v2/scrape` that calls data providers; only `calls` is required.

    :param calls: 1 to 10 calls: `provider`, `capability`, `options`, `version`.
    :param timeout: milliseconds that the calls may take, 1 to 300,000; more than 120,000 counts as that. Default:
        120,000.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: another such label.
    """

    nullable = frozenset({"integration"})

    calls: Annotated[Listed[ProviderCall], Field(min_length=1, max_length=10)] = Field(alias="alexandria")
    timeout: Annotated[Integer, Field(ge=1, le=300_000)] | None = None
    origin: Text | None = None
    integration: Text | None = None


class FindToolsRequest(RequestModel):
    """Options of the catalogue; none is required. Each filter narrows what the others leave.

    :param query: words for the data that you need, at most 2,000 characters.
    :param urls: sites whose data you need, at most 100.
    :param providers: ids of providers, at most 50, as are the next three.
    :param categories: ids of categories.
    :param groups: ids of groups.
    :param capabilities: names of capabilities; their contracts are spelled out.
    :param level: `categories`, `providers`, `groups` or `tools`. Default: by the filters.
    :param expand: parts of contracts to spell out: `options`, `response`, `examples`.
    :param limit: most items on a page, 1 to 100.
    :param offset: how many items to skip, at least 0.
    """

    query: Annotated[Text, Field(max_length=2000)] | None = None
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
    """Why one call of a request failed.

    :ivar status: HTTP status of the provider.
    :ivar charge_id: names the charge, where the call was billed anyway.
    """

    code: Lenient[str | None] = None
    message: Lenient[str | None] = None
    status: Lenient[int | None] = None
    charge_id: Lenient[str | None] = None


class ProviderResult(ResponseModel):
    """The result of one call.

    :ivar data: the provider's answer: a record, or an object or list that has records.
    :ivar records: how many records it has.
    :ivar error: why there is none.
    """

    provider: str | None = None
    capability: str | None = None
    credits_cost: int | float | None = None
    data: Any = None
    records: Lenient[int | None] = None
    upstream_status: Lenient[int | None] = None
    recorded_at: Lenient[str | None] = None
    error: CallError | None = None


class ProviderResults(ResponseModel):
    """The results of all calls of a request, in their order."""

    alexandria: list[ProviderResult]
    credits_cost: int | float | None = None


class ProviderResponse(Answer):
    """Answer of `POST /v2/scrape` to calls of data providers.

    :ivar scrape_id: on the wire `scrape_id`.
    """

    scrape_id: str | None = Field(None, alias="scrape_id")
    data: ProviderResults

    @property
    def credits_used(self) -> int | float | None:
        """Credits of all calls."""
        return self.data.credits_cost


class DataTool(ResponseModel):
    """A capability of a provider, as the catalogue describes it; or a provider, group or category of it.

    :ivar id: `provider/capability` of a tool.
    :ivar credits_cost: credits of a call, or of a record with `per_record`; None: only the answer says it.
    :ivar options: each with `name`, `type`, `required`, ...
    :ivar response: with `fields` (each `name`, `type`), and `key`, which leads to the records.
    :ivar execute: `provider` and `capability` of its call, where they are not beside it.
    :ivar next: a ready call that returns more about it.
    """

    id: str | None = None
    provider: str | None = None
    capability: str | None = None
    name: Lenient[str | None] = None
    description: Lenient[str | None] = None
    credits_cost: Lenient[int | float | None] = None
    per_record: Lenient[bool | None] = None
    options: Lenient[list[dict[str, Any]] | None] = None
    response: Lenient[dict[str, Any] | None] = None
    execute: Lenient[dict[str, Any] | None] = None
    next: Lenient[dict[str, Any] | None] = None

    @property
    def address(self) -> str:
        """Its `provider/capability`, whichever field has it."""
        for part in ({"provider": self.provider, "capability": self.capability}, self.execute):
            if isinstance(part, dict) and part.get("provider") and part.get("capability"):
                return f"{part['provider']}/{part['capability']}"
        return self.id or ""

    @property
    def is_complete(self) -> bool:
        """Whether it has its contract."""
        return isinstance(self.options, list) and isinstance(self.response, dict)

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The fields of a record."""
        found = (self.response if isinstance(self.response, dict) else {}).get("fields")
        listed = found if isinstance(found, list) else []
        return [item for item in listed if isinstance(item, dict) and isinstance(item.get("name"), str)]

    @property
    def records_key(self) -> str | None:
        """The name that leads to the records in the answer, if the contract states one."""
        key = (self.response if isinstance(self.response, dict) else {}).get("key")
        return key if isinstance(key, str) and key else None


class ToolPage(ResponseModel):
    """A page of the catalogue.

    :ivar next: a ready call of the next page; None: this is the last one.
    """

    level: Lenient[str | None] = None
    items: list[DataTool]
    total: Lenient[int | None] = None
    next: dict[str, Any] | None = None
