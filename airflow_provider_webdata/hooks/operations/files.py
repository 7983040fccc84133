# SPDX-License-Identifier: Apache-2.0
"""Uploaded files, turned into text. See sandbox/docs/service.md#parse."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.api.multipart import Upload
from airflow_provider_webdata.hooks.calls import Body, Call, checked_body, one_of
from airflow_provider_webdata.hooks.operations.base import Operations
from airflow_provider_webdata.hooks.signatures import with_fields

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_provider_webdata.api.multipart import FileSource
    from airflow_provider_webdata.hooks.fields import ParseFields

    Way = Literal["auto", "form", "reference"]


class FileOperations(Operations):
    """Uploaded files."""

    @with_fields
    async def parse(
        self,
        file: FileSource,
        filename: str,
        size: int | None = None,
        options: models.ParseOptions | Body | None = None,
        *,
        extra_body: Body | None = None,
        upload: Way = "auto",
        **fields: Unpack[ParseFields],
    ) -> models.ScrapeResponse:
        """Upload a file and return its content in the requested formats.

        Bills credits; never retried after a lost response. See sandbox/docs/service.md#parse.

        The file is streamed in blocks and left open.

        :param file: open binary file, or an iterable of bytes. A source that can neither seek nor restart is sent once,
            even if the service requests a retry. The asynchronous hook reads it in a thread, and accepts an
            asynchronous iterable too.
        :param filename: name of the file, without directories. The service derives the file type from the extension.
        :param size: size in bytes. Default: the size reported by the file.
        :param options: the fields as a mapping or a model, in place of keyword arguments. See
            sandbox/docs/service.md#parse, field `options`; all are optional.
        :param extra_body: merged into the options unchecked.
        :param upload: `form` sends the file in the request, at most 50 MB. `reference` uploads it, without the API key,
            to a storage URL from the service, which parses it there. `auto` uses `reference` for files that are too
            large for a form.
        :raises UploadError: the file ended early, grew while it was read, is too large, or was refused by the storage.
        :raises ProcessingContinuesError: a large document takes longer. The same call later returns the result, billed
            once. See sandbox/docs/service.md#large-documents.
        """
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
        given = one_of(options, fields or None, operation)
        body = None if given is None else checked_body(endpoints.PARSE, given)
        is_large = (any_size.size or 0) > MAX_FILE_BYTES
        if upload == "form" or (upload == "auto" and not is_large):
            form = Upload(operation, file, filename, size, max_bytes=MAX_FILE_BYTES)
            return await self._execute(Call.of(endpoints.PARSE, body, extra_body=extra_body, upload=form))
        if any_size.size is None:
            raise InvalidRequestError(operation, ["size: is required for a file whose size is unknown"])
        asked = {"filename": any_size.name, "declared_size_bytes": any_size.size}
        options_given = {} if body is None else body.to_wire()

        def parse_of(reference: str) -> Call[models.ScrapeResponse]:
            request = {**options_given, "uploadRef": reference}
            call = Call.of(endpoints.PARSE_BY_REFERENCE, request, extra_body=extra_body)
            # The price depends on the type of the file.
            return replace(call, priced={"filename": any_size.name})

        await self._check(parse_of("unknown"))
        target = (await self._execute(Call.of(endpoints.PARSE_UPLOAD, asked))).data
        await self._send_file(target, any_size)
        return await self._execute(parse_of(target.upload_ref))

    async def parse_formats(self) -> list[models.FileFormat]:
        """Return the file formats that the service parses. Free. See sandbox/docs/service.md#parse-kinds.

        :raises UnsupportedError: the server does not list them yet.
        """
        return (await self._execute(Call(endpoints.PARSE_FORMATS))).data.formats
