# SPDX-License-Identifier: Apache-2.0
"""The service's index of research papers: search, paper details, and similar papers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import (
    Answer,
    Entries,
    Lenient,
    OrNone,
    RequestModel,
    ResponseModel,
    problem,
)
from airflow_provider_webdata.api.models.fields import Day, Integer, Integration, Listed, Query, Switch, Text


class PaperSearchRequest(RequestModel):
    """Query of `GET /v2/search/research/papers`; only `query` is required. 2 credits for each 10 papers, rounded up.

    :param query: topic of the papers, in natural language.
    :param k: maximum number of papers, 1 to 500. Default: 40.
    :param authors: parts of author names; a paper must match all.
    :param categories: categories of papers, such as `cs.LG`; a paper must be in all.
    :param from_date: earliest date on which a paper was created or updated, such as `2026-01-31`.
    :param to_date: latest such date.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    query: Query
    k: Annotated[Integer, Field(ge=1, le=500)] | None = None
    authors: Listed[Text] | None = None
    categories: Listed[Text] | None = None
    from_date: Day | None = Field(None, alias="from")
    to_date: Day | None = Field(None, alias="to")
    origin: Text | None = None
    integration: Integration | None = None

    def _own_warnings(self) -> list[str]:
        if self.from_date is not None and self.to_date is not None and self.from_date > self.to_date:
            return ["from: later than to, so no paper matches"]
        return []


class PaperRequest(RequestModel):
    """Query of `GET /v2/search/research/papers/{id}`; all fields are optional.

    :param query: a question; the response then includes passages of the paper that answer it.
    :param k: maximum number of passages, 1 to 50; only with `query`. Default: 4.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    query: Query | None = None
    k: Annotated[Integer, Field(ge=1, le=50)] | None = None
    origin: Text | None = None
    integration: Integration | None = None

    def _check(self) -> None:
        if self.k is not None and self.query is None:
            raise problem("needs_query", "k is the number of passages, and requires query")


class SimilarPapersRequest(RequestModel):
    """Query of `GET /v2/search/research/papers/{id}/similar`; only `intent` is required.

    :param intent: purpose of the search, in natural language; papers are ranked by it.
    :param mode: `similar`, `citers` (papers that cite this one), or `references` (papers that it cites). Default:
        `similar`.
    :param k: maximum number of papers, 1 to 500. Default: 40.
    :param rerank: rerank the results.
    :param anchor: additional papers to start from.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    intent: Query
    mode: Literal["similar", "citers", "references"] | None = None
    k: Annotated[Integer, Field(ge=1, le=500)] | None = None
    rerank: Switch | None = None
    anchor: Listed[Text] | None = None
    origin: Text | None = None
    integration: Integration | None = None


class PaperResult(ResponseModel):
    """A paper in search results.

    :ivar paper_id: id of the paper in the index.
    :ivar primary_id: id for citations, such as `arxiv:2105.05233`, `pmid:...`, `pmcid:...`, or `doi:...`.
    :ivar ids: all ids, by namespace.
    :ivar signals: similarity scores of similar papers: `structural`, `semantic`, `articleRank`, `seedOverlap`.
    """

    paper_id: OrNone[str] = None
    primary_id: Lenient[str | None] = None
    ids: Lenient[dict[str, Any] | None] = None
    title: Lenient[str | None] = None
    abstract: Lenient[str | None] = None
    score: Lenient[int | float | None] = None
    signals: Lenient[dict[str, Any] | None] = None


class PaperSearchResponse(Answer):
    """Response of `GET /v2/search/research/papers`: papers, best first."""

    results: Entries[PaperResult]


class SimilarPapersResponse(Answer):
    """Response of `GET /v2/search/research/papers/{id}/similar`.

    :ivar pool_size: number of ranked papers.
    :ivar truncated: whether more candidates existed.
    """

    results: Entries[PaperResult]
    pool_size: Lenient[int | None] = None
    truncated: Lenient[bool | None] = None
    note: Lenient[str | None] = None


class Paper(ResponseModel):
    """Details of a paper.

    :ivar authors: names of all authors as one text.
    :ivar created_date: in the format of the source, like `update_date`; not always ISO 8601.
    """

    paper_id: OrNone[str] = None
    ids: Lenient[dict[str, Any] | None] = None
    title: Lenient[str | None] = None
    abstract: Lenient[str | None] = None
    authors: Lenient[str | None] = None
    categories: Lenient[list[str] | None] = None
    created_date: Lenient[str | None] = None
    update_date: Lenient[str | None] = None


class PaperPassage(ResponseModel):
    """A passage of a paper that answers a question, in Markdown."""

    text: Lenient[str | None] = None
    score: Lenient[int | float | None] = None


class PaperResponse(Answer):
    """Response of `GET /v2/search/research/papers/{id}`; with a question, also `paper_id`, `query`, and `passages`."""

    paper: Paper
    paper_id: Lenient[str | None] = None
    query: Lenient[str | None] = None
    passages: Lenient[list[PaperPassage] | None] = None
