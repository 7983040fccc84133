"""Uploaded files, turned into text. See docs/service.md#parse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.api.multipart import Upload
from airflow_provider_webdata.hooks.calls import Body, Call
from airflow_provider_webdata.hooks.operations.base import AsyncOperations, Operations

if TYPE_CHECKING:
    from airflow_provider_webdata.api.multipart import FileSource


def _parse(
    file: FileSource,
    filename: str,
    size: int | None,
    options: models.ParseOptions | Body | None,
    extra_body: Body | None,
) -> Call[models.ScrapeResponse]:
    from airflow_provider_webdata.api.models.parse import FILE_EXTENSIONS, MAX_FILE_BYTES, has_known_extension

    endpoint = endpoints.PARSE
    upload = Upload(endpoint.name, file, filename, size, max_bytes=MAX_FILE_BYTES)
    if not has_known_extension(upload.name):
        known = ", ".join(FILE_EXTENSIONS)
        raise InvalidRequestError(
            endpoint.name, [f"filename: must end with one of {known} (given: {upload.name!r})"]
        )
    return Call.of(endpoint, options, extra_body=extra_body, upload=upload)


class FileOperations(Operations):
    """Uploaded files, blocking."""

    def parse(
        self,
        file: FileSource,
        filename: str,
        size: int | None = None,
        options: models.ParseOptions | Body | None = None,
        *,
        extra_body: Body | None = None,
    ) -> models.ScrapeResponse:
        """Upload a file and return its content in the formats asked for. Bills credits; never repeated after a
        lost answer. See docs/service.md#parse.

        The file is sent as it is read, a block at a time, and left open.

        :param file: open binary file, or an iterable of bytes; of at most 50 MB. One that can neither seek nor
            start anew goes out once, even where the service asks to come again.
        :param filename: its name; directories are left out. The ending tells the service what it is.
        :param size: bytes, where the caller knows; else it is asked of the file.
        :param options: docs/service.md#parse, field `options`; all are optional.
        :param extra_body: merged into the options unchecked.
        :raises UploadError: the file ended early, grew while it was read, or is too large.
        :raises ProcessingContinuesError: a large document needs longer; the same call later gives the result,
            paid for once. See docs/service.md#large-documents.
        """
        return self._execute(_parse(file, filename, size, options, extra_body))


class AsyncFileOperations(AsyncOperations):
    """Uploaded files, without blocking; see `FileOperations`."""

    async def parse(
        self,
        file: FileSource,
        filename: str,
        size: int | None = None,
        options: models.ParseOptions | Body | None = None,
        *,
        extra_body: Body | None = None,
    ) -> models.ScrapeResponse:
        """See `FileOperations.parse`; the file is read in a thread, and asynchronous iterables will do too."""
        return await self._execute(_parse(file, filename, size, options, extra_body))
