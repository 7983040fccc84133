# SPDX-License-Identifier: Apache-2.0
"""Searches of the service's index of developer sources: issues, pull requests, READMEs, documentation."""

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
from airflow_provider_webdata.api.models.fields import (
    Integer,
    Integration,
    Listed,
    Query,
    String,
    Switch,
    Text,
)

_OF_REPOSITORIES = {"issue", "pull_request", "readme"}


class DeveloperSearchRequest(RequestModel):
    """Body of `POST /v2/search/developer`; only `query` is required. 2 credits for each 10 results, rounded up.

    :param query: a question, or words.
    :param k: maximum number of results, 1 to 100. Default: 10.
    :param types: kinds of results: `doc`, `issue`, `pull_request`, `readme`. Default: all.
    :param repos: only these repositories, such as `pipeline/pipeline`; documentation is still included.
    :param sources: only these documentation sites, at most 20 ids of 1 to 512 characters; repositories are still
        included.
    :param skills: `only` restricts results to files that describe skills for agents.
    :param passages: maximum number of passages per result, 1 to 5. Default: 1.
    :param language: main language of the repository, such as `Rust`. This and the next six fields filter repositories;
        without `sources`, they exclude documentation.
    :param topic: topic of the repository, such as `async`.
    :param license: license of the repository, such as `MIT`.
    :param min_stars: minimum number of stars, at least 0.
    :param max_stars: maximum number of stars, at least 0.
    :param archived: include archived repositories or not.
    :param fork: include forks or not.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    query: Query
    k: Annotated[Integer, Field(ge=1, le=100)] | None = None
    types: Listed[Literal["doc", "issue", "pull_request", "readme"]] | None = None
    repos: Listed[Text] | None = None
    sources: (
        Annotated[Listed[Annotated[String, Field(min_length=1, max_length=512)]], Field(max_length=20)] | None
    ) = None
    skills: Literal["only"] | None = None
    passages: Annotated[Integer, Field(ge=1, le=5)] | None = None
    language: Text | None = None
    topic: Text | None = None
    license: Text | None = None
    min_stars: Annotated[Integer, Field(ge=0)] | None = Field(None, alias="min_stars")
    max_stars: Annotated[Integer, Field(ge=0)] | None = Field(None, alias="max_stars")
    archived: Switch | None = None
    fork: Switch | None = None
    origin: Text | None = None
    integration: Integration | None = None

    def _check(self) -> None:
        asked = set(self.types or ())
        if asked and self.repos and not asked & _OF_REPOSITORIES:
            raise problem(
                "cannot_match", "repos cannot match any of types; add a repository type, or remove repos"
            )
        if asked and self.sources and "doc" not in asked:
            raise problem("cannot_match", "sources cannot match any of types; add 'doc', or remove sources")

    def _own_warnings(self) -> list[str]:
        if self.min_stars is not None and self.max_stars is not None and self.min_stars > self.max_stars:
            return ["min_stars: more than max_stars, so no repository matches"]
        return []


class DeveloperPassage(ResponseModel):
    """A passage of a result that matches the query, in Markdown.

    :ivar citation_url: URL of the passage; on the wire `citation_url`.
    """

    text: Lenient[str | None] = None
    citation_url: Lenient[str | None] = Field(None, alias="citation_url")


class DeveloperResult(ResponseModel):
    """An issue, a pull request, a README, or a documentation page.

    :ivar id: starts with its kind, such as `issue:pipeline/pipeline#42`.
    :ivar title: often absent for documentation.
    :ivar license: license of the repository, as text or as an object.
    """

    id: OrNone[str] = None
    type: Lenient[str | None] = None
    url: OrNone[str] = None
    title: Lenient[str | None] = None
    passages: Lenient[list[DeveloperPassage] | None] = None
    license: Any = None


class DeveloperSearchResponse(Answer):
    """Response of `POST /v2/search/developer`.

    :ivar coverage: state of each kind of result: `ok`, `degraded`, `unavailable`, or `skipped`.
    :ivar repos: for each requested repository, whether it is indexed.
    :ivar sources: for each requested documentation site, whether it is indexed.
    """

    results: Entries[DeveloperResult]
    coverage: Lenient[dict[str, Any] | None] = None
    reranked: Lenient[bool | None] = None
    repos: Lenient[list[dict[str, Any]] | None] = None
    sources: Lenient[list[dict[str, Any]] | None] = None
