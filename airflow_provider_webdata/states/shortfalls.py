# SPDX-License-Identifier: Apache-2.0
"""Shortfalls of the results of tasks that succeeded: XCom `incomplete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable

ShortfallKind = Literal[
    "pages_failed",
    "pages_missing",
    "pages_lost",
    "failures_unknown",
    "entries_skipped",
    "urls_invalid",
    "media_not_kept",
    "calls_failed",
    "searches_failed",
    "searches_not_started",
    "over_credit_limit",
    "no_results",
    "rows_refused",
    "sitemaps_not_read",
    "pages_empty",
    "documents_cut",
    "formats_missing",
    "no_links",
]

_TEXTS: dict[ShortfallKind, str] = {
    "pages_failed": "{number} of {of} pages failed",
    "pages_missing": "{number} of {of} pages were neither returned nor reported as failed",
    "pages_lost": "the server lost {number} of {of} pages of the job",
    "failures_unknown": "the server no longer knows the failed pages of the job, so pages may be missing",
    "entries_skipped": "{number} entries of the service's response could not be read",
    "urls_invalid": "the service dropped {number} invalid URLs; XCom invalid_urls lists them",
    "media_not_kept": "{number} of {of} media files were not kept",
    "calls_failed": "{number} of {of} calls failed",
    "searches_failed": "{number} of {of} searches failed",
    "searches_not_started": "{number} of {of} searches were not started because of credit_limit; XCom left lists them",
    "over_credit_limit": "the job exceeded credit_limit; the results contain the pages scraped until then",
    "no_results": "no results, but earlier runs found {number} pages; check the site and the filters",
    "rows_refused": "{number} of {of} rows were not loaded, because their key is missing or too long; see the log",
    "sitemaps_not_read": "{number} of {of} sitemaps were not read, so pages that changed may be missing; see the log",
    "pages_empty": "{number} of {of} pages have no content",
    "documents_cut": "{number} of {of} pages are cut: only the first pages of a PDF were read; raise maxPages",
    "formats_missing": "{number} of {of} requested formats are on no page; see the log",
    "no_links": "the map has no links: the site has none, or could not be read",
}
_MAX_COUNT = 2**53


class Shortfall(NamedTuple):
    """One kind of thing that the results lack.

    :param kind: what they lack.
    :param number: number of these things.
    :param of: number of these things and of those that the results have; for kinds without a whole, equal to `number`.
    """

    kind: ShortfallKind
    number: int
    of: int

    def text(self) -> str:
        """Return the shortfall as a sentence without a period."""
        words = _TEXTS[self.kind].format(number=f"{self.number:,}", of=f"{self.of:,}")
        return words[0].upper() + words[1:]


def xcom_of(found: Iterable[Shortfall]) -> list[dict[str, Any]]:
    """Return the value of XCom `incomplete`, which `shortfalls` reads."""
    return [one._asdict() for one in found]


def shortfalls(value: Any) -> list[Shortfall]:
    """Return the shortfalls in a value of XCom `incomplete`, which any task may push; without malformed ones."""
    return [
        Shortfall(item["kind"], item["number"], item["of"])
        for item in (value if isinstance(value, list) else ())
        if isinstance(item, dict)
        and item.get("kind") in get_args(ShortfallKind)
        and _is_count(item.get("number"))
        and _is_count(item.get("of"))
    ]


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 < value < _MAX_COUNT
