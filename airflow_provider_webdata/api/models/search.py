# SPDX-License-Identifier: Apache-2.0
"""Web search, with optional scraping of the results in the same call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator

from airflow_provider_webdata.api.models.base import (
    Answer,
    Entries,
    Lenient,
    OrNone,
    Remark,
    RequestModel,
    ResponseModel,
    problem,
)
from airflow_provider_webdata.api.models.fields import (
    CountryCode,
    DomainFilter,
    Integer,
    Integration,
    Listed,
    Query,
    String,
    Switch,
    Text,
    one_of,
)
from airflow_provider_webdata.api.models.formats import format_types
from airflow_provider_webdata.api.models.page import PageContent
from airflow_provider_webdata.api.models.providers import DataTool
from airflow_provider_webdata.api.models.scrape import ScrapeOptions, check_zero_data_retention
from airflow_provider_webdata.api.models.threat import ThreatProtection
from airflow_provider_webdata.api.query import MAX_QUERY_LENGTH, QueryError, check_tbs, short_dates
from airflow_provider_webdata.api.servers import ONLY_SELF_HOSTED, SELF_HOSTED

if TYPE_CHECKING:
    from airflow_provider_webdata.api.servers import Server


def _tbs(value: str) -> str:
    try:
        check_tbs(value)
    except QueryError as error:
        raise problem("tbs", error.text()) from None
    return value


def _tbs_warnings(value: str | None) -> list[str]:
    return [
        f"tbs: {text} has no leading zero, but MM/DD/YYYY is documented; it is sent unchanged"
        for text in short_dates(value or "")
    ]


_Tbs = Annotated[String, AfterValidator(_tbs)]


class WebSource(RequestModel):
    """The `web` source with its own filters.

    :param tbs: time filter, as in `SearchRequest`.
    :param location: geo-targeting, as in `SearchRequest`.
    """

    type: Literal["web"] = "web"
    tbs: _Tbs | None = None
    location: Text | None = None

    def _own_warnings(self) -> list[str]:
        return _tbs_warnings(self.tbs)


class OtherSource(RequestModel):
    """The `images`, `news`, or `alexandria` source in object form, without filters."""

    type: Literal["images", "news", "alexandria"]


SourceName = Literal["web", "images", "news", "alexandria"]
Source = Annotated[SourceName | WebSource | OtherSource, one_of("a source")]

CategoryName = Literal["codehost", "research", "pdf", "developer", "gov", "github"]
"""`codehost`, `research`, and `pdf` are documented everywhere; hosted servers also accept `developer` and `gov`.
`github` is the name of `codehost` on self-hosted servers, and accepted there only."""


class CategoryFilter(RequestModel):
    """A category in object form."""

    type: CategoryName


Category = Annotated[CategoryName | CategoryFilter, one_of("a category")]


class SearchScrapeOptions(ScrapeOptions):
    """Options for scraping search results: `ScrapeOptions` with an additional switch.

    :param zero_data_retention: retain no data of the pages, for teams with this feature; excludes screenshots and
        `only_clean_content`. Default: false.
    """

    zero_data_retention: Switch | None = None

    def _check(self) -> None:
        if self.zero_data_retention:
            check_zero_data_retention(self)

    def _own_notes(self, server: Server) -> list[str]:
        return super()._own_notes(server) if self.formats else []

    def _own_warnings(self) -> list[str]:
        found = super()._own_warnings()
        if not self.formats:
            found.append("scrapeOptions: without formats, results are not scraped; add formats=['markdown']")
        if "changeTracking" in format_types(self.formats):
            found.append(
                "formats: according to the service's guides, a search does not support changeTracking"
            )
        return found


class SearchRequest(RequestModel):
    """Body of `POST /v2/search`; only `query` is required.

    :param query: the search query, at most 500 characters; `airflow_provider_webdata.api.query` builds queries with
        operators.
    :param limit: maximum number of results per source, 1 to 100. Default: 10.
    :param sources: `web`, `images`, `news`, `alexandria` (tools of data providers, which are free), or mappings with
        `type` (and `tbs`, `location` for web). Names and mappings cannot be mixed. Default: web.
    :param categories: `codehost`, `research`, `pdf`, `gov`, `developer` (cannot be combined), or mappings with `type`.
        Names and mappings cannot be mixed. A self-hosted server gets `codehost` as `github`, its name there. Default:
        no filter.
    :param include_domains: only these host names, without protocol or path; excludes `exclude_domains`.
    :param exclude_domains: host names to exclude.
    :param tbs: time filter, such as `qdr:d`; `airflow_provider_webdata.api.query.tbs` builds one from dates.
    :param location: location to search from, such as `Berlin,Germany`; best combined with `country`.
    :param country: two-letter ISO code, sent in upper case. Default: US.
    :param safe: filter explicit content. Default: no filter.
    :param timeout: the service's time limit for the search in milliseconds, at least 1. Default: 60,000.
    :param ignore_invalid_urls: omit URLs that other operations of the service do not support. Default: false.
    :param highlights: return highlights for the query as descriptions. Default: true.
    :param enterprise: `anon` or `zdr`, kinds of zero data retention, for teams with this feature.
    :param domain_tools: also return data providers' tools for the sites of the results. Default: false.
    :param tool_detail: level of detail for each tool: `compact`, `summary`, or `full`, which includes its contract.
    :param scrape_options: options for scraping the results; `formats` enables it. Unless `max_age` is set, pages may be
        up to 2 days old, from the service's cache.
    :param threat_protection: threat protection override, for teams with this feature.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    nullable = frozenset({"integration"})
    parts = {"scrapeOptions": SearchScrapeOptions}  # noqa: RUF012

    query: Annotated[Query, Field(max_length=MAX_QUERY_LENGTH)]
    limit: Annotated[Integer, Field(ge=1, le=100)] | None = None
    sources: Listed[Source] | None = None
    categories: Listed[Category] | None = None
    include_domains: DomainFilter | None = None
    exclude_domains: DomainFilter | None = None
    tbs: _Tbs | None = None
    location: Text | None = None
    country: CountryCode | None = None
    safe: Switch | None = None
    timeout: Annotated[Integer, Field(ge=1)] | None = None
    ignore_invalid_urls: Switch | None = Field(None, alias="ignoreInvalidURLs")
    highlights: Switch | None = None
    enterprise: Listed[Literal["anon", "zdr"]] | None = None
    domain_tools: Switch | None = None
    tool_detail: Literal["compact", "summary", "full"] | None = None
    scrape_options: SearchScrapeOptions | None = None
    threat_protection: ThreatProtection | None = None
    integration: Integration | None = None
    origin: Text | None = None

    @field_validator("sources", "categories")
    @classmethod
    def _one_form(cls, value: list[Any] | None) -> list[Any] | None:
        if len({isinstance(item, str) for item in value or ()}) > 1:
            raise problem(
                "mixed_forms", "must be either all text or all objects; the service does not accept a mixture"
            )
        return value

    @field_validator("categories")
    @classmethod
    def _developer_stands_alone(cls, value: list[Any] | None) -> list[Any] | None:
        kinds = {item if isinstance(item, str) else item.type for item in value or ()}
        if "developer" in kinds and len(kinds) > 1:
            raise problem("categories", "the category 'developer' cannot be combined with others")
        return value

    def _check(self) -> None:
        if self.enterprise and self.scrape_options is not None and self.scrape_options.only_clean_content:
            raise problem(
                "onlyCleanContent",
                "scrapeOptions.onlyCleanContent is not supported with zero data retention, which "
                "'enterprise' enables; remove one of them",
            )

    def sent_to(self, server: Server) -> dict[str, Any]:
        """Return the wire form with the server's names of categories."""
        wire = self.to_wire()
        if self.categories and server.categories:
            names = [server.categories.get(name, name) for name in self._category_names()]
            kept = dict.fromkeys(names)
            is_text = isinstance(self.categories[0], str)
            wire["categories"] = [*kept] if is_text else [{"type": name} for name in kept]
        return wire

    def _own_refusals(self, server: Server) -> list[str]:
        others = {
            name: ours for ours, name in SELF_HOSTED.categories.items() if ours not in server.categories
        }
        return [
            f"categories[{number}]: must be {others[name]!r} (given: {name!r}). {ONLY_SELF_HOSTED}"
            for number, name in enumerate(self._category_names())
            if name in others
        ]

    def _own_warnings(self) -> list[str]:
        return _tbs_warnings(self.tbs)

    def _category_names(self) -> list[str]:
        return [item if isinstance(item, str) else item.type for item in self.categories or ()]


class WebResult(PageContent):
    """A result of the `web` source; `category`, an open set of values, is present if categories were requested."""

    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    url: OrNone[str] = None
    position: Lenient[int | None] = None
    category: Lenient[str | None] = None


class NewsResult(PageContent):
    """A result of the `news` source."""

    title: Lenient[str | None] = None
    snippet: Lenient[str | None] = None
    url: OrNone[str] = None
    date: Lenient[str | None] = None
    image_url: Lenient[str | None] = None
    position: Lenient[int | None] = None
    category: Lenient[str | None] = None


class ImageResult(ResponseModel):
    """A result of the `images` source; width and height in pixels."""

    title: Lenient[str | None] = None
    image_url: Lenient[str | None] = None
    image_width: Lenient[int | None] = None
    image_height: Lenient[int | None] = None
    url: OrNone[str] = None
    position: Lenient[int | None] = None


class SearchData(ResponseModel):
    """Results by source; the arrays depend on `sources`.

    `tools` has capabilities of data providers. According to a service announcement, results of the category `research`
    move to `research`.
    """

    web: Entries[WebResult] | None = None
    images: Entries[ImageResult] | None = None
    news: Entries[NewsResult] | None = None
    research: Lenient[Entries[dict[str, Any]] | None] = None
    tools: Lenient[Entries[DataTool] | None] = None


class SearchResponse(Answer):
    """Response of `POST /v2/search`; `credits_used` includes the scraping of the results."""

    data: SearchData

    @field_validator("data", mode="before")
    @classmethod
    def _list_of_results(cls, data: Any) -> Any:
        """Some servers list the results without their source."""
        return {"web": data} if isinstance(data, list) else data

    warning: Remark = None
    id: OrNone[str] = None
    credits_used: OrNone[int | float] = None
