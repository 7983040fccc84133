# SPDX-License-Identifier: Apache-2.0
"""Long jobs: crawl, batch scrape, agent. See sandbox/docs/service.md#batch-scrape, #crawl, #agent."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.errors import (
    BadRequestError,
    ConflictError,
    InvalidResponseError,
    NotFoundError,
    UnfinishedJobError,
    WebDataError,
)
from airflow_provider_webdata.api.exchange import path_and_query
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.item_urls import url_of
from airflow_provider_webdata.common.job_kinds import checked_kind
from airflow_provider_webdata.hooks.calls import Body, Call, repeated_page
from airflow_provider_webdata.hooks.operations.base import Operations
from airflow_provider_webdata.hooks.signatures import with_fields
from airflow_provider_webdata.states.jobs import TERMINAL_JOB_STATES, name_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from typing_extensions import Unpack

    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.hooks.fields import (
        AgentFields,
        BatchScrapeFields,
        CrawlFields,
        CrawlParamsFields,
    )

    # Each job kind has its own class, all with `status`, `success`, and `error`.
    JobState = models.JobStatus | models.AgentStatus


class DocumentPart(msgspec.Struct, frozen=True):
    """One part of a job's documents.

    :param documents: the documents, verbatim and with wire names, in order of completion.
    :param next_cursor: path and query of the next part, valid until the results expire; None: this is the last part.
    :param status: the job's state.
    :param completed: pages scraped, in all parts.
    :param total: pages attempted.
    :param credits_used: credits that the job has used; may lag behind.
    :param skipped: entries of this part that are no documents, such as null.
    """

    documents: list[dict[str, Any]]
    next_cursor: str | None
    status: str
    completed: int | None = None
    total: int | None = None
    credits_used: int | float | None = None
    skipped: int = 0


class JobOperations(Operations):
    """Long jobs."""

    @with_fields
    async def start_crawl(
        self,
        request: models.CrawlRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[CrawlFields],
    ) -> models.JobStarted:
        """Start a crawl. Bills credits; never retried after a lost response. See sandbox/docs/service.md#crawl.

        :param request: the fields as a mapping or a model, in place of keyword arguments. Only `url` is required;
            always set `limit`.
        :param extra_body: merged into the body unchecked.
        :param idempotency_key: a UUID of the caller's choice. Another call with the same key starts no crawl.
        :raises IdempotencyKeyUsedError: the service accepted an earlier call with this key. The response does not
            identify its crawl; look for it in `active_crawls` and `iter_activity`.
        """
        return await self._execute(
            Call.of(
                endpoints.START_CRAWL, request, fields, extra_body=extra_body, idempotency_key=idempotency_key
            )
        )

    @with_fields
    async def start_batch_scrape(
        self,
        request: models.BatchScrapeRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[BatchScrapeFields],
    ) -> models.JobStarted:
        """Start a batch scrape. Bills credits; never retried after a lost response.

        See sandbox/docs/service.md#batch-scrape.

        :param request: the fields as a mapping or a model, in place of keyword arguments. Only `urls` is required;
            always set `ignore_invalid_urls`.
        :param extra_body: merged into the body unchecked.
        """
        return await self._execute(
            Call.of(endpoints.START_BATCH_SCRAPE, request, fields, extra_body=extra_body)
        )

    @with_fields
    async def start_agent(
        self,
        request: models.AgentRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[AgentFields],
    ) -> models.JobStarted:
        """Start an agent run. Bills credits; never retried after a lost response. See sandbox/docs/service.md#agent.

        :param request: the fields as a mapping or a model, in place of keyword arguments. Only `prompt` is required.
        :param extra_body: merged into the body unchecked.
        """
        return await self._execute(Call.of(endpoints.START_AGENT, request, fields, extra_body=extra_body))

    async def job_status(
        self, kind: JobKind, job_id: str, *, limit: int | None = None, skip: int | None = None
    ) -> models.JobStatus | models.AgentStatus:
        """Return the state of a job. Rely on its `status`, not on `success`.

        :param kind: `crawl`, `batch_scrape`, or `agent`.
        :param job_id: the job's UUID.
        :param limit: maximum number of documents to return, 1 to 1000. Service default: 100. Ignored for agent.
        :param skip: number of documents to skip. Ignored for agent.
        :raises NotFoundError: the job does not exist, belongs to another team, or expired 24 hours after its end.
        """
        calls = endpoints.JOBS[checked_kind(kind)]
        # Only crawls and batch scrapes return their results in parts.
        query = {"limit": limit, "skip": skip} if calls.documents is not None else None
        state: JobState = await self._execute(Call(calls.status, path={"job_id": job_id}, query=query))
        return state

    async def cancel_job(self, kind: JobKind, job_id: str) -> bool:
        """Cancel a job. Return False if it had already ended.

        Completed results remain readable and billed. An agent stops at its next step.

        :param kind: `crawl`, `batch_scrape`, or `agent`.
        :param job_id: the job's UUID.
        :raises NotFoundError: the job does not exist, or belongs to another team.
        """
        calls = endpoints.JOBS[checked_kind(kind)]
        try:
            await self._execute(Call(calls.cancel, path={"job_id": job_id}))
        except ConflictError:
            return False
        except (BadRequestError, NotFoundError):
            # So some servers refuse to cancel a job that has ended, but also one that they do not know.
            with suppress(WebDataError):
                query = {"limit": 1} if calls.documents is not None else None
                call = Call(calls.status, path={"job_id": job_id}, query=query)
                state: JobState = await self._execute(call)
                if state.status in TERMINAL_JOB_STATES:
                    return False
            raise
        return True

    async def job_errors(self, kind: JobKind, job_id: str) -> models.JobErrors:
        """Return the failed pages of a job, and the URLs that robots.txt disallows.

        See sandbox/docs/service.md#errors-of-a-job.

        :param kind: `crawl` or `batch_scrape`.
        :param job_id: the job's UUID.
        :raises ArgumentError: jobs of this kind have no pages.
        """
        endpoint = endpoints.JOBS[checked_kind(kind)].errors
        if endpoint is None:
            raise ArgumentError(
                f"an {name_of(kind)} has no list of failed pages; read the error from its job_status()"
            )
        return await self._execute(Call(endpoint, path={"job_id": job_id}))

    async def iter_job_documents(
        self, kind: JobKind, job_id: str, *, start: str | None = None
    ) -> AsyncIterator[DocumentPart]:
        """Yield the documents of a job that completed, failed, or was canceled.

        A part has about 100 documents or 10 MB; the last one may be empty. Parts are fetched on demand, and only one is
        in memory. Reading can stop at any part and continue from its `next_cursor` in another process. `next` links are
        followed on the connection's own origin, even if they point to another host.

        :param kind: `crawl` or `batch_scrape`.
        :param job_id: the job's UUID.
        :param start: a `next_cursor` of this job. None: start at the beginning.
        :raises ArgumentError: jobs of this kind have no documents, or the cursor belongs to another job.
        :raises UnfinishedJobError: the job is still running.
        :raises InvalidResponseError: the `next` links form a loop, or lead to another resource. Reading can continue
            later from the last part's `next_cursor`.
        :raises UnsupportedError: the server returns the same documents again, because it does not receive `skip`.
        """
        endpoint = endpoints.JOBS[checked_kind(kind)].documents
        if endpoint is None:
            raise ArgumentError(
                f"an {name_of(kind)} has no documents; its result is one object: read it from job_status()"
            )
        seen: set[str] = set()

        def checked(link: str) -> str:
            cursor = path_and_query(endpoint, link)
            if job_id not in cursor.partition("?")[0].split("/"):
                raise InvalidResponseError(
                    endpoint.label, "the next link points to another resource", status=200
                )
            if cursor in seen:
                raise InvalidResponseError(endpoint.label, "the next links form a loop", status=200)
            seen.add(cursor)
            return cursor

        try:
            cursor = None if start is None else checked(start)
        except InvalidResponseError as error:
            raise ArgumentError(
                f"start must be a next_cursor of {name_of(kind)} {job_id}: {error.reason}"
            ) from None
        before: list[str | None] = []
        while True:
            answer = (
                await self._execute(Call(endpoint, path={"job_id": job_id}))
                if cursor is None
                else await self._follow(endpoint, cursor)
            )
            if answer.status not in TERMINAL_JOB_STATES and answer.completed_at is None:
                raise UnfinishedJobError(endpoint.label, job_id, answer.status)
            documents = answer.data or []
            named = [url_of(document) for document in documents]
            following = None
            # Some servers keep `next` after the end: see sandbox/docs/service.md#parts-end.
            if (documents or answer.skipped) and answer.next:
                is_same_link = path_and_query(endpoint, answer.next) == cursor
                if is_same_link and named == before:
                    if answer.completed is not None and answer.completed <= len(documents):
                        # A canceled job keeps `next`, and a gateway leads it to the first part, which is the whole.
                        return
                    raise repeated_page(endpoint, "documents")
                following = None if is_same_link else checked(answer.next)
            yield DocumentPart(
                documents,
                following,
                answer.status,
                answer.completed,
                answer.total,
                answer.credits_used,
                answer.skipped,
            )
            if following is None:
                return
            cursor, before = following, named
            # Release this part before fetching the next one.
            answer.data = None
            del documents

    async def active_crawls(self) -> models.ActiveCrawls:
        """Return the team's running crawls. Their options may contain headers of page requests."""
        return await self._execute(Call(endpoints.ACTIVE_CRAWLS))

    @with_fields
    async def crawl_params(
        self,
        request: models.CrawlParamsRequest | Body | None = None,
        **fields: Unpack[CrawlParamsFields],
    ) -> models.CrawlParamsResponse:
        """Return the crawl options that the service derives from a prompt, without starting a crawl.

        See sandbox/docs/service.md#crawl-preview.

        :param request: the fields as a mapping or a model, in place of keyword arguments. `url` and `prompt` are
            required.
        """
        return await self._execute(Call.of(endpoints.CRAWL_PARAMS_PREVIEW, request, fields))
