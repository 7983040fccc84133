# SPDX-License-Identifier: Apache-2.0
"""A page: content in the requested formats, and metadata."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from airflow_provider_webdata.api.models.base import Lenient, ResponseModel


class PageMetadata(ResponseModel):
    """Metadata of a page. The set is open: it includes every meta tag of the page, as text or a list of texts.

    Meta tags share names with the service's fields, so any field may have any value.

    `source_url` (on the wire `sourceURL`) is the requested URL, `url` the one after redirects. If `num_pages` of a PDF
    is below `total_pages`, the PDF was truncated at `maxPages`. `status_code` is the site's: a page with 404 or 500 is
    also returned. `scrape_id` is the id of the page's scrape job. `proxy_used` is `basic` or `stealth`. `credits_used`
    are the credits of this page. `source_file` is the name of a parsed file.
    """

    title: Lenient[str | list[str] | None] = None
    description: Lenient[str | list[str] | None] = None
    language: Lenient[str | list[str] | None] = None
    keywords: Lenient[str | list[str] | None] = None
    og_locale_alternate: Lenient[list[str] | str | None] = None
    source_url: Lenient[str | None] = Field(None, alias="sourceURL")
    url: Lenient[str | None] = None
    status_code: Lenient[int | None] = None
    num_pages: Lenient[int | None] = None
    total_pages: Lenient[int | None] = None
    content_type: Lenient[str | None] = None
    scrape_id: Lenient[str | None] = None
    cache_state: Lenient[str | None] = None
    cached_at: Lenient[str | None] = None
    proxy_used: Lenient[str | None] = None
    credits_used: Lenient[int | float | None] = None
    concurrency_limited: Lenient[bool | None] = None
    concurrency_queue_duration_ms: Lenient[int | float | None] = None
    source_file: Lenient[str | None] = None
    error: Lenient[str | None] = None


class ChangeTracking(ResponseModel):
    """Comparison of a page with its previous scrape.

    `change_status` is new, same, changed, or removed. `diff` is text or an object with `text` and `json`.
    """

    previous_scrape_at: Lenient[str | None] = None
    change_status: Lenient[str | None] = None
    visibility: Lenient[str | None] = None
    diff: Lenient[str | dict[str, Any] | None] = None
    json_: Any = Field(None, alias="json")


class PageContent(ResponseModel):
    """Content of a page. Each field is present if its format was requested.

    URLs of screenshots expire after 24 hours, URLs of audio and video after one hour.
    """

    markdown: Lenient[str | None] = None
    summary: Lenient[str | None] = None
    html: Lenient[str | None] = None
    raw_html: Lenient[str | None] = None
    links: Lenient[list[Any] | str | None] = None
    images: Lenient[list[Any] | str | None] = None
    screenshot: Lenient[str | None] = None
    audio: Lenient[str | None] = None
    video: Lenient[str | None] = None
    answer: Lenient[str | None] = None
    highlights: Any = None
    json_: Any = Field(None, alias="json")
    change_tracking: Lenient[ChangeTracking | None] = None
    warning: Lenient[str | None] = None
    metadata: Lenient[PageMetadata | None] = None
