# SPDX-License-Identifier: Apache-2.0
"""A metrics backend that records every measurement, in place of Airflow's."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Recorder:
    """The measurements in order: kind, name, number, and tags."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, float, dict[str, Any]]] = []

    def incr(self, stat: str, count: int = 1, rate: float = 1, *, tags: dict[str, Any] | None = None) -> None:
        self.calls.append(("count", stat, count, dict(tags or {})))

    def gauge(self, stat: str, value: float, **more: Any) -> None:
        self.calls.append(("gauge", stat, value, dict(more.get("tags") or {})))

    def timing(self, stat: str, dt: Any, *, tags: dict[str, Any] | None = None) -> None:
        self.calls.append(("timing", stat, dt, dict(tags or {})))

    def of(self, name: str) -> list[dict[str, Any]]:
        """Return the tags of each measurement of a name."""
        return [tags for _, stat, _, tags in self.calls if stat == name]


@contextmanager
def recording(stats: Any) -> Iterator[Recorder]:
    """Record within this block.

    :param stats: Airflow's `Stats`, of tasks or of components.
    """
    more = (
        {"export_legacy_names": True}
        if "export_legacy_names" in inspect.signature(stats.initialize).parameters
        else {}
    )
    recorder = Recorder()
    stats.initialize(factory=lambda: recorder, **more)
    try:
        yield recorder
    finally:
        from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger

        stats.initialize(factory=NoStatsLogger, **more)
