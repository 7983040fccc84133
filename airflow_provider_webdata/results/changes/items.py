# SPDX-License-Identifier: Apache-2.0
"""The items of a task with `changes`, as its file has them."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.surrogates import is_utf8
from airflow_provider_webdata.results.columns import REMOVED_AT, SOURCE, VERSION
from airflow_provider_webdata.results.pages.urls import canonical_url
from airflow_provider_webdata.results.tagged_items import tagged
from airflow_provider_webdata.results.tombstones import Tombstone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.results.changes.pages import Page

_MOST_BYTES = 2_000
_SHORTENED_BYTES = 1_900
_SHORTENED = re.compile(r".*\.\.\.[0-9a-f]{32}", re.DOTALL)


def key_of(text: str) -> str:
    """Return a URL, or the identity of a record, as a key that every database can index.

    NUL and lone surrogates are escaped. A key of more than 2,000 bytes is cut, and gets a digest.
    """
    if "\0" in text or not is_utf8(text):
        text = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    if len(text) * 4 <= _MOST_BYTES or len(encoded := text.encode()) <= _MOST_BYTES:
        return text
    digest = hashlib.blake2b(encoded, digest_size=16).hexdigest()
    return f"{encoded[:_SHORTENED_BYTES].decode(errors='ignore')}...{digest}"


def is_shortened(key: str) -> bool:
    """Return whether a key was cut, so that it is no URL; see `key_of`."""
    return len(key) * 4 > _SHORTENED_BYTES and _SHORTENED.fullmatch(key) is not None


def page_key(url: str, *, ignore_query: bool = False) -> str:
    """Return the key of a page; see `urls.canonical_url`."""
    return key_of(canonical_url(url, ignore_query=ignore_query))


def emitted_item(
    item: Mapping[str, Any], change: str, page: str, version: int, source: str
) -> dict[str, Any]:
    """Return an item of a page that a run emits.

    :param change: `new`, `changed`, or `same`.
    :param page: its key.
    :param source: see `columns.SOURCE`.
    """
    return tagged(item, change=change, page=page, **{VERSION: version, SOURCE: source})


def unversioned_item(item: Mapping[str, Any], change: str, page: str | None) -> dict[str, Any]:
    """Return an item of a failed page, or of one that has no key.

    :param change: `failed` or `new`.
    :param page: its key, if any.
    """
    return tagged(item, change=change, **({} if page is None else {"page": page}))


def removed_item(page: Page, kind: str, source: str, moment: int) -> Tombstone:
    """Return the item of a removed page.

    :param kind: kind of the page's own items, see `columns.columns_of`.
    :param moment: time of the run, in seconds since the epoch.
    """
    return Tombstone(
        kind,
        change="removed",
        page=page.key,
        url=page.key,
        lastSeen=_time(page.seen),
        **{VERSION: page.version, REMOVED_AT: _time(moment), SOURCE: source},
    )


def _time(moment: int) -> str:
    return datetime.fromtimestamp(moment, timezone.utc).isoformat()
