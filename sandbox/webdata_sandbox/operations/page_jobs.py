# SPDX-License-Identifier: Apache-2.0
"""Jobs that scrape many pages: the life cycle of crawls and batch scrapes.

A job is one stored object. Its pending pages, results, and errors are separate child objects, so that a job of ten
thousand pages needs little memory, and a restarted sandbox can resume it.
"""

from __future__ import annotations

import json
import uuid
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from webdata_sandbox.engine.scraper import PageError
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.timestamps import from_iso

from .call import Reply
from .jobs import Jobs
from .paging import next_link, page_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.engine.canned import CannedAnswers
    from webdata_sandbox.engine.scrape_store import ScrapeStore
    from webdata_sandbox.engine.webhooks import Webhooks
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .call import Call

PAGE_BYTES = 10 * 1024 * 1024
DEFAULT_PAGE, MAX_PAGE = 100, 1000
STEP_PAGES = 50
"""Pages per step when a page has no duration."""


class PageJobs(Jobs):
    """Jobs of one kind that scrape many pages.

    :cvar path: path of its endpoints.
    :ivar others: the jobs of the other kinds, whose ids share the paths on some servers.
    """

    path: ClassVar[str]

    def __init__(self, core: Core, canned: CannedAnswers, scrapes: ScrapeStore, webhooks: Webhooks) -> None:
        super().__init__(core, webhooks)
        self._canned, self._scrapes = canned, scrapes
        self.others: tuple[PageJobs, ...] = ()

    def resume(self) -> None:
        """Resume the unfinished jobs of an earlier sandbox."""
        for job in self.running():
            self._wait(job)

    async def status(self, call: Call) -> Reply:
        """Return the status of a job and one page of its documents."""
        return self._owner(call.params["id"])._status(call)

    def _status(self, call: Call) -> Reply:
        job = self.find(call.params["id"])
        limit = page_number(call.query, "limit", 1, MAX_PAGE)
        skip = page_number(call.query, "skip", 0) or 0
        if job["status"] == "failed":
            # A failed job returns no documents.
            documents: list[Json] = []
            body = {**self._summary(job), "success": False, "error": job["error"], "total": 0, "completed": 0}
        else:
            documents = list(self._page(job, skip, limit or DEFAULT_PAGE))
            body = {"success": True, **self._summary(job)}
        body["data"] = documents
        after = skip + len(documents)
        # After a failure or a cancel, the last part is the empty one that names itself.
        if job["status"] != "completed" or after < job["completed"]:
            query = {"skip": after, **({"limit": limit} if limit else {})}
            body["next"] = next_link(call, self._quirks, query)
        elif self._quirks.on("next-null"):
            body["next"] = None
        return Reply(200, body)

    async def errors(self, call: Call) -> Reply:
        """List the failed pages and the URLs that robots.txt blocks."""
        return self._owner(call.params["id"])._errors(call)

    def _errors(self, call: Call) -> Reply:
        job = self.find(call.params["id"])
        errors = self._store.list(f"{self.kind}-error", parent=job["id"])
        if self._quirks.on("bare-job-errors"):
            errors = [{name: error[name] for name in ("id", "url", "error")} for error in errors]
        blocked = [item["url"] for item in self._store.list(f"{self.kind}-blocked", parent=job["id"])]
        return Reply(200, {"errors": errors, "robotsBlocked": blocked})

    async def cancel(self, call: Call) -> Reply:
        """Cancel a job. Its scraped pages remain available."""
        return self._owner(call.params["id"])._cancel(call)

    def _owner(self, job_id: str) -> PageJobs:
        if self._settings.profile.shared_jobs:
            for jobs in self.others:
                if self._store.get(jobs.kind, job_id) is not None:
                    return jobs
        return self

    def _cancel(self, call: Call) -> Reply:
        try:
            job = self.find(call.params["id"])
        except ServiceError as error:
            return Reply(error.status, {"error": error.body()["error"]})  # without `success`
        if job["status"] == "cancelled":
            return Reply(200, {"status": "cancelled"})
        if job["finishedAt"] is not None:
            return Reply(409, {"error": "Crawl is already completed"})
        self._close(job, "cancelled")
        if self._quirks.on("completed-after-cancel"):
            self._notify(job, "completed")
        self._save(job)
        return Reply(200, {"status": "cancelled"})

    def begin(self, request: Json, options: Json, *, concurrency: int | None, delay: float = 0.0) -> Json:
        """Create and schedule a job.

        :param options: scrape options of its pages.
        :param concurrency: maximum concurrent pages; the team's limit is the default and the upper bound.
        :param delay: seconds to wait after each page.
        """
        job = self._new(
            request,
            "scraping",
            options=options,
            concurrency=concurrency,
            delay=delay,
            closing=False,
            **dict.fromkeys(("found", "taken", "completed", "failed", "blocked"), 0),
        )
        self._plan(job, self._settings.queue_seconds)
        return job

    def add(self, job: Json, key: str, page: Json) -> bool:
        """Add a pending page unless its key exists; return whether it was added."""
        name = f"{job['id']} {key}"
        if self._store.get(f"{self.kind}-page", name) is not None:
            return False
        self._store.put(f"{self.kind}-page", name, page, parent=job["id"])
        job["found"] += 1
        return True

    @abstractmethod
    def first_pages(self, job: Json) -> None:
        """Add the first pages of a starting job."""

    @abstractmethod
    def follow(self, job: Json, page: Json) -> None:
        """Add the pages that a scraped page links to."""

    def warning(self, job: Json) -> str | None:  # noqa: ARG002 - Crawl overrides it
        """Return the warning of a status, or None."""
        return None

    def add_error(self, job: Json, url: str, code: str | None, text: str) -> None:
        """Record the failure of a page."""
        error = {"id": str(uuid.uuid4()), "timestamp": self._clock.iso(), "url": url, "error": text}
        if code is not None:
            error["code"] = code
        self._store.put(f"{self.kind}-error", error["id"], error, parent=job["id"])

    def waiting(self, job: Json) -> int:
        """Return the number of pending pages."""
        return int(job["found"] - job["taken"])

    def width(self, job: Json) -> int:
        """Return the number of pages that a job scrapes concurrently."""
        if job["delay"]:
            return 1
        return int(min(job["concurrency"] or self._settings.concurrency, self._settings.concurrency))

    def find(self, job_id: str) -> Json:
        """Return a job.

        :raises ServiceError: 404: the job is unknown or has expired.
        """
        job = self._store.get(self.kind, job_id)
        if job is None:
            failure = self._settings.profile.unknown_jobs.get(self.kind)
            raise failure.error() if failure else ServiceError(404, self.not_found)
        if job["finishedAt"] is not None and from_iso(job["expiresAt"]) <= self._clock.datetime():
            raise ServiceError(404, "Job expired")
        return job

    def _summary(self, job: Json) -> Json:
        end = from_iso(job["finishedAt"]) if job["finishedAt"] else self._clock.datetime()
        summary: Json = {
            "status": job["status"],
            "total": job["completed"] + (self.waiting(job) if job["finishedAt"] is None else 0),
            "completed": job["completed"],
            "creditsUsed": job["spent"] if self._settings.profile.bills else -1,
            "createdAt": job["createdAt"],
            "expiresAt": job["expiresAt"],
            "duration": round((end - from_iso(job["createdAt"])).total_seconds(), 3),
        }
        if job["finishedAt"] is not None:
            summary["completedAt"] = job["finishedAt"]
        warning = self.warning(job)
        if warning is not None:
            summary["warning"] = warning
        return summary

    def _page(self, job: Json, skip: int, limit: int) -> Iterator[Json]:
        """Yield up to ``limit`` documents or 10 MB of them, but at least one."""
        size = 0
        for row in self._store.slice(f"{self.kind}-result", job["id"], skip, limit):
            document = self._scrapes.document(row["scrapeId"])
            if document is None:
                continue
            size += len(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))
            if size > PAGE_BYTES and row["number"] > skip:
                return
            yield document

    def _plan(self, job: Json, seconds: float) -> None:
        job["due"] = self._clock.now() + seconds
        self._save(job)
        self._wait(job)

    def _wait(self, job: Json) -> None:
        job_id = job["id"]
        self._core.agenda.at(job["due"], lambda: self._advance(job_id))

    async def _advance(self, job_id: str) -> None:
        """Start the job, or scrape its next pages. Complete it when no pages are pending."""
        job = self._store.get(self.kind, job_id)
        if job is None or job["finishedAt"] is not None:
            return
        with self._store.transaction():
            if not job["begun"]:
                job["begun"] = True
                self._notify(job, "started")
                self.first_pages(job)
            elif error := self._core.faults.consume_job_failure(self.kind):
                job["error"] = error
                self._close(job, "failed")
            else:
                self._scrape_next(job)
            pause = self._settings.page_seconds + job["delay"]
            if job["finishedAt"] is None and not self.waiting(job):
                pause = self._settings.closing_seconds
                if job.get("closing") or not pause:
                    self._close(job, "completed")
                    self._notify(job, "completed")
                job["closing"] = True
            self._save(job)
            if job["finishedAt"] is None:
                self._plan(job, pause)
        self._core.keep_time()

    def _scrape_next(self, job: Json) -> None:
        count = STEP_PAGES if self._settings.page_seconds + job["delay"] == 0 else self.width(job)
        pages = self._store.slice(f"{self.kind}-page", job["id"], job["taken"], count)
        if self._quirks.on("completion-order"):
            pages.reverse()
        before = job["spent"]
        for page in pages:
            job["taken"] += 1
            job["closing"] = False
            if not self._core.faults.consume_page_loss(page["url"]):
                self._scrape_page(job, page)
        self._core.credits.spend(job["spent"] - before)

    def _scrape_page(self, job: Json, page: Json) -> None:
        url = page["url"]
        try:
            waited_ms = self._waited_ms(job) if self._settings.profile.more_metadata else 0
            scraped = self._scrapes.scrape(url, job["options"], waited_ms=waited_ms)
        except PageError as error:
            self._fail_page(job, url, error.code, str(error), error.credits)
            return
        except ServiceError as error:
            self._fail_page(job, url, error.code, error.text, 0)
            return
        job["completed"] += 1
        job["spent"] += scraped.credits
        row = {"number": job["completed"] - 1, "scrapeId": scraped.id}
        self._store.put(f"{self.kind}-result", scraped.id, row, parent=job["id"])
        self._notify(job, "page", scraped.document)
        self.follow(job, page)

    def _waited_ms(self, job: Json) -> int:
        """Return how long a page waited for others: 0 if it is one of the first that are scraped concurrently."""
        turns: int = (job["taken"] - 1) // self.width(job)
        return turns and max(1, round(turns * self._settings.page_seconds * 1000))

    def _fail_page(self, job: Json, url: str, code: str | None, text: str, credits: int) -> None:
        job["failed"] += 1
        job["spent"] += credits
        self.add_error(job, url, code, text)
        if self._settings.profile.page_error_events:
            document = {"metadata": {"sourceURL": url, "error": text}}
            self._notify(job, "page", document, error=text)
