"""Stored scrapes of all operations, which can be read again by their id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.sandbox.reference.scrape_options import format_names

if TYPE_CHECKING:
    from airflow_provider_webdata.sandbox.reference.wire import Json
    from airflow_provider_webdata.sandbox.state.store import Store

    from .scraper import Scraped, Scraper
    from .web import Web


class ScrapeStore:
    """Scrapes pages and stores the results."""

    def __init__(self, store: Store, web: Web, scraper: Scraper) -> None:
        self._store, self._web, self._scraper = store, web, scraper

    def scrape(self, url: str, options: Json) -> Scraped:
        """Scrape a page and store the result.

        :raises PageError: when the page cannot be scraped.
        :raises ServiceError: when the options cannot be met for this page.
        """
        scraped = self._scraper.scrape(url, options)
        # A comparison with the previous scrape cannot be generated again.
        made_again = self._web.generates(url) and "changeTracking" not in format_names(options)
        kept = {"url": url, "options": options, "document": None if made_again else scraped.document}
        self._store.put("scrape", scraped.id, kept)
        return scraped

    def find(self, scrape_id: str) -> Json | None:
        """Return the ``url`` and ``options`` of a scrape that was kept, or None."""
        return self._store.get("scrape", scrape_id)

    def document(self, scrape_id: str) -> Json | None:
        """Return the document of a stored scrape, or None. The document of a generated page is generated again."""
        kept = self.find(scrape_id)
        if kept is None:
            return None
        document: Json | None = kept["document"]
        if document is None:
            document = self._scraper.scrape(kept["url"], kept["options"]).document
            document["metadata"]["scrapeId"] = scrape_id
        return document
