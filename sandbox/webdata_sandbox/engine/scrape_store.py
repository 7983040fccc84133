# SPDX-License-Identifier: Apache-2.0
"""Stored scrapes of all operations, by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webdata_sandbox.reference.scrape_options import format_names

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.store import Store

    from .scraper import Scraped, Scraper
    from .web import Web


class ScrapeStore:
    """Scrapes pages and stores the results."""

    def __init__(self, store: Store, web: Web, scraper: Scraper) -> None:
        self._store, self._web, self._scraper = store, web, scraper

    def scrape(self, url: str, options: Json, *, waited_ms: int = 0) -> Scraped:
        """Scrape a page and store the result.

        :param waited_ms: how long the page waited for other pages, for its metadata.
        :raises PageError: the page cannot be scraped.
        :raises ServiceError: the options are unsupported for this page.
        """
        scraped = self._scraper.scrape(url, options)
        if waited_ms:
            waited = {"concurrencyLimited": True, "concurrencyQueueDurationMs": waited_ms}
            scraped.document["metadata"].update(waited)
        # A comparison with the previous scrape cannot be regenerated.
        reproducible = self._web.generates(url) and "changeTracking" not in format_names(options)
        record = {"url": url, "options": options, "document": None if reproducible else scraped.document}
        self._store.put("scrape", scraped.id, record)
        return scraped

    def find(self, scrape_id: str) -> Json | None:
        """Return the record of a stored scrape, with ``url`` and ``options``, or None."""
        return self._store.get("scrape", scrape_id)

    def document(self, scrape_id: str) -> Json | None:
        """Return the document of a stored scrape, or None. The document of a generated page is regenerated."""
        record = self.find(scrape_id)
        if record is None:
            return None
        document: Json | None = record["document"]
        if document is None:
            document = self._scraper.scrape(record["url"], record["options"]).document
            document["metadata"]["scrapeId"] = scrape_id
        return document
