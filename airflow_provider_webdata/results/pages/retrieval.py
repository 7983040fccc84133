# SPDX-License-Identifier: Apache-2.0
"""Flat documents for retrieval: one row per page, with a stable id for upserts and deletes in vector stores.

Chunking and embedding are up to the user.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.item_urls import url_of
from airflow_provider_webdata.common.surrogates import is_utf8
from airflow_provider_webdata.results.columns import OF_A_RUN, VERSION
from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.pages.visible_text import is_blank
from airflow_provider_webdata.results.tombstones import Tombstone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KIND = "retrieval"
"""The kind of flat documents in `columns.columns_of`."""

_TEXTS = ("markdown", "summary", "html", "description", "snippet")
# Fields that differ between runs for the same page, and fields that have columns.
_OF_A_CALL = frozenset(
    {"scrapeId", "cachedAt", "cacheState", "creditsUsed", "proxyUsed", "concurrencyLimited"}
    | {"concurrencyQueueDurationMs", "indexId", "url", "title"}
)
_BESIDE = ("query", "source", "category", "date")


def flat_documents(items: Iterable[Any], source: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield items as flat documents: `id`, `url`, `title`, `text`, `metadata`, and `digest`.

    `id` is a UUID derived from `url`, or from the digest if there is no URL; it is the same for a page in all runs.
    `url` is `page` in a task with `changes`, otherwise the item's URL (`item_urls.url_of`), otherwise `source`. `text`
    is the first available of markdown, summary, HTML, description, and snippet; otherwise empty. `metadata` describes
    the page, but not the call that returned it. `digest` is the SHA-256 of the text, in hexadecimal.

    With `changes`, the fields of the run come first, and a removed page has only these, `id`, `url`, and `lastSeen`.

    :param items: pages, search results or links, as the service sent them.
    :param source: URL or path of an item that has no URL.
    """
    for item in items:
        yield flat_document(item if isinstance(item, Mapping) else {"markdown": json_text(item)}, source)


def flat_document(item: Mapping[str, Any], source: str | None = None) -> dict[str, Any]:
    """Return an item as a flat document; see `flat_documents`."""
    of_run = {name: item[name] for name in OF_A_RUN if name in item} if "change" in item else {}
    key = url_of(item) or source
    if isinstance(item, Tombstone):
        return Tombstone(KIND, **of_run, id=_id(key or ""), url=key, lastSeen=item.get("lastSeen"))
    if VERSION in of_run:
        key = item["page"]
    given = item.get("metadata")
    page: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    text = next((text for name in _TEXTS if (text := _text(item.get(name)))), "")
    digest = hashlib.sha256(text.encode()).hexdigest()
    beside = {name: item[name] for name in _BESIDE if item.get(name) is not None}
    about = {name: value for name, value in page.items() if name not in _OF_A_CALL and value is not None}
    return {
        **of_run,
        "id": _id(key or digest),
        "url": key,
        "title": _text(item.get("title")) or _text(page.get("title")),
        "text": text,
        "metadata": {**beside, **about},
        "digest": digest,
    }


def _id(key: str) -> str:
    # Some vector stores accept only UUIDs. uuid5 hashes UTF-8, which cannot encode lone surrogates.
    return str(uuid.uuid5(uuid.NAMESPACE_URL, key.encode("utf-8", "backslashreplace").decode()))


def _text(value: Any) -> str | None:
    if not isinstance(value, str) or is_blank(value):
        return None
    return value if is_utf8(value) else value.encode("utf-8", "backslashreplace").decode()
