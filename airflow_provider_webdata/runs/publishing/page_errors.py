# SPDX-License-Identifier: Apache-2.0
"""The failed, empty, and cut pages among a task's results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.common.item_urls import is_cut, page_problem, site_failed, url_of
from airflow_provider_webdata.results.pages.visible_text import is_empty
from airflow_provider_webdata.runs.failures import FailureGroups

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MAX_LISTED = 100
"""Maximum page errors to list; all are counted."""

_MAX_NAMED = 5
_MISSING = "neither returned nor reported as failed"
_LOST = "lost by the server"


class FailedPage(NamedTuple):
    """A page that failed.

    :param code: the service's code, or the site's HTTP status as text.
    :param status: the site's HTTP status.
    """

    url: str | None
    error: str | None
    code: str | None
    status: int | None = None

    def reason(self) -> str:
        """Return the code and the error, as text without the page's URL."""
        if self.code and self.error and str(self.url) not in self.error:
            return f"{self.code}: {trimmed(self.error, 120)}"
        return str(self.code or self.error or "no reason given")


@dataclass
class PageErrors:
    """The pages of a task that failed, are empty or cut, or have a warning.

    :param failed: number of failed pages.
    :param succeeded: number of pages without an error.
    :param robots_blocked: number of URLs that were not fetched because robots.txt forbids it.
    :param is_known: False if the service does not list the failed pages; `failed` then has those among the documents.
    :param skipped: entries of the result that are no pages.
    :param returned: all entries of the result.
    :param pages: the first failed ones.
    :param groups: all failed ones by their reason.
    :param missing: number of requested pages that were neither returned nor reported as failed.
    :param missing_urls: the first URLs among which they are.
    :param is_forgotten: True if the server does not know the job anymore whose pages it returned.
    :param are_lost: True if the server lost the missing pages.
    :param empty: number of pages without an error and without content.
    :param first_empty: URL of the first of these.
    :param cut: number of pages whose document has more pages than were read.
    :param first_cut: the first of these, as text.
    :param warned: number of pages with a warning.
    :param first_warning: the first of these warnings.
    """

    failed: int = 0
    succeeded: int = 0
    robots_blocked: int = 0
    is_known: bool = True
    skipped: int = 0
    returned: int = 0
    pages: list[FailedPage] = field(default_factory=list)
    groups: FailureGroups = field(default_factory=FailureGroups)
    missing: int = 0
    missing_urls: list[str] = field(default_factory=list)
    is_forgotten: bool = False
    are_lost: bool = False
    empty: int = 0
    first_empty: str = ""
    cut: int = 0
    first_cut: str = ""
    warned: int = 0
    first_warning: str = ""

    def add_failed(
        self, url: str | None, error: str | None, code: str | None, status: int | None = None
    ) -> None:
        """Count a failed page; see `FailedPage`."""
        self.failed += 1
        page = FailedPage(url, error, code, status)
        # The text may name the page.
        self.groups.add(str(url), page.reason())
        if len(self.pages) < MAX_LISTED:
            self.pages.append(page)

    def add_document(
        self, document: Mapping[str, Any], *, text_formats: Collection[str] | None = None
    ) -> bool:
        """Count a page, with wire names, and return whether it was read; an error status of its site is a failure.

        :param text_formats: see `visible_text.is_empty`.
        """
        if warning := document.get("warning"):
            self.warned += 1
            self.first_warning = self.first_warning or str(warning)
        metadata = metadata_of(document)
        if site_failed(metadata):
            url, status = metadata.get("sourceURL") or metadata.get("url"), metadata.get("statusCode")
            self.add_failed(
                url or document.get("url"),
                page_problem(metadata),
                None if status is None else str(status),
                status if type(status) is int else None,
            )
            return False
        self.succeeded += 1
        if is_empty(document, text_formats=text_formats):
            self.empty += 1
            self.first_empty = self.first_empty or url_of(document) or "a page without URL"
        if is_cut(metadata):
            self.cut += 1
            url = metadata.get("sourceURL") or metadata.get("url") or metadata.get("sourceFile")
            read, total = metadata["numPages"], metadata["totalPages"]
            self.first_cut = self.first_cut or f"{url} ({read} of {total} pages)"
        return True

    def first_few(self) -> str:
        """Return the first failed and missing pages as text."""
        named = [f"{page.url} ({page.reason()})" for page in self.pages[:_MAX_NAMED]]
        named += [f"{url} ({self._missing_because})" for url in self.missing_urls[: _MAX_NAMED - len(named)]]
        if self.missing and (self.are_lost or not self.missing_urls):
            named.insert(0, f"{self.missing} pages {self._missing_because}")
        # The advice after them must fit into a message, and XCom `failure` lists them.
        return trimmed("; ".join(named), 400)

    def reasons(self) -> list[dict[str, Any]]:
        """Return the first failed and missing pages, for XCom `failure`."""
        named = [page._asdict() for page in self.pages[:_MAX_NAMED]]
        left = self.missing_urls[: _MAX_NAMED - len(named)]
        return named + [FailedPage(url, self._missing_because, None)._asdict() for url in left]

    @property
    def _missing_because(self) -> str:
        return _LOST if self.are_lost else _MISSING

    def to_wire(self) -> dict[str, Any]:
        """Return the XCom form."""
        pages = [{"url": page.url, "error": page.error, "code": page.code} for page in self.pages]
        if not self.is_known:
            return {"count": None, "robots_blocked": None, "pages": pages}
        return {"count": self.failed, "robots_blocked": self.robots_blocked, "pages": pages}


def metadata_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of a page; empty if it has none."""
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
