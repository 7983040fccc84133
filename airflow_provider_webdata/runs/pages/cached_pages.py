"""Count of pages served from the service's cache, for the task log."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.dates import moment, span

if TYPE_CHECKING:
    from collections.abc import Mapping


class CachedPages:
    """Counts the pages served from the cache, and finds the oldest."""

    def __init__(self) -> None:
        self.count = 0
        self._cached_at: list[tuple[datetime, str]] = []

    def add(self, document: Mapping[str, Any]) -> None:
        """Count a page, with wire names, if it came from the cache."""
        metadata = document.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("cacheState") != "hit":
            return
        self.count += 1
        text = str(metadata.get("cachedAt"))
        if (cached_at := moment(text)) is not None:
            self._cached_at = [min([*self._cached_at, (cached_at, text)])]

    def age(self) -> str:
        """Return text with the cache time and the age of the oldest page."""
        if not self._cached_at:
            return "of an unknown time"
        ((cached_at, text),) = self._cached_at
        age = max(0.0, (datetime.now(timezone.utc) - cached_at).total_seconds())
        return f"of {text}, {span(age)} old"
