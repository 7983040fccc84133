# SPDX-License-Identifier: Apache-2.0
"""Parsing of uploaded files."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import (
    Answer,
    Entries,
    Lenient,
    OrNone,
    RequestModel,
    ResponseModel,
)
from airflow_provider_webdata.api.models.fields import (
    Headers,
    Integer,
    Integration,
    Listed,
    Switch,
    Text,
    one_of,
    switch_or,
)
from airflow_provider_webdata.api.models.formats import JsonFormat
from airflow_provider_webdata.api.models.scrape import AuditMetadata, Parser, PIIOptions

MAX_FILE_BYTES = 50 * 2**20
"""Maximum bytes of a file in a form. The documented 50 MB may mean MB or MiB, so the service decides in between."""

FILE_EXTENSIONS = (
    *(".html", ".htm", ".xhtml", ".pdf", ".docx", ".doc", ".docm", ".odt", ".ods", ".odp", ".rtf"),
    *(".xlsx", ".xls", ".xlsm", ".xlsb", ".pptx", ".ppt", ".pptm", ".epub", ".csv"),
)
"""Supported file name extensions, from which the service determines the type of a file."""


def has_known_extension(filename: str) -> bool:
    """Return whether the service supports a file's extension, in upper or lower case.

    :param filename: name of the file, with or without directories.
    """
    return PurePosixPath(filename).suffix.lower() in FILE_EXTENSIONS


ParsePlainFormatName = Literal["markdown", "summary", "html", "rawHtml", "links", "images"]
"""Formats of a parsed file without options."""

ParseFormatName = Literal[ParsePlainFormatName, "json"]


class ParsePlainFormat(RequestModel):
    """A format without options, in object form."""

    type: ParsePlainFormatName


ParseFormat = Annotated[ParseFormatName | ParsePlainFormat | JsonFormat, one_of("a format of a parsed file")]
"""A format as text or as an object; a list may mix both."""


class ParseOptions(RequestModel):
    """The part `options` of `POST /v2/parse`; all fields are optional.

    Scrape options that require a page on the web are not fields: the service rejects them with
    `PARSE_UNSUPPORTED_OPTIONS`.

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
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    nullable = frozenset({"integration"})

    formats: Listed[ParseFormat] | None = None
    only_main_content: Switch | None = None
    include_tags: Listed[Text] | None = None
    exclude_tags: Listed[Text] | None = None
    headers: Headers | None = Field(None, repr=False)
    timeout: Annotated[Integer, Field(ge=1, le=300_000)] | None = None
    parsers: Listed[Parser] | None = None
    skip_tls_verification: Switch | None = None
    remove_base64_images: Switch | None = None
    block_ads: Switch | None = None
    redact_pii: Annotated[bool | PIIOptions, switch_or(PIIOptions)] | None = Field(None, alias="redactPII")
    proxy: Literal["basic", "auto"] | None = None
    zero_data_retention: Switch | None = None
    audit_metadata: AuditMetadata | None = None
    origin: Text | None = None
    integration: Integration | None = None


class ParseReferenceRequest(ParseOptions):
    """Body of `POST /v2/parse` for an uploaded file: the options, and a reference to the file.

    :param upload_ref: `upload_ref` of the upload; a secret that gives access to the file. Valid for one call.
    """

    upload_ref: Text = Field(repr=False)


class ParseUploadRequest(RequestModel):
    """Body of `POST /v2/parse/upload-url`; only `filename` is required.

    :param filename: name of the file, 1 to 512 characters; its extension determines its type.
    :param content_type: media type, 1 to 255 characters.
    :param declared_size_bytes: size in bytes, at least 1. The service rejects a size above its limit.
    """

    filename: Annotated[Text, Field(min_length=1, max_length=512)]
    content_type: Annotated[Text, Field(min_length=1, max_length=255)] | None = None
    declared_size_bytes: Annotated[Integer, Field(ge=1)] | None = None


class ParseUpload(ResponseModel):
    """The upload target of a file, and the reference for parsing it. Valid for 10 minutes and one parse.

    :ivar upload_url: signed URL; a secret that gives access to the file.
    :ivar method: `PUT` with the file as body, or `POST` with a form that contains `form_fields` and then the file.
    :ivar form_fields: on the wire `fields`.
    :ivar expires_at: ISO 8601.
    """

    upload_url: str = Field(repr=False)
    upload_ref: str = Field(repr=False)
    method: str | None = None
    headers: dict[str, str] | None = Field(None, repr=False)
    form_fields: dict[str, str] | None = Field(None, alias="fields", repr=False)
    expires_at: OrNone[str] = None
    max_size_bytes: OrNone[int] = None


class ParseUploadResponse(Answer):
    """Response of `POST /v2/parse/upload-url`."""

    data: ParseUpload


class FileFormat(ResponseModel):
    """A supported file format.

    :ivar kind: `document`, `image`, ...; the set is open.
    :ivar extensions: such as `.pdf`.
    :ivar available: whether the team can use the format.
    """

    format: OrNone[str] = None
    kind: Lenient[str | None] = None
    extensions: Lenient[list[str] | None] = None
    mime_types: Lenient[list[str] | None] = None
    available: Lenient[bool | None] = None


class FileFormats(ResponseModel):
    """The field `data` of `FileFormatsResponse`."""

    formats: Entries[FileFormat]


class FileFormatsResponse(Answer):
    """Response of `GET /v2/parse/formats`."""

    data: FileFormats
