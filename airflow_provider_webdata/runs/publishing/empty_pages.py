"""Pages that a site returned without an error and without content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import trimmed
from airflow_provider_webdata.common.item_urls import site_failed, url_of
from airflow_provider_webdata.common.url_secrets import without_secrets
from airflow_provider_webdata.results.pages.substitutes import is_page
from airflow_provider_webdata.results.pages.visible_text import TEXT_FORMATS, is_empty
from airflow_provider_webdata.runs.publishing.step import Step
from airflow_provider_webdata.states.shortfalls import Shortfall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow_provider_webdata.runs.publishing.step import Results


def text_requested(body: Mapping[str, Any], kind: str) -> bool | None:
    """Return whether a request names a format that is the text of its pages; None if it is unknown.

    :param body: the request in wire form; empty if it is unknown.
    :param kind: of the results; see `results.columns.columns_of`.
    """
    # Each search of a batch may have its own options.
    options = body.get("scrapeOptions", body if kind == "document" else None)
    if not body or not isinstance(options, Mapping):
        return None
    formats = options.get("formats")
    if formats is None:
        return True
    names = [wanted.get("type") if isinstance(wanted, Mapping) else wanted for wanted in formats]
    return any(name in TEXT_FORMATS for name in names)


class CountEmptyPages(Step):
    """Counts the pages without content as they stream.

    :param request: returns the request in wire form; empty if it is unknown.
    """

    pushes_summary = False

    def __init__(self, request: Callable[[], Mapping[str, Any]], log: Any) -> None:
        self._request = request
        self._log = log
        self._pages = 0
        self._empty = 0
        self._example = ""

    def transform(self, results: Results) -> Results:
        """Return the results unchanged, and count their pages as they stream."""
        return replace(results, items=self._counted(results))

    def _counted(self, results: Results) -> Iterator[Any]:
        wanted = text_requested(self._request(), results.kind)
        for item in results.items:
            if is_page(item) and not site_failed(item["metadata"]):
                self._pages += 1
                if is_empty(item, text_requested=wanted):
                    self._empty += 1
                    self._example = self._example or without_secrets(url_of(item) or "a page without URL")
            yield item

    def shortfalls(self) -> Sequence[Shortfall]:
        """Return the pages without content."""
        return [Shortfall("pages_empty", self._empty, self._pages)]

    def written(self) -> None:
        """Log the pages without content."""
        if self._empty:
            self._log.warning(
                "%d of %d pages have no content, such as %s. Open it in a browser to see whether its site has one",
                *(self._empty, self._pages, trimmed(self._example)),
            )
