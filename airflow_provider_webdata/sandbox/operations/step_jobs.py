"""Jobs that are made of steps, one page or one search each: extract and agent."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.sandbox.engine.scraper import PageError, Scraper
from airflow_provider_webdata.sandbox.engine.structured_data import gather, stated
from airflow_provider_webdata.sandbox.reference.errors import ServiceError
from airflow_provider_webdata.sandbox.reference.timestamps import from_iso, iso

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.sandbox.engine.index import Index
    from airflow_provider_webdata.sandbox.engine.web import Web
    from airflow_provider_webdata.sandbox.engine.webhooks import Webhooks
    from airflow_provider_webdata.sandbox.reference.wire import Json
    from airflow_provider_webdata.sandbox.state.core import Core

KEPT = timedelta(hours=24)
SUPPLIED_FAILURE = "The job failed because the sandbox was told so."
BALANCE = 20


class JobFailedError(Exception):
    """The job ends as failed, and costs nothing; the text says why."""


class StepJobs(ABC):
    """The life of jobs of one kind: begun, stepped through, ended, kept for a day.

    A job is stored as one object: ``steps`` that are left to do, ``known`` that was found, ``spent`` credits.
    """

    kind: ClassVar[str]
    not_found: ClassVar[str]

    def __init__(self, core: Core, web: Web, index: Index, scraper: Scraper, webhooks: Webhooks) -> None:
        self._core, self._store, self._clock = core, core.store, core.clock
        self._web, self._index, self._scraper, self._webhooks = web, index, scraper, webhooks

    def resume(self) -> None:
        """Go on with what an earlier sandbox left undone."""
        for job in self.all():
            if job["finishedAt"] is None:
                self._plan(job["id"], 0.0)

    def all(self) -> list[Json]:
        """Return all jobs of the kind, oldest first."""
        return self._store.list(self.kind)

    def begin(self, request: Json, steps: list[Json], **more: Any) -> Json:
        """Create a job and let it go.

        :param steps: what is to be done, each an ``action`` and its ``input``.
        """
        now = self._clock.datetime()
        webhook = request.get("webhook")
        job: Json = {
            "id": str(uuid.uuid4()),
            "status": "processing",
            "request": request,
            "webhook": {"url": webhook} if isinstance(webhook, str) else webhook,
            "steps": steps,
            "begun": False,
            "cancelling": False,
            "known": [],
            "spent": 0,
            "data": None,
            "error": None,
            "createdAt": iso(now),
            "finishedAt": None,
            "expiresAt": iso(now + KEPT),
            **more,
        }
        self._save(job)
        self._plan(job["id"], self._core.settings.queue_seconds)
        return job

    def find(self, job_id: str) -> Json:
        """Return a job.

        :raises ServiceError: 404: it never was, or it expired.
        """
        job = self._store.get(self.kind, job_id)
        expired = (
            job is not None and job["finishedAt"] and from_iso(job["expiresAt"]) <= self._clock.datetime()
        )
        if job is None or expired:
            raise ServiceError(404, self.not_found)
        return job

    @abstractmethod
    def perform(self, job: Json, step: Json) -> None:
        """Do one step: add to ``known``, ``spent`` and ``steps``.

        :raises JobFailedError: the whole job fails.
        """

    @abstractmethod
    def outcome(self, job: Json) -> Iterator[tuple[str, Json | None]]:
        """Yield the events that tell how the job ended, each with its data."""

    def complete(self, job: Json) -> None:
        """Make the result of a job whose steps are done.

        :raises JobFailedError: there is none.
        """
        schema = job["request"].get("schema")
        job["data"], job["sources"] = gather(schema, job["known"])

    def bill(self, job: Json) -> None:
        """Settle what the job cost."""
        self._core.credits.spend(job["spent"])

    def visit(self, job: Json, url: str, options: Json) -> str:
        """Scrape a page, keep what it states, and return its markdown.

        :raises PageError: it cannot be had.
        """
        scraped = self._scraper.scrape(url, {**options, "formats": ["markdown"]})
        page = self._web.get(url)
        if page is not None:
            job["known"].append(stated(page))
        return str(scraped.document["markdown"])

    def notify(self, job: Json, event: str, data: Json | None, *, success: bool = True) -> None:
        """Send an event of the job."""
        if job["webhook"]:
            name = f"{self.kind}.{event}"
            error = None if success else job["error"]
            self._webhooks.emit(job["webhook"], name, job["id"], data, error=error, success=success)

    def _plan(self, job_id: str, seconds: float) -> None:
        self._core.agenda.after(seconds, lambda: self._go_on(job_id))

    async def _go_on(self, job_id: str) -> None:
        """Do what comes next: one step, or the end."""
        job = self._store.get(self.kind, job_id)
        if job is None or job["finishedAt"] is not None:
            return
        if not job["begun"]:
            job["begun"] = True
            self.notify(job, "started", None)
        elif job["cancelling"]:
            self._end(job, "cancelled")
        elif job["steps"]:
            self._step(job)
        else:
            self._finish(job)
        self._save(job)
        if job["finishedAt"] is None:
            self._plan(job_id, self._core.settings.step_seconds)
        self._core.keep_time()

    def _step(self, job: Json) -> None:
        step = job["steps"].pop(0)
        try:
            if self._core.faults.take_job_failure(self.kind):
                raise JobFailedError(SUPPLIED_FAILURE)
            self.perform(job, step)
        except (PageError, ServiceError) as error:
            # One page that cannot be had is no reason to give up; none at all is, in the end.
            job["problems"] = [*job.get("problems", []), f"{step['input'].get('url')}: {error.code}"]
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
        now = self._clock.datetime()
        job.update(status=status, finishedAt=iso(now), expiresAt=iso(now + KEPT))
        self.bill(job)
        for event, data in self.outcome(job):
            self.notify(job, event, data, success=status == "completed")

    def _save(self, job: Json) -> None:
        self._store.put(self.kind, job["id"], job)
