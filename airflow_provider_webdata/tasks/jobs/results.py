"""Takes the result of a job that is over: its pages, the errors of single pages, and what those mean for the task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.arguments import number
from airflow_provider_webdata.tasks.result_output import ResultDelivery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.states.jobs import JobKind

MOST_LISTED = 100
"""Page errors that are listed one by one; all are counted."""

_SKIPPED = frozenset({"EXTERNAL_LINK"})
"""Codes of pages that the service lists among the errors, though it only skipped them."""

_FACTS = (
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
    """The pages of a job that failed.

    :param count: how many.
    :param succeeded: pages without an error.
    :param robots_blocked: URLs that were not fetched because robots.txt forbids it.
    :param pages: the first failed ones, each with `url`, `error` and `code`.
    """

    count: int = 0
    succeeded: int = 0
    robots_blocked: int = 0
    pages: list[dict[str, Any]] = field(default_factory=list)

    def add_failed(self, url: str | None, error: str | None, code: str | None) -> None:
        """Count a failed page; the code is the service's, or the status that the site answered."""
        self.count += 1
        if len(self.pages) < MOST_LISTED:
            self.pages.append({"url": url, "error": error, "code": code})

    def add_document(self, document: Mapping[str, Any]) -> None:
        """Count a page, with wire names; one whose site answered with an error counts as failed."""
        metadata = document.get("metadata") or {}
        status, error = metadata.get("statusCode"), metadata.get("error")
        if error or (isinstance(status, int) and status >= 400):
            url = metadata.get("sourceURL") or metadata.get("url")
            self.add_failed(
                url, error or f"the site answered {status}", None if status is None else str(status)
            )
        else:
            self.succeeded += 1

    @property
    def ratio(self) -> float:
        """The part of all pages that failed, 0 to 1."""
        return self.count / (self.count + self.succeeded) if self.count else 0.0

    def to_wire(self) -> dict[str, Any]:
        """Return its form in XCom."""
        return {"count": self.count, "robotsBlocked": self.robots_blocked, "pages": self.pages}


class JobResults(ResultDelivery):
    """Base of the tasks that return a job's result.

    XCom of a crawl or batch scrape: a mapping with `id`, `status`, `total`, `completed`, `creditsUsed`, `expiresAt`,
    `errors` (`count`, `robotsBlocked`, and the first 100 under `pages`) and `data`, the pages with wire names in the
    order of their completion; with `output`, what was written and where instead of `data`. Of an extract job or agent
    run: the service's answer, with `id` and `data`; of a turn that an agent answers with text only, `message`.

    :param max_error_ratio: fail the task if a larger part of the pages than this, from 0 to 1, failed (templated). None
        (default): never. The result is stored and pushed anyway, and no retry is made, as it would not differ.
    :param kwargs: arguments of the other base classes.
    """

    def __init__(self, *, max_error_ratio: float | str | None = None, **kwargs: Any) -> None:
        if not isinstance(max_error_ratio, str):
            number("max_error_ratio", max_error_ratio, 1)
        super().__init__(**kwargs)
        self.max_error_ratio = max_error_ratio

    def collect(self, kind: JobKind, job_id: str, context: Context, inputs: Sequence[str] = ()) -> Any:
        """Return the result of a job that is over; with `output`, its summary.

        Reading is not billed. Pages are read and delivered part by part.

        :param inputs: the job's URLs or prompt, for OpenLineage.
        """
        from airflow_provider_webdata.states.jobs import PAGED_KINDS

        if kind in PAGED_KINDS:
            if self.rows_path():
                self.log.warning("Schema(rows=) has no effect: this job has pages")
            return self._pages(kind, job_id, context, inputs)
        return self._answer(kind, job_id, context, inputs)

    def count_job(
        self, kind: JobKind, status: Mapping[str, Any], context: Context, *, is_saved: bool = False
    ) -> None:
        """Count what a job has cost so far.

        :param status: of the job, with wire names and `id`.
        :param is_saved: whether another job would have cost that again.
        """
        from airflow_provider_webdata.api.prices import credits_of_tokens
        from airflow_provider_webdata.runs.credit_account import by_format

        used, pages, tokens = status.get("creditsUsed"), status.get("completed"), status.get("tokensUsed")
        if used is None and isinstance(tokens, (int, float)):
            used = credits_of_tokens(tokens)
        formats: dict[str, float] = {}
        if isinstance(pages, int) and isinstance(used, (int, float)) and used > 0:
            formats = by_format(used, pages, self.page_extras())
        saved = used or 0 if is_saved else 0
        self.billing(context).count(used, kind, call=status["id"], formats=formats, saved=saved)

    def is_found_again(self, context: Context) -> bool:  # noqa: ARG002
        """Return whether an earlier attempt started the job."""
        return False

    def page_extras(self) -> Mapping[str, int]:
        """Return what formats and options add to the price of each of the job's pages, where that is known."""
        return {}

    def _answer(self, kind: JobKind, job_id: str, context: Context, inputs: Sequence[str]) -> Any:
        answer = self.hook.job_status(kind, job_id).to_wire()
        answer.pop("success", None)
        data = answer.pop("data", None)
        summary: dict[str, Any] = {"id": job_id, **answer}
        self.count_job(kind, summary, context, is_saved=self.is_found_again(context))
        self.report_job(kind, summary, context)
        return self.deliver_data(data, summary, context, inputs)

    def deliver_data(
        self, data: Any, summary: dict[str, Any], context: Context, inputs: Sequence[str]
    ) -> Any:
        """Deliver the data of a job that has no pages; see `collect`."""
        found, rest = _rows_in(data, self.rows_path())
        if self.output_path is not None and rest:
            summary["data"] = rest
        if data is None and summary.get("message"):
            # A turn of a thread that was answered with text only.
            found = []
        items = [item if isinstance(item, dict) else {"value": item} for item in found]
        return self.deliver(
            items, "generic", context, summary, inputs=inputs, value=lambda _, facts: {**facts, "data": data}
        )

    def page_summary(self, kind: JobKind, job_id: str, context: Context) -> tuple[dict[str, Any], PageErrors]:
        """Count what a job with pages cost, and return its summary and the errors that the service lists."""
        status = self.hook.job_status(kind, job_id, limit=1).to_wire()
        summary: dict[str, Any] = {name: status.get(name) for name in _FACTS if name in status}
        summary["id"] = job_id
        self.count_job(kind, summary, context, is_saved=self.is_found_again(context))
        return summary, self._listed_errors(kind, job_id)

    def _pages(self, kind: JobKind, job_id: str, context: Context, inputs: Sequence[str]) -> Any:
        summary, errors = self.page_summary(kind, job_id, context)
        from airflow_provider_webdata.runs.cached_pages import CachedPages

        cached = CachedPages()

        def documents() -> Iterator[dict[str, Any]]:
            for part in self.hook.iter_job_documents(kind, job_id):
                for document in part.documents:
                    errors.add_document(document)
                    cached.add(document)
                    yield document
            summary["errors"] = errors.to_wire()

        value = self.deliver(documents(), "document", context, summary, inputs=inputs)
        if cached.count:
            self.log.info("%d pages came from the service's cache, the oldest %s", cached.count, cached.age())
        self.report_job(kind, summary, context)
        self.judge_errors(errors, value, context)
        return value

    def _listed_errors(self, kind: JobKind, job_id: str) -> PageErrors:
        found = PageErrors()
        answer = self.hook.job_errors(kind, job_id)
        for error in answer.errors or ():
            if error.code not in _SKIPPED:
                found.add_failed(error.url, error.error, error.code)
        found.robots_blocked = len(answer.robots_blocked or ())
        return found

    def report_job(self, kind: JobKind, summary: Mapping[str, Any], context: Context) -> None:
        """Log the end of a job, and count its pages."""
        from airflow_provider_webdata.runs.metrics import count
        from airflow_provider_webdata.states.jobs import name_of

        if summary.get("warning"):
            self.log.warning("The service warns: %s", summary["warning"])
        used = summary.get("creditsUsed")
        is_known = isinstance(used, (int, float)) and used >= 0
        self.log.info(
            "%s %s: %s; credits used so far: %s",
            name_of(kind).capitalize(),
            summary["id"],
            summary.get("status"),
            used if is_known else "unknown",
        )
        if isinstance(pages := summary.get("completed"), int):
            count("webdata.job.pages", pages, context, operation=kind)

    def judge_errors(self, errors: PageErrors, value: Any, context: Context) -> None:
        """Log the pages that failed; fail the task where they exceed `max_error_ratio`."""
        from airflow_provider_webdata.runs.failures import TooManyFailuresError

        if errors.count:
            self.log.warning(
                "%d pages failed, %d succeeded: %s",
                errors.count,
                errors.succeeded,
                "; ".join(f"{page['url']}: {page['error'] or page['code']}" for page in errors.pages[:10]),
            )
        if errors.robots_blocked:
            self.log.warning("%d URLs were not fetched, because robots.txt forbids it", errors.robots_blocked)
        most = number("max_error_ratio", self.max_error_ratio, 1)
        if most is None or errors.ratio <= most:
            return
        # A task that fails returns nothing, so the billed result is pushed under the key of the return value.
        self.push(context, return_value=value)
        self.refuse(
            TooManyFailuresError(
                f"{errors.count} of {errors.count + errors.succeeded} pages failed, more than "
                f"max_error_ratio={most:g} allows; the result is stored and in XCom all the same"
            )
        )


def _rows_in(data: Any, path: Sequence[str]) -> tuple[list[Any], Any]:
    """Return the results in the data of a job, and what the data has besides."""
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
    """Return an argument that names URLs, or a prompt, as a list."""
    return [given] if isinstance(given, str) else [str(item) for item in given or ()]
