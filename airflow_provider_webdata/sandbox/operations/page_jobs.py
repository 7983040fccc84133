"""Jobs that scrape many pages: the life that crawl and batch scrape share (supplement 5.2, 6.2 to 6.6, 6.9).

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
from airflow_provider_webdata.sandbox.reference.wire import Json, Reply, ServiceError, whole_number
from airflow_provider_webdata.sandbox.state.clock import from_iso, iso

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.sandbox.reference.wire import Call
    from airflow_provider_webdata.sandbox.service import Sandbox

KEPT = timedelta(hours=24)
PAGE_BYTES = 10 * 1024 * 1024
DEFAULT_PAGE, MOST_PAGE = 100, 1000
AT_ONCE = 50
"""Pages done in one go when they take no time."""

SUPPLIED_FAILURE = "The job failed because the sandbox was told so."
BAD_PAGINATION = "Invalid pagination"
ELSEWHERE = "http://internal.invalid:8080"


class Jobs(ABC):
    """The life of jobs of one kind.

    :cvar kind: the prefix of its events.
    :cvar path: of its calls.
    :cvar not_found: the text of its 404.
    """

    kind: ClassVar[str]
    path: ClassVar[str]
    not_found: ClassVar[str]

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._store, self._clock = sandbox.store, sandbox.clock

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
        limit = _number(call, "limit", 1, MOST_PAGE)
        skip = _number(call, "skip", 0, None) or 0
        if job["status"] == "failed":
            # Nothing of a job that died as a whole is shown (supplement 6.2, 17.4).
            body = {**self._facts(job), "success": False, "error": job["error"], "total": 0, "completed": 0}
            return Reply(200, {**body, "data": []})
        documents = list(self._page(job, skip, limit or DEFAULT_PAGE))
        body = {"success": True, **self._facts(job), "data": documents}
        after = skip + len(documents)
        if job["finishedAt"] is None or after < job["completed"]:
            query = {"skip": after, **({"limit": limit} if limit else {})}
            origin = ELSEWHERE if self._sandbox.quirks.on("next-wrong-host") else call.origin
            body["next"] = f"{origin}{call.path}?{urlencode(query)}"
        elif self._sandbox.quirks.on("next-null"):
            body["next"] = None
        return Reply(200, body)

    async def errors(self, call: Call) -> Reply:
        """List the pages that failed, and those that robots.txt refused."""
        job = self._find(call)
        errors = self._store.list(f"{self.kind}-error", parent=job["id"])
        if self._sandbox.quirks.on("bare-job-errors"):
            errors = [{name: error[name] for name in ("id", "url", "error")} for error in errors]
        blocked = [item["url"] for item in self._store.list(f"{self.kind}-blocked", parent=job["id"])]
        return Reply(200, {"errors": errors, "robotsBlocked": blocked})

    async def cancel(self, call: Call) -> Reply:
        """Stop a job; what it has scraped stays."""
        try:
            job = self._find(call)
        except ServiceError as error:
            return Reply(error.status, {"error": error.text})  # without `success` (supplement 17.1)
        if job["status"] == "cancelled":
            return Reply(200, {"status": "cancelled"})
        if job["finishedAt"] is not None:
            return Reply(409, {"error": "Crawl is already completed"})
        self._end(job, "cancelled")
        if self._sandbox.quirks.on("completed-after-cancel"):
            self._tell(job, "completed", None)
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
        self._plan(job, self._sandbox.queue_seconds)
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
        return int(min(job["concurrency"] or self._sandbox.concurrency, self._sandbox.concurrency))

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
        unknown = self._sandbox.quirks.on("credits-unknown")
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
            kept = self._store.get("scrape", row["scrapeId"])
            if kept is None:
                continue
            document = self._sandbox.scraping.document(row["scrapeId"], kept)
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
        self._sandbox.agenda.at(job["due"], lambda: self._go_on(job_id))

    async def _go_on(self, job_id: str) -> None:
        """Do what comes next: the beginning, or some pages, and the end when there are no more."""
        job = self._store.get(self.kind, job_id)
        if job is None or job["finishedAt"] is not None:
            return
        with self._store.transaction():
            if not job["begun"]:
                job["begun"] = True
                self._tell(job, "started", None)
                self.start_of(job)
            elif self._sandbox.faults.take_job_failure(self.kind):
                job["error"] = SUPPLIED_FAILURE
                self._end(job, "failed")
            else:
                self._take_pages(job)
            if job["finishedAt"] is None and not self.waiting(job):
                self._end(job, "completed")
                self._tell(job, "completed", None)
            self._save(job)
            if job["finishedAt"] is None:
                self._plan(job, self._sandbox.page_seconds + job["delay"])
        self._sandbox.note_time()

    def _take_pages(self, job: Json) -> None:
        at_once = AT_ONCE if self._sandbox.page_seconds + job["delay"] == 0 else self.width(job)
        pages = self._store.slice(f"{self.kind}-page", job["id"], job["taken"], at_once)
        if self._sandbox.quirks.on("completion-order"):
            pages.reverse()
        before = job["spent"]
        for page in pages:
            job["taken"] += 1
            self._take(job, page)
        self._sandbox.credits.spend(job["spent"] - before)

    def _take(self, job: Json, page: Json) -> None:
        url = page["url"]
        try:
            scraped = self._sandbox.scraping.take(url, job["options"])
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
        self._tell(job, "page", scraped.document)
        self.seen(job, page)

    def _fail_page(self, job: Json, url: str, code: str | None, text: str, credits: int) -> None:
        job["failed"] += 1
        job["spent"] += credits
        self.note_error(job, url, code, text)
        if not self._sandbox.quirks.on("silent-page-errors"):
            document = {"metadata": {"sourceURL": url, "error": text}}
            self._tell(job, "page", document, error=text)

    def _end(self, job: Json, status: str) -> None:
        now = self._clock.datetime()
        job.update(status=status, finishedAt=iso(now), expiresAt=iso(now + KEPT))

    def _tell(self, job: Json, event: str, data: Json | None, *, error: str | None = None) -> None:
        if job["webhook"]:
            self._sandbox.webhooks.emit(
                job["webhook"], f"{self.kind}.{event}", job["id"], data, error=error, success=error is None
            )

    def _save(self, job: Json) -> None:
        self._store.put(self.kind, job["id"], job)


def _number(call: Call, name: str, low: int, high: int | None) -> int | None:
    text = call.query.get(name)
    if text is None:
        return None
    number = whole_number(text)
    if number is None or number < low or (high is not None and number > high):
        raise ServiceError(400, BAD_PAGINATION)
    return number
