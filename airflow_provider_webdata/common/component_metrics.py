"""Metrics of Airflow's triggerer and API server, which do not use the metrics backend of tasks."""

from __future__ import annotations


def count(name: str, /, **tags: str) -> None:
    """Increment a counter."""
    from airflow.observability.stats import Stats

    Stats.incr(name, tags=tags)


def timing(name: str, seconds: float, /, **tags: str) -> None:
    """Record a duration."""
    from airflow.observability.stats import Stats

    Stats.timing(name, seconds * 1000, tags=tags)
