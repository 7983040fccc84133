# SPDX-License-Identifier: Apache-2.0
"""Batch scrapes: jobs that scrape a list of URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from webdata_sandbox.engine.admission import admit
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.scrape_options import options_of

from .call import Reply
from .endpoint import Endpoint
from .page_jobs import PageJobs
from .validation import split_urls, valid

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json

    from .call import Call


class BatchScrape(PageJobs):
    """Handles batch scrape requests."""

    kind: ClassVar[str] = "batch_scrape"
    path: ClassVar[str] = "/v2/batch/scrape"
    not_found: ClassVar[str] = "Batch scrape job not found."

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint(
                "POST", "/v2/batch/scrape", self.start, "scrape", activity="batch_scrape", target="urls"
            ),
            Endpoint("GET", "/v2/batch/scrape/{id}", self.status, "crawl-status"),
            Endpoint("DELETE", "/v2/batch/scrape/{id}", self.cancel, "crawl-status"),
            Endpoint("GET", "/v2/batch/scrape/{id}/errors", self.errors, "crawl-status", free_ids=True),
        ]

    async def start(self, call: Call) -> Reply:
        """Start a batch scrape, or append to one."""
        profile = self._settings.profile
        body = valid("batch.scrape", call.body, profile)
        options = options_of(body)
        admit(options, self._settings, self._canned, body["urls"][0])
        lenient = body.get("ignoreInvalidURLs", profile.lenient_batches)
        urls, bad = split_urls(body["urls"], lenient=lenient)
        self._core.credits.require(len(urls))
        with self._store.transaction():
            if "appendToId" in body:
                job = self._reopen(body["appendToId"])
            else:
                job = self.begin(body, options, concurrency=body.get("maxConcurrency"))
            for url in urls:
                self.add(job, str(job["found"]), {"url": url})
            self._save(job)
        answer: Json = {"success": True, "id": job["id"], "url": f"{call.origin}{self.path}/{job['id']}"}
        listed = lenient or not profile.lenient_batches
        return Reply(200, {**answer, "invalidURLs": bad} if listed else answer)

    def first_pages(self, job: Json) -> None:
        """Add no pages: the request lists them all."""

    def follow(self, job: Json, page: Json) -> None:
        """Add no pages: a batch scrape follows no links."""

    def _reopen(self, job_id: str) -> Json:
        job = self.find(job_id)
        if job["status"] in ("failed", "cancelled"):
            raise ServiceError(409, f"The batch scrape is {job['status']}")
        if job["finishedAt"] is not None:
            job.update(status="scraping", finishedAt=None)
            self._plan(job, self._settings.page_seconds)
        return job
