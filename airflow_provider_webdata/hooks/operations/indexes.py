# SPDX-License-Identifier: Apache-2.0
"""The service's own search indexes: developer sources and research papers.

See sandbox/docs/service.md#developer-search, #research.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.hooks.calls import Body, Call
from airflow_provider_webdata.hooks.operations.base import Operations
from airflow_provider_webdata.hooks.signatures import with_fields

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_provider_webdata.hooks.fields import (
        DeveloperSearchFields,
        PaperSearchFields,
        SimilarPapersFields,
    )


def _paper(paper_id: str, request: models.PaperRequest | Body) -> Call[models.PaperResponse]:
    return Call.of(endpoints.PAPER, request, path={"paper_id": paper_id})


class IndexOperations(Operations):
    """Indexes."""

    @with_fields
    async def search_developer(
        self,
        request: models.DeveloperSearchRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[DeveloperSearchFields],
    ) -> models.DeveloperSearchResponse:
        """Search issues, pull requests, READMEs, and documentation. Bills credits; never retried after a lost response.

        :param request: the fields as a mapping or a model, in place of keyword arguments. Only `query` is required. See
            sandbox/docs/service.md#developer-search.
        :param extra_body: merged into the body unchecked.
        """
        return await self._execute(
            Call.of(endpoints.DEVELOPER_SEARCH, request, fields, extra_body=extra_body)
        )

    @with_fields
    async def search_papers(
        self,
        request: models.PaperSearchRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[PaperSearchFields],
    ) -> models.PaperSearchResponse:
        """Search abstracts of research papers. Bills credits; never retried after a lost response.

        :param request: the fields as a mapping or a model, in place of keyword arguments. Only `query` is required. See
            sandbox/docs/service.md#research.
        :param extra_body: merged into the query unchecked.
        """
        return await self._execute(Call.of(endpoints.PAPER_SEARCH, request, fields, extra_body=extra_body))

    async def get_paper(self, paper_id: str) -> models.PaperResponse:
        """Return the metadata of a paper. Bills a credit; never retried after a lost response.

        :param paper_id: `paper_id` or `primary_id` of a result, or any id with its namespace, such as
            `arxiv:1706.03762`.
        :raises NotFoundError: the paper does not exist.
        """
        return await self._execute(_paper(paper_id, {}))

    async def read_paper(self, paper_id: str, query: str, *, k: int | None = None) -> models.PaperResponse:
        """Return a paper and the passages of its text that answer a question; otherwise like `get_paper`.

        :param paper_id: as in `get_paper`.
        :param query: the question.
        :param k: maximum number of passages, 1 to 50. Service default: 4.
        """
        return await self._execute(_paper(paper_id, {"query": query, "k": k}))

    @with_fields
    async def similar_papers(
        self,
        paper_id: str,
        request: models.SimilarPapersRequest | Body | None = None,
        **fields: Unpack[SimilarPapersFields],
    ) -> models.SimilarPapersResponse:
        """Return papers that are similar to a paper, cite it, or are cited by it.

        Bills credits; never retried after a lost response.

        :param paper_id: as in `get_paper`.
        :param request: the fields as a mapping or a model, in place of keyword arguments. Only `intent` is required.
            See sandbox/docs/service.md#similar-papers.
        """
        return await self._execute(
            Call.of(endpoints.SIMILAR_PAPERS, request, fields, path={"paper_id": paper_id})
        )
