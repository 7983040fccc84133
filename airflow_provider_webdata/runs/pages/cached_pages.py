# SPDX-License-Identifier: Apache-2.0
"""Count of pages served from the service's cache, for the task log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pendulum

from airflow_provider_webdata.common.dates import moment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


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
        now = pendulum.now("UTC")
        # A clock that is ahead makes no page older than it is.
        age = now.diff_for_humans(pendulum.instance(min(cached_at, now)), absolute=True)
        return f"of {text}, {age} old"
