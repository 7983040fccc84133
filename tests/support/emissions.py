# SPDX-License-Identifier: Apache-2.0
"""Files of tasks with `changes`, made by the functions that write them in production."""

from __future__ import annotations

from typing import Any

from airflow_provider_webdata.common.item_urls import url_of
from airflow_provider_webdata.results.changes.items import (
    emitted_item,
    page_key,
    removed_item,
    unversioned_item,
)
from airflow_provider_webdata.results.changes.pages import Page, version_after
from airflow_provider_webdata.results.columns import CHANGES, columns_of
from airflow_provider_webdata.results.files.output import OutputFile
from airflow_provider_webdata.results.pages.retrieval import KIND, flat_document

SOURCE = "shop/crawl"
DAY = 24 * 3600


class Night:
    """A run of a task with `changes`, and its file.

    :param number: number of the night; a later night has greater versions.
    """

    def __init__(self, number: int, source: str = SOURCE, kind: str = "document") -> None:
        self.number, self.source, self.kind = number, source, kind
        self.items: list[Any] = []
        self.moment = 1_788_000_000 + number * DAY
        self.version = version_after(0, self.moment)

    def emit(self, *items: Any) -> Night:
        """Emit items as new."""
        for item in items:
            key = page_key(str(url_of(item)))
            self.items.append(emitted_item(item, "new", key, self.version, self.source))
        return self

    def fail(self, *items: Any) -> Night:
        """Add failed pages, or items without a URL."""
        for item in items:
            url = url_of(item)
            change = "failed" if url else "new"
            self.items.append(unversioned_item(item, change, page_key(url) if url else None))
        return self

    def remove(self, *urls: str) -> Night:
        """Remove pages."""
        for url in urls:
            page = Page(page_key(url), self.version, None, "r", self.moment, self.moment)
            self.items.append(removed_item(page, self.kind, self.source, self.moment))
        return self

    def write(self, path: str, columns: Any = None) -> str:
        """Write the file, and return its path."""
        flat = self.kind == KIND
        with OutputFile(path, (*(columns or columns_of(self.kind)), *CHANGES)) as file:
            file.write(map(flat_document, self.items) if flat else self.items)
        return path
