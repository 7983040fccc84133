"""The operator that rates a result of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.options import one_of
from airflow_provider_webdata.tasks.operator import RequestFields, WebDataOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class WebDataFeedbackOperator(
    WebDataOperator,
    fields=RequestFields("FeedbackRequest", own=("on_refused",), defaults={"endpoint": "search"}),
):
    """Rate the result of a search, scrape, parse, or map. Free.

    The service refunds a credit for the first feedback on a search, up to a daily limit of the team. Repeated feedback,
    such as by a retry after a lost response, has no effect, and the task succeeds. The service accepts feedback only
    for a short time: run the task soon after the call.

    Without `endpoint`, the feedback is about a search. All arguments up to `integration` are templated fields of POST
    /v2/feedback. Omitted arguments are not sent; the defaults below are the service's.

    XCom: a mapping with the wire names `feedbackId`, `creditsRefunded`, `alreadySubmitted`, `dailyCapReached`,
    `creditsRefundedToday`, `dailyRefundCap` and `warning`, each also under its own key.

    :param on_refused: what to do if the service does not accept feedback on the call, or no longer does: `fail`
        (default, without a retry) or `skip`.
    :param job_id: UUID of that call: `id` of a search or a map, `metadata.scrapeId` of a page or a parsed file.
    :param rating: `good`, `partial` or `bad`. A good search names `valuable_sources`, a partial one those or
        `missing_content`, a bad one `missing_content` or `query_suggestions`.
    :param endpoint: the operation of the call: `search`, `scrape`, `parse`, or `map`.
    :param valuable_sources: at most 50 useful results: `url`, `reason`.
    :param missing_content: at most 50 missing topics: `topic`, `description`; of a search, 20.
    :param query_suggestions: suggested improvements of the query, at most 2,000 characters.
    :param issues: at most 20 names of problems, such as `missing_markdown`.
    :param tags: at most 20 custom names. Names consist of lower-case letters, digits, `_`, and `-`.
    :param note: free text, at most 4,000 characters.
    :param url: the page that the feedback is about, with protocol.
    :param page_numbers: at most 100 page numbers of a document, from 1.
    :param metadata: additional information as a mapping, at most 8 KB of JSON; no results.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    run = "airflow_provider_webdata.runs.feedback:FeedbackRun"

    def __init__(
        self,
        *,
        # fields of FeedbackRequest, written by tools/operator_fields.py
        job_id: str,
        rating: str,
        endpoint: str = "search",
        valuable_sources: Sequence[Mapping[str, Any]] | None = None,
        missing_content: Sequence[Mapping[str, Any]] | None = None,
        query_suggestions: str | None = None,
        issues: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        note: str | None = None,
        url: str | None = None,
        page_numbers: Sequence[int | str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        origin: str | None = None,
        integration: str | None = None,
        # end of fields
        on_refused: Literal["fail", "skip"] = "fail",
        **kwargs: Any,
    ) -> None:
        one_of("on_refused", on_refused, ("fail", "skip"))
        super().__init__(**kwargs)
        # fields of FeedbackRequest, written by tools/operator_fields.py
        self.job_id = job_id
        self.rating = rating
        self.endpoint = endpoint
        self.valuable_sources = valuable_sources
        self.missing_content = missing_content
        self.query_suggestions = query_suggestions
        self.issues = issues
        self.tags = tags
        self.note = note
        self.url = url
        self.page_numbers = page_numbers
        self.metadata = metadata
        self.origin = origin
        self.integration = integration
        # end of fields
        self.on_refused = on_refused
