"""Metrics of Airflow's own components, triggerer and API server: theirs is not the backend of tasks."""

from __future__ import annotations


def count(name: str, /, **tags: str) -> None:
    """Add one to a counter."""
    from airflow.observability.stats import Stats

    Stats.incr(name, tags=tags)


def timing(name: str, seconds: float, /, **tags: str) -> None:
    """Record how long something took."""
    from airflow.observability.stats import Stats

    Stats.timing(name, seconds * 1000, tags=tags)
