# SPDX-License-Identifier: Apache-2.0
"""Columns of items that a page may not have returned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.item_urls import site_failed
from airflow_provider_webdata.results.columns import CONTENT, EXTRA, OF_A_FOUND_PAGE, OF_SOME_RESULTS
from airflow_provider_webdata.results.files.json_lines import decoded
from airflow_provider_webdata.results.result_schema import ERRORS

if TYPE_CHECKING:
    from collections.abc import Collection

PARTIAL = 1
"""Mark of a row whose page returned no data of `Parts.together`."""

FAILED = 2
"""Mark of a search result whose page failed."""

REMOVED = 3
"""Mark of a removed page, whose row has only the columns of versions."""

OUTDATED = 4
"""Added to the mark of a row if the table has a newer version of it."""

_FLAT = frozenset({"id", "title", "text", "metadata", "digest"})
_PAGE = frozenset({"source_url", "status_code", "page_error"})


@dataclass(frozen=True)
class Parts:
    """The columns of pages, search results, or flat documents that a page may not have returned.

    :param sign: a column that is empty if the page did not return the columns of `together`.
    :param together: columns that a page returns together.
    :param formats: columns that are null if the page did not return them, or the source of a result has none.
    :param page: columns about the page of a search result; empty for pages and flat documents.
    """

    sign: str
    together: frozenset[str]
    formats: frozenset[str] = frozenset()
    page: frozenset[str] = frozenset()

    @property
    def of_failed(self) -> frozenset[str]:
        """Columns that a search result does not have if its page failed."""
        return self.page - {EXTRA.name, ERRORS.name}


def parts_of(names: Collection[str]) -> Parts | None:
    """Return the parts of a file's items; None if these are not pages, search results with pages, or flat documents.

    :param names: columns of the file.
    """
    if _FLAT.issubset(names):
        return Parts("text", frozenset({"text", "digest", "title"}))
    if not _PAGE.issubset(names):
        return None
    together = frozenset[str]()
    if "json" in names:
        together = frozenset(name for name in names if name.startswith("json_") or name == ERRORS.name)
    page = OF_A_FOUND_PAGE | together | {EXTRA.name} if "page_url" in names else frozenset[str]()
    # Of results of several sources, each lacks the columns of the others.
    lacking = OF_SOME_RESULTS if OF_SOME_RESULTS.issubset(names) else frozenset[str]()
    return Parts("json", together, CONTENT | lacking, page)


def has_failed(row: Mapping[str, Any]) -> bool:
    """Return whether the page of a row with `Parts` failed."""
    if site_failed({"statusCode": row.get("status_code"), "error": row.get("page_error")}):
        return True
    # Flat documents have the status in `metadata`. `extra` has values of another type than their column.
    metadata, extra = row.get("metadata"), row.get(EXTRA.name)
    return (metadata is not None and _has_failed(metadata)) or (
        extra is not None and _has_failed(extra, "metadata")
    )


def _has_failed(text: str, *path: str) -> bool:
    if '"statusCode":' not in text and '"error":' not in text:
        return False
    try:
        found = decoded(text)
    except (ValueError, RecursionError):
        return False
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return isinstance(found, Mapping) and site_failed(found)
