# SPDX-License-Identifier: Apache-2.0
"""The result of a job: its pages or data, and the errors of individual pages."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.endpoints import JOBS, label_of
from airflow_provider_webdata.api.errors import (
    APIError,
    InvalidResponseError,
    NotFoundError,
    UnfinishedJobError,
    UnsupportedError,
    WebDataError,
    error_text,
)
from airflow_provider_webdata.api.prices import by_format
from airflow_provider_webdata.api.servers import (
    may_refuse_private,
    missing_part,
    private_target_remedy,
    warning_instead,
)
from airflow_provider_webdata.common.arguments import number
from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.common.item_urls import url_of, was_fetched
from airflow_provider_webdata.common.numbers import known_credits
from airflow_provider_webdata.common.remedies import sentence
from airflow_provider_webdata.common.xcom_keys import MISSING, SKIPPED
from airflow_provider_webdata.hooks.task_metrics import count
from airflow_provider_webdata.results.pages.requested import RequestedPages
from airflow_provider_webdata.runs.failures import TooManyFailuresError, too_many
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.runs.pages.cached_pages import CachedPages
from airflow_provider_webdata.runs.publishing.page_errors import PageErrors, metadata_of
from airflow_provider_webdata.runs.publishing.step import Results
from airflow_provider_webdata.runs.publishing.validate import rows_path
from airflow_provider_webdata.states.jobs import JOB_COMPLETED, TERMINAL_JOB_STATES, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from airflow_provider_webdata.api.servers import Server
    from airflow_provider_webdata.base.job_operator import WebDataJobOperator
    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.runs.run import Run
    from airflow_provider_webdata.sensors.job import WebDataJobSensor

_SUMMARY = (
    "id",
    "status",
    "total",
    "completed",
    "creditsUsed",
    "createdAt",
    "completedAt",
    "expiresAt",
    "duration",
    "warning",
)


class JobResult:
    """The result of a finished or failed job. Reading it is free.

    :param extras: returns the credits that formats and options add to each page.
    :param is_saved: True if an earlier attempt started the job; its cost then counts as saved.
    """

    def __init__(
        self,
        run: Run,
        task: WebDataJobOperator | WebDataJobSensor,
        kind: JobKind,
        job_id: str,
        *,
        extras: Callable[[], Mapping[str, int]] = dict,
        is_saved: bool = False,
    ) -> None:
        self._run = run
        self._task = task
        self._kind: JobKind = kind
        self._id = job_id
        self._extras = extras
        self._is_saved = is_saved
        self._log = run.log

    def publish(
        self,
        inputs: Sequence[str] = (),
        known: int = 0,
        covers_all: Callable[[int], bool] = lambda _: True,
        site: str | None = None,
        requested: RequestedPages | None = None,
        *,
        most_completed: int = 0,
        most_total: int = 0,
    ) -> Any:
        """Publish the result, and return the task's XCom.

        :param inputs: the job's URLs or prompt, for OpenLineage.
        :param known: number of existing pages that were not requested.
        :param covers_all: returns whether a job with this number of pages, read or not, saw everything.
        :param site: the site whose pages a complete result covers.
        :param requested: the requested pages. Default: they are unknown.
        :param most_completed: the greatest number of completed pages that a poll has shown.
        :param most_total: the same for the number of attempted pages.
        """
        if JOBS[self._kind].documents is None:
            return self._publish_answer(inputs)
        if self._rows_path:
            self._log.warning("result_rows has no effect: this job has pages")
        requested = RequestedPages() if requested is None else requested
        summary, errors = self.page_summary(requested)
        # `completed` of some servers includes failed pages while the job runs.
        most = 0
        if errors.is_forgotten:
            most = most_total
        elif errors.is_known:
            most = most_completed - errors.failed - errors.robots_blocked
        cached = CachedPages()

        def documents() -> Iterator[dict[str, Any]]:
            for document in self.documents(errors, requested):
                cached.add(document)
                yield document
            summary["errors"] = errors.to_wire()
            if errors.skipped:
                summary[SKIPPED] = errors.skipped
            self._count_missing(summary, errors, requested, most)

        def saw_all(_: int) -> bool:
            return covers_all(errors.succeeded + errors.failed + errors.skipped)

        value = self._run.publish(
            Results(
                documents(),
                "document",
                summary,
                inputs,
                known,
                site=site,
                errors=errors,
                covers_all=saw_all,
            )
        )
        if cached.count:
            self._log.info(
                "%d pages came from the service's cache, the oldest %s", cached.count, cached.age()
            )
        self.report(summary)
        self.judge(errors, value, known)
        return value

    def publish_data(self, data: Any, summary: dict[str, Any], inputs: Sequence[str] = ()) -> Any:
        """Publish the data of a job that has no pages, and return the task's XCom.

        :param data: the job's data.
        :param summary: other values for XCom.
        :param inputs: the job's URLs or prompt, for OpenLineage.
        """
        found, rest = _rows_in(data, self._rows_path)
        if self._run.publication.path is not None and rest:
            summary["data"] = rest
        if data is None and (summary.get("message") or summary.get("pendingApproval")):
            # A turn of a thread that has a text answer only, or waits for an approval.
            found = []
        items = [item if isinstance(item, dict) else {"value": item} for item in found]
        results = Results(items, "generic", summary, inputs)
        return self._run.publish(results, lambda _, published: {**published, "data": data})

    def settle(self, status: Mapping[str, Any]) -> None:
        """Record the job's cost so far.

        :param status: the job's status, with wire names.
        """
        used, pages = known_credits(status.get("creditsUsed")), status.get("completed")
        formats: dict[str, float] = {}
        if isinstance(pages, int) and used:
            formats = by_format(used, pages, self._extras())
        saved = used or 0 if self._is_saved else 0
        # A job that continues may still bill up to its highest price.
        is_final = status.get("status", JOB_COMPLETED) in TERMINAL_JOB_STATES
        cost = Cost(used, formats, saved=saved, is_final=is_final)
        self._run.ledger.settle(cost, self._kind, call=self._id, is_stored=False)

    def settle_lost(self) -> Mapping[str, Any]:
        """Record the cost of a job that has no result, push what it found until it stopped, and return its status."""
        try:
            with self._run.hook as hook:
                status = hook.job_status(self._kind, self._id, limit=1).to_wire()
        except WebDataError as error:
            if self._run.hook.get_settings().client.server.bills:
                self._log.warning("The cost of job %s is unknown: %s", self._id, error.brief())
            status = {}
        if (partial := status.get("partial")) is not None:
            self._run.push(partial=partial)
            self._log.warning("The run's results until it stopped are in XCom 'partial'")
        self.settle(status)
        return status

    def page_summary(self, requested: RequestedPages) -> tuple[dict[str, Any], PageErrors]:
        """Record the cost of a job with pages; return its summary and the listed errors.

        :param requested: gets the listed pages.
        """
        status = self._ended_status(limit=1)
        summary: dict[str, Any] = {name: status.get(name) for name in _SUMMARY if name in status}
        summary["id"] = self._id
        self.settle(summary)
        return summary, self._listed_errors(requested)

    def documents(self, errors: PageErrors, requested: RequestedPages) -> Iterator[dict[str, Any]]:
        """Yield the job's pages, read in chunks, without those that were not fetched.

        :param errors: counts the pages that are not yielded. The publication counts the others.
        :param requested: gets all pages.
        """
        server = self._server
        for part in self._run.hook.iter_job_documents(self._kind, self._id):
            errors.skipped += part.skipped
            errors.returned += part.skipped + len(part.documents)
            requested.add_unnamed(part.skipped)
            for document in part.documents:
                metadata = metadata_of(document)
                requested.add(metadata.get("sourceURL"), metadata.get("url"), document.get("url"))
                if (warning := warning_instead(server, document)) and self._lack(None, warning):
                    errors.add_failed(url_of(document), str(warning), None)
                    continue
                if was_fetched(metadata):
                    yield document
                    continue
                errors.add_document(document)

    def _count_missing(
        self, summary: dict[str, Any], errors: PageErrors, requested: RequestedPages, most: int
    ) -> None:
        """Count the pages that were neither returned nor reported as failed.

        A server may count pages that it lost, or omit them from its counts, so a batch is compared with its request,
        and a crawl with the counts of earlier polls.

        :param most: number of pages that the server must have returned, by its counts during the wait.
        """
        # A job that was canceled at the credit limit lacks pages for this reason.
        if summary.get("status") == "cancelled":
            return
        counted = summary.get("completed")
        counted = counted if isinstance(counted, int) else 0
        urls: list[str] = []
        if len(requested):
            whole = len(requested)
            number, urls = requested.missing()
        elif summary.get("status") == "completed":
            whole = max(counted, most)
            number = whole - errors.returned
            if number <= 0 and errors.is_forgotten:
                self._run.lacks("failures_unknown", 1)
        else:
            return
        if number <= 0:
            return
        errors.missing, errors.missing_urls = number, [*urls[:10]]
        errors.are_lost = errors.is_forgotten or most > max(counted, errors.returned)
        summary[MISSING] = number
        self._run.lacks("pages_lost" if errors.are_lost else "pages_missing", number, whole)
        self._log_missing(summary, errors, whole, len(urls))

    def _log_missing(self, summary: Mapping[str, Any], errors: PageErrors, whole: int, listed: int) -> None:
        """Log the missing pages.

        :param whole: number of pages that the job should have.
        :param listed: number of requested URLs among which the missing pages are; 0 if the request is unknown.
        """
        if errors.are_lost:
            self._log.warning(
                "The server lost %d of %d pages of job %s, as after a restart without its database",
                errors.missing,
                whole,
                self._id,
            )
        elif listed:
            self._log.warning(
                "Job %s neither returned %d of %d requested pages nor reported them as failed",
                self._id,
                errors.missing,
                whole,
            )
        else:
            self._log.warning(
                "The service counts %d completed pages in job %s but returned %d",
                summary.get("completed"),
                self._id,
                errors.returned,
            )
        if listed:
            self._log.warning(
                "They are %s: %s",
                "these"
                if errors.missing == listed
                else "among these, because the server returned other URLs",
                trimmed("; ".join(errors.missing_urls), 1000),
            )
        else:
            self._log.warning("Run the task again, or report the job to the service")

    def report(self, summary: Mapping[str, Any]) -> None:
        """Log the job's end, and count its pages."""
        if summary.get("warning"):
            self._log.warning("The service warns: %s", error_text(summary["warning"]))
        self._log.info("%s %s: %s", name_of(self._kind).capitalize(), self._id, summary.get("status"))
        if isinstance(pages := summary.get("completed"), int):
            count("webdata.job.pages", pages, self._run.context, operation=self._kind)

    def judge(self, errors: PageErrors, value: Any, known: int = 0) -> None:
        """Log the failed pages; fail the task if they exceed `max_error_ratio`, or if no page was read.

        :param errors: the failed pages.
        :param value: the task's XCom.
        :param known: number of existing pages that were not requested; they count as read.
        """
        self._run.lacks("entries_skipped", errors.skipped)
        most = number("max_error_ratio", self._task.max_error_ratio, 1)
        excess = too_many(errors.failed + errors.missing, errors.succeeded, known, most)
        lack, page = None, None
        if errors.failed and not errors.succeeded:
            # Other pages may have failed by themselves.
            found = ((self._lack(page.code, page.error or ""), page) for page in errors.pages)
            lack, page = next((one for one in found if one[0]), (None, None))
        error: TooManyFailuresError | UnsupportedError | None = None
        if lack and page and not self._server.bills:
            text = f"No page of job {self._id} has a requested format: {page.error}"
            error = UnsupportedError(label_of(self._kind), 200, text, lack=lack)
        elif excess:
            text = f"{excess.text}: {errors.first_few()}. The result is published anyway, and is in XCom"
            error = TooManyFailuresError(text, ratio=excess.ratio)
        level = logging.WARNING if error is None else logging.ERROR
        for line in errors.groups.lines("page"):
            self._log.log(level, "%s", line)
        if remedy := private_target_remedy(self._server, self._unread(errors)):
            self._log.log(level, "%s", sentence(remedy))
        if lack and self._server.bills:
            self._log.log(level, "The server does not support this call: %s", lack)
        if errors.warned:
            self._log.warning(
                "%d of %d pages have a warning from the service, such as: %s",
                *(errors.warned, errors.returned, errors.first_warning),
            )
        if errors.robots_blocked:
            self._log.warning(
                "%d URLs were not fetched, because robots.txt forbids it", errors.robots_blocked
            )
        if error is not None:
            error.reasons = errors.reasons()
            self._run.refuse_published(error, value)

    def _unread(self, errors: PageErrors) -> list[object]:
        """Return URLs that a server may have refused: failed ones; without any page, those that were requested."""
        if errors.succeeded:
            return []
        if errors.pages:
            return [page.url for page in errors.pages if may_refuse_private(page.code)]
        return [self._run.body.get("url"), *(self._run.body.get("urls") or ())]

    def _lack(self, code: str | None, error: str) -> str | None:
        """Return what the server lacks for the request, by the error of a page, or None."""
        return missing_part(self._server, f"start_{self._kind}", 500, code, error, self._run.body)

    @cached_property
    def _server(self) -> Server:
        return self._run.hook.get_settings().client.server

    @property
    def _rows_path(self) -> list[str]:
        return rows_path(getattr(self._task, "result_rows", None))

    def _publish_answer(self, inputs: Sequence[str]) -> Any:
        answer = self._ended_status()
        answer.pop("success", None)
        data = answer.pop("data", None)
        summary: dict[str, Any] = {"id": self._id, **answer}
        self.settle(summary)
        self.report(summary)
        self._report_approval(summary)
        return self.publish_data(data, summary, inputs)

    def _ended_status(self, limit: int | None = None) -> dict[str, Any]:
        """Return the status of the job, which has ended, with wire names.

        :param limit: maximum number of documents.
        :raises UnfinishedJobError: a lagging replica of the service still shows it as running.
        """
        status = self._run.hook.job_status(self._kind, self._id, limit=limit)
        if status.status not in TERMINAL_JOB_STATES and getattr(status, "completed_at", None) is None:
            raise UnfinishedJobError(JOBS[self._kind].status.label, self._id, status.status)
        return status.to_wire()

    def _report_approval(self, summary: Mapping[str, Any]) -> None:
        """Log the approval that an agent run is waiting for."""
        pending = summary.get("pendingApproval")
        if not isinstance(pending, dict) or pending.get("resolution"):
            return
        terms = [str(item.get("url")) for item in pending.get("terms") or () if isinstance(item, dict)]
        self._log.warning(
            "Agent run %s waits for an approval: %s",
            self._id,
            pending.get("reason") or "the service gives no reason.",
        )
        if terms:
            self._log.warning("An administrator must accept the terms first: %s", ", ".join(terms))
        self._log.warning(
            "Respond in the next run of thread %s with exchange={'approve': {'approvalId': %r}} or 'decline'",
            summary.get("threadId"),
            pending.get("id"),
        )

    def _listed_errors(self, requested: RequestedPages) -> PageErrors:
        found = PageErrors()
        try:
            answer = self._run.hook.job_errors(self._kind, self._id)
        except (APIError, InvalidResponseError) as error:
            if error.verdict == "later":
                raise
            # Unlike a server without such a list, whose text does not mention the job.
            is_forgotten = isinstance(error, NotFoundError) and "job" in error.message.casefold()
            self._log.warning(
                "The failed pages of job %s are unknown, because the service %s: %s",
                self._id,
                "no longer knows the job" if is_forgotten else "does not list them",
                error.brief(),
            )
            return PageErrors(is_known=False, is_forgotten=is_forgotten)
        if answer.skipped:
            self._log.warning(
                "The failed pages of job %s are unknown: %d entries of their list are odd",
                self._id,
                answer.skipped,
            )
            found.is_known = False
        requested.add_unnamed(answer.skipped)
        for page in answer.failed:
            found.add_failed(page.url, error_text(page.error) or None, page.code)
            requested.add_reported(page.url)
        blocked = answer.robots_blocked or ()
        for url in blocked:
            requested.add_reported(url)
        found.robots_blocked = len(blocked)
        return found


def _rows_in(data: Any, path: Sequence[str]) -> tuple[list[Any], Any]:
    """Return the rows at a path in a job's data, and the rest of the data."""
    if not path:
        return (data if isinstance(data, list) else [data]), None
    name, *deeper = path
    if not isinstance(data, dict) or name not in data:
        return [data], None
    others = {key: value for key, value in data.items() if key != name}
    if not deeper:
        return (data[name], others) if isinstance(data[name], list) else ([data], None)
    rows, rest = _rows_in(data[name], deeper)
    return (rows, {**others, name: rest}) if rest is not None else ([data], None)


def texts(given: Any) -> list[str]:
    """Return an argument with URLs or a prompt as a list."""
    return [given] if isinstance(given, str) else [str(item) for item in given or ()]
