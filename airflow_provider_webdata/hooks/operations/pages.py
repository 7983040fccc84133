# SPDX-License-Identifier: Apache-2.0
"""Single-call page operations: search, scrape, and map. See sandbox/docs/service.md#scrape, #map, #search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.errors import PageError
from airflow_provider_webdata.api.models.base import ResponseModel
from airflow_provider_webdata.api.servers import private_target_remedy
from airflow_provider_webdata.common.item_urls import page_problem, was_fetched
from airflow_provider_webdata.hooks.calls import Body, Call
from airflow_provider_webdata.hooks.operations.base import Operations
from airflow_provider_webdata.hooks.signatures import with_fields

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_provider_webdata.api.servers import Server
    from airflow_provider_webdata.hooks.fields import (
        MapFields,
        ScrapeFields,
        SearchFields,
    )


def _fetched(answer: models.ScrapeResponse, server: Server) -> models.ScrapeResponse:
    """Return a response unless its page was not fetched."""
    # A server may send anything in place of the metadata.
    metadata = answer.data.metadata.to_wire() if isinstance(answer.data.metadata, ResponseModel) else {}
    if was_fetched(metadata):
        return answer
    problem = page_problem(metadata)
    if metadata.get("error") and (status := metadata.get("statusCode")):
        problem += f" (status {status})"
    place = metadata.get("sourceURL") or metadata.get("url") or "the page"
    error = PageError(
        endpoints.SCRAPE.label,
        200,
        f"{place} could not be fetched: {problem}",
        body={"creditsUsed": metadata.get("creditsUsed")},
    )
    error.likely_remedy = private_target_remedy(server, [place])
    raise error


class PageOperations(Operations):
    """Pages."""

    @with_fields
    async def search(
        self,
        request: models.SearchRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[SearchFields],
    ) -> models.SearchResponse:
        """Search the web and, with `scrapeOptions`, scrape the results. Bills credits.

        :param request: the fields as a mapping or a model, in place of keyword arguments. See
            sandbox/docs/service.md#search; only `query` is required.
        :param extra_body: merged into the body unchecked.
        """
        return await self._execute(Call.of(endpoints.SEARCH, request, fields, extra_body=extra_body))

    @with_fields
    async def scrape(
        self,
        request: models.ScrapeRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[ScrapeFields],
    ) -> models.ScrapeResponse:
        """Scrape one page. Bills credits; never retried after a lost response. See sandbox/docs/service.md#scrape.

        A page whose site responds with 4xx or 5xx is a result too; check `data.metadata.status_code`.

        :param request: the fields as a mapping or a model, in place of keyword arguments. Only `url` is required;
            scrape options are at the same level.
        :param extra_body: merged into the body unchecked.
        :raises ProcessingContinuesError: a large document takes longer. The same call later returns the result, billed
            once. See sandbox/docs/service.md#large-documents.
        :raises PageError: the page is unavailable: unknown host, invalid certificate, ...
        :raises CacheMissError: the request allows only cached pages, and the page is not cached.
        """
        answer = await self._execute(Call.of(endpoints.SCRAPE, request, fields, extra_body=extra_body))
        return _fetched(answer, self._server())

    async def get_scrape(self, scrape_id: str) -> models.ScrapeResponse:
        """Return the result of an earlier scrape. Free. See sandbox/docs/service.md#scrape-result.

        :param scrape_id: UUID in `metadata.scrape_id` of its document.
        :raises PageError: the page was unavailable.
        """
        answer = await self._execute(Call(endpoints.GET_SCRAPE, path={"scrape_id": scrape_id}))
        return _fetched(answer, self._server())

    @with_fields
    async def map(
        self,
        request: models.MapRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[MapFields],
    ) -> models.MapResponse:
        """List the URLs of a site. Bills a credit; not retried after a lost response. See sandbox/docs/service.md#map.

        :param request: the fields as a mapping or a model, in place of keyword arguments. Only `url` is required.
        :param extra_body: merged into the body unchecked.
        """
        return await self._execute(Call.of(endpoints.MAP, request, fields, extra_body=extra_body))
