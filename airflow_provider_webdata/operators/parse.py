# SPDX-License-Identifier: Apache-2.0
"""The operator that turns a file into text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.base.operator import RequestFields, WebDataOperator
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.options import one_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.options import Quality


class WebDataParseOperator(
    WebDataOperator,
    fields=RequestFields(
        "ParseOptions",
        own=("file", "filename", "upload"),
        options=("save_to", "media_to", "result_schema", "quality", "credit_limit"),
    ),
):
    """Upload a file and return its content as Markdown or another format. Bills credits.

    The file is streamed in blocks. Its extension and size are checked before a request is sent. A file that is too
    large for a form (50 MB) is uploaded to a storage URL from the service and parsed by reference, if the service
    supports this. A missing file fails the attempt; the task's retries apply, because the file may arrive later.

    The arguments from `formats` to `audit_metadata` are templated fields of POST /v2/parse. Omitted arguments are not
    sent; the defaults below are the service's. If a large PDF takes longer than `timeout`, the task is rescheduled
    automatically, for up to 20 minutes.

    XCom: the document with wire names (`markdown`, `metadata`, ...). The keys `scrape_id`, `credits_used`,
    `status_code`, and `warning` contain these values, also with `save_to`.

    :param file: path on the worker, or any URL that Airflow's object storage supports, such as
        `s3://conn_id@bucket/report.pdf` (templated).
    :param filename: file name to send, whose extension defines the file type. Default: the last part of `file`
        (templated).
    :param upload: how to send the file: `auto` (default; by its size), `form` (in the request), or `reference` (to a
        storage URL from the service, for example if a proxy does not accept large bodies).
    :param formats: `markdown`, `summary`, `html`, `rawHtml`, `links`, `images`, `json`, as names or mappings with
        `type`. Default: `markdown`.
    :param only_main_content: remove headers, navigation, and footers. Default: true.
    :param include_tags: HTML tags (or CSS selectors) to keep.
    :param exclude_tags: HTML tags (or CSS selectors) to remove.
    :param headers: headers of requests for resources that the file refers to; their values are hidden in logs and
        rendered templates.
    :param timeout: the service's time limit in milliseconds, 1 to 300,000. Default: 30,000, or none.
    :param parsers: `pdf` and `image` parsers, as names or mappings with `type`; an empty list returns PDFs unparsed.
        Default: `pdf`.
    :param skip_tls_verification: accept invalid certificates for resources that the file refers to. Default: true.
    :param remove_base64_images: replace inline base64 images. Default: true.
    :param block_ads: block advertisements. Default: true.
    :param redact_pii: redact personal data: true, or a mapping with `mode`, `entities`, `replaceStyle`. Default: false.
    :param proxy: kind of proxy: `basic` or `auto`.
    :param zero_data_retention: retain no data, for teams with this feature. Default: false.
    :param audit_metadata: user to record in the audit log: `username`.
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

    _run_path = "airflow_provider_webdata.runs.pages.document:ParseRun"
    template_fields: Sequence[str] = (*WebDataOperator.template_fields, "file", "filename")

    def __init__(
        self,
        *,
        file: str,
        filename: str | None = None,
        upload: Literal["auto", "form", "reference"] = "auto",
        # fields of ParseOptions, written by tools/operator_fields.py
        formats: Sequence[str | Mapping[str, Any]] | None = None,
        only_main_content: bool | str | None = None,
        include_tags: Sequence[str] | None = None,
        exclude_tags: Sequence[str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: int | str | None = None,
        parsers: Sequence[str | Mapping[str, Any]] | None = None,
        skip_tls_verification: bool | str | None = None,
        remove_base64_images: bool | str | None = None,
        block_ads: bool | str | None = None,
        redact_pii: bool | str | Mapping[str, Any] | None = None,
        proxy: str | None = None,
        zero_data_retention: bool | str | None = None,
        audit_metadata: Mapping[str, Any] | None = None,
        save_to: str | None = None,
        documents: bool = False,
        media_to: str | None = None,
        max_media_mb: float = 500,
        result_schema: Mapping[str, Any] | type | str | None = None,
        on_invalid_result: Literal["keep", "fail"] = "keep",
        quality: Quality | int | None = None,
        credit_limit: float | str | None = None,
        # end of fields
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.file = file
        self.filename = filename
        self.upload = upload
        # fields of ParseOptions, written by tools/operator_fields.py
        self.formats = formats
        self.only_main_content = only_main_content
        self.include_tags = include_tags
        self.exclude_tags = exclude_tags
        self.headers = headers
        self.timeout = timeout
        self.parsers = parsers
        self.skip_tls_verification = skip_tls_verification
        self.remove_base64_images = remove_base64_images
        self.block_ads = block_ads
        self.redact_pii = redact_pii
        self.proxy = proxy
        self.zero_data_retention = zero_data_retention
        self.audit_metadata = audit_metadata
        self.save_to = save_to
        self.documents = documents
        self.media_to = media_to
        self.max_media_mb = max_media_mb
        self.result_schema = result_schema
        self.on_invalid_result = on_invalid_result
        self.quality = quality
        self.credit_limit = credit_limit
        # end of fields
        self._check_arguments()

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        one_of("upload", self.upload, ("auto", "form", "reference"))
        if isinstance(self.file, str) and is_literal(self.file):
            from airflow_provider_webdata.results.files.paths import path_problem

            if problem := path_problem(self.file):
                raise ArgumentError(f"file: {problem} (given: {self.file!r})")
