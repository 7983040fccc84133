# SPDX-License-Identifier: Apache-2.0
"""Metrics of Airflow's triggerer and API server, which do not use the metrics backend of tasks."""

from __future__ import annotations

import re

_MAX_TAG = 100


def count(name: str, number: int = 1, /, **tags: str) -> None:
    """Increment a counter."""
    from airflow.observability.stats import Stats

    Stats.incr(name, number, tags=safe_tags(tags))


def timing(name: str, seconds: float, /, **tags: str) -> None:
    """Record a duration."""
    from airflow.observability.stats import Stats

    Stats.timing(name, seconds * 1000, tags=safe_tags(tags))


def safe_tags(tags: dict[str, str]) -> dict[str, str]:
    """Return tags that cannot end a line of StatsD, which would add other metrics: outsiders set some values."""
    return {name: re.sub(r"[^\w./()!-]+", "_", value)[:_MAX_TAG] for name, value in tags.items()}
