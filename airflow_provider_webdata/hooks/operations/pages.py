"""Pages, one call each: search, scrape, map. See docs/service.md#scrape, #map, #search."""

from __future__ import annotations

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.hooks.calls import Body, Call
from airflow_provider_webdata.hooks.operations.base import Operations


class PageOperations(Operations):
    """Pages."""

    async def search(
        self, request: models.SearchRequest | Body, *, extra_body: Body | None = None
    ) -> models.SearchResponse:
        """Search the web, and scrape the results where `scrapeOptions` asks for it. Bills credits.

        :param request: docs/service.md#search; only `query` is required.
        :param extra_body: merged into the body unchecked.
        """
        return await self._execute(Call.of(endpoints.SEARCH, request, extra_body=extra_body))

    async def scrape(
        self, request: models.ScrapeRequest | Body, *, extra_body: Body | None = None
    ) -> models.ScrapeResponse:
        """Scrape one page. Bills credits; never repeated after a lost answer. See docs/service.md#scrape.

        A page whose site answers 4xx or 5xx is a result too: look at `data.metadata.status_code`.

        :param request: `url` and scrape options side by side; only `url` is required.
        :param extra_body: merged into the body unchecked.
        :raises ProcessingContinuesError: a large document needs longer; the same call later returns the result, billed
            once. See docs/service.md#large-documents.
        :raises PageError: the page is unavailable: no such host, a bad certificate, ...
        :raises CacheMissError: only the cache was asked, and has no such page.
        """
        return await self._execute(Call.of(endpoints.SCRAPE, request, extra_body=extra_body))

    async def get_scrape(self, scrape_id: str) -> models.ScrapeResponse:
        """Return the result of an earlier scrape. Costs nothing. See docs/service.md#scrape-result.

        :param scrape_id: UUID in `metadata.scrape_id` of its document.
        """
        return await self._execute(Call(endpoints.GET_SCRAPE, path={"scrape_id": scrape_id}))

    async def map(
        self, request: models.MapRequest | Body, *, extra_body: Body | None = None
    ) -> models.MapResponse:
        """List the URLs of a site. Bills a credit; never repeated after a lost answer. See docs/service.md#map.

        :param request: only `url` is required.
        :param extra_body: merged into the body unchecked.
        """
        return await self._execute(Call.of(endpoints.MAP, request, extra_body=extra_body))
