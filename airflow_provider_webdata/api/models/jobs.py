# SPDX-License-Identifier: Apache-2.0
"""Responses about long-running jobs: start, status, cancel, and errors."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, Field

from airflow_provider_webdata.api.models.base import Answer, Entries, Lenient, OrNone, Remark, ResponseModel
from airflow_provider_webdata.api.models.document import Document
from airflow_provider_webdata.api.servers import CODE_NAMES


class JobStarted(Answer):
    """Response of the calls that start a job: crawl, batch scrape, and agent.

    :ivar id: the job's UUID.
    :ivar url: URL of the job's status; its host may be wrong.
    :ivar invalid_urls: skipped URLs; on the wire `invalidURLs`. Absent unless the request has `ignore_invalid_urls`.
    :ivar prompt_generated_options: crawl options that the service derived from the prompt.
    :ivar final_crawler_options: the derived and the given options combined.
    """

    id: str = Field(min_length=1)
    url: OrNone[str] = None
    invalid_urls: OrNone[list[Any]] = Field(None, alias="invalidURLs")
    prompt_generated_options: OrNone[dict[str, Any]] = None
    final_crawler_options: OrNone[dict[str, Any]] = None
    warning: Remark = None


class JobProgress(Answer):
    """State of a crawl or batch scrape.

    :ivar status: `scraping`, `completed` (even if pages failed), `failed`, or `cancelled`.
    :ivar total: number of attempted pages; decreases when a page fails, so `completed == total` does not mean that
        no pages failed.
    :ivar completed: number of scraped pages.
    :ivar credits_used: updated with a delay; -1 if unknown.
    :ivar completed_at: set after the job has ended.
    :ivar expires_at: expiry of the results.
    :ivar duration: seconds.
    :ivar next: URL of the next part of the results; its host may be wrong. Follow it only after the job has ended.
    :ivar error: reason for the failure of the whole job.
    """

    status: str
    total: OrNone[int] = None
    completed: OrNone[int] = None
    credits_used: OrNone[int | float] = None
    created_at: OrNone[str] = None
    completed_at: OrNone[str] = None
    expires_at: Lenient[str | None] = None
    duration: Lenient[int | float | None] = None
    next: str | None = None
    warning: Remark = None
    error: Lenient[str | None] = None


class JobStatus(JobProgress):
    """Response of `GET /v2/crawl/{id}` and `GET /v2/batch/scrape/{id}`.

    :ivar data: pages in order of completion; match them by `metadata.source_url`. Failed pages are not included; pages
        whose site returned 4xx or 5xx are.
    """

    data: Entries[Document] | None = None


class JobDocuments(JobProgress):
    """The same response with the documents as plain JSON objects, for reading results part by part."""

    data: Entries[dict[str, Any]] | None = Field(None, repr=False)


class JobError(ResponseModel):
    """A failed page. `code` is an open set, such as `EXTERNAL_LINK`."""

    id: OrNone[str] = None
    timestamp: OrNone[str] = None
    url: OrNone[str] = None
    error: Lenient[str | None] = None
    code: OrNone[str] = Field(None, validation_alias=AliasChoices(*CODE_NAMES), serialization_alias="code")


_SKIPPED = frozenset({"EXTERNAL_LINK"})
"""Codes of skipped pages, which the service also lists as errors."""


class JobErrors(Answer):
    """Response of `GET /v2/crawl/{id}/errors` and its equivalent for batch scrapes.

    :ivar errors: failed and skipped pages.
    :ivar robots_blocked: URLs that robots.txt disallows.
    """

    errors: Entries[JobError] | None = None
    robots_blocked: Entries[str] | None = None

    @property
    def failed(self) -> list[JobError]:
        """The failed pages."""
        return [page for page in self.errors or () if page.code not in _SKIPPED]


class CancelResponse(Answer):
    """Response of a cancel: crawl and batch scrape return `status`; agent returns `success`."""

    status: OrNone[str] = None
