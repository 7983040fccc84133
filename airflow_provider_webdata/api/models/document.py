# SPDX-License-Identifier: Apache-2.0
"""A page in the responses of the scraping operations."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata.api.models.base import Answer, Lenient, Remark, ResponseModel
from airflow_provider_webdata.api.models.page import PageContent


class ActionResults(ResponseModel):
    """Results of a request's actions; each list is in the order of the actions of its type.

    `screenshots` are URLs that expire after 24 hours, `scrapes` are objects with `url` and `html`, `javascript_returns`
    are objects with `type` and `value`, and `pdfs` are text.
    """

    screenshots: Lenient[list[str] | None] = None
    scrapes: Lenient[list[Any] | None] = None
    javascript_returns: Lenient[list[Any] | None] = None
    pdfs: Lenient[list[str] | None] = None


class Document(PageContent):
    """A scraped page: `data` of scrape and parse, an item of `data` of crawl and batch status.

    Each field is set if its format or option was requested. A page whose site returned 4xx or 5xx is also a document,
    and billed: check `metadata.status_code`.

    :ivar branding: colors, fonts, logo, and more (format `branding`); the set is open.
    :ivar product: the product on the page (format `product`); if there is none, absent with a `warning`.
    :ivar menu: a restaurant's menu (format `menu`).
    :ivar attributes: objects with `selector`, `attribute`, and `values` (format `attributes`).
    :ivar pages: objects with `pageNumber`, from 1, and `markdown` (option `pages` of the pdf parser).
    :ivar blocks: layout of each page (option `blocks` of the pdf parser).
    :ivar actions: results of the request's actions.
    """

    branding: Lenient[dict[str, Any] | None] = None
    product: Lenient[dict[str, Any] | None] = None
    menu: Lenient[dict[str, Any] | None] = None
    attributes: Lenient[list[Any] | None] = None
    pages: Lenient[list[Any] | None] = None
    blocks: Lenient[list[Any] | None] = None
    actions: Lenient[ActionResults | None] = None


class ScrapeResponse(Answer):
    """Response of `POST /v2/scrape`, `GET /v2/scrape/{jobId}` and `POST /v2/parse`."""

    data: Document
    warning: Remark = None
