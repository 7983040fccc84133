"""The result of a job: its pages or data, and the errors of individual pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.endpoints import JOBS, label_of
from airflow_provider_webdata.api.errors import (
    APIError,
    InvalidResponseError,
    UnfinishedJobError,
    UnsupportedError,
    WebDataError,
    error_text,
    trimmed,
)
from airflow_provider_webdata.api.prices import by_format
from airflow_provider_webdata.api.servers import missing_part, warning_instead
from airflow_provider_webdata.common.arguments import number
from airflow_provider_webdata.common.item_urls import page_problem, site_failed, url_of, was_fetched
from airflow_provider_webdata.common.numbers import known_credits
from airflow_provider_webdata.common.xcom_keys import MISSING, SKIPPED
from airflow_provider_webdata.hooks.task_metrics import count
from airflow_provider_webdata.runs.failures import FailureGroups, TooManyFailuresError, too_many
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.runs.pages.cached_pages import CachedPages
from airflow_provider_webdata.runs.publishing.step import Results
from airflow_provider_webdata.runs.publishing.validate import rows_path
from airflow_provider_webdata.states.jobs import TERMINAL_JOB_STATES, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from airflow_provider_webdata.api.servers import Server
    from airflow_provider_webdata.base.job_operator import WebDataJobOperator
    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.runs.run import Run
    from airflow_provider_webdata.sensors.job import WebDataJobSensor

MAX_LISTED = 100
"""Maximum page errors to list; all are counted."""

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


@dataclass
class PageErrors:
    """The pages of a job that failed or have a warning.

    :param failed: number of failed pages.
    :param succeeded: number of pages without an error.
    :param robots_blocked: number of URLs that were not fetched because robots.txt forbids it.
    :param unread: URLs of all pages that were not fetched.
    :param is_known: False if the service does not list the failed pages; `failed` then has those among the documents.
    :param skipped: entries of the result that are no pages.
    :param returned: all entries of the result.
    :param pages: the first failed ones, each with `url`, `error` and `code`.
    :param groups: all failed ones by their reason.
    :param warned: number of pages with a warning.
    :param first_warning: the first of these warnings.
    """

    failed: int = 0
    succeeded: int = 0
    robots_blocked: int = 0
    is_known: bool = True
    skipped: int = 0
    returned: int = 0
    pages: list[dict[str, Any]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    groups: FailureGroups = field(default_factory=FailureGroups)
    warned: int = 0
    first_warning: str = ""

    def add_failed(self, url: str | None, error: str | None, code: str | None) -> None:
        """Count a failed page; `code` is the service's code or the site's HTTP status."""
        self.failed += 1
        # The text may name the page.
        reason = str(code or error or "no reason given")
        if code and error and str(url) not in error:
            reason = f"{code}: {trimmed(error, 120)}"
        self.groups.add(str(url), reason)
        if len(self.pages) < MAX_LISTED:
            self.pages.append({"url": url, "error": error, "code": code})

    def add_document(self, document: Mapping[str, Any]) -> None:
        """Count a page, with wire names; an error status of its site counts as failed."""
        if warning := document.get("warning"):
            self.warned += 1
            self.first_warning = self.first_warning or str(warning)
        metadata = _metadata_of(document)
        if site_failed(metadata):
            url, status = metadata.get("sourceURL") or metadata.get("url"), metadata.get("statusCode")
            self.add_failed(url, page_problem(metadata), None if status is None else str(status))
        else:
            self.succeeded += 1

    def first_few(self) -> str:
        """Return the first failed pages as text."""
        return trimmed(
            "; ".join(f"{page['url']}: {page['error'] or page['code']}" for page in self.pages[:10])
        )

    def to_wire(self) -> dict[str, Any]:
        """Return the XCom form."""
        if not self.is_known:
            return {"count": None, "robots_blocked": None, "pages": self.pages}
        return {"count": self.failed, "robots_blocked": self.robots_blocked, "pages": self.pages}


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
        known: Sequence[str] = (),
        covers_all: Callable[[int], bool] = lambda _: True,
        site: str | None = None,
        dropped: Sequence[str] = (),
    ) -> Any:
        """Publish the result, and return the task's XCom.

        :param inputs: the job's URLs or prompt, for OpenLineage.
        :param known: keys of existing pages that were not requested.
        :param covers_all: returns whether a job with this number of pages saw everything.
        :param site: the site whose pages a complete result covers.
        :param dropped: URLs that the service did not try to fetch.
        """
        if JOBS[self._kind].documents is None:
            return self._publish_answer(inputs)
        if self._rows_path:
            self._log.warning("result_rows has no effect: this job has pages")
        summary, errors = self.page_summary()
        errors.unread += dropped
        cached = CachedPages()

        def documents() -> Iterator[dict[str, Any]]:
            for document in self.documents(errors):
                cached.add(document)
                yield document
            summary["errors"] = errors.to_wire()
            if errors.skipped:
                summary[SKIPPED] = errors.skipped
            self._count_missing(summary, errors)

        def saw_all(pages: int) -> bool:
            return errors.is_known and not errors.skipped and covers_all(pages)

        value = self._run.publish(
            Results(
                documents(),
                "document",
                summary,
                inputs,
                known,
                site=site,
                by_links=self._kind == "crawl",
                unread=errors.unread,
                covers_all=saw_all,
            )
        )
        if cached.count:
            self._log.info(
                "%d pages came from the service's cache, the oldest %s", cached.count, cached.age()
            )
        self.report(summary)
        self.judge(errors, value)
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
        self._run.ledger.settle(Cost(used, formats, saved=saved), self._kind, call=self._id)

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

    def page_summary(self) -> tuple[dict[str, Any], PageErrors]:
        """Record the cost of a job with pages; return its summary and the listed errors."""
        status = self._ended_status(limit=1)
        summary: dict[str, Any] = {name: status.get(name) for name in _SUMMARY if name in status}
        summary["id"] = self._id
        self.settle(summary)
        return summary, self._listed_errors()

    def documents(self, errors: PageErrors) -> Iterator[dict[str, Any]]:
        """Yield the job's pages, read in chunks, without those that were not fetched.

        :param errors: counts all pages.
        """
        server = self._server
        for part in self._run.hook.iter_job_documents(self._kind, self._id):
            errors.skipped += part.skipped
            errors.returned += part.skipped + len(part.documents)
            for document in part.documents:
                if (warning := warning_instead(server, document)) and self._lack(None, warning):
                    url = url_of(document)
                    errors.add_failed(url, str(warning), None)
                    errors.unread += filter(None, [url])
                    continue
                errors.add_document(document)
                if was_fetched(_metadata_of(document)):
                    yield document
                elif (url := url_of(document)) is not None:
                    errors.unread.append(url)

    def _count_missing(self, summary: dict[str, Any], errors: PageErrors) -> None:
        counted = summary.get("completed")
        if (
            summary.get("status") == "completed"
            and isinstance(counted, int)
            and (missing := counted - errors.returned) > 0
        ):
            summary[MISSING] = missing
            self._run.lacks("pages_missing", missing, counted)
            self._log.warning(
                "The service counts %d completed pages in job %s but returned %d. No page counts as removed now",
                counted,
                self._id,
                errors.returned,
            )
            self._log.warning("Run the task again, or report the job to the service")

    def report(self, summary: Mapping[str, Any]) -> None:
        """Log the job's end, and count its pages."""
        if summary.get("warning"):
            self._log.warning("The service warns: %s", error_text(summary["warning"]))
        used = known_credits(summary.get("creditsUsed"))
        self._log.info(
            "%s %s: %s; credits used so far: %s",
            name_of(self._kind).capitalize(),
            self._id,
            trimmed(str(summary.get("status"))),
            "unknown" if used is None else used,
        )
        if isinstance(pages := summary.get("completed"), int):
            count("webdata.job.pages", pages, self._run.context, operation=self._kind)

    def judge(self, errors: PageErrors, value: Any) -> None:
        """Log the failed pages; fail the task if they exceed `max_error_ratio`.

        :param errors: the failed pages.
        """
        self._run.lacks("pages_failed", errors.failed, errors.failed + errors.succeeded)
        self._run.lacks("entries_skipped", errors.skipped)
        most = number("max_error_ratio", self._task.max_error_ratio, 1)
        excess = too_many(errors.failed, errors.failed + errors.succeeded, "pages", most or 0)
        fails = most is not None and excess is not None
        for line in errors.groups.lines("page"):
            (self._log.error if fails else self._log.warning)("%s", line)
        lack = None
        if errors.failed and not errors.succeeded:
            first = errors.pages[0]
            lack = self._lack(first["code"], first["error"] or "")
        if errors.warned:
            self._log.warning(
                "%d of %d pages have a warning from the service, such as: %s",
                *(errors.warned, errors.returned, trimmed(errors.first_warning)),
            )
        if errors.robots_blocked:
            self._log.warning(
                "%d URLs were not fetched, because robots.txt forbids it", errors.robots_blocked
            )
        if lack and not self._server.bills:
            text = f"No page of job {self._id} has a requested format: {errors.pages[0]['error']}"
            self._run.refuse_published(UnsupportedError(label_of(self._kind), 200, text, lack=lack), value)
        if lack:
            (self._log.error if fails else self._log.warning)(
                "The server does not support this call: %s", lack
            )
        if fails:
            error = TooManyFailuresError(f"{excess}; the result is published anyway, and is in XCom")
            self._run.refuse_published(error, value)

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
        terms = [
            trimmed(str(item.get("url"))) for item in pending.get("terms") or () if isinstance(item, dict)
        ]
        self._log.warning(
            "Agent run %s waits for an approval: %s",
            self._id,
            trimmed(str(pending.get("reason") or "the service gives no reason.")),
        )
        if terms:
            self._log.warning("An administrator must accept the terms first: %s", ", ".join(terms))
        self._log.warning(
            "Respond in the next run of thread %s with exchange={'approve': {'approvalId': %r}} or 'decline'",
            summary.get("threadId"),
            pending.get("id"),
        )

    def _listed_errors(self) -> PageErrors:
        found = PageErrors()
        try:
            answer = self._run.hook.job_errors(self._kind, self._id)
        except (APIError, InvalidResponseError) as error:
            if error.verdict == "later":
                raise
            self._log.warning(
                "The failed pages of job %s are unknown, because the service does not list them: %s",
                self._id,
                error.brief(),
            )
            return PageErrors(is_known=False)
        if answer.skipped:
            self._log.warning(
                "The failed pages of job %s are unknown: %d entries of their list are odd",
                self._id,
                answer.skipped,
            )
            found.is_known = False
        for page in answer.failed:
            found.add_failed(page.url, error_text(page.error) or None, page.code)
        blocked = answer.robots_blocked or ()
        found.robots_blocked = len(blocked)
        found.unread = [*(page.url for page in answer.failed if page.url), *blocked]
        return found


def _metadata_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


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
