"""One page as the scraping operations return it."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata.api.models.base import Answer, Lenient, ResponseModel
from airflow_provider_webdata.api.models.page import PageContent


class ActionResults(ResponseModel):
    """What the actions of a request brought, each list in the order of the actions of that type.

    `screenshots` are URLs that live 24 hours, `scrapes` objects with `url` and `html`, `javascript_returns`
    objects with `type` and `value`, `pdfs` text.
    """

    screenshots: Lenient[list[str] | None] = None
    scrapes: Lenient[list[Any] | None] = None
    javascript_returns: Lenient[list[Any] | None] = None
    pdfs: Lenient[list[str] | None] = None


class Document(PageContent):
    """A scraped page: `data` of scrape and parse, an item of `data` of crawl and batch status.

    Each field is set if its format or option was requested. A page whose site answered 4xx or 5xx is a document too,
    billed like any other: check `metadata.status_code`.

    :ivar branding: colours, fonts, logo and more (format `branding`); the set is open.
    :ivar product: what the page sells (format `product`); absent, with a `warning`, when there is none.
    :ivar menu: a restaurant's menu (format `menu`).
    :ivar attributes: objects with `selector`, `attribute` and `values` (format `attributes`).
    :ivar pages: objects with `pageNumber`, from 1, and `markdown` (option `pages` of the pdf parser).
    :ivar blocks: layout of each page (option `blocks` of the pdf parser).
    :ivar actions: what the actions of the request brought.
    """

    branding: Lenient[dict[str, Any] | None] = None
    product: Lenient[dict[str, Any] | None] = None
    menu: Lenient[dict[str, Any] | None] = None
    attributes: Lenient[list[Any] | None] = None
    pages: Lenient[list[Any] | None] = None
    blocks: Lenient[list[Any] | None] = None
    actions: Lenient[ActionResults | None] = None


class ScrapeResponse(Answer):
    """Answer of `POST /v2/scrape`, `GET /v2/scrape/{jobId}` and `POST /v2/parse`."""

    data: Document
    warning: str | None = None
