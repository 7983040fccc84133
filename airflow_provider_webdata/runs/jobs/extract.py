"""An extract job, or the batch scrape or agent run that replaces it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import UnsupportedError
from airflow_provider_webdata.api.models import AgentRequest, BatchScrapeRequest
from airflow_provider_webdata.api.servers import missing_part
from airflow_provider_webdata.common import endings
from airflow_provider_webdata.common.arguments import number
from airflow_provider_webdata.common.item_urls import url_of
from airflow_provider_webdata.runs.failures import JobFailedError
from airflow_provider_webdata.runs.jobs.extract_successors import (
    KINDS,
    agent_reasons,
    as_agent,
    as_batch_scrape,
    combined,
    ignored_by_agent,
)
from airflow_provider_webdata.runs.jobs.job import JobRun
from airflow_provider_webdata.runs.request import request_body

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk.exceptions import AirflowException

    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.operators.extract import WebDataExtractOperator
    from airflow_provider_webdata.runs.jobs.extract_successors import Successor
    from airflow_provider_webdata.runs.jobs.results import PageErrors
    from airflow_provider_webdata.states.outcomes import JobOutcome


class ExtractRun(JobRun):
    """One attempt of a task that extracts data; `via` selects the operation."""

    task: WebDataExtractOperator

    def call(self) -> Any:
        """Start the job, or find the one of an earlier attempt, and return its result or its id."""
        self.kind = self.operation = self._chosen_kind()
        if self.kind == "agent" and (ignored := ignored_by_agent(request_body(self.task))):
            self.log.warning("via='agent' does not support %s; ignoring", ", ".join(ignored))
        return super().call()

    def resume_with(self, outcome: JobOutcome) -> Any:
        """Resume after waiting for the outcome's job."""
        self.kind = self.operation = outcome.kind or self.kind
        return super().resume_with(outcome)

    def resume_failed(self, error: AirflowException) -> Any:
        """Finish the task without an event of its trigger."""
        self.kind = self.operation = self._chosen_kind()
        return super().resume_failed(error)

    def request(self) -> tuple[type[RequestModel], Mapping[str, Any]]:
        """Return the request model of `via`, and the request's fields."""
        if self.kind == "extract":
            return super().request()
        body = request_body(self.task)
        if self.kind == "batch_scrape":
            return BatchScrapeRequest, as_batch_scrape(body)
        return AgentRequest, as_agent(body, number("credit_limit", self.task.credit_limit))

    def publish_job(self, job_id: str) -> Any:
        """Publish the result of the job in the shape of an extract job's."""
        if self.kind != "batch_scrape":
            return super().publish_job(job_id)
        result = self.result(job_id)
        summary, errors = result.page_summary()
        data, sources = combined(
            (
                (url_of(document) or "", document["json"])
                for document in result.documents(errors)
                if document.get("json") is not None
            ),
            self.task.urls or (),
        )
        if request_body(self.task).get("showSources"):
            summary["sources"] = sources
        summary["errors"] = errors.to_wire()
        result.report(summary)
        if data is None:
            text = f"No page of batch scrape {job_id} returned data. {errors.first_few()}".rstrip()
            if lack := self._lack(errors):
                self.refuse(UnsupportedError(self.operation, 500, text, lack=lack))
            self.refuse(JobFailedError(text))
        value = result.publish_data(data, summary, self.targets())
        result.judge(errors, value)
        return value

    def _lack(self, errors: PageErrors) -> str | None:
        """Return what the server lacks according to a page's error, as in the error of a single scrape."""
        server, wire = self.hook.get_settings().client.server, self.request()[1]
        lacks = (
            missing_part(server, "scrape", 500, page["code"], str(page["error"]), wire)
            for page in errors.pages
        )
        return next(filter(None, lacks), None)

    def _chosen_kind(self) -> JobKind:
        given: Successor | None = self.task.via
        if given is not None and given not in KINDS:
            self.refuse(f"via must be one of {', '.join(KINDS)} (given: {given!r})")
        server = self.hook.get_settings().client.server
        ended = endings.EXTRACT.has_passed() and server.ends_operations
        if given in ("extract", "agent") or (given is None and not ended):
            return KINDS[given or "extract"]
        reasons = agent_reasons(request_body(self.task))
        if given == "scrape" and reasons:
            self.refuse(
                f"via='scrape' cannot replace this extract job: {'; '.join(reasons)}. Use via='agent'"
            )
        via: Successor = "agent" if reasons else "scrape"
        if given is None:
            self.log.warning(
                "%s. This task uses via=%r, which has different prices", endings.EXTRACT.warning, via
            )
        return KINDS[via]
