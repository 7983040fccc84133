"""The operator that extracts structured data from pages and sites."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from airflow.exceptions import AirflowProviderDeprecationWarning

from airflow_provider_webdata.base.job_operator import WebDataJobOperator
from airflow_provider_webdata.base.operator import RequestFields, checked_limit
from airflow_provider_webdata.common import endings
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.options import Media, Output, Quality, Schema, one_of
from airflow_provider_webdata.runs.jobs.extract_successors import KINDS, Successor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.common.job_kinds import JobKind


class WebDataExtractOperator(
    WebDataJobOperator,
    fields=RequestFields(
        "ExtractRequest",
        own=("via",),
        options=("output", "media", "result_schema", "quality", "credit_limit"),
    ),
):
    """Extract structured data from pages and sites, and wait for it. Bills credits.

    The hosted service shuts `/v2/extract` down on 2026-12-10 at 15:00 UTC; self-hosted servers may keep it. `via`
    selects the operation to use. The service cannot cancel an extract job: if the task is killed or times out, the job
    continues, and the task logs it. A batch scrape or agent run is canceled.

    All arguments up to `webhook` are templated fields of POST /v2/extract. Omitted arguments are not sent; the
    defaults below are the service's. Nested mappings accept wire and Python names. `urls` or `prompt` is required. Your
    own `webhook` replaces the one of this Airflow's inbox. `WebDataJobOperator` documents how the task starts and waits
    for the job.

    XCom: the service's response with wire names: `data`, `tokensUsed`, `sources`, and other fields, and `id`. With
    `output`, a description of the written file replaces `data`. The XCom key `invalidURLs` contains the URLs that the
    service dropped. With `via="scrape"`, `data` merges the pages' data, and `errors` counts the failed pages.

    :param via: operation to use: `extract`, `scrape`, or `agent` (templated). Default: `extract`; on the hosted
        service, after the shutdown, `scrape`, or `agent` for requests that a scrape does not support, with a warning.
        `scrape` is a batch scrape with a `json` format; it requires `urls` without `/*`, and excludes
        `enable_web_search`, `allow_external_links`, and `agent`. `agent` is an agent run with `credit_limit` as its
        `max_credits`.
    :param urls: pages; a URL that ends in `/*` selects the whole site. The service may reject more than 10.
    :param prompt: description of the data to extract, at most 10,000 characters.
    :param schema: JSON Schema of the data to extract.
    :param enable_web_search: also search the web. Default: false.
    :param ignore_sitemap: discover the pages of a site without its sitemap. Default: false.
    :param include_subdomains: include the subdomains of a site. Default: true.
    :param show_sources: add `sources` to the result. Default: false.
    :param ignore_invalid_urls: skip invalid URLs. Default: true.
    :param scrape_options: arguments of a scrape, for the pages.
    :param threat_protection: threat protection override, for teams with this feature.
    :param system_prompt: instructions for the model, at most 10,000 characters. This and the next two fields are not
        publicly documented.
    :param allow_external_links: also follow links to other sites.
    :param agent: agent that navigates the pages: `model`.
    :param webhook: endpoint that receives the job's events: `url`, `events`, `headers`, `metadata`.
    :param output: path or URL of a file for the results, or `Output` (templated). Default: XCom.
    :param media: path or URL of a folder for screenshots and other media, or `Media` (templated). Default: media is not
        kept.
    :param result_schema: JSON Schema as a mapping, pydantic model, the model's import path, or `Schema`. Default: the
        schema that the request contains, if any.
    :param quality: conditions that the results must meet before they replace those of earlier runs: minimum number of
        results, or `Quality`. Default: no conditions.
    :param credit_limit: maximum credits for all attempts until the task is cleared. On Airflow 3.2, for each attempt
        (templated). A call of a killed attempt counts with its maximum cost. A call whose documented price may exceed
        the limit or is unbounded is not sent, and the task fails with WD-034. Default: no limit.
    :param kwargs: arguments of `WebDataJobOperator`, `WebDataOperator`, and `BaseOperator`.
    """

    run = "airflow_provider_webdata.runs.jobs.extract:ExtractRun"
    job_kind: JobKind = "extract"
    # The doctor reads this argument from the serialized DAG, which contains only templated arguments.
    template_fields: Sequence[str] = (*WebDataJobOperator.template_fields, "via")

    def __init__(
        self,
        *,
        via: Successor | None = None,
        # fields of ExtractRequest, written by tools/operator_fields.py
        urls: Sequence[str] | None = None,
        prompt: str | None = None,
        schema: Mapping[str, Any] | type | None = None,
        enable_web_search: bool | str | None = None,
        ignore_sitemap: bool | str | None = None,
        include_subdomains: bool | str | None = None,
        show_sources: bool | str | None = None,
        ignore_invalid_urls: bool | str | None = None,
        scrape_options: Mapping[str, Any] | None = None,
        threat_protection: Mapping[str, Any] | None = None,
        system_prompt: str | None = None,
        allow_external_links: bool | str | None = None,
        agent: Mapping[str, Any] | None = None,
        webhook: Mapping[str, Any] | str | None = None,
        output: Output | str | None = None,
        media: Media | str | None = None,
        result_schema: Schema | Mapping[str, Any] | type | str | None = None,
        quality: Quality | int | None = None,
        credit_limit: float | str | None = None,
        # end of fields
        **kwargs: Any,
    ) -> None:
        if is_literal(via):
            one_of("via", via, (None, *KINDS))
        if via is None:
            kept = "On a self-hosted server with this operation, set via='extract'"
            warnings.warn(
                f"{endings.EXTRACT.warning}. {kept}", AirflowProviderDeprecationWarning, stacklevel=2
            )
        super().__init__(**kwargs)
        self.via = via
        # fields of ExtractRequest, written by tools/operator_fields.py
        self.urls = urls
        self.prompt = prompt
        self.schema = schema
        self.enable_web_search = enable_web_search
        self.ignore_sitemap = ignore_sitemap
        self.include_subdomains = include_subdomains
        self.show_sources = show_sources
        self.ignore_invalid_urls = ignore_invalid_urls
        self.scrape_options = scrape_options
        self.threat_protection = threat_protection
        self.system_prompt = system_prompt
        self.allow_external_links = allow_external_links
        self.agent = agent
        self.webhook = webhook
        self.output_to = Output.of(output)
        self.media = Media.of(media)
        self.result_schema = Schema.of(result_schema)
        self.quality = Quality.of(quality)
        self.credit_limit = checked_limit(credit_limit)
        # end of fields
