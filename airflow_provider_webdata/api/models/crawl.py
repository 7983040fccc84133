# SPDX-License-Identifier: Apache-2.0
"""Crawls: the scope, and the scrape options of each page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from airflow_provider_webdata.api.models.base import (
    Answer,
    Entries,
    OrNone,
    Remark,
    RequestModel,
    ResponseModel,
)
from airflow_provider_webdata.api.models.fields import (
    Integer,
    Integration,
    Listed,
    Number,
    Switch,
    Text,
    WebAddress,
)
from airflow_provider_webdata.api.models.scrape import ScrapeOptions, check_zero_data_retention
from airflow_provider_webdata.api.models.webhook import PageJobWebhookConfig
from airflow_provider_webdata.common.path_filters import expression_of, globs, matches_start, unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_webdata.api.servers import Server


_MAX_DELAY_SECONDS = 60


def _supported(text: str) -> str:
    if found := unsupported([text]):
        raise ValueError(found[0])
    return text


PathFilter = Annotated[Text, AfterValidator(_supported)]
"""A regular expression for a path or URL."""


class CrawlScope(RequestModel):
    """The scope of a crawl, or of a monitor's crawl target.

    :param limit: maximum number of pages, at least 1; each is billed. The service may lower it to the remaining
        credits. Default: 10,000.
    :param max_discovery_depth: maximum number of links from the start, at least 0; the start and the sitemap's pages
        have depth 0.
    :param include_paths: regular expressions for the path; only matching pages are crawled, including the start.
    :param exclude_paths: regular expressions for the path; matching pages are skipped.
    :param regex_on_full_url: match the whole URL instead of the path. Default: false.
    :param sitemap: use of the sitemap: `skip`, `include`, or `only`. Default: `include`.
    :param ignore_query_parameters: crawl only one page per path. Default: false.
    :param deduplicate_similar_urls: crawl only one of several URLs of the same page. Default: true.
    :param crawl_entire_domain: also crawl siblings and parents of the start. Default: false.
    :param allow_external_links: also crawl pages of other sites, one link away. Default: false.
    :param allow_subdomains: also crawl subdomains. Default: false.
    :param ignore_robots_txt: also crawl pages that robots.txt excludes, for teams with this feature. Default: false.
    :param robots_user_agent: user agent whose robots.txt rules apply, for teams with this feature.
    :param delay: seconds between two pages, 0 to 60; pages are then scraped one at a time.
    :param max_concurrency: maximum number of pages scraped concurrently, at least 1. Default: the team's limit.
    :param prompt: the options as text, at most 10,000 characters; explicit options take precedence.
    """

    limit: Annotated[Integer, Field(ge=1)] | None = None
    max_discovery_depth: Annotated[Integer, Field(ge=0)] | None = None
    include_paths: Listed[PathFilter] | None = None
    exclude_paths: Listed[PathFilter] | None = None
    regex_on_full_url: Switch | None = Field(None, alias="regexOnFullURL")
    sitemap: Literal["skip", "include", "only"] | None = None
    ignore_query_parameters: Switch | None = None
    deduplicate_similar_urls: Switch | None = Field(None, alias="deduplicateSimilarURLs")
    crawl_entire_domain: Switch | None = None
    allow_external_links: Switch | None = None
    allow_subdomains: Switch | None = None
    ignore_robots_txt: Switch | None = None
    robots_user_agent: Text | None = None
    delay: Annotated[Number, Field(ge=0)] | None = None
    max_concurrency: Annotated[Integer, Field(ge=1)] | None = None
    prompt: Annotated[Text, Field(max_length=10_000)] | None = None

    def _own_warnings(self) -> list[str]:
        found = []
        if self.delay == 0:
            found.append("delay: the service may reject 0; omit the field")
        if self.delay is not None and self.delay > _MAX_DELAY_SECONDS:
            found.append(
                "delay: more than 60; the unit is seconds here, although a preview of crawl options uses milliseconds"
            )
        if self.delay and self.max_concurrency is not None and self.max_concurrency > 1:
            found.append("maxConcurrency: with a delay, the service fetches one page at a time")
        full_url = bool(self.regex_on_full_url)
        found += unreadable_expressions("includePaths", self.include_paths, full_url=full_url)
        found += unreadable_expressions("excludePaths", self.exclude_paths, full_url=full_url)
        return found


def unreadable_expressions(
    name: str, expressions: Sequence[str] | None, *, full_url: bool = False
) -> list[str]:
    """Return a warning for each glob and each other invalid regular expression.

    :param full_url: see `expression_of_glob`.
    """
    texts = expressions or ()
    invalid = [
        f"{name}: {text[:80]!r} is not a valid regular expression; the service may reject it"
        for text in texts
        if expression_of(text) is None and not globs(name, [text]) and "\\p{" not in text
    ]
    return [*globs(name, texts, full_url=full_url), *invalid]


class CrawlRequest(CrawlScope):
    """Body of `POST /v2/crawl`; only `url` is required, but always set `limit`.

    `CrawlScope` documents the other fields.

    :param url: start URL of the crawl.
    :param webhook: endpoint that receives the job's events: `url`, `events`, `headers`, `metadata`.
    :param scrape_options: arguments of a scrape, for each page. Unless `max_age` is set, pages may be up to 2 days old,
        from the service's cache.
    :param zero_data_retention: retain no data, for teams with this feature. Default: false.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    nullable = frozenset({"integration"})
    parts = {"scrapeOptions": ScrapeOptions}  # noqa: RUF012

    url: WebAddress
    webhook: PageJobWebhookConfig | None = None
    scrape_options: ScrapeOptions | None = None
    zero_data_retention: Switch | None = None
    integration: Integration | None = None
    origin: Text | None = None

    def _check(self) -> None:
        if self.zero_data_retention and self.scrape_options is not None:
            check_zero_data_retention(self.scrape_options, "scrapeOptions.")

    def _own_notes(self, server: Server) -> list[str]:
        return [] if self.scrape_options is not None else ScrapeOptions().notes(server)

    def _own_warnings(self) -> list[str]:
        found = super()._own_warnings()
        if self.limit is None:
            found.append("limit: not set, so the crawl may scrape 10,000 pages and bill as many credits")
        full_url = bool(self.regex_on_full_url)
        if self.include_paths and matches_start(self.url, self.include_paths, full_url=full_url) is False:
            found.append(
                "includePaths: no expression matches the path of the start URL, which is also tested; the "
                "crawl may find no pages"
            )
        if self.exclude_paths and matches_start(self.url, self.exclude_paths, full_url=full_url):
            found.append(
                "excludePaths: an expression matches the start URL, which is also tested; the crawl will find no pages"
            )
        if self.scrape_options is not None and self.scrape_options.lockdown:
            found.append("scrapeOptions.lockdown: documented only for single scrapes")
        return found


class ActiveCrawl(ResponseModel):
    """A running crawl; some servers return only its id. `options` includes `scrapeOptions` and its headers."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return {"id": data} if isinstance(data, str) else data

    id: str
    team_id: OrNone[str] = None
    url: OrNone[str] = None
    options: OrNone[dict[str, Any]] = Field(None, repr=False)
    created_at: OrNone[str] = Field(
        None, validation_alias=AliasChoices("created_at", "createdAt"), serialization_alias="created_at"
    )


class ActiveCrawls(Answer):
    """Response of `GET /v2/crawl/active`: the running crawls of the team. Some servers return them as `data`."""

    crawls: Entries[ActiveCrawl] = Field(
        validation_alias=AliasChoices("crawls", "data"), serialization_alias="crawls"
    )


class CrawlParamsRequest(RequestModel):
    """Body of `POST /v2/crawl/params-preview`, which previews the options that the service derives from a prompt.

    :param url: start URL of the crawl.
    :param prompt: description of the crawl, at most 10,000 characters.
    """

    url: WebAddress
    prompt: Annotated[Text, Field(max_length=10_000)]


class CrawlParams(ResponseModel):
    """Crawl options that the service derives from a prompt; the set is open.

    Check them before you use them in a crawl: it does not accept `max_depth`, and `delay` is documented in milliseconds
    here but in seconds there.
    """

    url: OrNone[str] = None
    include_paths: OrNone[list[str]] = None
    exclude_paths: OrNone[list[str]] = None
    max_depth: OrNone[int] = None
    max_discovery_depth: OrNone[int] = None
    crawl_entire_domain: OrNone[bool] = None
    allow_external_links: OrNone[bool] = None
    allow_subdomains: OrNone[bool] = None
    sitemap: OrNone[str] = None
    ignore_query_parameters: OrNone[bool] = None
    ignore_robots_txt: OrNone[bool] = None
    robots_user_agent: OrNone[str] = None
    deduplicate_similar_urls: OrNone[bool] = Field(None, alias="deduplicateSimilarURLs")
    delay: OrNone[int | float] = None
    limit: OrNone[int] = None


class CrawlParamsResponse(Answer):
    """Response of `POST /v2/crawl/params-preview`."""

    data: CrawlParams
    warning: Remark = None
