"""What the service returns of a page: content in the formats asked for, and metadata."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from airflow_provider_webdata.api.models.base import ResponseModel


class PageMetadata(ResponseModel):
    """Facts about a page. The set is open: every meta tag of the page comes along, as text or a list of it.

    `source_url` (on the wire `sourceURL`) is the URL that was asked for, `url` the one after redirects.
    `num_pages` of a PDF below `total_pages` means that it was cut at `maxPages`.
    """

    title: str | list[str] | None = None
    description: str | list[str] | None = None
    language: str | list[str] | None = None
    keywords: str | list[str] | None = None
    source_url: str | None = Field(None, alias="sourceURL")
    url: str | None = None
    status_code: int | None = None
    num_pages: int | None = None
    total_pages: int | None = None
    content_type: str | None = None
    scrape_id: str | None = None
    cache_state: str | None = None
    cached_at: str | None = None
    proxy_used: str | None = None
    credits_used: int | float | None = None
    concurrency_limited: bool | None = None
    concurrency_queue_duration_ms: int | float | None = None
    error: str | None = None


class ChangeTracking(ResponseModel):
    """How a page compares with the earlier scrape of it.

    `change_status` is new, same, changed or removed. `diff` is text or an object with `text` and `json`.
    """

    previous_scrape_at: str | None = None
    change_status: str | None = None
    visibility: str | None = None
    diff: str | dict[str, Any] | None = None
    json_: Any = Field(None, alias="json")


class PageContent(ResponseModel):
    """Content of a page, each field present when its format was asked for.

    Links to screenshots live 24 hours, those to audio and video one hour.
    """

    markdown: str | None = None
    summary: str | None = None
    html: str | None = None
    raw_html: str | None = None
    links: list[Any] | str | None = None
    images: list[Any] | str | None = None
    screenshot: str | None = None
    audio: str | None = None
    video: str | None = None
    answer: str | None = None
    highlights: Any = None
    json_: Any = Field(None, alias="json")
    change_tracking: ChangeTracking | None = None
    warning: str | None = None
    metadata: PageMetadata | None = None
