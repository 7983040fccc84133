# SPDX-License-Identifier: Apache-2.0
"""The operator for web searches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_webdata.base.operator import RequestFields, WebDataOperator
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.options import one_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.options import Changes, Quality


class WebDataSearchOperator(
    WebDataOperator,
    fields=RequestFields(
        "SearchRequest",
        own=("returns",),
        options=("save_to", "media_to", "changes", "result_schema", "quality", "credit_limit"),
    ),
):
    """Search the web and, with `scrape_options`, scrape the results. Bills credits.

    All arguments up to `threat_protection` are templated fields of POST /v2/search. Omitted arguments are not sent; the
    defaults below are the service's. Nested mappings accept wire and Python names. For `tbs`, `{{
    macros.webdata.tbs(dag_run) }}` returns the run's data interval, or the day of a run without one.

    XCom: a mapping with the wire names `id`, `creditsUsed`, `warning`, and the returned arrays (`web`, `images`,
    `news`). With `returns`, the return value is only that list, so that `process.expand(item=search.output)` can map
    over the results. In both cases, the keys `id`, `credits_used`, and `warning` contain these values.

    With `save_to`, the results are written to that file, and the return value is a mapping with `path`, `count`,
    `bytes`, `counts` (by source), `id`, `credits_used`, and `warning`. With `returns`, the file contains that list,
    unchanged; otherwise the results of all sources, each starting with the key `source`.

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
    :param returns: `web`, `images`, `news`, `tools`, or `research`: return only this list. `sources` must contain its
        source; for `tools`, this is `alexandria`, or set `domain_tools`; for `research`, `web`.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    _run_path = "airflow_provider_webdata.runs.searches.search:SearchRun"
    _batch_alternative: ClassVar[Mapping[str, str]] = {
        "query": "WebDataBatchSearchOperator(queries=[...], save_to=...)"
    }

    def __init__(
        self,
        *,
        # fields of SearchRequest, written by tools/operator_fields.py
        query: str,
        limit: int | str | None = None,
        sources: Sequence[str | Mapping[str, Any]] | None = None,
        categories: Sequence[str | Mapping[str, Any]] | None = None,
        include_domains: Sequence[str] | None = None,
        exclude_domains: Sequence[str] | None = None,
        tbs: str | None = None,
        location: str | None = None,
        country: str | None = None,
        safe: bool | str | None = None,
        timeout: int | str | None = None,
        ignore_invalid_urls: bool | str | None = None,
        highlights: bool | str | None = None,
        enterprise: Sequence[str] | None = None,
        domain_tools: bool | str | None = None,
        tool_detail: str | None = None,
        scrape_options: Mapping[str, Any] | None = None,
        threat_protection: Mapping[str, Any] | None = None,
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
        returns: Literal["web", "images", "news", "tools", "research"] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of SearchRequest, written by tools/operator_fields.py
        self.query = query
        self.limit = limit
        self.sources = sources
        self.categories = categories
        self.include_domains = include_domains
        self.exclude_domains = exclude_domains
        self.tbs = tbs
        self.location = location
        self.country = country
        self.safe = safe
        self.timeout = timeout
        self.ignore_invalid_urls = ignore_invalid_urls
        self.highlights = highlights
        self.enterprise = enterprise
        self.domain_tools = domain_tools
        self.tool_detail = tool_detail
        self.scrape_options = scrape_options
        self.threat_protection = threat_protection
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
        self.returns = returns
        self._check_arguments()

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        one_of("returns", self.returns, (None, "web", "images", "news", "tools", "research"))
        if self.returns is not None and self.save_to is None and self.multiple_outputs:
            raise ArgumentError(
                f"multiple_outputs requires a mapping, but returns={self.returns!r} returns a list; remove one of them"
            )

    def _contradictions(self, fields: Mapping[str, Any]) -> Sequence[str]:
        """Return contradictions between literal arguments."""
        sources = fields.get("sources") or ["web"]
        # `domain_tools` returns tools as well, and `extra_body` may name further sources.
        is_open = not is_literal(sources) or self.extra_body or fields.get("domain_tools") is not None
        source = {"tools": "alexandria", "research": "web"}.get(self.returns or "", self.returns)
        if source is None or is_open:
            return ()
        if source in {item if isinstance(item, str) else item.get("type") for item in sources}:
            return ()
        return [
            f"returns={self.returns!r} requires the source {source!r}: add it to sources (given: {sources!r})"
        ]
