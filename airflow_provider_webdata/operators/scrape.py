# SPDX-License-Identifier: Apache-2.0
"""The operator that scrapes one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_webdata.base.operator import RequestFields, WebDataOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.options import Changes, Quality


class WebDataScrapeOperator(
    WebDataOperator,
    fields=RequestFields(
        "ScrapeRequest",
        options=("save_to", "media_to", "changes", "result_schema", "quality", "credit_limit"),
    ),
):
    """Scrape one page. Bills credits.

    All arguments up to `tool_detail` are templated fields of POST /v2/scrape. Omitted arguments are not sent; the
    defaults below are the service's. Nested mappings accept wire and Python names.

    A page whose site responds with 4xx or 5xx is a result too, and billed; check `metadata.statusCode`. If a large PDF
    takes longer than `timeout`, the task is rescheduled automatically, for up to 20 minutes.

    XCom: the document with wire names (`markdown`, `metadata`, ...). The keys `scrape_id`, `credits_used`,
    `status_code`, and `warning` contain these values, also with `save_to`.

    :param url: the page.
    :param formats: formats to return, as names or mappings with `type`. `changeTracking` also requires `markdown`; at
        most one screenshot. Default: `markdown`.
    :param only_main_content: remove headers, navigation, and footers. Default: true.
    :param only_clean_content: also remove remaining boilerplate with a language model. Default: false.
    :param include_tags: HTML tags (or CSS selectors) to keep.
    :param exclude_tags: HTML tags (or CSS selectors) to remove.
    :param max_age: maximum age of a page from the service's cache, in milliseconds, at least 0; 0 always fetches the
        page. Default: 2 days, or 2 years with `lockdown`.
    :param min_age: minimum age in milliseconds, at least 0; if set, only the cache is used. 1 accepts a page of any
        age.
    :param headers: headers of the page request; their values are hidden in logs and rendered templates.
    :param wait_for: milliseconds to wait before extracting the content, 0 to 60,000. Default: 0.
    :param mobile: emulate a mobile device. Default: false.
    :param skip_tls_verification: accept invalid certificates. Default: true.
    :param timeout: the service's time limit in milliseconds, 1000 to 300,000, or to 2,147,483,647 on a self-hosted
        server. Default: 60,000.
    :param parsers: `pdf` and `image` parsers, as names or mappings with `type`; an empty list returns PDFs unparsed.
        Default: `pdf`.
    :param actions: mappings with `type`, at most 50, performed on the page before extracting its content.
    :param location: location to fetch the page from: `country`, `languages`.
    :param remove_base64_images: replace inline base64 images. Default: true.
    :param block_ads: block advertisements. Default: true.
    :param proxy: kind of proxy: `basic`, `enhanced` (also called `stealth`), or `auto`. Default: `auto`.
    :param store_in_cache: store the page in the service's cache. Default: true.
    :param lockdown: use only the cache, for 5 credits per hit and 1 per miss. Default: false.
    :param redact_pii: redact personal data: true, or a mapping with `mode`, `entities`, `replaceStyle`. Default: false.
    :param profile: browser state to use: `name`, `saveChanges`.
    :param threat_protection: threat protection override, for teams with this feature.
    :param audit_metadata: user to record in the audit log: `username`.
    :param fast_mode: a switch that is not publicly documented.
    :param check_prompt_injection: check for prompt injections, for 4 more credits; a detected one is an error (403).
    :param safe_mode: apply the organization's safe mode; an excluded page is an error (403). Not publicly documented.
    :param zero_data_retention: retain no data, for teams with this feature; excludes screenshots and
        `only_clean_content`. Default: false.
    :param domain_tools: also return data providers' tools for the page's site, in `tools`. Default: false.
    :param tool_detail: level of detail for each tool: `compact`, `summary`, or `full`, which includes its contract.
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
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    _run_path = "airflow_provider_webdata.runs.pages.document:ScrapeRun"
    _batch_alternative: ClassVar[Mapping[str, str]] = {"url": "WebDataBatchScrapeOperator(urls=[...])"}

    def __init__(
        self,
        *,
        # fields of ScrapeRequest, written by tools/operator_fields.py
        url: str,
        formats: Sequence[str | Mapping[str, Any]] | None = None,
        only_main_content: bool | str | None = None,
        only_clean_content: bool | str | None = None,
        include_tags: Sequence[str] | None = None,
        exclude_tags: Sequence[str] | None = None,
        max_age: int | str | None = None,
        min_age: int | str | None = None,
        headers: Mapping[str, str] | None = None,
        wait_for: int | str | None = None,
        mobile: bool | str | None = None,
        skip_tls_verification: bool | str | None = None,
        timeout: int | str | None = None,
        parsers: Sequence[str | Mapping[str, Any]] | None = None,
        actions: Sequence[Mapping[str, Any]] | None = None,
        location: Mapping[str, Any] | None = None,
        remove_base64_images: bool | str | None = None,
        block_ads: bool | str | None = None,
        proxy: str | None = None,
        store_in_cache: bool | str | None = None,
        lockdown: bool | str | None = None,
        redact_pii: bool | str | Mapping[str, Any] | None = None,
        profile: Mapping[str, Any] | None = None,
        threat_protection: Mapping[str, Any] | None = None,
        audit_metadata: Mapping[str, Any] | None = None,
        fast_mode: bool | str | None = None,
        check_prompt_injection: bool | str | None = None,
        safe_mode: bool | str | None = None,
        zero_data_retention: bool | str | None = None,
        domain_tools: bool | str | None = None,
        tool_detail: str | None = None,
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
        # fields of ScrapeRequest, written by tools/operator_fields.py
        self.url = url
        self.formats = formats
        self.only_main_content = only_main_content
        self.only_clean_content = only_clean_content
        self.include_tags = include_tags
        self.exclude_tags = exclude_tags
        self.max_age = max_age
        self.min_age = min_age
        self.headers = headers
        self.wait_for = wait_for
        self.mobile = mobile
        self.skip_tls_verification = skip_tls_verification
        self.timeout = timeout
        self.parsers = parsers
        self.actions = actions
        self.location = location
        self.remove_base64_images = remove_base64_images
        self.block_ads = block_ads
        self.proxy = proxy
        self.store_in_cache = store_in_cache
        self.lockdown = lockdown
        self.redact_pii = redact_pii
        self.profile = profile
        self.threat_protection = threat_protection
        self.audit_metadata = audit_metadata
        self.fast_mode = fast_mode
        self.check_prompt_injection = check_prompt_injection
        self.safe_mode = safe_mode
        self.zero_data_retention = zero_data_retention
        self.domain_tools = domain_tools
        self.tool_detail = tool_detail
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
