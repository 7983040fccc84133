"""Scraping many pages in one job."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from airflow_provider_webdata.api.models.fields import (
    DroppableAddress,
    Identifier,
    Integer,
    Listed,
    Switch,
    dropped,
)
from airflow_provider_webdata.api.models.scrape import PageRequest
from airflow_provider_webdata.api.models.webhook import PageJobWebhookConfig


class BatchScrapeRequest(PageRequest):
    """Body of `POST /v2/batch/scrape`. The scrape options are at the top level, beside `urls`.

    :param urls: the pages, at least 1; results come in order of completion, not in this one.
    :param webhook: where the job reports to: `url`, `events`, `headers`, `metadata`.
    :param max_concurrency: pages scraped at once, at least 1. Default: the team's limit.
    :param ignore_invalid_urls: drop bad URLs and go on without them. Default: true, yet servers were seen that
        refuse the whole batch for one bad URL where it is left out.
    :param append_to_id: UUID of a batch scrape that takes the URLs up.
    """

    ignore_invalid_urls: Switch | None = Field(None, alias="ignoreInvalidURLs")
    urls: Annotated[Listed[DroppableAddress], Field(min_length=1)]
    webhook: PageJobWebhookConfig | None = None
    max_concurrency: Annotated[Integer, Field(ge=1)] | None = None
    append_to_id: Identifier | None = None

    def _own_warnings(self) -> list[str]:
        found = super()._own_warnings() + dropped(self.urls)
        if self.ignore_invalid_urls is None:
            found.append("ignoreInvalidURLs: not given, so one bad URL may refuse the whole batch")
        if repeated := len(self.urls) - len(set(self.urls)):
            found.append(f"urls: {repeated} of them repeat others; each is scraped and billed again")
        if self.lockdown:
            found.append("lockdown: documented for single scrapes only")
        return found
