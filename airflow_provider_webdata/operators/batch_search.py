# SPDX-License-Identifier: Apache-2.0
"""The operator for batches of web searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.base.operator import RequestFields, WebDataOperator
from airflow_provider_webdata.common.arguments import as_list, number, whole_number
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.literals import is_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_webdata.options import Changes, Quality


class WebDataBatchSearchOperator(
    WebDataOperator,
    fields=RequestFields(
        "SearchRequest",
        without=("query",),
        own=("queries", "save_to", "documents", "max_concurrency", "max_error_ratio", "repeat_ambiguous"),
        options=("media_to", "changes", "result_schema", "quality", "credit_limit"),
    ),
):
    """Send a batch of searches, thousands if necessary, in one task. Bills credits.

    All requests are validated before the first is sent. Up to `max_concurrency` searches run concurrently; after a 429,
    no search starts until the requested wait has passed. If it is longer than the connection's retry budget, the task
    is rescheduled, which releases the worker slot, and continues later.

    Each response is stored beside the output as it arrives, and later attempts reuse it until the output is complete. A
    failed task also continues after it is cleared; a successful one starts again. A worker crash loses only responses
    of the searches in flight.

    A failed search does not stop the others. The next attempt repeats searches that the service reported as failed. A
    search whose response was lost may have been billed: it is reported as `ambiguous` and repeated only with
    `repeat_ambiguous`. An invalid API key or exhausted credits stop all searches.

    With `credit_limit`, the task sends no search that may exceed it: it stops, succeeds, and returns the remaining
    searches in `left`. The price of a search is known only afterwards, so its maximum documented price is reserved
    while it is in flight. If a search has no documented price bound, the task fails before the first search.

    Duplicate requests are sent once. The arguments from `limit` to `threat_protection` are templated fields of a search
    and apply to each search that does not override them.

    XCom, each also with a separate key: `done` (number of successful searches), `failed` (mappings with `query`,
    `error`, `ambiguous`), `left` (the items of `queries` that were not sent, which another task accepts as `queries`),
    `not_begun` (their number), `credits_used`, `path`, `count`, and `bytes` (without a key). In the output, each result
    has `query` and `source`, in the order of `queries`.

    :param queries: a list of texts, or of mappings with `query` and any fields of a search, which override those of the
        task; or JSON text of such a list (templated). If it is empty, so is the result.
    :param save_to: path or URL of the file for the results, in any storage that Airflow knows (templated). Required.
        `*` in its name becomes a name of the task instance, so that each run and each mapped instance has its own file.
        Its suffix is the format, such as `.jsonl.gz` or `.parquet`; `docs/results.md` lists them. The file is written
        completely or not at all, and a retry replaces it.
    :param documents: flat rows for retrieval instead of the items: `id` (the same for a page in all runs), `url`,
        `title`, `text`, `metadata`, and `digest`. For pages, search results, and links. Default: false.
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
    :param max_concurrency: maximum number of concurrent searches, at least 1. Default: 10. The connection's
        `max_concurrency` applies too.
    :param max_error_ratio: maximum fraction of the searches, 0 to 1, that may fail (templated). Default: 0. If more
        fail, the attempt fails, and a retry repeats only the failed searches. If no retry is left, the task publishes
        the results and fails.
    :param repeat_ambiguous: whether later attempts repeat searches that may have been billed. Default: false.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    _run_path = "airflow_provider_webdata.runs.searches.batch_search:BatchSearchRun"
    template_fields: Sequence[str] = (
        *WebDataOperator.template_fields,
        "queries",
        "save_to",
        "max_error_ratio",
    )

    def __init__(
        self,
        *,
        queries: Sequence[str | Mapping[str, Any]] | str,
        save_to: str | None = None,
        # fields of SearchRequest, written by tools/operator_fields.py
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
        media_to: str | None = None,
        max_media_mb: float = 500,
        changes: Changes | str | None = None,
        result_schema: Mapping[str, Any] | type | str | None = None,
        on_invalid_result: Literal["keep", "fail"] = "keep",
        quality: Quality | int | None = None,
        credit_limit: float | str | None = None,
        # end of fields
        documents: bool = False,
        max_concurrency: int = 10,
        max_error_ratio: float | str = 0.0,
        repeat_ambiguous: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.queries = queries
        self.save_to = save_to
        # fields of SearchRequest, written by tools/operator_fields.py
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
        self.media_to = media_to
        self.max_media_mb = max_media_mb
        self.changes = changes
        self.result_schema = result_schema
        self.on_invalid_result = on_invalid_result
        self.quality = quality
        self.credit_limit = credit_limit
        # end of fields
        self.documents = documents
        self.max_concurrency = max_concurrency
        self.max_error_ratio = max_error_ratio
        self.repeat_ambiguous = repeat_ambiguous
        self._check_arguments()

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        if self.save_to is None:
            raise ArgumentError(
                f"{type(self).__name__} {self.task_id!r}: save_to is required, because each response is stored beside "
                "it. For a few queries without a file, use WebDataSearchOperator.partial(...).expand(query=[...])"
            )
        whole_number("max_concurrency", self.max_concurrency)
        if isinstance(self.queries, str) and is_literal(self.queries):
            as_list("queries", self.queries)
        if self.queries is None or str(self.queries).strip() in {"", "None", "null"}:
            raise ArgumentError(
                f"queries has no value (given: {self.queries!r}). Pass a list, which may be empty"
            )
        if is_literal(self.max_error_ratio):
            number("max_error_ratio", self.max_error_ratio, 1)

    def _has_other_fields(self) -> bool:
        """Return whether a request may have fields that are no arguments: a query may have its own."""
        is_plain = is_literal(self.queries) and not isinstance(self.queries, str)
        return (
            super()._has_other_fields()
            or not is_plain
            or any(isinstance(one, Mapping) for one in self.queries)
        )
