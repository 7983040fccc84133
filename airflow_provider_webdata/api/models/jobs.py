"""Long jobs: how the service answers a start, a poll, a cancel and a list of failures."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from airflow_provider_webdata.api.models.base import Answer, Lenient, ResponseModel
from airflow_provider_webdata.api.models.document import Document


class JobStarted(Answer):
    """Answer of the calls that start a job: crawl, batch scrape, extract, agent.

    :ivar id: the job's UUID.
    :ivar url: address of the job's status; its host may be wrong.
    :ivar invalid_urls: URLs that were dropped; on the wire `invalidURLs`. Absent where the request did not ask
        for it.
    :ivar prompt_generated_options: crawl options that the service made of the prompt.
    :ivar final_crawler_options: those and the given ones together.
    """

    id: str
    url: str | None = None
    invalid_urls: list[Any] | None = Field(None, alias="invalidURLs")
    prompt_generated_options: dict[str, Any] | None = None
    final_crawler_options: dict[str, Any] | None = None
    warning: str | None = None


class JobProgress(Answer):
    """State of a crawl or batch scrape.

    :ivar status: `scraping`, `completed` (even if pages failed), `failed` or `cancelled`.
    :ivar total: pages attempted; falls when one fails, so `completed == total` says nothing about failures.
    :ivar completed: pages scraped.
    :ivar credits_used: lags behind; -1 when unknown.
    :ivar completed_at: there once the job has ended.
    :ivar expires_at: until when the results can be read.
    :ivar duration: seconds.
    :ivar next: address of the next part of the results; its host may be wrong. Worth following once the job
        has ended.
    :ivar error: why the job failed as a whole.
    """

    status: str
    total: int | None = None
    completed: int | None = None
    credits_used: int | float | None = None
    created_at: str | None = None
    completed_at: str | None = None
    expires_at: str | None = None
    duration: int | float | None = None
    next: str | None = None
    warning: str | None = None
    error: Lenient[str | None] = None


class JobStatus(JobProgress):
    """Answer of `GET /v2/crawl/{id}` and `GET /v2/batch/scrape/{id}`.

    :ivar data: pages in order of completion: match them by `metadata.source_url`. Those that failed are not
        among them; those whose site answered 4xx or 5xx are.
    """

    data: list[Document] | None = None


class JobDocuments(JobProgress):
    """The same answer with its documents as plain JSON objects, for reading a job's results part by part."""

    data: list[dict[str, Any]] | None = Field(None, repr=False)


class JobError(ResponseModel):
    """A page that failed. `code` is of an open set, such as `EXTERNAL_LINK`."""

    id: str | None = None
    timestamp: str | None = None
    url: str | None = None
    error: Lenient[str | None] = None
    code: str | None = None


class JobErrors(ResponseModel):
    """Answer of `GET /v2/crawl/{id}/errors` and of the batch scrape's.

    :ivar errors: pages that failed.
    :ivar robots_blocked: URLs that robots.txt refuses.
    """

    errors: list[JobError] | None = None
    robots_blocked: list[str] | None = None


class CancelResponse(Answer):
    """Answer of a cancel: crawl and batch scrape give `status`, agent gives `success`."""

    status: str | None = None
