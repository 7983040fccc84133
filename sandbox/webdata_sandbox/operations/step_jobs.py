# SPDX-License-Identifier: Apache-2.0
"""Jobs that run in steps, such as one page or one search: extract and agent."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from webdata_sandbox.engine.scraper import PageError, Scraper
from webdata_sandbox.engine.structured_data import gather, stated
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.timestamps import from_iso

from .jobs import Jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.engine.index import Index
    from webdata_sandbox.engine.web import Web
    from webdata_sandbox.engine.webhooks import Webhooks
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

BALANCE = 20


class JobFailedError(Exception):
    """The job fails and is not billed. The message gives the reason."""


class StepJobs(Jobs):
    """Jobs of one kind that run step by step.

    A job has its remaining ``steps``, the ``known`` data, and the credits ``spent``.
    """

    def __init__(self, core: Core, web: Web, index: Index, scraper: Scraper, webhooks: Webhooks) -> None:
        super().__init__(core, webhooks)
        self._web, self._index, self._scraper = web, index, scraper

    def resume(self) -> None:
        """Resume the unfinished jobs of an earlier sandbox."""
        for job in self.running():
            self._plan(job["id"], 0.0)

    def begin(self, request: Json, steps: list[Json], **fields: Any) -> Json:
        """Create and schedule a job.

        :param steps: items with an ``action`` and its ``input``.
        """
        job = self._new(request, "processing", steps=steps, cancelling=False, known=[], data=None, **fields)
        self._save(job)
        self._plan(job["id"], self._settings.queue_seconds)
        return job

    def find(self, job_id: str) -> Json:
        """Return a job.

        :raises ServiceError: 404: the job is unknown or has expired.
        """
        job = self._store.get(self.kind, job_id)
        expired = (
            job is not None and job["finishedAt"] and from_iso(job["expiresAt"]) <= self._clock.datetime()
        )
        if job is None or expired:
            failure = self._settings.profile.unknown_jobs.get(self.kind)
            raise failure.error() if failure else ServiceError(404, self.not_found)
        return job

    @abstractmethod
    def perform(self, job: Json, step: Json) -> None:
        """Run one step and update ``known``, ``spent``, and ``steps``.

        :raises JobFailedError: the whole job fails.
        """

    @abstractmethod
    def outcome(self, job: Json) -> Iterator[tuple[str, Json | None]]:
        """Yield the final events of a job and their data."""

    def complete(self, job: Json) -> None:
        """Set the result of a job after its last step.

        :raises JobFailedError: the job has no result.
        """
        schema = job["request"].get("schema")
        job["data"], job["sources"] = gather(schema, job["known"])

    def bill(self, job: Json) -> None:
        """Bill the cost of the job."""
        self._core.credits.spend(job["spent"])

    def visit(self, job: Json, url: str, options: Json) -> str:
        """Scrape a page, add the data it states to the job, and return its markdown.

        :raises PageError: the page cannot be scraped.
        """
        scraped = self._scraper.scrape(url, {**options, "formats": ["markdown"]})
        page = self._web.get(url)
        if page is not None:
            job["known"].append(stated(page))
        return str(scraped.document["markdown"])

    def _plan(self, job_id: str, seconds: float) -> None:
        self._core.agenda.after(seconds, lambda: self._advance(job_id))

    async def _advance(self, job_id: str) -> None:
        """Run the next step, or end the job."""
        job = self._store.get(self.kind, job_id)
        if job is None or job["finishedAt"] is not None:
            return
        if not job["begun"]:
            job["begun"] = True
            self._notify(job, "started")
        elif job["cancelling"]:
            self._end(job, "cancelled")
        elif job["steps"]:
            self._step(job)
        else:
            self._finish(job)
        self._save(job)
        if job["finishedAt"] is None:
            self._plan(job_id, self._settings.step_seconds)
        self._core.keep_time()

    def _step(self, job: Json) -> None:
        step = job["steps"].pop(0)
        try:
            if message := self._core.faults.consume_job_failure(self.kind):
                raise JobFailedError(message)
            self.perform(job, step)
        except (PageError, ServiceError) as error:
            # A failed page does not end the job. If every page failed, the job can fail in `complete`.
            job["problems"] = [
                *job.get("problems", []),
                f"{step['input'].get('url', step['action'])}: {error.code}",
            ]
        except JobFailedError as error:
            self._fail(job, error)

    def _finish(self, job: Json) -> None:
        try:
            self.complete(job)
        except JobFailedError as error:
            self._fail(job, error)
        else:
            self._end(job, "completed")

    def _fail(self, job: Json, error: JobFailedError) -> None:
        job.update(error=str(error), spent=0, data=None)
        self._end(job, "failed")

    def _end(self, job: Json, status: str) -> None:
        self._close(job, status)
        self.bill(job)
        for event, data in self.outcome(job):
            self._notify(job, event, data, error=job["error"], success=status == "completed")
