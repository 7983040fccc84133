"""The kinds of long jobs."""

from __future__ import annotations

from typing import Any, Literal

from airflow_provider_webdata.common.coded_errors import ArgumentError

JobKind = Literal["crawl", "batch_scrape", "extract", "agent"]
"""The kinds of long jobs; also what the names of their events begin with."""

ALL_JOB_KINDS: tuple[JobKind, ...] = ("crawl", "batch_scrape", "extract", "agent")


def checked_kind(given: Any) -> JobKind:
    """Return the kind of a job.

    :raises ArgumentError: it is none of them.
    """
    if given not in ALL_JOB_KINDS:
        raise ArgumentError(f"kind must be one of {', '.join(ALL_JOB_KINDS)} (given: {given!r})")
    return given  # type: ignore[no-any-return]
