"""Shortfalls of the results of tasks that succeeded: XCom `incomplete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable

ShortfallKind = Literal[
    "pagesFailed",
    "pagesMissing",
    "entriesSkipped",
    "urlsInvalid",
    "mediaNotKept",
    "callsFailed",
    "searchesFailed",
    "searchesNotStarted",
    "overCreditLimit",
    "noResults",
    "removalsHeldBack",
    "sitemapsNotRead",
]

_TEXTS: dict[ShortfallKind, str] = {
    "pagesFailed": "{number} of {of} pages failed",
    "pagesMissing": "the service did not return {number} of {of} pages that it counts",
    "entriesSkipped": "{number} entries of the service's response could not be read",
    "urlsInvalid": "the service dropped {number} invalid URLs; XCom invalidURLs lists them",
    "mediaNotKept": "{number} of {of} media files were not kept",
    "callsFailed": "{number} of {of} calls failed",
    "searchesFailed": "{number} of {of} searches failed",
    "searchesNotStarted": "{number} of {of} searches were not started because of credit_limit; XCom left lists them",
    "overCreditLimit": "the job exceeded credit_limit; the results contain the pages scraped until then",
    "noResults": "no results, but earlier runs found {number} pages; check the site and the filters",
    "removalsHeldBack": "{number} pages seem to be gone, more than max_removed allows; no page was removed",
    "sitemapsNotRead": "{number} of {of} sitemaps were not read, so pages that changed may be missing; see the log",
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
