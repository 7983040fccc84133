# SPDX-License-Identifier: Apache-2.0
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

    :param urls: the pages, at least 1 for a job; results are in order of completion.
    :param webhook: endpoint that receives the job's events: `url`, `events`, `headers`, `metadata`.
    :param max_concurrency: maximum number of pages scraped concurrently, at least 1. Default: the team's limit.
    :param ignore_invalid_urls: skip invalid URLs. Default: true, but without it, some servers reject the whole batch
        for one invalid URL.
    :param append_to_id: UUID of an existing batch scrape to append the URLs to.
    """

    ignore_invalid_urls: Switch | None = Field(None, alias="ignoreInvalidURLs")
    urls: Annotated[Listed[DroppableAddress], Field(min_length=1)]
    webhook: PageJobWebhookConfig | None = None
    max_concurrency: Annotated[Integer, Field(ge=1)] | None = None
    append_to_id: Identifier | None = None

    def _own_warnings(self) -> list[str]:
        found = super()._own_warnings() + dropped(self.urls)
        if self.ignore_invalid_urls is None:
            found.append(
                "ignoreInvalidURLs: not set, so the service may reject the whole batch for one invalid URL"
            )
        if repeated := len(self.urls) - len(set(self.urls)):
            found.append(f"urls: {repeated} of them are duplicates; each is scraped and billed again")
        if self.lockdown:
            found.append("lockdown: documented only for single scrapes")
        return found
