# SPDX-License-Identifier: Apache-2.0
"""Log lines about pages from the service's cache."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_webdata.runs.pages.cached_pages import CachedPages


def page(state: Any = "hit", **age: float) -> dict[str, Any]:
    cached_at = (datetime.now(timezone.utc) - timedelta(**age)).isoformat() if age else None
    return {"metadata": {"cacheState": state, "cachedAt": cached_at}}


@pytest.mark.parametrize(
    ("age", "words"),
    [
        ({"seconds": 40}, "40 seconds old"),
        ({"seconds": 125}, "2 minutes old"),
        ({"minutes": 61}, "1 hour old"),
        ({"hours": 5}, "5 hours old"),
        ({"days": 2}, "2 days old"),
        ({"seconds": -90}, "a few seconds old"),
    ],
)
def test_age(age: dict[str, float], words: str) -> None:
    """A clock that is behind the service's makes nothing younger than new."""
    cached = CachedPages()
    cached.add(page(**age))
    assert cached.age().endswith(f", {words}")


def test_oldest() -> None:
    cached = CachedPages()
    for document in (page(days=3), page("miss", days=9), page(hours=1), page(), {}, {"metadata": None}):
        cached.add(document)
    assert cached.count == 3
    assert cached.age().endswith("3 days old")


def test_unknown() -> None:
    cached = CachedPages()
    cached.add(page())
    assert (cached.count, cached.age()) == (1, "of an unknown time")
