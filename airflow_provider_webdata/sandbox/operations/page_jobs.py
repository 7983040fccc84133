"""Jobs that scrape many pages: the life that crawl and batch scrape share.

A job is one stored object; its pages to do, its results and its errors are objects below it, so a job of ten thousand
pages is never held as a whole, and a restarted sandbox goes on where the other one stopped.
"""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlencode

from airflow_provider_webdata.sandbox.engine.scraper import PageError
from airflow_provider_webdata.sandbox.reference.errors import ServiceError
from airflow_provider_webdata.sandbox.reference.timestamps import from_iso, iso

from .call import Reply
from .validation import page_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.sandbox.engine.media import Media
    from airflow_provider_webdata.sandbox.engine.scrape_store import ScrapeStore
    from airflow_provider_webdata.sandbox.engine.webhooks import Webhooks
    from airflow_provider_webdata.sandbox.reference.wire import Json
    from airflow_provider_webdata.sandbox.state.core import Core

    from .call import Call

KEPT = timedelta(hours=24)
PAGE_BYTES = 10 * 1024 * 1024
DEFAULT_PAGE, MOST_PAGE = 100, 1000
AT_ONCE = 50
"""Pages done in one go when they take no time."""

SUPPLIED_FAILURE = "The job failed because the sandbox was told so."
ELSEWHERE = "http://internal.invalid:8080"


class PageJobs(ABC):
    """The life of jobs of one kind.

    :cvar kind: the prefix of its events.
    :cvar path: of its calls.
    :cvar not_found: the text of its 404.
    """

    kind: ClassVar[str]
    path: ClassVar[str]
    not_found: ClassVar[str]

    def __init__(self, core: Core, media: Media, scrapes: ScrapeStore, webhooks: Webhooks) -> None:
        self._core, self._settings, self._quirks = core, core.settings, core.quirks
        self._store, self._clock = core.store, core.clock
        self._media, self._scrapes, self._webhooks = media, scrapes, webhooks

    def resume(self) -> None:
        """Go on with what an earlier sandbox left undone."""
        for job in self.running():
            self._wait(job)

    def all(self) -> list[Json]:
        """Return all jobs of the kind, oldest first."""
        return self._store.list(self.kind)

    def running(self) -> list[Json]:
        """Return the jobs that have not ended, oldest first."""
        return [job for job in self.all() if job["finishedAt"] is None]

    async def status(self, call: Call) -> Reply:
        """Tell how a job goes, with a page of its documents."""
        job = self._find(call)
        limit = page_number(call.query, "limit", 1, MOST_PAGE)
        skip = page_number(call.query, "skip", 0) or 0
        if job["status"] == "failed":
            # Nothing of a job that died as a whole is shown.
            body = {**self._facts(job), "success": False, "error": job["error"], "total": 0, "completed": 0}
            return Reply(200, {**body, "data": []})
        documents = list(self._page(job, skip, limit or DEFAULT_PAGE))
        body = {"success": True, **self._facts(job), "data": documents}
        after = skip + len(documents)
        if job["finishedAt"] is None or after < job["completed"]:
            query = {"skip": after, **({"limit": limit} if limit else {})}
            origin = ELSEWHERE if self._quirks.on("next-wrong-host") else call.origin
            body["next"] = f"{origin}{call.path}?{urlencode(query)}"
        elif self._quirks.on("next-null"):
            body["next"] = None
        return Reply(200, body)

    async def errors(self, call: Call) -> Reply:
        """List the pages that failed, and those that robots.txt refused."""
        job = self._find(call)
        errors = self._store.list(f"{self.kind}-error", parent=job["id"])
        if self._quirks.on("bare-job-errors"):
            errors = [{name: error[name] for name in ("id", "url", "error")} for error in errors]
        blocked = [item["url"] for item in self._store.list(f"{self.kind}-blocked", parent=job["id"])]
        return Reply(200, {"errors": errors, "robotsBlocked": blocked})

    async def cancel(self, call: Call) -> Reply:
        """Stop a job; what it has scraped stays."""
        try:
            job = self._find(call)
        except ServiceError as error:
            return Reply(error.status, {"error": error.text})  # without `success`
        if job["status"] == "cancelled":
            return Reply(200, {"status": "cancelled"})
        if job["finishedAt"] is not None:
            return Reply(409, {"error": "Crawl is already completed"})
        self._end(job, "cancelled")
        if self._quirks.on("completed-after-cancel"):
            self._notify(job, "completed", None)
        self._save(job)
        return Reply(200, {"status": "cancelled"})

    def begin(self, request: Json, options: Json, *, concurrency: int | None, delay: float = 0.0) -> Json:
        """Create a job; it goes on by itself.

        :param options: scrape options of its pages.
        :param concurrency: pages at a time; the team's limit when absent or above it.
        :param delay: seconds of pause after each page.
        """
        now = self._clock.datetime()
        webhook = request.get("webhook")
        job: Json = {
            "id": str(uuid.uuid4()),
            "status": "scraping",
            "request": request,
            "options": options,
            "webhook": {"url": webhook} if isinstance(webhook, str) else webhook,
            "concurrency": concurrency,
            "delay": delay,
            "begun": False,
            "found": 0,
            "taken": 0,
            "completed": 0,
            "failed": 0,
            "spent": 0,
            "blocked": 0,
            "error": None,
            "createdAt": iso(now),
            "finishedAt": None,
            "expiresAt": iso(now + KEPT),
        }
        self._plan(job, self._settings.queue_seconds)
        return job

    def add(self, job: Json, key: str, page: Json) -> bool:
        """Put a page on the list of those to do, unless one of that key is on it; return whether it was not."""
        name = f"{job['id']} {key}"
        if self._store.get(f"{self.kind}-page", name) is not None:
            return False
        self._store.put(f"{self.kind}-page", name, page, parent=job["id"])
        job["found"] += 1
        return True

    @abstractmethod
    def start_of(self, job: Json) -> None:
        """Put the first pages on the list, when the job begins."""

    @abstractmethod
    def seen(self, job: Json, page: Json) -> None:
        """Put what a scraped page leads to on the list."""

    def warning(self, job: Json) -> str | None:  # noqa: ARG002 - crawl has some
        """Return what the status warns of."""
        return None

    def note_error(self, job: Json, url: str, code: str | None, text: str) -> None:
        """Keep the failure of a page."""
        error = {"id": str(uuid.uuid4()), "timestamp": self._clock.iso(), "url": url, "error": text}
        if code is not None:
            error["code"] = code
        self._store.put(f"{self.kind}-error", error["id"], error, parent=job["id"])

    def waiting(self, job: Json) -> int:
        """Return how many pages a job has yet to do."""
        return int(job["found"] - job["taken"])

    def width(self, job: Json) -> int:
        """Return how many pages of a job are scraped at a time."""
        if job["delay"]:
            return 1
        return int(min(job["concurrency"] or self._settings.concurrency, self._settings.concurrency))

    def job_of(self, job_id: str) -> Json:
        """Return a job.

        :raises ServiceError: 404: it never was, or its results have expired.
        """
        job = self._store.get(self.kind, job_id)
        if job is None:
            raise ServiceError(404, self.not_found)
        if job["finishedAt"] is not None and from_iso(job["expiresAt"]) <= self._clock.datetime():
            raise ServiceError(404, "Job expired")
        return job

    def _find(self, call: Call) -> Json:
        return self.job_of(call.params["id"])

    def _facts(self, job: Json) -> Json:
        end = from_iso(job["finishedAt"]) if job["finishedAt"] else self._clock.datetime()
        unknown = self._quirks.on("credits-unknown")
        facts: Json = {
            "status": job["status"],
            "total": job["completed"] + (self.waiting(job) if job["finishedAt"] is None else 0),
            "completed": job["completed"],
            "creditsUsed": -1 if unknown else job["spent"],
            "createdAt": job["createdAt"],
            "expiresAt": job["expiresAt"],
            "duration": round((end - from_iso(job["createdAt"])).total_seconds(), 3),
        }
        if job["finishedAt"] is not None:
            facts["completedAt"] = job["finishedAt"]
        warning = self.warning(job)
        if warning is not None:
            facts["warning"] = warning
        return facts

    def _page(self, job: Json, skip: int, limit: int) -> Iterator[Json]:
        """Yield documents until there are ``limit`` or 10 MB of them; one at least, however large."""
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
        self._core.agenda.at(job["due"], lambda: self._go_on(job_id))

    async def _go_on(self, job_id: str) -> None:
        """Do what comes next: the beginning, or some pages, and the end when there are no more."""
        job = self._store.get(self.kind, job_id)
        if job is None or job["finishedAt"] is not None:
            return
        with self._store.transaction():
            if not job["begun"]:
                job["begun"] = True
                self._notify(job, "started", None)
                self.start_of(job)
            elif self._core.faults.take_job_failure(self.kind):
                job["error"] = SUPPLIED_FAILURE
                self._end(job, "failed")
            else:
                self._take_pages(job)
            if job["finishedAt"] is None and not self.waiting(job):
                self._end(job, "completed")
                self._notify(job, "completed", None)
            self._save(job)
            if job["finishedAt"] is None:
                self._plan(job, self._settings.page_seconds + job["delay"])
        self._core.keep_time()

    def _take_pages(self, job: Json) -> None:
        at_once = AT_ONCE if self._settings.page_seconds + job["delay"] == 0 else self.width(job)
        pages = self._store.slice(f"{self.kind}-page", job["id"], job["taken"], at_once)
        if self._quirks.on("completion-order"):
            pages.reverse()
        before = job["spent"]
        for page in pages:
            job["taken"] += 1
            self._take(job, page)
        self._core.credits.spend(job["spent"] - before)

    def _take(self, job: Json, page: Json) -> None:
        url = page["url"]
        try:
            scraped = self._scrapes.scrape(url, job["options"])
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
        self.seen(job, page)

    def _fail_page(self, job: Json, url: str, code: str | None, text: str, credits: int) -> None:
        job["failed"] += 1
        job["spent"] += credits
        self.note_error(job, url, code, text)
        if not self._quirks.on("silent-page-errors"):
            document = {"metadata": {"sourceURL": url, "error": text}}
            self._notify(job, "page", document, error=text)

    def _end(self, job: Json, status: str) -> None:
        now = self._clock.datetime()
        job.update(status=status, finishedAt=iso(now), expiresAt=iso(now + KEPT))

    def _notify(self, job: Json, event: str, data: Json | None, *, error: str | None = None) -> None:
        if job["webhook"]:
            self._webhooks.emit(
                job["webhook"], f"{self.kind}.{event}", job["id"], data, error=error, success=error is None
            )

    def _save(self, job: Json) -> None:
        self._store.put(self.kind, job["id"], job)
