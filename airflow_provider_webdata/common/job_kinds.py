"""Kinds of long-running jobs."""

from __future__ import annotations

from typing import Any, Literal

from airflow_provider_webdata.common.coded_errors import ArgumentError

JobKind = Literal["crawl", "batch_scrape", "extract", "agent"]
"""Kinds of long-running jobs, which are also the prefixes of their events."""

ALL_JOB_KINDS: tuple[JobKind, ...] = ("crawl", "batch_scrape", "extract", "agent")


def checked_kind(given: Any) -> JobKind:
    """Validate a kind of job, and return it.

    :raises ArgumentError: the kind is unknown.
    """
    if given not in ALL_JOB_KINDS:
        raise ArgumentError(f"kind must be one of {', '.join(ALL_JOB_KINDS)} (given: {given!r})")
    return given  # type: ignore[no-any-return]
