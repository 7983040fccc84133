"""Feedback on the result of a call, and the service's response."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from airflow_provider_webdata.api.models.base import Answer, OrNone, Remark, RequestModel, problem
from airflow_provider_webdata.api.models.fields import (
    Identifier,
    Integer,
    Integration,
    JsonObject,
    Label,
    Listed,
    String,
    Text,
    WholeAddress,
    not_larger_than,
)

Rating = Literal["good", "partial", "bad"]

_SAYS_WHAT = {
    "good": ("valuable_sources",),
    "partial": ("valuable_sources", "missing_content"),
    "bad": ("missing_content", "query_suggestions"),
}
"""Fields of search feedback by rating; at least one of them is required."""

_Detail = Annotated[Text, Field(max_length=2000)]
_Name = Annotated[Text, Field(max_length=200)]


class ValuableSource(RequestModel):
    """A useful result.

    :param url: URL of the result, with protocol.
    :param reason: why it was useful, at most 1,000 characters.
    """

    url: WholeAddress
    reason: Annotated[String, Field(max_length=1000)] | None = None


class MissingContent(RequestModel):
    """A topic that the result lacks.

    :param topic: short name, 1 to 200 characters.
    :param description: at most 2,000 characters.
    """

    topic: Annotated[Text, Field(min_length=1, max_length=200)]
    description: Annotated[String, Field(max_length=2000)] | None = None


class SearchFeedbackRequest(RequestModel):
    """Body of `POST /v2/search/{jobId}/feedback`.

    :param rating: `good`, `partial` or `bad`. A good search names `valuable_sources`, a partial one those or
        `missing_content`, a bad one `missing_content` or `query_suggestions`.
    :param valuable_sources: at most 50 useful results: `url`, `reason`.
    :param missing_content: at most 20 missing topics: `topic`, `description`.
    :param query_suggestions: suggested improvements of the query, at most 2,000 characters.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    nullable = frozenset({"integration"})

    rating: Rating
    valuable_sources: Annotated[Listed[ValuableSource], Field(max_length=50)] | None = None
    missing_content: Annotated[Listed[MissingContent], Field(max_length=20)] | None = None
    query_suggestions: Annotated[String, Field(max_length=2000)] | None = None
    origin: Text | None = None
    integration: Integration | None = None

    def _check(self) -> None:
        fields = _SAYS_WHAT[self.rating]
        if not any(getattr(self, name) for name in fields):
            wire = [type(self).model_fields[name].alias or name for name in fields]
            raise problem("says_nothing", f"feedback with rating '{self.rating}' needs {' or '.join(wire)}")


class FeedbackRequest(RequestModel):
    """Body of `POST /v2/feedback`.

    One of `issues`, `note`, `valuable_sources`, `missing_content`, `query_suggestions`, `url` and `page_numbers` is
    required.

    :param endpoint: the operation of the call: `search`, `scrape`, `parse`, or `map`.
    :param job_id: UUID of that call: `id` of a search or a map, `metadata.scrapeId` of a page or a parsed file.
    :param rating: `good`, `partial` or `bad`. A good search names `valuable_sources`, a partial one those or
        `missing_content`, a bad one `missing_content` or `query_suggestions`.
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
    """

    nullable = frozenset({"integration"})

    endpoint: Literal["search", "scrape", "parse", "map"]
    job_id: Identifier
    rating: Rating
    valuable_sources: Annotated[Listed[ValuableSource], Field(max_length=50)] | None = None
    missing_content: Annotated[Listed[MissingContent], Field(max_length=50)] | None = None
    query_suggestions: Annotated[String, Field(max_length=2000)] | None = None
    issues: Annotated[Listed[Label], Field(max_length=20)] | None = None
    tags: Annotated[Listed[Label], Field(max_length=20)] | None = None
    note: Annotated[String, Field(max_length=4000)] | None = None
    url: WholeAddress | None = None
    page_numbers: Annotated[Listed[Annotated[Integer, Field(ge=1)]], Field(max_length=100)] | None = None
    metadata: Annotated[JsonObject, AfterValidator(not_larger_than(8192))] | None = None
    origin: Text | None = None
    integration: Integration | None = None

    def _check(self) -> None:
        said: tuple[Any, ...] = (
            *(self.valuable_sources, self.missing_content, self.query_suggestions),
            *(self.issues, self.note, self.url, self.page_numbers),
        )
        if not any(said):
            raise problem(
                "says_nothing",
                "feedback needs one of issues, note, valuableSources, missingContent, querySuggestions, url, and "
                "pageNumbers",
            )


class RequestedWebsite(RequestModel):
    """A website with requested data.

    :param url: URL of the website, with protocol, at most 2,048 characters.
    :param requested_functionality: the requested data, 1 to 2,000 characters.
    """

    url: Annotated[WholeAddress, Field(max_length=2048)]
    requested_functionality: _Detail


class ProviderIssue(RequestModel):
    """A shortcoming of a data provider.

    :param name: name of the provider, 1 to 200 characters.
    :param issue: `missing_provider`, `insufficient_coverage`, `provider_unavailable`, or `other`.
    :param why: 1 to 2,000 characters.
    """

    name: _Name
    issue: Literal["missing_provider", "insufficient_coverage", "provider_unavailable", "other"]
    why: _Detail


class CapabilityIssue(RequestModel):
    """A shortcoming of a capability.

    :param name: name of the capability, 1 to 200 characters.
    :param provider: id of its provider, 1 to 200 characters.
    :param issue: `new_capability_request`, `missing_capability`, `insufficient_functionality`, `incorrect_result`,
        `execution_error`, or `other`.
    :param why: 1 to 2,000 characters.
    :param requested_functionality: the requested data, 1 to 2,000 characters; required for `new_capability_request`.
    """

    name: _Name
    provider: _Name
    issue: Literal[
        "new_capability_request",
        "missing_capability",
        "insufficient_functionality",
        "incorrect_result",
        "execution_error",
        "other",
    ]
    why: _Detail
    requested_functionality: _Detail | None = None

    def _check(self) -> None:
        if self.issue == "new_capability_request" and self.requested_functionality is None:
            raise problem("says_nothing", "'new_capability_request' needs requestedFunctionality")


class ProviderFeedbackRequest(RequestModel):
    """Body of `POST /v2/feedback` about the data of a website.

    :param endpoint: `alexandria`; set by the hook.
    :param rating: `good`, `partial`, or `bad`.
    :param requested_website: `url` and `requestedFunctionality`.
    :param rationale: purpose of the data, 1 to 2,000 characters.
    :param provider_feedback: at most 20 shortcomings of providers: `name`, `issue`, `why`.
    :param capability_feedback: at most 20 shortcomings of capabilities: `name`, `provider`, `issue`, `why`,
        `requestedFunctionality`.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    nullable = frozenset({"integration"})

    endpoint: Literal["alexandria"]
    rating: Rating
    requested_website: RequestedWebsite
    rationale: _Detail
    provider_feedback: Annotated[Listed[ProviderIssue], Field(max_length=20)] | None = None
    capability_feedback: Annotated[Listed[CapabilityIssue], Field(max_length=20)] | None = None
    origin: Text | None = None
    integration: Integration | None = None


class FeedbackResponse(Answer):
    """Response to feedback.

    :ivar credits_refunded: credits refunded to the team for this feedback.
    :ivar already_submitted: whether feedback on this call was already recorded; it is unchanged.
    :ivar daily_cap_reached: whether the team gets no more refunds on this day (UTC).
    """

    feedback_id: OrNone[str] = None
    credits_refunded: OrNone[int | float] = None
    already_submitted: OrNone[bool] = None
    daily_cap_reached: OrNone[bool] = None
    credits_refunded_today: OrNone[int | float] = None
    daily_refund_cap: OrNone[int | float] = None
    warning: Remark = None
