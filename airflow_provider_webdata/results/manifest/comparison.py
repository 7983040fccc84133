"""Compares the items of a run with the pages that were known before it, one item at a time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.results.item_urls import url_of
from airflow_provider_webdata.results.manifest.content import digest
from airflow_provider_webdata.results.manifest.entries import Entry
from airflow_provider_webdata.results.manifest.urls import canonical_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from airflow_provider_webdata.results.manifest.content import Compare

Change = Literal["new", "changed", "same", "known", "removed", "failed"]

CHANGES: tuple[Change, ...] = ("new", "changed", "same", "known", "removed", "failed")

_SITE_ERROR = 400


class Comparison:
    """What of a run's items is new, changed or the same.

    :param known: the pages that were known before, by key; taken over.
    :param moment: of the run, ISO 8601.
    :param compare: by what items are compared.
    :param ignore_query: whether URLs that differ in their query are one page.
    :param key: returns what identifies a record; one with `error` failed. Default: pages and links, by their URL.
    :ivar counts: of the items so far, by their change.
    :ivar known: how many pages were known before.
    :ivar held_back: how many pages would have been removed, where these were too many.
    """

    def __init__(
        self,
        known: dict[str, Entry],
        moment: str,
        compare: Compare | tuple[str, ...],
        *,
        ignore_query: bool = False,
        key: Callable[[Mapping[str, Any]], str | None] | None = None,
    ) -> None:
        self.counts: Counter[Change] = Counter()
        self.known = len(known)
        self.held_back = 0
        self._entries = known
        self._moment = moment
        self._compare = compare
        self._ignore_query = ignore_query
        self._own_key = key
        self._seen: dict[str, Change] = {}

    def change_of(self, item: Mapping[str, Any]) -> tuple[Change, str | None]:
        """Count an item, and return whether it is new, changed, the same, or a page that failed.

        The second value is the URL that the item's page has in all runs, where its own is spelled otherwise.
        """
        url, key = self._identity(item)
        if self._own_key is not None and "error" in item:
            self.counts["failed"] += 1
            return "failed", None
        if url is None or key is None:
            # What has no URL cannot be found again.
            self.counts["new"] += 1
            return "new", None
        change = self._change_of(item, url, key)
        self.counts[change] += 1
        return change, None if key == url else key

    def _change_of(self, item: Mapping[str, Any], url: str, key: str) -> Change:
        metadata = item.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        status = metadata.get("statusCode")
        if metadata.get("error") or (isinstance(status, int) and status >= _SITE_ERROR):
            return "failed"
        if (again := self._seen.get(key)) is not None:
            return again
        known = self._entries.get(key)
        found = digest(item, self._compare)
        change = self._judged(item, known, found)
        if change is None:
            return "failed"
        self._seen[key] = change
        moment = self._moment
        self._entries[key] = Entry(
            key,
            url,
            found,
            status if isinstance(status, int) else None,
            moment if known is None else known.first_seen,
            moment,
            known.changed if known is not None and change == "same" else moment,
        )
        return change

    def _identity(self, item: Mapping[str, Any]) -> tuple[str | None, str | None]:
        """Return what an item calls itself, and what it is called in all runs."""
        if self._own_key is not None:
            key = self._own_key(item)
            return key, key
        url = url_of(item)
        return url, None if url is None else canonical_url(url, ignore_query=self._ignore_query)

    def _judged(self, item: Mapping[str, Any], known: Entry | None, found: str) -> Change | None:
        """Return the change; None where the service says that the page is gone."""
        if self._compare == "changeTracking":
            tracking = item.get("changeTracking")
            said = tracking.get("changeStatus") if isinstance(tracking, dict) else None
            if said == "removed":
                return None
            if said is not None and known is not None:
                return "same" if said == "same" else "changed"
        if known is None:
            return "new"
        return "same" if known.digest == found else "changed"

    def leave(self, keys: Iterable[str]) -> None:
        """Count existing pages that were not requested, and keep their known content."""
        for key in keys:
            if key in self._entries and key not in self._seen:
                self._seen[key] = "known"
                self.counts["known"] += 1

    def removed(self, after: int, most: int) -> list[Entry]:
        """Forget, and return, the pages that the last runs have not seen; call it once, at the end of a whole run.

        :param after: so many runs that did not see a page make it a removed one.
        :param most: where there are more, none is removed, and the next run decides anew.
        """
        unseen = [entry for key, entry in self._entries.items() if key not in self._seen]
        for entry in unseen:
            entry.missing += 1
        gone = [entry for entry in unseen if entry.missing >= after]
        if len(gone) > most:
            self.held_back = len(gone)
            return []
        for entry in gone:
            del self._entries[entry.key]
        self.counts["removed"] += len(gone)
        return gone

    def entries(self) -> Iterable[Entry]:
        """Return the pages that are known after the run."""
        return self._entries.values()
