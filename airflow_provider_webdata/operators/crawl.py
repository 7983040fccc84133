# SPDX-License-Identifier: Apache-2.0
"""The operator that crawls a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.base.job_operator import WebDataJobOperator
from airflow_provider_webdata.base.operator import RequestFields
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.common.path_filters import literal_filters, matches_start, wrong_filters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.options import Changes, Quality


class WebDataCrawlOperator(
    WebDataJobOperator,
    fields=RequestFields(
        "CrawlRequest",
        defaults={"limit": 100},
        options=("save_to", "media_to", "changes", "result_schema", "quality", "credit_limit"),
    ),
):
    """Crawl a site, and wait for its pages. Bills credits.

    All arguments up to `zero_data_retention` are templated fields of POST /v2/crawl. Omitted arguments are not sent;
    the defaults below are the service's. Nested mappings accept wire and Python names.

    `limit` is always sent, by default as 100: the service's own default is 10,000 pages, and it may refuse a crawl with
    a higher limit than the remaining credits. Your own `webhook` replaces the one of this Airflow's inbox.
    `WebDataJobOperator` documents how the task starts, waits for, and cancels the job, and what it returns.

    :param url: start URL of the crawl.
    :param limit: maximum number of pages, at least 1; each is billed. The service may lower it to the remaining
        credits. Default: 100; that of the service: 10,000.
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
    :param webhook: endpoint that receives the job's events: `url`, `events`, `headers`, `metadata`.
    :param scrape_options: arguments of a scrape, for each page. Unless `max_age` is set, pages may be up to 2 days old,
        from the service's cache.
    :param zero_data_retention: retain no data, for teams with this feature. Default: false.
    :param save_to: path or URL of a file for the results, in any storage that Airflow knows (templated). `*` in its
        name becomes a name of the task instance, so that each run and each mapped instance has its own file. Its suffix
        is the format, such as `.jsonl.gz` or `.parquet`; `docs/results.md` lists them. The file is written completely
        or not at all, and a retry replaces it. XCom then has `path`, `count`, and `bytes` instead of the results.
        Default: XCom.
    :param documents: flat rows for retrieval instead of the items: `id` (the same for a page in all runs), `url`,
        `title`, `text`, `metadata`, and `digest`. For pages, search results, and links. Default: false.
    :param media_to: path or URL of a folder for screenshots, audio, video, and PDFs, whose links expire (templated).
        The links in the results then point to the downloaded files. Default: media is not kept.
    :param max_media_mb: maximum size of such a file in MiB, more than 0; larger ones are not kept. Default: 500.
    :param changes: path or URL of a folder for what earlier runs saw, or `Changes` (templated). Default: no comparison.
    :param result_schema: schema that structured results must match, the `json` of pages or the data of an agent: JSON
        Schema as a mapping, pydantic model, or the model's import path, such as `shop.models.Product`. An invalid
        result gets a first field `validationErrors`, and XCom `validation` counts them; see `docs/results.md`. Default:
        the schema that the request contains, if any.
    :param on_invalid_result: `keep`, or `fail`: fail the task, without a retry, after all results are published.
        Default: `keep`.
    :param quality: conditions that the results must meet before they replace those of earlier runs: minimum number of
        results, or `Quality`. Default: no conditions.
    :param credit_limit: maximum credits for all attempts until the task is cleared (templated). A call of a killed
        attempt counts with its maximum cost. A call whose documented price may exceed the limit or is unbounded is not
        sent, and the task fails with WD-034. Default: no limit.
    :param kwargs: arguments of `WebDataJobOperator`, `WebDataOperator`, and `BaseOperator`.
    """

    _run_path = "airflow_provider_webdata.runs.jobs.job:CrawlRun"
    _job_kind: JobKind = "crawl"

    def __init__(
        self,
        *,
        # fields of CrawlRequest, written by tools/operator_fields.py
        url: str,
        limit: int | str = 100,
        max_discovery_depth: int | str | None = None,
        include_paths: Sequence[str] | None = None,
        exclude_paths: Sequence[str] | None = None,
        regex_on_full_url: bool | str | None = None,
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
        prompt: str | None = None,
        webhook: Mapping[str, Any] | str | None = None,
        scrape_options: Mapping[str, Any] | None = None,
        zero_data_retention: bool | str | None = None,
        save_to: str | None = None,
        documents: bool = False,
        media_to: str | None = None,
        max_media_mb: float = 500,
        changes: Changes | str | None = None,
        result_schema: Mapping[str, Any] | type | str | None = None,
        on_invalid_result: Literal["keep", "fail"] = "keep",
        quality: Quality | int | None = None,
        credit_limit: float | str | None = None,
        # end of fields
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of CrawlRequest, written by tools/operator_fields.py
        self.url = url
        self.limit = limit
        self.max_discovery_depth = max_discovery_depth
        self.include_paths = include_paths
        self.exclude_paths = exclude_paths
        self.regex_on_full_url = regex_on_full_url
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
        self.prompt = prompt
        self.webhook = webhook
        self.scrape_options = scrape_options
        self.zero_data_retention = zero_data_retention
        self.save_to = save_to
        self.documents = documents
        self.media_to = media_to
        self.max_media_mb = max_media_mb
        self.changes = changes
        self.result_schema = result_schema
        self.on_invalid_result = on_invalid_result
        self.quality = quality
        self.credit_limit = credit_limit
        # end of fields
        self._check_arguments()

    def _check_literals(self) -> None:
        """Check the literal fields of the request while the DAG file is parsed."""
        if self.limit is None:
            raise ArgumentError("limit is required: without it, the service crawls up to 10,000 pages")
        super()._check_literals()

    def _contradictions(self, fields: Mapping[str, Any]) -> Sequence[str]:
        """Return contradictions between literal arguments."""
        filters, full_url = literal_filters(fields), fields.get("regex_on_full_url") in (True, "true")
        problems = wrong_filters(filters, full_url=full_url)
        excluded = filters["exclude_paths"]
        if is_literal(self.url) and matches_start(self.url, excluded, full_url=full_url):
            problems.append(
                f"exclude_paths: an expression matches the start URL {self.url!r}, so the crawl would be empty; change "
                "the expression"
            )
        return problems
