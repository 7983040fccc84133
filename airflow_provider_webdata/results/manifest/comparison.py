"""Comparison of a run's items with the known pages, one item at a time."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.common.dates import moment as moment_of
from airflow_provider_webdata.common.item_urls import is_gone, may_be_unserved, site_failed, url_of
from airflow_provider_webdata.results.changes.content import digest
from airflow_provider_webdata.results.manifest.entries import (
    MAYBE_CHANGED,
    MAYBE_NEW,
    Change,
    Entry,
    shared_entry,
)
from airflow_provider_webdata.results.pages.urls import canonical_url

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from airflow_provider_webdata.results.changes.content import Compare

CHANGES: tuple[Change, ...] = ("new", "changed", "same", "known", "removed", "failed")
_READ: tuple[Change, ...] = ("new", "changed", "same")


class Compared(NamedTuple):
    """The outcome of an item.

    :param page: the page's canonical URL, if the item's own URL differs.
    :param is_repeated: True if an earlier item of the run has the same key; its outcome counts.
    """

    change: Change
    page: str | None = None
    is_repeated: bool = False


class Comparison:
    """A comparison of a run's items with the known pages.

    :param known: the pages known before, by key; owned by the comparison.
    :param moment: time of the run, ISO 8601.
    :param seen: time since when a page may have changed again, ISO 8601. Default: the time of the run. For a page from
        the service's cache, this is at most the time when it was cached.
    :param compare: the compared content.
    :param ignore_query: True if URLs that differ only in their query are the same page.
    :param key: returns the identity of a record; a record with `error` failed. Default: the URL of pages and links.
    :ivar counts: number of items so far, by change, each key once.
    :ivar repeated: number of items whose key an earlier item has.
    :ivar known: number of pages known before.
    :ivar held_back: number of removals that were suppressed because they exceeded the maximum.
    """

    def __init__(
        self,
        known: dict[str, Entry],
        moment: str,
        compare: Compare | tuple[str, ...],
        *,
        ignore_query: bool = False,
        key: Callable[[Mapping[str, Any]], str | None] | None = None,
        seen: str | None = None,
    ) -> None:
        self.counts: Counter[Change] = Counter()
        self.repeated = 0
        self.known = len(known)
        self.held_back = 0
        self._entries = known
        self._unread: set[str] = set()
        self._doubtful: set[str] = set()
        self._gone: set[str] = set()
        self._moment = moment
        self._seen = seen or moment
        self._compare = compare
        self._ignore_query = ignore_query
        self._own_key = key

    def change_of(self, item: Mapping[str, Any]) -> Compared:
        """Count an item, and return whether it is new, changed, the same, or a failed page."""
        if self._own_key is None:
            url = url_of(item)
            key = None if url is None else canonical_url(url, ignore_query=self._ignore_query)
        else:
            url = key = self._own_key(item)
            if "error" in item:
                self.counts["failed"] += 1
                return Compared("failed")
        if url is None or key is None:
            # An item without a URL cannot be recognized again.
            self.counts["new"] += 1
            return Compared("new")
        before = self._entries.get(key)
        change = self._change_of(item, url, key)
        is_repeated = change != "failed" and before is not None and before.change is not None
        if is_repeated:
            self.repeated += 1
        else:
            self.counts[change] += 1
        return Compared(change, None if key == url else key, is_repeated)

    def _change_of(self, item: Mapping[str, Any], url: str, key: str) -> Change:
        status, seen = None, self._seen
        if isinstance(metadata := item.get("metadata"), dict):
            code = metadata.get("statusCode")
            status = code if isinstance(code, int) else None
            if metadata.get("cacheState") == "hit":
                cached = moment_of(str(metadata.get("cachedAt")))
                if cached is not None and cached < datetime.fromisoformat(seen):
                    seen = cached.isoformat()
            if site_failed(metadata):
                (self._gone if is_gone(metadata) else self._unread).add(key)
                if is_gone(metadata) and may_be_unserved(item):
                    self._doubtful.add(key)
                return "failed"
        known = self._entries.get(key)
        if known is not None and known.change is not None:
            return known.change
        found = digest(item, self._compare)
        change = self._judged(item, known, found)
        if change is None:
            return "failed"
        moment = self._moment
        self._entries[key] = shared_entry(
            None if key == url else url,
            found,
            status,
            moment if known is None else known.first_seen,
            seen,
            known.changed if known is not None and change == "same" else moment,
            0,
            change,
            known is not None and known.digest in (MAYBE_NEW, MAYBE_CHANGED),
            None if seen == moment else moment,
        )
        return change

    def _judged(self, item: Mapping[str, Any], known: Entry | None, found: str) -> Change | None:
        """Return the change; None if the service reports that the page is gone."""
        said = None
        if self._compare == "changeTracking":
            tracking = item.get("changeTracking")
            said = tracking.get("changeStatus") if isinstance(tracking, dict) else None
            if said == "removed":
                return None
        if known is None or known.digest == MAYBE_NEW:
            return "new"
        if said is not None and known.digest != MAYBE_CHANGED:
            return "same" if said == "same" else "changed"
        return "same" if known.digest == found else "changed"

    def leave(self, keys: Iterable[str]) -> None:
        """Count existing pages that were not requested, and retain their known content."""
        for key in keys:
            entry = self._entries.get(key)
            if entry is not None and entry.change is None:
                self._entries[key] = _with(entry, entry.missing, "known")
                self.counts["known"] += 1

    def spare(self, urls: Iterable[str]) -> None:
        """Do not count pages as missing in this run.

        :param urls: URLs of pages that could not be fetched, and may exist.
        """
        self._unread.update(canonical_url(url, ignore_query=self._ignore_query) for url in urls)

    def removed(
        self, after: int, most: int, requested: Collection[str] | None = None, *, by_links: bool = False
    ) -> dict[str, Entry]:
        """Remove the pages that the last runs have not seen, and return them by key.

        A run in which a page failed counts only if its site reported that the page does not exist. Call the method
        once, at the end of a complete run. If the server may have reported it instead, the run counts only if it read
        another page of the host.

        A page that was not found by links remains while another one cannot be read that was last read in the same run:
        perhaps only that links to it.

        :param after: number of runs without a page after which it is removed.
        :param most: maximum removals. If exceeded, no page is removed, and the next run decides again.
        :param requested: keys of the pages that the run could have seen; None: all.
        :param by_links: True if the run finds pages by the links of others.
        """
        if self._doubtful:
            read = {_host(key) for key, entry in self._entries.items() if entry.change in _READ}
            self._unread.update(key for key in self._doubtful if _host(key) not in read)
        unseen = [
            key
            for key, entry in self._entries.items()
            if entry.change is None and key not in self._unread and (requested is None or key in requested)
        ]
        unread = self._unread & self._entries.keys() if by_links else ()
        outages = {self._entries[key].last_found for key in unread}
        gone: dict[str, Entry] = {}
        for key in unseen:
            entry = self._entries[key]
            self._entries[key] = entry = _with(entry, entry.missing + 1, None)
            if entry.missing >= after and (key in self._gone or entry.last_found not in outages):
                gone[key] = entry
        if len(gone) > most:
            self.held_back = len(gone)
            return {}
        for key in gone:
            del self._entries[key]
        self.counts["removed"] += len(gone)
        return gone

    def entries(self) -> Mapping[str, Entry]:
        """Return the known pages after the run, by key."""
        return self._entries


def _host(key: str) -> str:
    return key.partition("://")[2].partition("/")[0]


def _with(entry: Entry, missing: int, change: Change | None) -> Entry:
    return shared_entry(
        entry.url,
        entry.digest,
        entry.status,
        entry.first_seen,
        entry.last_seen,
        entry.changed,
        missing,
        change,
        found=entry.found,
    )
