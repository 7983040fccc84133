"""Uploaded files, turned into text. See docs/service.md#parse."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.api.multipart import Upload
from airflow_provider_webdata.hooks.calls import Body, Call, checked_body
from airflow_provider_webdata.hooks.operations.base import Operations

if TYPE_CHECKING:
    from airflow_provider_webdata.api.multipart import FileSource

    Way = Literal["auto", "form", "reference"]


class _Parse:
    """A file to be parsed, and the way that it takes.

    :raises InvalidRequestError: the file or the options cannot be sent.
    """

    def __init__(
        self,
        file: FileSource,
        filename: str,
        size: int | None,
        options: models.ParseOptions | Body | None,
        extra_body: Body | None,
        upload: Way,
    ) -> None:
        from airflow_provider_webdata.api.models.parse import (
            FILE_EXTENSIONS,
            MAX_FILE_BYTES,
            has_known_extension,
        )

        operation = endpoints.PARSE.label
        if upload not in ("auto", "form", "reference"):
            raise InvalidRequestError(
                operation, [f"upload: must be auto, form or reference (given: {upload!r})"]
            )
        any_size = Upload(operation, file, filename, size, max_bytes=sys.maxsize)
        if not has_known_extension(any_size.name):
            known = ", ".join(FILE_EXTENSIONS)
            raise InvalidRequestError(
                operation, [f"filename: must end with one of {known} (given: {any_size.name!r})"]
            )
        self._options = None if options is None else checked_body(endpoints.PARSE, options)
        self._extra_body = extra_body
        is_large = (any_size.size or 0) > MAX_FILE_BYTES
        self.by_reference = upload == "reference" or (upload == "auto" and is_large)
        if self.by_reference and any_size.size is None:
            raise InvalidRequestError(operation, ["size: must be given for a file that cannot tell its own"])
        self.upload = (
            any_size
            if self.by_reference
            else Upload(operation, file, filename, size, max_bytes=MAX_FILE_BYTES)
        )

    def form(self) -> Call[models.ScrapeResponse]:
        """Return the call that sends the file along."""
        return Call.of(endpoints.PARSE, self._options, extra_body=self._extra_body, upload=self.upload)

    def destination(self) -> Call[models.ParseUploadResponse]:
        """Return the call that asks where the file is to go."""
        asked = {"filename": self.upload.name, "declared_size_bytes": self.upload.size}
        return Call.of(endpoints.PARSE_UPLOAD, asked)

    def reference(self, target: models.ParseUpload) -> Call[models.ScrapeResponse]:
        """Return the call that parses the file that was sent there."""
        options: dict[str, Any] = {} if self._options is None else self._options.to_wire()
        body = {**options, "uploadRef": target.upload_ref}
        return Call.of(endpoints.PARSE_BY_REFERENCE, body, extra_body=self._extra_body)


class FileOperations(Operations):
    """Uploaded files."""

    async def parse(
        self,
        file: FileSource,
        filename: str,
        size: int | None = None,
        options: models.ParseOptions | Body | None = None,
        *,
        extra_body: Body | None = None,
        upload: Way = "auto",
    ) -> models.ScrapeResponse:
        """Upload a file and return its content in the requested formats.

        Bills credits; never repeated after a lost answer. See docs/service.md#parse.

        The file is streamed a block at a time, and left open.

        :param file: open binary file, or an iterable of bytes. One that can neither seek nor restart is sent once, even
            if the service requests a retry. The asynchronous hook reads it in a thread, and accepts an asynchronous
            iterable too.
        :param filename: its name; directories are omitted. The service derives the file type from the extension.
        :param size: bytes, where the caller knows; else it is asked of the file.
        :param options: docs/service.md#parse, field `options`; all are optional.
        :param extra_body: merged into the options unchecked.
        :param upload: `form` sends the file with the call, at most 50 MB; `reference` to a storage that the service
            names, without the key, and has it parsed there; `auto`: `reference` for what is too large for a form.
        :raises UploadError: the file ended early, grew while it was read, is too large, or the storage refused it.
        :raises ProcessingContinuesError: a large document needs longer; the same call later returns the result, billed
            once. See docs/service.md#large-documents.
        """
        parse = _Parse(file, filename, size, options, extra_body, upload)
        if not parse.by_reference:
            return await self._execute(parse.form())
        target = (await self._execute(parse.destination())).data
        await self._send_file(target, parse.upload)
        return await self._execute(parse.reference(target))

    async def parse_formats(self) -> list[models.FileFormat]:
        """Return the kinds of files that the service parses. Costs nothing. See docs/service.md#parse-kinds.

        :raises NotFoundError: the service does not tell them yet.
        """
        return (await self._execute(Call(endpoints.PARSE_FORMATS))).data.formats
