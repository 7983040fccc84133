"""The operator that crawls a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.tasks.arguments import checked_text
from airflow_provider_webdata.tasks.jobs.job_operator import WebDataJobOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.api.models import JobStarted
    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.states.jobs import JobKind


class WebDataCrawlOperator(WebDataJobOperator):
    """Crawl a site, and wait for its pages. Bills credits. Supplement 6.

    Every argument up to `integration` is a field of POST /v2/crawl, templated; what is left out is not sent, so that
    the service's own default applies. In mappings inside, wire and Python names both work.

    `limit` is always sent, 100 unless given: the service's own default is 10,000 pages, and a balance below it may
    refuse the crawl. How the job is started once, waited for and cancelled is said in `WebDataJobOperator`, what the
    task returns in `JobResults`.

    :param url: where the crawl starts.
    :param limit: most pages, at least 1; each is billed. The service may lower it to the credits that are left.
    :param prompt: the options below in words, at most 10,000 characters; what is given explicitly wins.
    :param include_paths: regular expressions over the path; only matching pages, the start included.
    :param exclude_paths: regular expressions over the path; no matching pages.
    :param regex_on_full_url: match the whole URL instead; default false.
    :param max_discovery_depth: how many links away from the start, at least 0; the sitemap's pages are at 0.
    :param sitemap: `skip`, `include` (default) or `only`.
    :param ignore_query_parameters: one page for each path; default false.
    :param deduplicate_similar_urls: default true.
    :param crawl_entire_domain: also pages beside and above the start; default false.
    :param allow_external_links: one hop outside; default false.
    :param allow_subdomains: default false.
    :param ignore_robots_txt: for teams that have it; default false.
    :param robots_user_agent: for teams that have it.
    :param delay: seconds between two pages, 0 to 60; one page at a time then.
    :param max_concurrency: pages scraped at once, at least 1; default: the team's limit.
    :param webhook: `url`, `events`, `headers`, `metadata`: to report elsewhere than to this Airflow.
    :param scrape_options: how each page is scraped; reference, scrape options.
    :param zero_data_retention: keep nothing, for teams that have it; default false.
    :param origin: label of the caller, for the service's own statistics.
    :param integration: another such label.
    :param kwargs: arguments of `WebDataJobOperator`, of `JobResults` (`max_error_ratio`), of `ResultOutput`
        (`output`, `save_media`), `WebDataOperator` and `BaseOperator`.
    """

    job_kind: ClassVar[JobKind] = "crawl"
    request_model = "CrawlRequest"
    request_fields: ClassVar[Sequence[str]] = (
        "url",
        "limit",
        "prompt",
        "include_paths",
        "exclude_paths",
        "regex_on_full_url",
        "max_discovery_depth",
        "sitemap",
        "ignore_query_parameters",
        "deduplicate_similar_urls",
        "crawl_entire_domain",
        "allow_external_links",
        "allow_subdomains",
        "ignore_robots_txt",
        "robots_user_agent",
        "delay",
        "max_concurrency",
        "webhook",
        "scrape_options",
        "zero_data_retention",
        "origin",
        "integration",
    )
    template_fields: Sequence[str] = (*WebDataJobOperator.template_fields, *request_fields)
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **WebDataJobOperator.template_fields_renderers,
        **dict.fromkeys(
            (
                "webhook",
                "scrape_options",
            ),
            "json",
        ),
    }

    def __init__(
        self,
        *,
        url: str,
        limit: int | str = 100,
        prompt: str | None = None,
        include_paths: Sequence[str] | None = None,
        exclude_paths: Sequence[str] | None = None,
        regex_on_full_url: bool | str | None = None,
        max_discovery_depth: int | str | None = None,
        sitemap: str | None = None,
        ignore_query_parameters: bool | str | None = None,
        deduplicate_similar_urls: bool | str | None = None,
        crawl_entire_domain: bool | str | None = None,
        allow_external_links: bool | str | None = None,
        allow_subdomains: bool | str | None = None,
        ignore_robots_txt: bool | str | None = None,
        robots_user_agent: str | None = None,
        delay: float | str | None = None,
        max_concurrency: int | str | None = None,
        webhook: Mapping[str, Any] | str | None = None,
        scrape_options: Mapping[str, Any] | None = None,
        zero_data_retention: bool | str | None = None,
        origin: str | None = None,
        integration: str | None = None,
        **kwargs: Any,
    ) -> None:
        if limit is None:
            raise ValueError("limit must be given: without it, the service takes 10,000 pages")
        super().__init__(**kwargs)
        self.url = url
        self.limit = limit
        self.prompt = prompt
        self.include_paths = include_paths
        self.exclude_paths = exclude_paths
        self.regex_on_full_url = regex_on_full_url
        self.max_discovery_depth = max_discovery_depth
        self.sitemap = sitemap
        self.ignore_query_parameters = ignore_query_parameters
        self.deduplicate_similar_urls = deduplicate_similar_urls
        self.crawl_entire_domain = crawl_entire_domain
        self.allow_external_links = allow_external_links
        self.allow_subdomains = allow_subdomains
        self.ignore_robots_txt = ignore_robots_txt
        self.robots_user_agent = robots_user_agent
        self.delay = delay
        self.max_concurrency = max_concurrency
        self.webhook = webhook
        self.scrape_options = scrape_options
        self.zero_data_retention = zero_data_retention
        self.origin = origin
        self.integration = integration

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if checked_text(self.limit) is None:
            self.refuse(
                "limit is empty after rendering: without it, the service takes 10,000 pages; give a number"
            )

    def targets(self) -> list[str]:
        """Return the URLs or texts by which the service would name the job."""
        return [self.url]

    def send(self, request: RequestModel, idempotency_key: str) -> JobStarted:
        """Start the crawl; the service takes an idempotency key once. Supplement 1.1."""
        return self.hook.start_crawl(
            request,  # type: ignore[arg-type]
            extra_body=self.checked_extra_body("start crawl"),
            idempotency_key=idempotency_key,
        )
