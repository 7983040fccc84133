"""Turning an uploaded file into text."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import Answer, Lenient, RequestModel, ResponseModel
from airflow_provider_webdata.api.models.fields import (
    Headers,
    Integer,
    Listed,
    Switch,
    Text,
    one_of,
    switch_or,
)
from airflow_provider_webdata.api.models.formats import JsonFormat
from airflow_provider_webdata.api.models.scrape import AuditMetadata, Parser, PIIOptions

MAX_FILE_BYTES = 50 * 2**20
"""Most bytes of a file in a form. The documented 50 MB, read as MiB: what lies between is the service's to judge."""

FILE_EXTENSIONS = (
    *(".html", ".htm", ".xhtml", ".pdf", ".docx", ".doc", ".docm", ".odt", ".ods", ".odp", ".rtf"),
    *(".xlsx", ".xls", ".xlsm", ".xlsb", ".pptx", ".ppt", ".pptm", ".epub", ".csv"),
)
"""What a file's name may end with; the service reads its type from that."""


def has_known_extension(filename: str) -> bool:
    """Return whether the service parses files of this name, upper or lower case.

    :param filename: the file's name, with or without directories.
    """
    return PurePosixPath(filename).suffix.lower() in FILE_EXTENSIONS


ParsePlainFormatName = Literal["markdown", "summary", "html", "rawHtml", "links", "images"]
"""Formats of a parsed file that take no options."""

ParseFormatName = Literal[ParsePlainFormatName, "json"]


class ParsePlainFormat(RequestModel):
    """A format without options, in object form."""

    type: ParsePlainFormatName


ParseFormat = Annotated[ParseFormatName | ParsePlainFormat | JsonFormat, one_of("a format of a parsed file")]
"""A format as text or as an object; a list may mix both."""


class ParseOptions(RequestModel):
    """The part `options` of `POST /v2/parse`; all fields are optional.

    Those scrape options that need a page on the web are no fields here: the service refuses them with
    `PARSE_UNSUPPORTED_OPTIONS`.

    :param formats: `markdown`, `summary`, `html`, `rawHtml`, `links`, `images`, `json`, as names or mappings with
        `type`. Default: `markdown`.
    :param only_main_content: drop headers, navigation, footers. Default: true.
    :param include_tags: HTML tags (or CSS selectors) to keep.
    :param exclude_tags: HTML tags (or CSS selectors) to drop.
    :param headers: sent with further requests that the file leads to; their values are hidden in logs and rendered
        templates.
    :param timeout: milliseconds that the service may take, 1 to 300,000. Default: 30,000, or none.
    :param parsers: how the file is read, `pdf` and `image`, as names or mappings with `type`; an empty list returns
        PDFs unparsed. Default: `pdf`.
    :param skip_tls_verification: take further pages with a certificate that is not valid. Default: true.
    :param remove_base64_images: replace images that stand in the text itself. Default: true.
    :param block_ads: load no advertising. Default: true.
    :param redact_pii: true, or a mapping with `mode`, `entities`, `replaceStyle`. Default: false.
    :param proxy: `basic` or `auto`.
    :param zero_data_retention: keep nothing, for teams that have it. Default: false.
    :param audit_metadata: whom to name in the audit log: `username`.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: another such label.
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
    integration: Text | None = None


class ParseReferenceRequest(ParseOptions):
    """Body of `POST /v2/parse` for a file that was uploaded before: the options, and which file.

    :param upload_ref: `upload_ref` of the upload; as good as a key for the file. It serves for one call.
    """

    upload_ref: Text = Field(repr=False)


class ParseUploadRequest(RequestModel):
    """Body of `POST /v2/parse/upload-url`; only `filename` is required.

    :param filename: name of the file, 1 to 512 characters; its ending says what it is.
    :param content_type: media type, 1 to 255 characters.
    :param declared_size_bytes: bytes, at least 1. More than the service takes is refused.
    """

    filename: Annotated[Text, Field(min_length=1, max_length=512)]
    content_type: Annotated[Text, Field(min_length=1, max_length=255)] | None = None
    declared_size_bytes: Annotated[Integer, Field(ge=1)] | None = None


class ParseUpload(ResponseModel):
    """Where the service wants a file, and by what it knows it then. Serves for 10 minutes and one parse.

    :ivar upload_url: signed, as good as a key for the file.
    :ivar method: `PUT`, the file as body; or `POST`, a form with `form_fields` and, last, the file.
    :ivar form_fields: on the wire `fields`.
    :ivar expires_at: ISO 8601.
    """

    upload_url: str = Field(repr=False)
    upload_ref: str = Field(repr=False)
    method: Lenient[str | None] = None
    headers: Lenient[dict[str, str] | None] = Field(None, repr=False)
    form_fields: Lenient[dict[str, str] | None] = Field(None, alias="fields", repr=False)
    expires_at: Lenient[str | None] = None
    max_size_bytes: Lenient[int | None] = None


class ParseUploadResponse(Answer):
    """Answer of `POST /v2/parse/upload-url`."""

    data: ParseUpload


class FileFormat(ResponseModel):
    """A kind of file that can be parsed.

    :ivar kind: `document`, `image`, ...; the set is open.
    :ivar extensions: such as `.pdf`.
    :ivar available: whether it is for this team.
    """

    format: str | None = None
    kind: Lenient[str | None] = None
    extensions: Lenient[list[str] | None] = None
    mime_types: Lenient[list[str] | None] = None
    available: Lenient[bool | None] = None


class FileFormats(ResponseModel):
    """The part `data` of the kinds of files."""

    formats: list[FileFormat]


class FileFormatsResponse(Answer):
    """Answer of `GET /v2/parse/formats`."""

    data: FileFormats
