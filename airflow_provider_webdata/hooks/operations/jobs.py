"""Long jobs: crawl, batch scrape, extract, agent. See docs/service.md#batch-scrape, #crawl, #extract, #agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.errors import ConflictError, InvalidResponseError, UnfinishedJobError
from airflow_provider_webdata.api.exchange import path_and_query
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.job_kinds import checked_kind
from airflow_provider_webdata.hooks.calls import Body, Call
from airflow_provider_webdata.hooks.operations.base import Operations
from airflow_provider_webdata.states.jobs import TERMINAL_JOB_STATES, name_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow_provider_webdata.common.job_kinds import JobKind

    # Each kind of job has its own class, all with `status`, `success` and `error`.
    JobState = models.JobStatus | models.ExtractStatus | models.AgentStatus


class DocumentPart(msgspec.Struct, frozen=True):
    """One part of a job's documents.

    :param documents: with wire names, as the service sent them; in order of completion.
    :param next_cursor: where the next part begins, as path and query; None: this was the last. It leads on from
        here at any later time, until the results expire.
    :param status: the job's state.
    :param completed: pages scraped, of all parts together.
    :param total: pages attempted.
    :param credits_used: what the job has used; lags behind.
    """

    documents: list[dict[str, Any]]
    next_cursor: str | None
    status: str
    completed: int | None = None
    total: int | None = None
    credits_used: int | float | None = None


class JobOperations(Operations):
    """Long jobs."""

    async def start_crawl(
        self,
        request: models.CrawlRequest | Body,
        *,
        extra_body: Body | None = None,
        idempotency_key: str | None = None,
    ) -> models.JobStarted:
        """Start a crawl. Bills credits; never repeated after a lost answer. See docs/service.md#crawl.

        :param request: only `url` is required; always give `limit`.
        :param extra_body: merged into the body unchecked.
        :param idempotency_key: a UUID of the caller's choice. A second call with the same key starts nothing.
        :raises IdempotencyKeyUsedError: an earlier call with this key was taken: look for its crawl among
            `active_crawls` and `iter_activity`, the answer does not say which it is.
        """
        return await self._execute(
            Call.of(endpoints.START_CRAWL, request, extra_body=extra_body, idempotency_key=idempotency_key)
        )

    async def start_batch_scrape(
        self, request: models.BatchScrapeRequest | Body, *, extra_body: Body | None = None
    ) -> models.JobStarted:
        """Start scraping many pages. Bills credits; never repeated after a lost answer.

        See docs/service.md#batch-scrape.

        :param request: only `urls` is required; always give `ignore_invalid_urls`.
        :param extra_body: merged into the body unchecked.
        """
        return await self._execute(Call.of(endpoints.START_BATCH_SCRAPE, request, extra_body=extra_body))

    async def start_extract(
        self, request: models.ExtractRequest | Body, *, extra_body: Body | None = None
    ) -> models.JobStarted:
        """Start an extract job. Bills credits; never repeated after a lost answer. See docs/service.md#extract.

        :param request: `urls`, a `prompt`, or both.
        :param extra_body: merged into the body unchecked.
        """
        return await self._execute(Call.of(endpoints.START_EXTRACT, request, extra_body=extra_body))

    async def start_agent(
        self, request: models.AgentRequest | Body, *, extra_body: Body | None = None
    ) -> models.JobStarted:
        """Start an agent run. Bills credits; never repeated after a lost answer. See docs/service.md#agent.

        :param request: only `prompt` is required.
        :param extra_body: merged into the body unchecked.
        """
        return await self._execute(Call.of(endpoints.START_AGENT, request, extra_body=extra_body))

    async def job_status(
        self, kind: JobKind, job_id: str, *, limit: int | None = None, skip: int | None = None
    ) -> JobState:
        """Return how a job stands; judge it by its `status`, never by `success`.

        :param kind: `crawl`, `batch_scrape`, `extract` or `agent`.
        :param job_id: the job's UUID.
        :param limit: most documents to bring along, 1 to 1000; the service's default is 100. Without meaning to
            extract and agent, as `skip` is.
        :param skip: how many documents to leave out.
        :raises NotFoundError: unknown, of another team, or expired: results are kept for 24 hours.
        """
        calls = endpoints.JOBS[checked_kind(kind)]
        # Only a result that comes in parts can be requested in parts.
        query = {"limit": limit, "skip": skip} if calls.documents is not None else None
        state: JobState = await self._execute(Call(calls.status, path={"job_id": job_id}, query=query))
        return state

    async def cancel_job(self, kind: JobKind, job_id: str) -> bool:
        """Cancel a job, and return whether there was anything to cancel: False when it had ended before.

        What is done by then stays readable and billed; an agent stops at its next step only.

        :param kind: `crawl`, `batch_scrape` or `agent`.
        :param job_id: the job's UUID.
        :raises ArgumentError: an extract job cannot be cancelled.
        """
        endpoint = endpoints.JOBS[checked_kind(kind)].cancel
        if endpoint is None:
            raise ArgumentError(f"the service has no call that cancels an {name_of(kind)}; it ends by itself")
        try:
            await self._execute(Call(endpoint, path={"job_id": job_id}))
        except ConflictError:
            return False
        return True

    async def job_errors(self, kind: JobKind, job_id: str) -> models.JobErrors:
        """Return the pages of a job that failed, and the URLs that robots.txt refuses.

        See docs/service.md#errors-of-a-job.

        :param kind: `crawl` or `batch_scrape`.
        :param job_id: the job's UUID.
        :raises ArgumentError: jobs of this kind have no pages.
        """
        endpoint = endpoints.JOBS[checked_kind(kind)].errors
        if endpoint is None:
            raise ArgumentError(f"an {name_of(kind)} has no list of failed pages; its status has its error")
        return await self._execute(Call(endpoint, path={"job_id": job_id}))

    async def iter_job_documents(
        self, kind: JobKind, job_id: str, *, start: str | None = None
    ) -> AsyncIterator[DocumentPart]:
        """Yield the documents of a job that has ended, one part at a time: about 100 documents or 10 MB.

        Each part is fetched on demand, and only one is held in memory. Reading can stop anywhere and continue from the
        part's `next_cursor` in another process. `next` links are followed on the connection's own origin, even if they
        name another host.

        :param kind: `crawl` or `batch_scrape`.
        :param job_id: the job's UUID.
        :param start: a `next_cursor` of this job; None: from the beginning.
        :raises ArgumentError: jobs of this kind have no documents, or the cursor is not one of this job.
        :raises UnfinishedJobError: the job still runs.
        :raises InvalidResponseError: a `next` link leads in a circle or elsewhere. Reading can continue later from the
            last part's `next_cursor`.
        """
        endpoint = endpoints.JOBS[checked_kind(kind)].documents
        if endpoint is None:
            raise ArgumentError(
                f"the result of an {name_of(kind)} is one object, without documents to page through"
            )
        seen: set[str] = set()

        def checked(link: str) -> str:
            cursor = path_and_query(endpoint, link)
            if job_id not in cursor.partition("?")[0].split("/"):
                raise InvalidResponseError(
                    endpoint.label, "the next link leads to something else", status=200
                )
            if cursor in seen:
                raise InvalidResponseError(endpoint.label, "the next links lead in a circle", status=200)
            seen.add(cursor)
            return cursor

        try:
            cursor = None if start is None else checked(start)
        except InvalidResponseError as error:
            raise ArgumentError(
                f"start must be a next_cursor of {name_of(kind)} {job_id}: {error.reason}"
            ) from None
        while True:
            answer = (
                await self._execute(Call(endpoint, path={"job_id": job_id}))
                if cursor is None
                else await self._follow(endpoint, cursor)
            )
            if answer.status not in TERMINAL_JOB_STATES and answer.completed_at is None:
                raise UnfinishedJobError(endpoint.label, job_id, answer.status)
            cursor = checked(answer.next) if answer.next else None
            yield DocumentPart(
                answer.data or [], cursor, answer.status, answer.completed, answer.total, answer.credits_used
            )
            if cursor is None:
                return
            # Only one part is in memory while the next is fetched.
            answer.data = None

    async def active_crawls(self) -> models.ActiveCrawls:
        """Return the team's crawls that run. Their options may hold headers of page requests."""
        return await self._execute(Call(endpoints.ACTIVE_CRAWLS))

    async def crawl_params(self, request: models.CrawlParamsRequest | Body) -> models.CrawlParamsResponse:
        """Return the crawl options that the service makes of a prompt; starts nothing.

        See docs/service.md#crawl-preview.

        :param request: `url` and `prompt`, both required.
        """
        return await self._execute(Call.of(endpoints.CRAWL_PARAMS_PREVIEW, request))
