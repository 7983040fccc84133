"""The service's index of research papers: searches, one paper, papers like it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import Answer, Lenient, RequestModel, ResponseModel, problem
from airflow_provider_webdata.api.models.fields import Day, Integer, Listed, Switch, Text


class PaperSearchRequest(RequestModel):
    """Query of `GET /v2/search/research/papers`; only `query` is required. 2 credits for each 10 papers, rounded up.

    :param query: what the papers are about, in plain words.
    :param k: most papers, 1 to 500. Default: 40.
    :param authors: parts of names; a paper must match all.
    :param categories: categories of papers, such as `cs.LG`; a paper must be in all.
    :param from_date: first day on which a paper was made or changed, such as `2026-01-31`.
    :param to_date: last such day.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: another such label.
    """

    query: Text
    k: Annotated[Integer, Field(ge=1, le=500)] | None = None
    authors: Listed[Text] | None = None
    categories: Listed[Text] | None = None
    from_date: Day | None = Field(None, alias="from")
    to_date: Day | None = Field(None, alias="to")
    origin: Text | None = None
    integration: Text | None = None

    def _own_warnings(self) -> list[str]:
        if self.from_date is not None and self.to_date is not None and self.from_date > self.to_date:
            return ["from: it is after to, so that no paper matches"]
        return []


class PaperRequest(RequestModel):
    """Query of `GET /v2/search/research/papers/{id}`, which has no required field.

    :param query: a question: the passages of the paper's text that answer it come along.
    :param k: most passages, 1 to 50; only with `query`. Default: 4.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: another such label.
    """

    query: Text | None = None
    k: Annotated[Integer, Field(ge=1, le=50)] | None = None
    origin: Text | None = None
    integration: Text | None = None

    def _check(self) -> None:
        if self.k is not None and self.query is None:
            raise problem("needs_query", "k is the number of passages, and needs query")


class SimilarPapersRequest(RequestModel):
    """Query of `GET /v2/search/research/papers/{id}/similar`; only `intent` is required.

    :param intent: what the papers are looked for, in plain words; they are ranked by it.
    :param mode: `similar`, `citers` (papers that cite this one) or `references` (papers that it cites). Default:
        `similar`.
    :param k: most papers, 1 to 500. Default: 40.
    :param rerank: rank the results again.
    :param anchor: further papers to start from.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: another such label.
    """

    intent: Text
    mode: Literal["similar", "citers", "references"] | None = None
    k: Annotated[Integer, Field(ge=1, le=500)] | None = None
    rerank: Switch | None = None
    anchor: Listed[Text] | None = None
    origin: Text | None = None
    integration: Text | None = None


class PaperResult(ResponseModel):
    """A paper that was found.

    :ivar paper_id: the index's own id.
    :ivar primary_id: by which to cite it, such as `arxiv:2105.05233`, `pmid:...`, `pmcid:...` or `doi:...`.
    :ivar ids: all ids, by namespace.
    :ivar signals: of papers like another: `structural`, `semantic`, `articleRank`, `seedOverlap`.
    """

    paper_id: str | None = None
    primary_id: Lenient[str | None] = None
    ids: Lenient[dict[str, Any] | None] = None
    title: Lenient[str | None] = None
    abstract: Lenient[str | None] = None
    score: Lenient[int | float | None] = None
    signals: Lenient[dict[str, Any] | None] = None


class PaperSearchResponse(Answer):
    """Answer of `GET /v2/search/research/papers`: papers, best first."""

    results: list[PaperResult]


class SimilarPapersResponse(Answer):
    """Answer of `GET /v2/search/research/papers/{id}/similar`.

    :ivar pool_size: how many papers were ranked.
    :ivar truncated: whether there were more of them than that.
    """

    results: list[PaperResult]
    pool_size: Lenient[int | None] = None
    truncated: Lenient[bool | None] = None
    note: Lenient[str | None] = None


class Paper(ResponseModel):
    """What is known of a paper.

    :ivar authors: their names in one text.
    :ivar created_date: as its source writes it, not always ISO 8601; so is `update_date`.
    """

    paper_id: str | None = None
    ids: Lenient[dict[str, Any] | None] = None
    title: Lenient[str | None] = None
    abstract: Lenient[str | None] = None
    authors: Lenient[str | None] = None
    categories: Lenient[list[str] | None] = None
    created_date: Lenient[str | None] = None
    update_date: Lenient[str | None] = None


class PaperPassage(ResponseModel):
    """A part of a paper's text that fits a question, in Markdown."""

    text: Lenient[str | None] = None
    score: Lenient[int | float | None] = None


class PaperResponse(Answer):
    """Answer of `GET /v2/search/research/papers/{id}`; with a question, `paper_id`, `query` and `passages` too."""

    paper: Paper
    paper_id: Lenient[str | None] = None
    query: Lenient[str | None] = None
    passages: Lenient[list[PaperPassage] | None] = None
