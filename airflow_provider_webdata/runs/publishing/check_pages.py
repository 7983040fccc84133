# SPDX-License-Identifier: Apache-2.0
"""The pages among the results: failed, empty, and cut ones, and requested formats that no page has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import UnsupportedError
from airflow_provider_webdata.api.servers import part_in_remark
from airflow_provider_webdata.results.columns import kind_of_source
from airflow_provider_webdata.results.pages.requested import RequestedFormats, text_formats
from airflow_provider_webdata.results.pages.substitutes import is_page
from airflow_provider_webdata.runs.publishing.page_errors import PageErrors
from airflow_provider_webdata.runs.publishing.step import Step
from airflow_provider_webdata.states.shortfalls import Shortfall

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from airflow_provider_webdata.api.config import ClientConfig
    from airflow_provider_webdata.runs.publishing.step import Results

_SCRAPED = ("web", "news")
"""Sources of search results whose pages a search can scrape."""

_KINDS = frozenset({"document", "search", *map(kind_of_source, _SCRAPED)})


class CheckPages(Step):
    """Counts the pages as they stream, and reports what they lack.

    :param operation: the name of the call in errors.
    :param request: returns the sent request in wire form; None: the request is unknown.
    :param client: returns the client's settings.
    :ivar errors: the counts, after the last item.
    """

    def __init__(
        self,
        operation: str,
        request: Callable[[], Mapping[str, Any]] | None,
        client: Callable[[], ClientConfig],
        log: Any,
    ) -> None:
        self._operation = operation
        self._request = request
        self._client = client
        self._log = log
        self._formats = RequestedFormats({}, ())
        self._is_job = False
        self._missing: list[str] = []
        self.errors = PageErrors()

    def transform(self, results: Results) -> Results:
        """Return the results unchanged, and count their pages as they stream."""
        if results.kind not in _KINDS:
            return results
        if results.errors is not None:
            self._is_job = True
            self.errors = results.errors
        return replace(results, items=self._counted(results))

    def _counted(self, results: Results) -> Iterator[Any]:
        is_document = results.kind == "document"
        texts = self.text_formats(results.kind)
        if self._request is not None:
            # A search scrapes nothing by default.
            self._formats = RequestedFormats(self._request(), ("markdown",) if is_document else ())
        for item in results.items:
            if is_document or is_page(item):
                if self.errors.add_document(item, text_formats=texts):
                    self._formats.add(item)
            elif _may_be_scraped(item, results.kind):
                # A server that does not scrape the results of a search returns them without metadata.
                self._formats.add(item)
            yield item
        self._missing = self._formats.missing()

    def text_formats(self, kind: str) -> Collection[str] | None:
        """Return the requested formats that are the text of a page; None if the request is unknown.

        :param kind: of the results.
        """
        return None if self._request is None else text_formats(self._request(), kind)

    def shortfalls(self) -> Sequence[Shortfall]:
        """Return the numbers of failed, empty, and cut pages, and of formats that no page has."""
        errors, formats = self.errors, self._formats.names
        found = (
            Shortfall("pages_failed", errors.failed, errors.failed + errors.succeeded),
            Shortfall("pages_empty", errors.empty, errors.succeeded),
            Shortfall("documents_cut", errors.cut, errors.succeeded),
            Shortfall("formats_missing", len(self._missing), len(formats)),
        )
        return [one for one in found if one.number]

    def written(self) -> None:
        """Log empty pages, cut pages, and missing formats."""
        errors = self.errors
        if errors.empty:
            self._log.warning(
                "%d of %d pages have no content, such as %s. Open it in a browser to see whether its site has one",
                *(errors.empty, errors.succeeded, errors.first_empty),
            )
        if errors.cut:
            self._log.warning(
                "%d of %d pages are cut, such as %s", errors.cut, errors.succeeded, errors.first_cut
            )
            self._log.warning(
                "To read more, raise maxPages of the PDF parser in parsers; with credit_limit, the task may have set it"
            )
        if self._missing and not self._fails:
            self._log.warning(
                "No page has the requested formats %s. The server is %s; its first warning: %s",
                ", ".join(self._missing),
                self._server,
                errors.first_warning or "none",
            )
            if lack := self._lack():
                self._log.warning("The server does not support them: %s", lack)

    def verdict(self) -> None:
        """Fail the task if the pages of its job have none of the requested formats.

        :raises UnsupportedError: no page has a requested format.
        """
        if not self._fails:
            return
        names = ", ".join(self._missing)
        lack = f"{self._server} returns pages without {names}"
        if warning := self.errors.first_warning:
            lack += f" and warns: {warning}"
        if known := self._lack():
            lack = f"{lack}; {known}"
        text = f"No page has a requested format ({names}); the results are published anyway, and are in XCom"
        raise UnsupportedError(self._operation, 200, text, lack=lack)

    def _lack(self) -> str | None:
        """Return what the server lacks according to its first warning, as the rest of a sentence about it, or None."""
        request = self._request() if self._request is not None else {}
        return part_in_remark(self.errors.first_warning or "", request)

    @property
    def _fails(self) -> bool:
        # One page of a call may lack its formats by itself, and a search has results without pages.
        return self._is_job and self._formats.lacks_all

    @property
    def _server(self) -> str:
        return self._client().base_url


def _may_be_scraped(item: Any, kind: str) -> bool:
    return isinstance(item, Mapping) and (kind != "search" or item.get("source") in _SCRAPED)
