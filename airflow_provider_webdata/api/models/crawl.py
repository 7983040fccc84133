"""Crawling a site: how far, and how each page is fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AliasChoices, Field

from airflow_provider_webdata.api.models.base import Answer, RequestModel, ResponseModel
from airflow_provider_webdata.api.models.fields import (
    Integer,
    Listed,
    Number,
    Switch,
    Text,
    WebAddress,
)
from airflow_provider_webdata.api.models.scrape import ScrapeOptions, check_zero_data_retention
from airflow_provider_webdata.api.models.webhook import PageJobWebhookConfig
from airflow_provider_webdata.common.path_filters import expression_of, globs, matches_start

if TYPE_CHECKING:
    from collections.abc import Sequence


_LONGEST_DELAY_SECONDS = 60


class CrawlScope(RequestModel):
    """How far a crawl goes, the same for a crawl and for the crawl target of a monitor.

    :param limit: most pages, at least 1; each is billed. The service may lower it to the credits that are left.
        Default: 10,000.
    :param max_discovery_depth: how many links away from the start, at least 0; the start and the sitemap's pages are
        at 0.
    :param include_paths: regular expressions over the path; only matching pages, the start included.
    :param exclude_paths: regular expressions over the path; no matching pages.
    :param regex_on_full_url: match the whole URL instead. Default: false.
    :param sitemap: `skip`, `include` or `only`. Default: `include`.
    :param ignore_query_parameters: take one page for each path. Default: false.
    :param deduplicate_similar_urls: take one of URLs that lead to the same page. Default: true.
    :param crawl_entire_domain: also pages beside and above the start. Default: false.
    :param allow_external_links: also pages of other sites, one link away. Default: false.
    :param allow_subdomains: also pages of subdomains. Default: false.
    :param ignore_robots_txt: crawl what robots.txt excludes, for teams that have it. Default: false.
    :param robots_user_agent: whose rules of robots.txt hold, for teams that have it.
    :param delay: seconds between two pages, 0 to 60; one page at a time then.
    :param max_concurrency: pages scraped at once, at least 1. Default: the team's limit.
    :param prompt: the options as text, at most 10,000 characters; explicit options win.
    """

    renamed = {  # noqa: RUF012
        "allowBackwardLinks": "crawlEntireDomain",
        "allowBackwardCrawling": "crawlEntireDomain",
        "ignoreSitemap": "sitemap ('skip' for true, 'include' for false)",
        "allowExternalContentLinks": "allowExternalLinks",
        "includes": "includePaths",
        "excludes": "excludePaths",
    }

    limit: Annotated[Integer, Field(ge=1)] | None = None
    max_discovery_depth: Annotated[Integer, Field(ge=0)] | None = None
    include_paths: Listed[Text] | None = None
    exclude_paths: Listed[Text] | None = None
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
            found.append("delay: the service may refuse 0; leave the field out")
        if self.delay is not None and self.delay > _LONGEST_DELAY_SECONDS:
            found.append(
                "delay: more than 60; it is in seconds here, though a preview of crawl options gives milliseconds"
            )
        if self.delay and self.max_concurrency is not None and self.max_concurrency > 1:
            found.append("maxConcurrency: a delay makes the service fetch one page at a time")
        found += unreadable_expressions("includePaths", self.include_paths)
        found += unreadable_expressions("excludePaths", self.exclude_paths)
        return found


def unreadable_expressions(name: str, expressions: Sequence[str] | None) -> list[str]:
    """Return a warning for each text that does not read as a regular expression, or was meant as a glob."""
    return globs(name, expressions or ()) or [
        f"{name}: {text[:80]!r} does not read as a regular expression, which the service may refuse"
        for text in expressions or ()
        if expression_of(text) is None
    ]


class CrawlRequest(CrawlScope):
    """Body of `POST /v2/crawl`; only `url` is required, yet `limit` should always be sent.

    Fields that say how far the crawl goes are those of `CrawlScope`.

    :param url: where the crawl starts.
    :param webhook: where the job reports to: `url`, `events`, `headers`, `metadata`.
    :param scrape_options: how each page is scraped, as the arguments of a scrape; unless its `max_age` says otherwise,
        pages may be up to 2 days old, from the service's cache.
    :param zero_data_retention: keep nothing, for teams that have it. Default: false.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: another such label.
    """

    nullable = frozenset({"integration"})
    parts = {"scrapeOptions": ScrapeOptions}  # noqa: RUF012
    renamed = {**CrawlScope.renamed, "maxDepth": "maxDiscoveryDepth"}  # noqa: RUF012

    url: WebAddress
    webhook: PageJobWebhookConfig | None = None
    scrape_options: ScrapeOptions | None = None
    zero_data_retention: Switch | None = None
    integration: Text | None = None
    origin: Text | None = None

    def _check(self) -> None:
        if self.zero_data_retention and self.scrape_options is not None:
            check_zero_data_retention(self.scrape_options, "scrapeOptions.")

    def _own_notes(self) -> list[str]:
        return [] if self.scrape_options is not None else ScrapeOptions().notes()

    def _own_warnings(self) -> list[str]:
        found = super()._own_warnings()
        if self.limit is None:
            found.append("limit: not given, so the crawl may take 10,000 pages and bill as many credits")
        full_url = bool(self.regex_on_full_url)
        if self.include_paths and matches_start(self.url, self.include_paths, full_url=full_url) is False:
            found.append(
                "includePaths: no expression matches the path of the start URL, which is tested too, so that the "
                "crawl may find nothing"
            )
        if self.exclude_paths and matches_start(self.url, self.exclude_paths, full_url=full_url):
            found.append(
                "excludePaths: an expression matches the start URL, which is tested too: the crawl finds nothing"
            )
        if self.scrape_options is not None and self.scrape_options.lockdown:
            found.append("scrapeOptions.lockdown: documented for single scrapes only")
        return found


class ActiveCrawl(ResponseModel):
    """A crawl that runs. `options` are crawl options with `scrapeOptions` inside, headers included."""

    id: str
    team_id: str | None = None
    url: str | None = None
    options: dict[str, Any] | None = Field(None, repr=False)
    created_at: str | None = Field(
        None, validation_alias=AliasChoices("created_at", "createdAt"), serialization_alias="created_at"
    )


class ActiveCrawls(Answer):
    """Answer of `GET /v2/crawl/active`: crawls that run, of the whole team."""

    crawls: list[ActiveCrawl]


class CrawlParamsRequest(RequestModel):
    """Body of `POST /v2/crawl/params-preview`: previews the options that the service derives from a prompt.

    :param url: where the crawl would start.
    :param prompt: the crawl as text, at most 10,000 characters.
    """

    url: WebAddress
    prompt: Annotated[Text, Field(max_length=10_000)]


class CrawlParams(ResponseModel):
    """Crawl options that the service makes of a prompt; the set is open.

    Not to be sent on unchecked: a crawl takes no `max_depth`, and `delay` is said to be in milliseconds here
    and in seconds there.
    """

    url: str | None = None
    include_paths: list[str] | None = None
    exclude_paths: list[str] | None = None
    max_depth: int | None = None
    max_discovery_depth: int | None = None
    crawl_entire_domain: bool | None = None
    allow_external_links: bool | None = None
    allow_subdomains: bool | None = None
    sitemap: str | None = None
    ignore_query_parameters: bool | None = None
    ignore_robots_txt: bool | None = None
    robots_user_agent: str | None = None
    deduplicate_similar_urls: bool | None = Field(None, alias="deduplicateSimilarURLs")
    delay: int | float | None = None
    limit: int | None = None


class CrawlParamsResponse(Answer):
    """Answer of `POST /v2/crawl/params-preview`."""

    data: CrawlParams
    warning: str | None = None
