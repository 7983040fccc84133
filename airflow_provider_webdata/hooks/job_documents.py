"""The reading of a job's documents, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.api.endpoints import JOBS
from airflow_provider_webdata.api.errors import InvalidResponseError, UnfinishedJobError
from airflow_provider_webdata.api.exchange import path_and_query
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.job_kinds import JobKind, checked_kind
from airflow_provider_webdata.hooks.calls import Call
from airflow_provider_webdata.states.jobs import TERMINAL_JOB_STATES, name_of

if TYPE_CHECKING:
    from airflow_provider_webdata.api import models


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


class DocumentParts:
    """Where the reading of a job's documents stands. See docs/service.md#parts-of-the-result.

    :param kind: of the job.
    :param job_id: its UUID.
    :param start: a `next_cursor` of this job to go on from; None: the beginning.
    :raises ArgumentError: jobs of this kind have no documents, or the cursor is not one of this job.
    """

    def __init__(self, kind: JobKind, job_id: str, start: str | None = None) -> None:
        endpoint = JOBS[checked_kind(kind)].documents
        if endpoint is None:
            raise ArgumentError(
                f"the result of an {name_of(kind)} is one object, without documents to page through"
            )
        self.endpoint = endpoint
        self.first = Call(endpoint, path={"job_id": job_id})
        self.cursor: str | None = None
        self._job_id = job_id
        self._seen: set[str] = set()
        if start is not None:
            try:
                self._move(start)
            except InvalidResponseError as error:
                raise ArgumentError(
                    f"start must be a next_cursor of {name_of(kind)} {job_id}: {error.reason}"
                ) from None

    def take(self, answer: models.JobDocuments) -> DocumentPart:
        """Return the part that an answer holds, and move on.

        :param answer: to the first call or to the one that `cursor` leads to.
        :raises UnfinishedJobError: the job is still running, so the next part is unknown.
        :raises InvalidResponseError: the way on leads in a circle or elsewhere; no document is lost or doubled
            by going on from the last `next_cursor` later.
        """
        if answer.status not in TERMINAL_JOB_STATES and answer.completed_at is None:
            raise UnfinishedJobError(self.endpoint.label, self._job_id, answer.status)
        self.cursor = None
        if answer.next:
            self._move(answer.next)
        documents, answer.data = answer.data or [], None
        return DocumentPart(
            documents, self.cursor, answer.status, answer.completed, answer.total, answer.credits_used
        )

    def _move(self, link: str) -> None:
        cursor = path_and_query(self.endpoint, link)
        if self._job_id not in cursor.partition("?")[0].split("/"):
            raise InvalidResponseError(
                self.endpoint.label, "the next link leads to something else", status=200
            )
        if cursor in self._seen:
            raise InvalidResponseError(self.endpoint.label, "the next links lead in a circle", status=200)
        self._seen.add(cursor)
        self.cursor = cursor
