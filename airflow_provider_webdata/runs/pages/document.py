# SPDX-License-Identifier: Apache-2.0
"""One document: a scraped page or a parsed file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import InvalidRequestError, error_text
from airflow_provider_webdata.api.models import ParseOptions, ScrapeRequest, ScrapeResponse
from airflow_provider_webdata.api.models.parse import FILE_EXTENSIONS, MAX_FILE_BYTES, has_known_extension
from airflow_provider_webdata.api.prices import by_format, page_extras
from airflow_provider_webdata.common.item_urls import may_be_unserved, site_failed
from airflow_provider_webdata.common.numbers import known_credits
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.paths import warn_if_relative
from airflow_provider_webdata.results.files.storage import check_storage, storage_error
from airflow_provider_webdata.runs.call import BilledCall, CallResult, CallRun
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.runs.pages.cached_pages import CachedPages
from airflow_provider_webdata.runs.publishing.step import Results

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.operators.parse import WebDataParseOperator
    from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator


class DocumentRun(CallRun):
    """A call that returns one document.

    The service may respond before the document is ready. Repeating the request after the time that the service names
    returns the result, and is billed once. The client repeats it within the connection's retry budget. For a longer
    wait the task is rescheduled, without consuming a retry or a worker slot: at most 5 times, and within 20 minutes of
    the first reschedule.
    """

    task: WebDataScrapeOperator | WebDataParseOperator
    answer_model = ScrapeResponse

    def document(self, request: RequestModel, source: str, answer: ScrapeResponse) -> CallResult:
        """Log the document, and return it.

        :param source: the document's URL.
        """
        document = answer.data.to_wire()
        given = document.get("metadata")
        metadata = given if isinstance(given, dict) else {}
        summary = {
            "scrapeId": metadata.get("scrapeId"),
            "creditsUsed": metadata.get("creditsUsed"),
            "statusCode": metadata.get("statusCode"),
            "warning": answer.warning or document.get("warning"),
        }
        self._report(summary, metadata, source)
        if not self._bills() and may_be_unserved(document):
            self.log.warning(
                "A self-hosted server responds like this if the host does not resolve. Check the URL"
            )
        used = known_credits(summary["creditsUsed"])
        formats = by_format(used or 0, 1, page_extras(request.to_wire()))
        return CallResult(
            Results([document], "document", summary, [source], source=source),
            Cost(used, formats),
            lambda documents, _: documents[0] if documents else None,
            pushed=summary,
        )

    def _report(self, summary: dict[str, Any], metadata: dict[str, Any], source: str) -> None:
        if summary["warning"]:
            self.log.warning("The service warns: %s", error_text(summary["warning"]))
        status, error = summary["statusCode"], metadata.get("error")
        if site_failed(metadata):
            self.log.warning(
                "The site responded to %s with status %s%s%s",
                source,
                status,
                f" ({error_text(error)})" if error else "",
                "; the service bills it as a page" if self._bills() else "",
            )
        cached = CachedPages()
        cached.add({"metadata": metadata})
        self.log.info(
            "Document %s of %s%s",
            summary["scrapeId"] or "without id",
            source,
            f", from the service's cache {cached.age()}" if cached.count else "",
        )


class ScrapeRun(DocumentRun):
    """Scrapes one page."""

    task: WebDataScrapeOperator

    operation = "scrape"
    model = ScrapeRequest

    def read(self, request: ScrapeRequest, answer: ScrapeResponse) -> CallResult:
        """Log the page."""
        return self.document(request, request.url, answer)


class ParseRun(DocumentRun):
    """Parses one file."""

    task: WebDataParseOperator

    operation = "parse"

    def billed_call(self) -> BilledCall:
        """Return the upload of the file."""
        options, extra_body = self.request(ParseOptions, filename=self.task.filename or self.task.file)
        path, name, size, checksum = self._checked_file()

        def parse() -> ScrapeResponse:
            self.log.info("Uploading %s, %d bytes", path, size)
            try:
                with path.open("rb") as file:  # type: ignore[no-untyped-call]
                    return self.hook.parse(
                        file, name, size, options, extra_body=extra_body, upload=self.task.upload
                    )
            except OSError as error:
                raise storage_error(path, error, "read") from error

        return BilledCall(
            options,
            extra_body,
            send=parse,
            read=lambda answer: self.document(options, str(path), answer),
            priced={"filename": name},
            inputs={"file": [str(path), name, size, checksum]},
        )

    def _checked_file(self) -> tuple[ObjectStoragePath, str, int, Any]:
        """Return the file's path, the name to send, its size in bytes, and its checksum.

        :raises InvalidRequestError: the service does not accept the file's name or size.
        :raises StorageError: the file does not exist, or cannot be read.
        """
        file, filename = self.task.file, self.task.filename
        if not file:
            raise InvalidRequestError("parse", [f"file: must name a file (given: {file!r})"])
        try:
            path = check_storage(str(file))
        except OutputError as error:
            raise InvalidRequestError("parse", [f"file: {error.text()}"]) from error
        warn_if_relative("file", str(file))
        name = str(filename or path.name)
        problems = []
        size, checksum = 0, None
        if not has_known_extension(name):
            argument = "filename" if filename else "file"
            problems.append(
                f"{argument}: must end with one of {', '.join(FILE_EXTENSIONS)} (given: {name!r})"
            )
        else:
            try:
                is_folder, size = path.is_dir(), path.stat().st_size
                checksum = None if is_folder else path.fs.checksum(path.path)
            except OSError as error:
                raise storage_error(path, error, "read") from error
            if is_folder:
                problems.append(f"file: {path} is a folder")
            elif size > MAX_FILE_BYTES and self.task.upload == "form":
                problems.append(f"file: must have at most {MAX_FILE_BYTES} bytes ({path} has {size})")
            elif size == 0:
                problems.append(f"file: {path} is empty")
        if problems:
            raise InvalidRequestError("parse", problems)
        return path, name, size, checksum
